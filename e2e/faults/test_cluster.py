"""Three NATS servers that keep every fact three times: restarted one by one, killed, and all processes in a row."""

import signal

import pytest

from e2e.faults.havoc import HUB, LONG, under_fire
from e2e.harness import Hub
from e2e.requirements import requirement

pytestmark = [pytest.mark.faults, pytest.mark.timeout(900)]
ROUNDS = 30 if LONG else 2


@requirement("faults:cluster")
async def test_servers_restarted_one_by_one_lose_and_repeat_nothing(cluster: Hub) -> None:
    """Each in its own way, then each by SIGKILL, the next as soon as the last one is back."""
    async with under_fire(cluster, seed=1) as havoc:
        for number in [signal.SIGTERM, signal.SIGKILL] * (ROUNDS // 2):
            servers = [name for name in havoc.victims() if name.startswith("nats")]
            assert len(servers) == 3
            havoc.random.shuffle(servers)
            for name in servers:
                await havoc.kill(name, number)
                await havoc.moment(20)
                await havoc.all_well()


@requirement("faults:cluster")
async def test_a_rolling_restart_of_everything_loses_and_repeats_nothing(cluster: Hub) -> None:
    """Every process is ended in its own way, one after the other, and last the hub itself."""
    async with under_fire(cluster, seed=2) as havoc:
        for _ in range(ROUNDS // 2):
            for name in [name for name in havoc.victims() if name != HUB] + [HUB]:
                await havoc.kill(name, signal.SIGTERM)
                await havoc.moment(20)
                await havoc.all_well()
