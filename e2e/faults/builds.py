"""Test builds of the product: which changes there are, and the environment that switches them on."""

from pathlib import Path

FOLDER = Path(__file__).parent / "altered"
EARLY = "acknowledges_early"
WILDCARD = "expects_over_a_wildcard"
CURSOR = "moves_the_cursor_at_delivery"
NOW = "expects_what_is_there_now"
OLD = "answers_from_old_tables"
CLOCK = "has_another_clock"
STEP = "dies_at_a_step"
TOKEN = "renews_under_any_token"
RENEWED = "ends_what_was_renewed"
RACES = 8  # until two meet in one; mostly the first, where the machine does nothing else


def switched_on(*builds: str) -> dict[str, str]:
    """The environment of a hub that has these changes."""
    for build in builds:
        assert (FOLDER / f"{build}.py").is_file(), build
    return {"PYTHONPATH": str(FOLDER), "E2E_BUILD": ",".join(builds)}
