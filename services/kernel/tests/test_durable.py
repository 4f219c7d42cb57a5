"""Reactions and timers: each at least once, through kills of NATS, and a failing one never lost nor in the way."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import nats.js.errors
import pytest

from mycelium.rooms.v1 import events_pb2
from mycelium_kernel import durable, subjects, testing
from mycelium_kernel.bus import Bus
from mycelium_kernel.clock import system_clock
from mycelium_kernel.errors import BUSY, Unavailable
from mycelium_kernel.run import Runtime
from mycelium_kernel.service import Reaction, Service, Stored
from services.kernel.tests import toy
from services.kernel.tests.toy import ROOM, Start

React = Callable[[Runtime, events_pb2.MessagePosted, Stored], Awaitable[None]]


def reacting(run: React) -> Service:
    reaction = Reaction("notices", (events_pb2.MessagePosted,), (subjects.of_service("rooms"),), run)
    return toy.service(reactions=(reaction,))


def noting(seen: list[str]) -> Service:
    async def note(_runtime: Runtime, event: events_pb2.MessagePosted, _stored: Stored) -> None:
        seen.append(event.content)

    return reacting(note)


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(durable, "AGAIN_S", (0.05, 0.2))
    monkeypatch.setattr(durable, "RETRY_S", (0.02, 0.1))


async def test_a_reaction_runs_for_each_fact_of_its_kinds_in_order(start: Start, bus: Bus) -> None:
    """It is given the event, where it stands, and who caused it; other kinds are passed over."""
    seen: list[tuple[str, Stored]] = []

    async def note(_runtime: Runtime, event: events_pb2.MessagePosted, stored: Stored) -> None:
        seen.append((event.content, stored))

    async with start(reacting(note)):
        await toy.save(bus, "a")
        for number in range(20):
            await toy.say(bus, str(number), key=f"k{number}")
        await toy.until(lambda: len(seen) >= 20)

    assert [content for content, _ in seen] == [str(number) for number in range(20)]
    assert seen[0][1] == Stored(2, subjects.posts(ROOM), "k0", "tester", "s1")


async def test_a_reaction_runs_for_what_came_while_it_was_away_and_not_again(start: Start, bus: Bus) -> None:
    """Its place outlives the process."""
    seen: list[str] = []
    async with start():
        await toy.say(bus, "before")
    async with start(noting(seen)):
        await toy.until(lambda: seen == ["before"])
    async with start():
        await toy.say(bus, "away")
    async with start(noting(seen)):
        await toy.until(lambda: "away" in seen)
        await toy.say(bus, "after")
        await toy.until(lambda: "after" in seen)

    assert seen == ["before", "away", "after"]


async def test_a_reaction_survives_killed_servers(start: Start, bus: Bus, nats_server: testing.NatsServer) -> None:
    """Every fact is reacted to, though NATS dies in between."""
    seen: list[str] = []
    async with start(noting(seen)):
        for part in range(3):
            await asyncio.gather(*(toy.say(bus, f"{part}.{n}") for n in range(20)))
            nats_server.kill()
            await nats_server.start()
        await toy.until(lambda: len(set(seen)) == 60)


async def test_a_reaction_whose_consumer_is_deleted_begins_anew(start: Start, bus: Bus) -> None:
    """An administrator's mistake loses nothing: facts are reacted to again, from the first on."""
    seen: list[str] = []
    async with start(noting(seen)) as runtime:
        await toy.say(bus, "a")
        await toy.until(lambda: seen == ["a"])
        await runtime.connection.jetstream.delete_consumer(subjects.STREAM, "rooms-notices")
        await toy.say(bus, "b")
        await toy.until(lambda: "b" in seen)

    assert seen == ["a", "a", "b"]


