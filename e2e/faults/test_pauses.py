"""SIGSTOP of processes for seconds, under load: nothing tells a process that hangs from one that is far away."""

import pytest

from e2e.faults.havoc import LONG, under_fire
from e2e.harness import Hub
from e2e.requirements import requirement

pytestmark = [pytest.mark.faults, pytest.mark.timeout(600)]
PAUSES = 12
MOST_S = 6.0


@pytest.mark.parametrize("seed", range(50 if LONG else 1))
@requirement("faults:pause")
async def test_processes_that_hang_for_seconds_lose_and_repeat_nothing(fleet: Hub, seed: int) -> None:
    """Every process is stopped in its tracks, each twice, sometimes with another one beside it."""
    async with under_fire(fleet, seed) as havoc:
        names = list(havoc.victims()) * (PAUSES // len(havoc.victims()) or 1)
        havoc.random.shuffle(names)
        for name in names:
            await havoc.moment()
            await havoc.pause(name, havoc.random.uniform(0.5, MOST_S))
        await havoc.all_well()
