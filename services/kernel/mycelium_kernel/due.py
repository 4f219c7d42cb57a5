"""The loop for what ends by itself: looks at what is due, asks for the end of each, and waits until the next.

The tables know what is due, so nothing is to be armed again. Everybody looks at the time themselves; what is asked for
here makes the fact that others are told by. Every replica looks, and whoever comes second finds nothing to do.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from google.protobuf.message import Message

from mycelium_kernel import clock
from mycelium_kernel.errors import Refusal, Unavailable

if TYPE_CHECKING:
    from mycelium_kernel.run import Runtime

LOGGER = logging.getLogger(__name__)
LOOK_S = (0.05, 1.0)  # how soon the tables are looked at again: at least, at most
BATCH = 100  # so many are asked for side by side


@dataclass(frozen=True)
class Due:
    """What ends by itself.

    `what` is its name in the log. `rows` finds what is due, given the milliseconds since 1970 and how many at most, the
    earliest first; `next` the milliseconds of the earliest end there is. `request` makes of such a row what asks this
    service for its end, and does nothing for one that is over already.
    """

    what: str
    rows: str
    next: str
    request: Callable[..., Message]


async def watch(runtime: Runtime, due: Due) -> None:
    """Look for ever at what is due, at most a second late."""
    while True:  # noqa: ASYNC110 - the clock is what changes
        await asyncio.sleep(await end(runtime, due))


async def end(runtime: Runtime, due: Due) -> float:
    """Ask once for the end of everything that is due; returns in how many seconds to look again.

    What can't be ended now, or is there for another reason still, holds up nothing else, and is tried again then.
    """
    assert runtime.tables is not None
    assert runtime.projector is not None
    asked: set[tuple[Any, ...]] = set()
    while True:
        now = clock.millis(runtime.clock())
        rows = runtime.tables.all(due.rows, now, BATCH + len(asked))
        asked.intersection_update(rows)
        fresh = [row for row in rows if row not in asked]
        if not fresh:
            return LOOK_S[1] if asked else _until_next(runtime.tables.one(due.next), now)
        answered = await asyncio.gather(*(_ask(runtime, due, row) for row in fresh))
        try:
            await runtime.projector.catch_up()
        except Unavailable:
            return LOOK_S[1]
        if not all(answered):
            return LOOK_S[1]
        asked.update(fresh)


async def _ask(runtime: Runtime, due: Due, row: tuple[Any, ...]) -> bool:
    """False when it can't be done now, so that it could not be for the others either."""
    try:
        await runtime.do(due.request(*row))
    except (Refusal, Unavailable) as error:
        LOGGER.info("%s can't be said to be over: %s", due.what, error)
        return not isinstance(error, Unavailable)
    except Exception:
        LOGGER.exception("%s can't be said to be over", due.what)
    return True


def _until_next(row: tuple[Any, ...] | None, now: int) -> float:
    left_s = (row[0] - now) / 1000 if row and row[0] else LOOK_S[1]
    return min(max(left_s, LOOK_S[0]), LOOK_S[1])
