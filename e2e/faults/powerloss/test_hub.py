"""Loss of power under load, again and again: the log's disk keeps what was synced, everything that runs is gone.

The disk freezes in the middle of whatever it does: from then on nothing that needs it goes on. Then every process of
the hub is killed, what was not synced is dropped, and the hub is started on the rest. What was acknowledged is counted
by id; a room of large texts makes the log change from one file to the next all the time.
"""

import asyncio
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from e2e.faults.havoc import LONG, Havoc, under_fire
from e2e.faults.powerloss.layer import Layer, layer
from e2e.faults.record import Posted, Verdict
from e2e.harness import Hub, free_port
from e2e.processes import is_running
from e2e.requirements import requirement

pytestmark = pytest.mark.faults
CUTS = 100 if LONG else 10  # of each run; there are two
LARGE = 200_000  # bytes: some forty fill a file of the log


@contextmanager
def hub_on(disk: Layer, home: Path) -> Iterator[Hub]:
    """A hub whose log is on that disk."""
    assert disk.folder.is_relative_to(home)
    hub = Hub(home, free_port())
    try:
        yield hub.start()
    finally:
        hub.close()


async def lose_power(havoc: Havoc, disk: Layer, seed: int | None) -> dict[str, int]:
    """All processes and what was not synced, at one moment. Then start again, and look for the newest posts."""
    after, unsynced = havoc.random.randint(0, 60), havoc.random.random() < 0.7
    await asyncio.to_thread(disk.freeze, after, unsynced=unsynced)
    victims = havoc.victims()
    for pid in victims.values():
        os.kill(pid, signal.SIGKILL)
    lost = await asyncio.to_thread(disk.cut, seed)
    havoc.record.note(f"power lost, {lost}")
    await asyncio.to_thread(havoc.hub.kill)
    await havoc.load.until(lambda: not any(map(is_running, victims.values())), "all processes are gone")
    last = [posts[-1] for posts in havoc.record.posted.values()]
    await asyncio.to_thread(come_back, havoc)
    await asyncio.gather(*(still_there(havoc, post) for post in last))
    return lost


def come_back(havoc: Havoc) -> None:
    """Start the hub; when it does not come, say what it and its NATS server last said."""
    try:
        havoc.hub.start()
    except AssertionError as error:
        logs = [havoc.hub.home / "logs" / name for name in ("hub.log", "nats.log")]
        said = "\n".join("\n".join(path.read_text(encoding="utf-8").splitlines()[-15:]) for path in logs)
        raise Verdict("stuck", f"{error}\n{said}", havoc.record) from error


async def still_there(havoc: Havoc, post: Posted) -> None:
    """Everything is counted in the end; this tells after which cut the newest was missing."""
    answer = await havoc.load.insist("GET", havoc.load.room.at("messages", post.id), None, "avery", "")
    if answer.status != 200:
        raise Verdict("lost", f"{post.id} was acknowledged before the last cut: {answer}", havoc.record)


async def post_large(havoc: Havoc, name: str) -> None:
    """One who posts long texts, one after the other."""
    load, target = havoc.load, havoc.load.room.at("messages")
    while not load.enough.is_set():
        posted = havoc.record.posted[name]
        began_s, key = time.monotonic(), f"{havoc.record.seed} {name} {len(posted)}"
        content = f"{key} ".ljust(LARGE, "x")
        message = (await load.insist("POST", target, {"content": content}, name, key)).document
        posted.append(Posted(message["id"], content, began_s, time.monotonic()))
        await load.rest(load.plan.pause_s, load.enough)


def files(disk: Layer) -> int:
    """How many files the log has."""
    return len(list(disk.folder.rglob("streams/FACTS/msgs/*.blk")))


@pytest.mark.timeout(3600 if LONG else 600)
@pytest.mark.parametrize("torn", [False, True], ids=["all-lost", "torn"])
@requirement("faults:power")
async def test_nothing_acknowledged_is_lost_with_the_power(tmp_path: Path, torn: bool) -> None:
    """What was not synced is gone whole, or partly there and torn."""
    home = tmp_path / "hub"
    with layer(home / "nats", journal=True) as disk, hub_on(disk, home) as hub:
        lost = {"written": 0, "names": 0, "edits_survived": 0, "names_survived": 0}
        async with under_fire(hub, 2 + torn) as havoc:
            havoc.load.posting += [asyncio.create_task(post_large(havoc, f"large{number}")) for number in range(2)]
            for _ in range(CUTS):
                await havoc.moment(60)
                seed = havoc.random.getrandbits(30) if torn else None
                for what, number in (await lose_power(havoc, disk, seed)).items():
                    lost[what] += number
            await havoc.all_well()
        assert lost["written"] or lost["edits_survived"], "no cut met a write that was not synced: nothing was tried"
        assert files(disk) > 1, "the log has one file: no cut met the change to the next"
