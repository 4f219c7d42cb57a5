"""The rows about other products, for `bench/rows.py`. Who can't run here is left out, and said so loudly."""

from __future__ import annotations

import contextlib
import functools
import shutil
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager

from bench.harness import Contender, Row
from bench.peers import jobs
from bench.peers.chat import Chat
from bench.peers.face import Peer
from bench.peers.jobs import Seen
from bench.peers.mailbox import Mailbox
from bench.peers.mycelium import Mycelium, Stream
from bench.peers.redis import Redis
from bench.peers.switchboard import Switchboard

PRODUCTS: tuple[type[Peer], ...] = (Mycelium, Switchboard, Mailbox, Chat, Redis)
PER_SECOND = "sends a second"
Measure = Callable[[type[Peer], Seen], Awaitable[list[float]]]
_syncs: dict[str, str] = {}


async def _durability(product: type[Peer]) -> str:
    strace = shutil.which("strace")
    if product.durability not in _syncs:
        counted = (
            f"; {await jobs.syncs(product, strace):.1f} syncs a send" if strace else "; syncs not counted: no strace"
        )
        _syncs[product.durability] = product.durability + counted
    return _syncs[product.durability]


@contextlib.asynccontextmanager
async def _row(
    job: str,
    title: str,
    measure: Measure,
    note: Callable[[Seen], str] | None = None,
    unit: str = "milliseconds",
    products: tuple[type[Peer], ...] = PRODUCTS,
) -> AsyncIterator[list[Row]]:
    contenders: list[Contender] = []
    out: list[str] = []
    for product in products:
        if why := product.cannot.get(job):
            out.append(f"{product.name} can't: {why}")
        elif why := product.missing():
            out.append(f"{product.name} is LEFT OUT: {why}")
            print(f"*** {title}: {out[-1]}", file=sys.stderr, flush=True)
        else:
            contenders.append(_contender(product, await _durability(product), measure, note))
    if len(contenders) == 1:
        print(f"*** THE ROW IS LEFT OUT: {title}: nobody to compare with", file=sys.stderr, flush=True)
        yield []
    else:
        yield [Row(title, "the best of all" + "".join(f"; {one}" for one in out), contenders, unit)]


def _contender(product: type[Peer], durability: str, measure: Measure, note: Callable[[Seen], str] | None) -> Contender:
    seen = Seen()

    async def run(_count: int) -> list[float]:
        return await measure(product, seen)

    return Contender(product.name, durability, run, [functools.partial(note, seen)] if note else [])


def _timed(job: Callable[[type[Peer]], Awaitable[list[float]]]) -> Measure:
    return lambda product, _seen: job(product)


def receive() -> AbstractAsyncContextManager[list[Row]]:
    """Send until a waiting receiver has it."""
    products: tuple[type[Peer], ...] = (Mycelium, Stream, *PRODUCTS[1:])
    return _row("receive", "Send → a waiting receiver has it", _timed(jobs.receive), products=products)


def wake() -> AbstractAsyncContextManager[list[Row]]:
    """Send until a process that waited has exited."""
    return _row("wake", "Send → a waiting process has exited with it", _timed(jobs.wake))


def cold() -> AbstractAsyncContextManager[list[Row]]:
    """One send by a new process."""
    return _row("cold", "One send by a new process, start to end", _timed(jobs.cold))


def sequence() -> AbstractAsyncContextManager[list[Row]]:
    """A thousand sends, one after the other."""
    return _row(
        "sequence",
        f"{jobs.IN_SEQUENCE:,} sends in sequence",
        lambda product, seen: jobs.rate(product, seen, 1, jobs.IN_SEQUENCE),
        Seen.times,
        PER_SECOND,
    )


def senders() -> AbstractAsyncContextManager[list[Row]]:
    """Sixteen senders at once."""
    return _row(
        "senders",
        f"{jobs.SENDERS} senders at once, {jobs.EACH} sends each",
        lambda product, seen: jobs.rate(product, seen, jobs.SENDERS, jobs.EACH),
        Seen.times,
        PER_SECOND,
    )


def killed() -> AbstractAsyncContextManager[list[Row]]:
    """Kills in the midst of sends."""
    unit = f"messages acknowledged to {jobs.KILL_SENDERS} senders before {jobs.KILLS} kills"
    return _row("killed", "kill -9 in the midst of sends", jobs.killed, Seen.losses, unit)


ROWS = {
    "peer-receive": (receive, 3, 0),
    "peer-wake": (wake, 2, 0),
    "peer-cold": (cold, 2, 0),
    "peer-sequence": (sequence, 2, 0),
    "peer-senders": (senders, 2, 0),
    "peer-killed": (killed, 3, 0),
}
