"""How points in time are read."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from mycelium_gateway.moments import moment
from mycelium_kernel.errors import Refusal

NOW = datetime(2026, 9, 3, 16, 40, 0, 250_000, UTC)


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("90s", "2026-09-03T16:38:30.250Z"),
        ("30m", "2026-09-03T16:10:00.250Z"),
        (" 2h ", "2026-09-03T14:40:00.250Z"),
        ("1d", "2026-09-02T16:40:00.250Z"),
        ("1w", "2026-08-27T16:40:00.250Z"),
        ("today", "2026-09-03T00:00:00.000Z"),
        ("", ""),
        ("2026-09-03T16:40:00Z", "2026-09-03T16:40:00Z"),
        ("2026-09-03T16:40:00.000Z~42", "2026-09-03T16:40:00.000Z~42"),
        ("soon", "soon"),
    ],
)
def test_an_age_becomes_a_moment_and_the_rest_stays(text: str, read: str) -> None:
    """What is no age is for the history's owner to judge."""
    assert moment(text, NOW, "since") == read


def test_an_age_before_the_calendar_is_refused() -> None:
    """Not a fault: the caller is told which parameter."""
    with pytest.raises(Refusal, match=r"query\.since"):
        moment("999999w", NOW, "since")
