"""Each refusal that a hub can send is shown with what to do next, whether or not the hub names a command."""

from __future__ import annotations

import pytest

from mycelium_cli import next_steps
from mycelium_cli.errors import USAGE, exit_of_http
from mycelium_cli.problems import failure_of_problem
from mycelium_gateway import problems, slugs


@pytest.mark.parametrize("slug", slugs.SLUGS)
def test_a_refusal_of_the_hub_is_shown_with_what_helps(slug: str) -> None:
    """What was typed wrong leads to the help of the command; each other slug has a row of its own."""
    status = slugs.SLUGS[slug].status
    headers = {"retry-after": problems.RETRY_AFTER_S[status]} if status in problems.RETRY_AFTER_S else {}
    failure = failure_of_problem(status, {"slug": slug, "detail": "no"}, headers)
    assert failure.hint or failure.exit_status == USAGE
    assert slug in next_steps.KNOWN or exit_of_http(status) == USAGE


def test_no_next_step_is_for_a_refusal_that_there_is_not() -> None:
    """A slug that was renamed leaves no row behind."""
    assert set(next_steps.KNOWN) <= set(slugs.SLUGS)
