"""What `engine budget` prints, whole."""

from mycelium_cli.engine.budget import draw_budget, one_line
from mycelium_cli.output import PLAIN

NOW_S = 1_788_540_300.0  # 2026-09-04 at 16:45 UTC
BUDGET = {
    "turns": {"used": 3, "limit": 20, "set_by": "room"},
    "tokens": {"used": 1874, "limit": None, "set_by": "hub"},
    "usd": {"used": 0.0124, "limit": 5.0, "set_by": "hub"},
    "input_tokens": 1402,
    "output_tokens": 472,
    "since": "2026-09-04T15:45:00.000Z",
    "unreported": 0,
    "lost": 1,
    "unpriced": 2,
}
NOTHING = {"used": 0, "limit": None, "set_by": "hub"}


def test_a_budget_is_a_table_and_what_is_not_known() -> None:
    """Used, limit, whose limit; since when; nothing is rounded away."""
    assert list(draw_budget(BUDGET, NOW_S, PLAIN)) == [
        "        USED     LIMIT  SET BY",
        "turns   3        20     the room",
        "tokens  1,874    none   the hub",
        "usd     $0.0124  $5.00  the hub",
        "counted since 1h ago; tokens: 1,402 read, 472 written",
        "not known: what 1 turn took (no answer came)",
        "not known: what 2 turns took (no price is known)",
    ]


def test_a_line_says_what_is_limited_or_turns_and_money() -> None:
    """For `engine show`."""
    unlimited = BUDGET | dict.fromkeys(("turns", "tokens", "usd"), NOTHING)
    assert one_line(BUDGET) == "3 of 20 turns, $0.0124 of $5.00 used in this room"
    assert one_line(unlimited) == "0 turns, $0.00 used in this room"
