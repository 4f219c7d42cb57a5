"""Streams and buckets in memory: made when they are missing, and made again when no server leads them any more.

Of three servers each keeps a copy, in its memory only. When all are restarted quickly, the copies that came back empty
may wait for ever for one that has everything, which is nowhere (decision 0028). So whoever writes such a stream has it
looked after here, and puts back what it knows of it: all of it is hints.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

import nats.js.errors
from nats.js.api import KeyValueConfig, StorageType, StreamInfo
from nats.js.kv import KeyValue

from mycelium_kernel import subjects
from mycelium_kernel.connections import NATS_ERRORS
from mycelium_kernel.errors import words

if TYPE_CHECKING:
    from mycelium_kernel.connections import Connection

LOGGER = logging.getLogger(__name__)
MARKER_S = 5.0  # how long a watcher that was away can still learn that a key has expired
LOOK_S = 2.0
PATIENCE_S = 10.0  # the servers take up to nine seconds to choose another leader
SPREAD_S = 3.0  # so that one of several services makes a stream again, and the others find it
MADE_OTHERWISE = 10058  # what NATS answers when another service has made a stream, with a mind of its own
TOLD_S = 10.0  # how long health says it after a look


@dataclass
class Kept:
    """A stream in memory as one service that writes it knows it.

    `make` makes it if it is missing; `made` are called when it is another one than before.
    """

    make: Callable[[], Awaitable[object]]
    made: list[Callable[[], None]] = field(default_factory=list)
    created: datetime | None = None
    lost_at: float | None = None  # when it was first seen without a leader
    is_told: bool = False


async def open_bucket(connection: Connection, name: str, ttl_s: float | None = None) -> KeyValue:
    """The bucket, made if it is missing: a restart of NATS empties it. Keys last for `ttl_s`, or for a time each."""
    config = KeyValueConfig(
        bucket=name,
        storage=StorageType.MEMORY,
        history=1,
        ttl=ttl_s,
        limit_marker_ttl=None if ttl_s else MARKER_S,
        replicas=connection.settings.replicas,
    )
    try:
        return await connection.jetstream.create_key_value(config)
    except nats.js.errors.BadRequestError as error:
        if error.err_code != MADE_OTHERWISE:
            raise
        return await connection.jetstream.key_value(name)


def keep_bucket(
    connection: Connection, name: str, made: Callable[[], None] | None = None, ttl_s: float | None = None
) -> None:
    """Have the bucket looked after, for a service that may write it; `made` is called when it is another one."""
    keep(connection, subjects.bucket(name), partial(open_bucket, connection, name, ttl_s), made)


def keep(
    connection: Connection, stream: str, make: Callable[[], Awaitable[object]], made: Callable[[], None] | None = None
) -> None:
    """Have a stream in memory looked after."""
    kept = connection.kept.setdefault(stream, Kept(make))
    if made:
        kept.made.append(made)


def leave(connection: Connection, made: Callable[[], None]) -> None:
    """Stop calling `made`."""
    for kept in connection.kept.values():
        if made in kept.made:
            kept.made.remove(made)


async def look_after(connection: Connection, report: Callable[[str, str, float], None]) -> None:
    """Look at the streams that are kept, until cancelled. `report(part, fault, for_s)` is told of one without a leader.

    On a single server nothing has a leader that it could lose.
    """
    patience_s = PATIENCE_S + random.uniform(0, SPREAD_S)
    while connection.settings.replicas > 1:
        await asyncio.sleep(LOOK_S)
        looks = (_look(connection, stream, kept, report, patience_s) for stream, kept in connection.kept.items())
        await asyncio.gather(*list(looks))


async def _look(
    connection: Connection, stream: str, kept: Kept, report: Callable[[str, str, float], None], patience_s: float
) -> None:
    began = time.monotonic()
    try:
        info = await _find(connection, stream)
        if info is not None:
            _well(stream, kept, info, report)
        elif not await _find(connection, subjects.STREAM):
            kept.lost_at = None  # the servers themselves don't answer, or are all choosing
        elif kept.lost_at is None:
            kept.lost_at = began
        else:
            report(stream, "no NATS server leads it; if that lasts, it is made again and filled anew", TOLD_S)
            if time.monotonic() - kept.lost_at >= patience_s:
                await _make_again(connection, stream, kept, report)
    except nats.js.errors.NotFoundError:
        await _make(stream, kept, report)
    except NATS_ERRORS as error:
        LOGGER.info("%s can't be looked after: %s", stream, words(error))


async def _find(connection: Connection, stream: str) -> StreamInfo | None:
    """The stream, None when no server that leads it answers. Raises `NotFoundError` when there is none."""
    try:
        async with asyncio.timeout(LOOK_S):
            info = await connection.jetstream.stream_info(stream)
    except nats.js.errors.NotFoundError:
        raise
    except NATS_ERRORS:
        return None
    return info if info.cluster is None or info.cluster.leader else None


def _well(stream: str, kept: Kept, info: StreamInfo, report: Callable[[str, str, float], None]) -> None:
    if kept.lost_at is not None:
        report(stream, "", 0)
    kept.lost_at, kept.is_told = None, False
    if info.created != kept.created:
        kept.created = info.created
        for call in list(kept.made):
            call()


async def _make_again(
    connection: Connection, stream: str, kept: Kept, report: Callable[[str, str, float], None]
) -> None:
    """Delete a stream that nobody leads, and make it. Whoever has just done the same sees it and fills it again."""
    if not kept.is_told:
        LOGGER.warning("no NATS server has led %s for a while: it is made again and filled anew", stream)
        kept.is_told = True
    await connection.jetstream.delete_stream(stream)
    await _make(stream, kept, report)


async def _make(stream: str, kept: Kept, report: Callable[[str, str, float], None]) -> None:
    """Make a stream that is missing; the next look tells those who fill it. For that each server has to be there."""
    try:
        await kept.make()
    except NATS_ERRORS as error:
        LOGGER.debug("%s can't be made: %s", stream, words(error))
        report(stream, f"it can't be made, are all NATS servers there? {words(error)}", TOLD_S)
