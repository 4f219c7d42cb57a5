"""Lines that break at any byte, between clients and the hub, and between the hub's processes and NATS."""

import pytest

from e2e.faults.cutting import Cutting
from e2e.faults.havoc import LONG, under_fire
from e2e.harness import Hub
from e2e.requirements import requirement

pytestmark = [pytest.mark.faults, pytest.mark.timeout(300)]
CUTS = 2000 if LONG else 300


@pytest.mark.parametrize("seed", range(20 if LONG else 1))
@requirement("faults:cut")
async def test_lines_cut_at_any_byte_lose_and_repeat_nothing(fleet: Hub, seed: int) -> None:
    """Half of all connections end within a request or an answer; processes are killed meanwhile, too."""
    async with Cutting(fleet.url, seed) as line, under_fire(fleet, seed, url=line.url) as havoc:
        while line.cuts < CUTS:
            await havoc.moment(40)
            await havoc.kill(havoc.random.choice([name for name in havoc.victims() if name != "hub"]))
        havoc.record.note(f"{line.cuts} lines were cut")
