"""How errors are put into words."""

from __future__ import annotations

from mycelium_kernel.errors import Unavailable, words


def test_an_error_that_says_nothing_is_named_by_its_kind() -> None:
    """A line of a log, or of a refusal, never ends where its reason should stand."""
    assert words(TimeoutError()) == "TimeoutError"
    assert words(Unavailable("the log can't be reached")) == "the log can't be reached"
