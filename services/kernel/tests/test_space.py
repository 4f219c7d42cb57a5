"""A disk that fills up, a real and small one: what is refused, what still passes, and that it recovers alone."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from mycelium_kernel import headers, subjects, testing
from mycelium_kernel.appending import Appended
from mycelium_kernel.clock import system_clock
from mycelium_kernel.connections import Connection
from mycelium_kernel.errors import StoreFull
from mycelium_kernel.log import BATCH_FROM, Log
from mycelium_kernel.space import RESERVE_BYTES, Space

POSTS = subjects.posts("room")
BODY = b"x" * 256 * 1024


@contextlib.asynccontextmanager
async def writing(disk: Path, *, watched: bool) -> AsyncIterator[tuple[Log, Connection]]:
    """A log whose store is on the small disk; `watched`: it knows so."""
    async with testing.nats_server(disk / "nats") as server:
        settings = replace(server.settings("test"), store=str(disk) if watched else "")
        connection = await Connection.open(settings)
        await connection.prepare()
        log = Log(connection, system_clock)
        log.start()
        yield log, connection
        await log.stop()
        await connection.close()


async def append(log: Log, subject: str = POSTS, expect: int | None = None, body: bytes = BODY) -> Appended:
    deadline = system_clock() + timedelta(seconds=10)
    return await log.append(subject, body, {headers.TYPE: "x"}, expect=expect, deadline=deadline)


async def until_full(log: Log) -> int:
    """Append until it is refused; how many were acknowledged."""
    for count in range(200):
        try:
            await append(log)
        except StoreFull:
            return count
    raise AssertionError("a disk of 24 MB took 50 MB")


def filler(disk: Path, free: int) -> Path:
    """A file of somebody else that leaves `free` bytes."""
    path = disk / "filler"
    with path.open("wb") as file:
        file.write(b"\0" * (Space(str(disk)).look()[0] - free))
    return path


def test_the_reserve_is_an_eighth_and_bounded(disk: Path) -> None:
    """A small disk keeps an eighth free, a big one 256 MB; a disk that can't be seen is not ours to judge."""
    assert Space(str(disk)).look()[1] == 24 * 1024 * 1024 // 8
    assert Space("/").look()[1] <= RESERVE_BYTES
    for unseen in (Space(""), Space(str(disk / "gone"))):
        assert not unseen.is_short()
        assert unseen.shortage() == ""


async def test_posts_are_refused_before_the_disk_is_full_and_pass_when_there_is_room(disk: Path) -> None:
    """Nothing acknowledged is lost, the server never meets the end of its disk, and nobody has to restart anything."""
    async with writing(disk, watched=True) as (log, connection):
        await append(log)
        taken = filler(disk, free=1024 * 1024 * 5)
        before = await until_full(log) + 1
        assert Space(str(disk)).look()[0] > 1024 * 1024
        with pytest.raises(StoreFull, match="nearly full: 2 MB free, 3 MB are kept free"):
            await append(log, body=b"small")
        assert await connection.last_sequence(None) == before
        taken.unlink()
        assert (await append(log)).sequence == before + 1


async def test_half_of_the_reserve_is_for_facts_of_entities(disk: Path) -> None:
    """A room can be deleted when nothing more can be posted; then nothing passes at all."""
    entity = subjects.fact("test", "room", "thing", "one")
    async with writing(disk, watched=True) as (log, _):
        filler(disk, free=1024 * 1024 * 2)
        with pytest.raises(StoreFull):
            await append(log, body=b"small")
        first = await append(log, entity, expect=0, body=b"small")
        filler(disk, free=1024 * 1024)
        with pytest.raises(StoreFull):
            await append(log, entity, expect=first.sequence, body=b"small")


async def test_a_limit_of_the_server_is_told_as_that(disk: Path) -> None:
    """A server elsewhere takes three quarters of its disk and says so: singly, in a batch, for an entity."""
    async with writing(disk, watched=False) as (log, connection):
        before = await until_full(log)
        assert before > 10
        many = await asyncio.gather(*(append(log) for _ in range(BATCH_FROM)), return_exceptions=True)
        assert {type(outcome) for outcome in many} == {StoreFull}
        with pytest.raises(StoreFull, match="insufficient resources"):
            await append(log, subjects.fact("test", "room", "thing", "one"), expect=0)
        assert await connection.last_sequence(None) == before