async def test_a_request_for_more_that_runs_out_is_made_again(
    start: Start, bus: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A quiet time longer than a request for messages changes nothing."""
    monkeypatch.setattr(durable, "EXPIRES_S", 0.05)
    monkeypatch.setattr(durable, "HEARTBEAT_S", 0.02)
    seen: list[str] = []
    async with start(noting(seen)) as runtime:
        received = runtime.connection.client.stats
        before = received["in_msgs"]
        await toy.until(lambda: received["in_msgs"] > before + 20)
        await toy.say(bus, "a")
        await toy.until(lambda: seen == ["a"])


async def test_a_silent_server_is_asked_again(
    start: Start, bus: Bus, nats_server: testing.NatsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that hangs, and then goes on, is noticed by its missing heartbeats."""
    monkeypatch.setattr(durable, "SILENCE_S", 0.2)
    monkeypatch.setattr(durable, "HEARTBEAT_S", 0.05)
    seen: list[str] = []
    async with start(noting(seen)) as runtime:
        await toy.say(bus, "a")
        await toy.until(lambda: seen == ["a"])
        subscribed = len(runtime.connection.client._subs)
        nats_server.pause()
        await toy.until(lambda: len(runtime.connection.client._subs) < subscribed)
        nats_server.resume()
        await toy.say(bus, "b")
        await toy.until(lambda: seen == ["a", "b"])


async def test_a_fact_whose_reaction_fails_comes_again_and_keeps_nobody_up(start: Start, bus: Bus) -> None:
    """A bug in a reaction is told in health; later facts are reacted to meanwhile; the fact is never given up."""
    seen: list[str] = []
    tries: list[str] = []
    healthy = asyncio.Event()

    async def fail_on_poison(_runtime: Runtime, event: events_pb2.MessagePosted, _stored: Stored) -> None:
        if event.content == "poison":
            tries.append(event.content)
            if not healthy.is_set():
                raise ZeroDivisionError
        seen.append(event.content)

    async with start(reacting(fail_on_poison)) as runtime:
        await toy.say(bus, "poison")
        await toy.say(bus, "fine")
        await toy.until(lambda: len(tries) >= 3)
        assert seen == ["fine"]
        assert "ZeroDivisionError" in runtime.health()["detail"]
        healthy.set()
        await toy.until(lambda: seen == ["fine", "poison"])
        await toy.until(lambda: runtime.health()["status"] == "ok")


async def test_a_fact_in_work_is_given_to_no_other_replica(
    start: Start, bus: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long a reaction takes, its replica tells the server that it is still at work."""
    monkeypatch.setattr(durable, "ACK_WAIT_S", 0.3)
    tries: list[Runtime] = []

    async def react(runtime: Runtime, _event: Any, _stored: Stored) -> None:
        tries.append(runtime)
        raise Unavailable("the other service is away")

    async with start(reacting(react)), start(reacting(react), folder="two"):
        await toy.say(bus, "a")
        await toy.until(lambda: len(tries) >= 15)

    assert len({id(runtime) for runtime in tries}) == 1


@pytest.mark.parametrize("error", [Unavailable("the other service is away"), BUSY])
async def test_a_reaction_that_is_unavailable_keeps_its_place(start: Start, bus: Bus, error: Exception) -> None:
    """While another service is away, or has too much to do, nothing overtakes."""
    seen: list[str] = []
    away = [True]
    tries: list[str] = []

    async def react(_runtime: Runtime, event: events_pb2.MessagePosted, _stored: Stored) -> None:
        tries.append(event.content)
        if event.content == "first" and away[0]:
            raise error
        seen.append(event.content)

    async with start(reacting(react)) as runtime:
        await toy.say(bus, "first")
        await toy.say(bus, "second")
        await toy.until(lambda: len(tries) >= 12)
        assert set(tries) == {"first"}
        assert runtime.health()["status"] == "degraded"
        away[0] = False
        await toy.until(lambda: seen == ["first", "second"])
        await toy.until(lambda: runtime.health()["status"] == "ok")


async def test_a_fact_in_work_when_a_replica_stops_goes_to_another_at_once(start: Start, bus: Bus) -> None:
    """A stop hands back what it did not finish."""
    begun, seen = asyncio.Event(), list[str]()

    async def hang(_runtime: Runtime, _event: Any, _stored: Stored) -> None:
        begun.set()
        await asyncio.Event().wait()

    async with start(reacting(hang)):
        await toy.say(bus, "a")
        await begun.wait()
    async with start(noting(seen)), asyncio.timeout(durable.ACK_WAIT_S / 2):
        await toy.until(lambda: seen == ["a"])


# --- timers -----------------------------------------------------------------------------------------------------------


def timing(fired: list[tuple[str, bytes]], arm: Callable[[Runtime], Awaitable[None]] | None = None) -> Service:
    async def due(_runtime: Runtime, room: str, data: bytes) -> None:
        fired.append((room, data))

    return toy.service(on_timer=due, arm=arm)


def soon(seconds: float = 0.1) -> datetime:
    return system_clock() + timedelta(seconds=seconds)


async def armed(runtime: Runtime) -> int:
    """How many timers and due timers the stream holds."""
    info = await runtime.connection.jetstream.stream_info(subjects.TIMER_STREAM)
    return int(info.state.messages)


async def ready(runtime: Runtime) -> None:
    async with asyncio.timeout(toy.BOUND_S):
        while True:
            try:
                await runtime.connection.jetstream.consumer_info(subjects.TIMER_STREAM, "rooms-timers")
            except nats.js.errors.Error:
                await asyncio.sleep(0.01)
            else:
                return


async def test_a_timer_fires_once_with_its_room_and_data(start: Start) -> None:
    """What was armed arrives, not before its time, also when it was armed in another time zone or too late."""
    fired: list[tuple[str, bytes]] = []
    async with start(timing(fired)) as runtime:
        await ready(runtime)
        due = soon(0.5)
        await runtime.timers.arm(ROOM, "a", due.astimezone(timezone(timedelta(hours=5))), b"data")
        await toy.until(lambda: fired)
        assert datetime.now(UTC) >= due
        await runtime.timers.arm(ROOM, "late", soon(-60), b"late")
        await toy.until(lambda: len(fired) == 2)

    assert fired == [(ROOM, b"data"), (ROOM, b"late")]


async def test_a_moved_timer_fires_once_at_its_new_time_and_a_cancelled_one_never(start: Start) -> None:
    """Arming again replaces; cancelling forgets, and may be done twice."""
    fired: list[tuple[str, bytes]] = []
    async with start(timing(fired)) as runtime:
        await ready(runtime)
        await runtime.timers.arm(ROOM, "moved", soon(3600), b"old")
        await runtime.timers.arm(ROOM, "moved", soon(0.2), b"new")
        await runtime.timers.arm(ROOM, "cancelled", soon(0.2), b"never")
        await runtime.timers.cancel(ROOM, "cancelled")
        await runtime.timers.cancel(ROOM, "cancelled")
        await runtime.timers.arm(ROOM, "last", soon(0.6), b"last")
        await toy.until(lambda: (ROOM, b"last") in fired)

    assert fired == [(ROOM, b"new"), (ROOM, b"last")]


async def test_a_hundred_timers_fire(start: Start) -> None:
    """Many timers due at the same moment all arrive, each once."""
    fired: list[tuple[str, bytes]] = []
    async with start(timing(fired)) as runtime:
        await ready(runtime)
        due = soon(0.5)
        await asyncio.gather(*(runtime.timers.arm(ROOM, str(n), due, str(n).encode()) for n in range(100)))
        await toy.until(lambda: len(fired) >= 100)

    assert sorted(fired) == sorted((ROOM, str(n).encode()) for n in range(100))


async def test_timers_are_armed_at_start_and_again_when_nats_has_lost_them(
    start: Start, nats_server: testing.NatsServer
) -> None:
    """Timers live in the memory of NATS; the service arms them anew when that is gone."""
    fired: list[tuple[str, bytes]] = []
    armings: list[datetime] = []
    due = [soon(3600)]

    async def arm(runtime: Runtime) -> None:
        await runtime.timers.arm(ROOM, "a", due[0], b"a")
        armings.append(due[0])

    async with start(timing(fired, arm)) as runtime:
        await toy.until(lambda: armings)
        assert await armed(runtime) == 1
        due[0] = soon(0.5)
        nats_server.kill()
        await nats_server.start()
        await toy.until(lambda: fired)

    assert fired == [(ROOM, b"a")]


async def test_a_due_timer_that_fails_comes_again(start: Start) -> None:
    """What a timer begins is not lost by one failure."""
    tries: list[str] = []

    async def due(_runtime: Runtime, room: str, _data: bytes) -> None:
        tries.append(room)
        if len(tries) < 3:
            raise ZeroDivisionError

    async with start(toy.service(on_timer=due)) as runtime:
        await ready(runtime)
        await runtime.timers.arm(ROOM, "a", soon())
        await toy.until(lambda: len(tries) == 3)
        await toy.until(lambda: runtime.health()["status"] == "ok")


async def test_a_timer_that_cant_be_armed_is_unavailable(start: Start) -> None:
    """Whoever arms learns that NATS did not take it."""
    async with start() as runtime:
        with pytest.raises(Unavailable):
            await runtime.timers.arm(ROOM, "a", soon())
        with pytest.raises(Unavailable):
            await runtime.timers.cancel(ROOM, "a")
