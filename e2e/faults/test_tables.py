"""Tables deleted, overwritten and cut short under running services: they heal from the log, and are all the same."""

import asyncio
import os
import random
import signal
from pathlib import Path

import pytest

from e2e.faults import tables
from e2e.faults.havoc import HUB, LONG, under_fire
from e2e.harness import Hub
from e2e.requirements import requirement

pytestmark = [pytest.mark.faults, pytest.mark.timeout(600)]
PAGE_BYTES = 4096


def deleted(path: Path, _chance: random.Random) -> None:
    """With everything beside it."""
    for suffix in ("", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def overwritten(path: Path, chance: random.Random) -> None:
    """Some pages get other bytes."""
    with path.open("r+b", buffering=0) as file:
        pages = max(1, os.fstat(file.fileno()).st_size // PAGE_BYTES)
        for _ in range(5):
            file.seek(chance.randrange(pages) * PAGE_BYTES + chance.randrange(PAGE_BYTES - 64))
            file.write(chance.randbytes(64))


def cut_short(path: Path, chance: random.Random) -> None:
    """To a part of its size, in the middle of a page."""
    os.truncate(path, chance.randrange(max(1, path.stat().st_size)))


def log_cut_short(path: Path, chance: random.Random) -> None:
    """What SQLite has written ahead."""
    beside = path.with_name(path.name + "-wal")
    if beside.exists():
        os.truncate(beside, chance.randrange(max(1, beside.stat().st_size)))


HARMS = (deleted, overwritten, cut_short, log_cut_short)


@pytest.mark.parametrize("seed", range(20 if LONG else 1))
@requirement("faults:tables")
async def test_harmed_tables_heal_and_equal_each_other(fleet: Hub, seed: int) -> None:
    """One replica's file is harmed after the other's; now and then its process dies right after."""
    async with under_fire(fleet, seed) as havoc:
        for harm in havoc.random.sample(HARMS * 2, len(HARMS) * 2):
            await havoc.moment(20)
            found = tables.files(fleet.home)
            if found:
                path = havoc.random.choice(found)
                havoc.record.note(f"{harm.__name__}: {path.relative_to(fleet.home)}")
                harm(path, havoc.random)
            if havoc.random.random() < 0.5:
                await havoc.kill(havoc.random.choice(["rooms", "rooms-2"]))
        await havoc.all_well()
        for name in ("rooms", "rooms-2"):  # one that runs on with a deleted file has none to be looked at
            await havoc.kill(name)
        await havoc.load.end()
        await havoc.all_well()
        # What nobody has read yet nobody has missed: the doctor reads all, and has the services make it again.
        told = await asyncio.to_thread(fleet.machine.run, "doctor", "--deep", "--fix", within_s=120)
        havoc.record.note(f"the doctor says: {told.out}{told.err}")
        await havoc.all_well()
        await havoc.kill(HUB, signal.SIGTERM)
        await havoc.all_well()
        await tables.compare(havoc)


@requirement("faults:tables")
async def test_replicas_that_died_often_equal_each_other_and_a_rebuild(fleet: Hub) -> None:
    """Kills of both replicas and of NATS, at any moment of a transaction."""
    async with under_fire(fleet, seed=5) as havoc:
        for _ in range(100 if LONG else 12):
            await havoc.moment()
            await havoc.kill(havoc.random.choice(["rooms", "rooms-2", "nats"]))
        await havoc.load.end()
        await havoc.all_well()
        await tables.compare(havoc)
