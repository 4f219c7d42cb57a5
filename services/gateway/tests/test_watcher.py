"""What waits for one open stream."""

from __future__ import annotations

import asyncio

from mycelium_gateway.live import Watcher


async def test_what_waits_is_taken_at_once_and_in_order() -> None:
    """A reader that was busy gets one chunk, not many."""
    watcher = Watcher({"r": "demo"}, 100)
    watcher.push(b"a", 1)
    watcher.push(b"b", 2)

    assert await watcher.take() == b"ab"


async def test_a_fact_that_the_feed_had_is_left_out() -> None:
    """The past was read up to a place; the present begins after it."""
    watcher = Watcher({"r": "demo"}, 100)
    watcher.after = 5
    watcher.push(b"old", 5)
    watcher.push(b"new", 6)
    watcher.push(b"new again", 6)

    assert await watcher.take() == b"new"


async def test_a_reader_that_waits_is_woken() -> None:
    """It does not look again and again."""
    watcher = Watcher({"r": "demo"}, 100)
    taking = asyncio.create_task(watcher.take())
    await asyncio.sleep(0)
    watcher.push(b"a", 1)

    async with asyncio.timeout(5):
        assert await taking == b"a"


async def test_an_ended_stream_writes_what_waits_and_then_nothing() -> None:
    """The last event of a room still reaches its watchers."""
    watcher = Watcher({"r": "demo"}, 100)
    watcher.push(b"gone", 1)
    watcher.end()
    watcher.push(b"late", 2)

    assert [await watcher.take(), await watcher.take()] == [b"gone", b""]


async def test_a_reader_that_is_too_slow_is_given_up() -> None:
    """It holds no more than its share of memory, and its writer is told."""
    told: list[bool] = []
    watcher = Watcher({"r": "demo"}, 10)
    watcher.on_overflow = lambda: told.append(True)
    watcher.push(b"x" * 6, 1)
    assert not watcher.overflowed
    watcher.push(b"x" * 6, 2)

    assert (watcher.overflowed, watcher.ended, told) == (True, True, [True])
