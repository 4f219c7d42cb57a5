"""Many callers on a few memories at once: every answer fits one order, says `linear`, which is judged itself."""

import pytest

from e2e.racing import Race
from e2e.requirements import requirement
from e2e.room import Room


@requirement("memory:races")
@pytest.mark.parametrize("seed", [1, 2])
def test_what_many_ask_of_a_few_memories_has_one_order(room: Room, seed: int) -> None:
    """Written, read and removed, half of it with an expectation; nothing acknowledged is lost."""
    race = Race(room, seed)
    race.run()
    said = {call.asked.answer.said for call in race.history if call.asked.answer}
    assert said == {"written", "found", "stale", "removed", "absent"}
    race.verdict()
