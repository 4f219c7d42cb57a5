"""Three NATS servers that keep every fact three times: restarted one by one, killed, and all processes in a row."""

import asyncio
import signal

import pytest

from e2e.faults.havoc import HUB, LONG, Havoc, under_fire
from e2e.harness import Hub
from e2e.requirements import requirement
from e2e.room import Room, states

pytestmark = [pytest.mark.faults, pytest.mark.timeout(900)]
ROUNDS = 30 if LONG else 2
WAIT_S = 100.0
LOOKS = 12  # so many that each replica has most likely answered: one hears of a wait before another


@requirement("faults:cluster", "faults:cluster:told")
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
        await waits_are_told(havoc)


@requirement("faults:cluster", "faults:cluster:told")
async def test_a_rolling_restart_of_everything_loses_and_repeats_nothing(cluster: Hub) -> None:
    """Every process is ended in its own way, one after the other, and last the hub itself."""
    async with under_fire(cluster, seed=2) as havoc:
        for _ in range(ROUNDS // 2):
            for name in [name for name in havoc.victims() if name != HUB] + [HUB]:
                await havoc.kill(name, signal.SIGTERM)
                await havoc.moment(20)
                await havoc.all_well()
        await waits_are_told(havoc)


async def waits_are_told(havoc: Havoc) -> None:
    """Who mentions a member that waits reads `woken`, as it does before any restart.

    What is open is told in memory, which servers that all come back empty may not agree on; then it is made again.
    """
    room = Room(havoc.hub.api, havoc.hub.machine, f"told {havoc.record.seed}").create()
    room.join("sec")
    wait = asyncio.create_task(asyncio.to_thread(room.try_take, "sec", timeout_s=WAIT_S))
    await havoc.load.until(lambda: all(room.member("sec")["waiting"] for _ in range(LOOKS)), "@sec is seen waiting")
    assert states(room.post("@sec now")) == {"sec": "woken"}
    assert (await wait).ok(200).json["message"]["content"] == "@sec now"
