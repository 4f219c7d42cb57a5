"""What is left out of the collector's passes, and when full passes do not begin."""

from __future__ import annotations

import gc
import subprocess
import sys

from mycelium_kernel.collector import Rush

FULL = 2


def full_passes() -> int:
    return int(gc.get_stats()[FULL]["collections"])


def fill() -> None:
    """Make so much that lasts for a moment that a full pass would be due many times."""
    kept = [[[number]] for number in range(200_000)]
    assert kept


def test_no_full_pass_begins_in_a_rush_and_some_do_again_after_it() -> None:
    """Also when several overlap: the last that leaves ends it."""
    usual, rush = gc.get_threshold(), Rush()
    with rush:
        with rush:
            pass
        before = full_passes()
        fill()
        assert full_passes() == before
    assert gc.get_threshold() == usual
    before = full_passes()
    fill()
    assert full_passes() > before


def test_what_start_up_made_is_looked_at_no_more() -> None:
    """In a process of its own, since there is no way back that leaves the rest of these tests alone."""
    code = """
import gc, json, http.client, email.message
from mycelium_kernel import collector
before = len(gc.get_objects())
collector.settle()
assert len(gc.get_objects()) < before / 10, (before, len(gc.get_objects()))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
