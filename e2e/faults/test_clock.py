"""Clocks that jump under load, each process's by itself. NATS keeps its own clock; nothing here can move that."""

import json
from pathlib import Path

import pytest

from e2e.faults.builds import CLOCK, switched_on
from e2e.faults.conftest import MakeHub
from e2e.faults.havoc import LONG, under_fire
from e2e.requirements import requirement

pytestmark = [pytest.mark.faults, pytest.mark.timeout(300)]
HOUR_S, DAY_S = 3600, 86400
JUMPS_S = (0, 1, -1, 90, -90, HOUR_S, -HOUR_S, DAY_S, -DAY_S, 400 * DAY_S, -400 * DAY_S)
APART_S = (0, 0.3, -0.3, 2, -2)  # what deadlines bear: a request that seems older than its caller waits is refused
EACH = ("--name rooms-2", "--name rooms", "--name gateway-2", "--name gateway")


@pytest.mark.parametrize("seed", range(20 if LONG else 1))
@requirement("faults:clock")
async def test_clocks_that_jump_lose_repeat_and_reorder_nothing(make_hub: MakeHub, tmp_path: Path, seed: int) -> None:
    """The machine's jumps by a second or a year, forwards and backwards; those of its processes differ by seconds."""
    clocks = tmp_path / "clocks.json"
    hub = make_hub({**switched_on(CLOCK), "E2E_CLOCK": str(clocks)})
    async with under_fire(hub, seed) as havoc:
        for _ in range(25):
            await havoc.moment(20)
            jump_s = havoc.random.choice(JUMPS_S)
            clocks_s = {part: jump_s + havoc.random.choice(APART_S) for part in EACH}
            havoc.record.note(f"clocks are off by {clocks_s}")
            clocks.write_text(json.dumps(clocks_s))
