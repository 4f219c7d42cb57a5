"""What waits for one open stream."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from mycelium_gateway.watcher import Watcher


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

    async with asyncio.timeout(60):
        assert await taking == b"a"


async def test_what_comes_while_the_writer_is_idle_is_written_past_it() -> None:
    """Until the reader does not keep up: then it waits for the writer, and so does all that comes after it."""
    watcher, written, keeps_up = Watcher({"r": "demo"}, 100), list[bytes](), True

    def write_now(chunk: bytes) -> bool:
        written.extend([chunk] if keeps_up else [])
        return keeps_up

    watcher.write_now = write_now
    watcher.push(b"before", 1)
    assert await watcher.take() == b"before"
    taking = asyncio.create_task(watcher.take())
    await asyncio.sleep(0)
    watcher.push(b"a", 2)
    watcher.push(b"a again", 2)
    assert written == [b"a"]

    keeps_up = False
    watcher.push(b"b", 3)
    keeps_up = True
    watcher.push(b"c", 4)
    async with asyncio.timeout(60):
        assert await taking == b"bc"
    assert written == [b"a"]


async def test_nothing_is_written_past_a_gate() -> None:
    """Not even while the writer waits for what the gate's room is to the reader."""
    asked = asyncio.Event()

    async def may_see(_room_id: str) -> bool:
        await asked.wait()
        return False

    watcher, written = Watcher({"r": "demo", "s": "other"}, 1000, may_see=may_see), list[bytes]()

    def write(chunk: bytes) -> bool:
        written.append(chunk)
        return True

    watcher.write_now = write
    taking = asyncio.create_task(watcher.take())
    await asyncio.sleep(0)
    watcher.gate("r")
    watcher.push(b"secret", 1, "r")
    await asyncio.sleep(0)
    watcher.push(b"secret too", 2, "r")
    asked.set()
    async with asyncio.timeout(60):
        assert b"secret" not in await taking
    assert written == []


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


def strangers(*rooms: str) -> Callable[[str], Awaitable[bool]]:
    """Sees everything but some rooms."""

    async def may_see(room_id: str) -> bool:
        return room_id not in rooms

    return may_see


async def test_nothing_behind_a_gate_of_a_lost_room_is_told() -> None:
    """What came before is, and what is of other rooms; the room is told as gone, in its place."""
    lost: list[str] = []
    watcher = Watcher({"a": "A", "b": "B"}, 1000, may_see=strangers("a"))
    watcher.on_lost = lost.append
    watcher.push(b"1", 1, "a")
    watcher.gate("a")
    watcher.push(b"2", 2, "a")
    watcher.push(b"3", 3, "b")
    watcher.gate("b")
    watcher.push(b"4", 4, "a")
    watcher.push(b"5", 5, "b")

    taken = [await watcher.take() for _ in range(3)]
    assert taken == [b"1", b'event: room_deleted\ndata: {"room":"A"}\n\n3', b"5"]
    assert (lost, watcher.rooms) == (["a"], {"b": "B"})


async def test_a_stream_whose_last_room_is_lost_ends() -> None:
    """It was told so before."""
    watcher = Watcher({"a": "A"}, 1000, may_see=strangers("a"))
    watcher.gate("a")
    watcher.push(b"secret", 1, "a")

    assert [b"room_deleted" in await watcher.take(), await watcher.take()] == [True, b""]


async def test_what_is_held_is_let_out_behind_its_gates() -> None:
    """A room about which there was a doubt before the past was read."""
    for stranger in (False, True):
        watcher = Watcher({"a": "A"}, 1000, may_see=strangers("a") if stranger else strangers())
        watcher.hold()
        watcher.push(b"1", 1, "a")
        watcher.release(["a"])
        assert (await watcher.take() == b"1") is not stranger


async def test_what_is_held_counts_against_a_slow_reader() -> None:
    """A gate is no way around the bound."""
    watcher = Watcher({"a": "A"}, 10)
    watcher.hold()
    watcher.push(b"x" * 11, 1, "a")
    assert watcher.overflowed


async def test_a_room_that_is_deleted_while_it_is_asked_about_is_told_as_gone_once() -> None:
    """Its stream goes on with what else it watches."""
    asked, deleted = asyncio.Event(), asyncio.Event()

    async def may_see(_room_id: str) -> bool:
        asked.set()
        await deleted.wait()
        return False

    watcher = Watcher({"a": "A", "b": "B"}, 1000, may_see=may_see)
    watcher.gate("a")
    watcher.push(b"secret", 1, "a")
    taking = asyncio.create_task(watcher.take())
    await asyncio.wait_for(asked.wait(), 60)
    watcher.erase("a", b"gone", 2)
    deleted.set()
    watcher.push(b"3", 3, "b")

    assert await asyncio.wait_for(taking, 60) == b"gone3"


async def test_nothing_behind_a_gate_of_a_deleted_room_is_told() -> None:
    """Whether its reader might have seen it, nobody knows any more; so it is with what was held for who joins."""
    for is_new in (False, True):
        watcher = Watcher({"a": "A"}, 1000)
        if is_new:
            watcher.hold()
        else:
            watcher.gate("a")
        watcher.push(b"secret", 1, "a")
        watcher.erase("a", b"gone", 2)
        if is_new:
            watcher.release(["a"])

        assert [await watcher.take(), await watcher.take()] == [b"gone", b""]
        assert watcher._size == 0
