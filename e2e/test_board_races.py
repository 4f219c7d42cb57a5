"""Many callers on a few tasks at once: every answer fits one order, says `linear`, which is judged itself."""

import pytest

from e2e.claiming import ClaimRace
from e2e.requirements import requirement
from e2e.room import Room


@requirement("board:races")
@pytest.mark.parametrize("seed", [1, 2])
async def test_what_many_ask_of_a_few_tasks_has_one_order(room: Room, seed: int) -> None:
    """Claimed, for another and by force too; renewed, given back, resolved, looked at; many last a second."""
    race = ClaimRace(room, seed, calls=500)
    await race.run()
    assert race.said() == {"claim", "held", "lost", "none", "done", "row", "closed"}
    race.verdict()
