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
JUMPS_S = (0, 0.5, -0.5, 5, -5, 90, -90, HOUR_S, -HOUR_S, DAY_S, -DAY_S, 400 * DAY_S, -400 * DAY_S)
PARTS = ("mycelium_rooms --home {home} --name rooms-2", "mycelium_rooms", "--name gateway-2", "mycelium_gateway", "")


@pytest.mark.parametrize("seed", range(20 if LONG else 1))
@requirement("faults:clock")
async def test_clocks_that_jump_lose_repeat_and_reorder_nothing(make_hub: MakeHub, tmp_path: Path, seed: int) -> None:
    """Forwards and backwards, by a moment and by a year; now all together, now each on its own."""
    clocks = tmp_path / "clocks.json"
    hub = make_hub({**switched_on(CLOCK), "E2E_CLOCK": str(clocks)})
    async with under_fire(hub, seed) as havoc:
        for _ in range(25):
            await havoc.moment(20)
            parts = [part.format(home=hub.home) for part in PARTS]
            jumps = {part: havoc.random.choice(JUMPS_S) for part in havoc.random.choice([parts, parts[-1:]])}
            havoc.record.note(f"clocks are off by {list(jumps.values())} s")
            clocks.write_text(json.dumps(jumps))
