"""SIGKILL of every process of a hub under load, one at a random moment after the other; then all is counted."""

import pytest

from e2e.faults.havoc import LONG, under_fire
from e2e.harness import Hub
from e2e.requirements import requirement

pytestmark = pytest.mark.faults
EACH = 10  # kills of each process in one run: five runs are 50, a hundred are 1,000
SEEDS = range(100 if LONG else 5)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", SEEDS)
@requirement("faults:kill")
async def test_kills_of_every_process_lose_and_repeat_nothing(fleet: Hub, seed: int) -> None:
    """Each process ten times, in an order that the seed chooses, often while another is still on its way back."""
    async with under_fire(fleet, seed) as havoc:
        names = list(havoc.victims()) * EACH
        havoc.random.shuffle(names)
        for name in names:
            await havoc.moment()
            await havoc.kill(name)
        await havoc.all_well()
