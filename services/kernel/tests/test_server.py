"""Requests on the bus: bounded, within their deadline, and answered with nothing but what a caller may know."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from google.protobuf.message import Message

from mycelium.rooms.v1 import service_pb2, views_pb2
from mycelium_kernel import bus as bus_module
from mycelium_kernel import headers, server, subjects, testing
from mycelium_kernel.bus import Bus
from mycelium_kernel.connections import Connection
from mycelium_kernel.errors import DeadlinePassed, Internal, Refusal, StoreFull, Unavailable
from mycelium_kernel.server import Asked, Server
from mycelium_kernel.service import Actor
from services.kernel.tests import toy
from services.kernel.tests.toy import ACTOR, Start

REQUEST = service_pb2.ListUsersRequest()
SUBJECT = subjects.request(service_pb2.ListUsersRequest, "test")
ANSWER = service_pb2.ListUsersResponse(users=[views_pb2.User(handle="a")])
Handle = Callable[[Asked], Awaitable[tuple[Message, int]]]


@contextlib.asynccontextmanager
async def serving(nats_server: testing.NatsServer, handle: Handle) -> AsyncIterator[Server]:
    """A server of one request, on a connection of its own."""
    connection = await Connection.open(nats_server.settings("rooms"))
    answering = Server(connection, "rooms", "0.1.0", lambda: {"status": "ok"})
    await answering.start({service_pb2.ListUsersRequest: handle})
    try:
        yield answering
    finally:
        await answering.stop()
        await connection.close()


async def ask(bus: Bus, timeout_s: float = 5, **options: Any) -> list[str]:
    return await toy.names_of(bus, timeout_s=timeout_s, **options)


async def never(_asked: Asked) -> tuple[Message, int]:
    await asyncio.Event().wait()
    raise AssertionError("nobody sets it")


async def at_once(_asked: Asked) -> tuple[Message, int]:
    return ANSWER, 0


async def raw(connection: Connection, data: bytes = b"", **sent: str) -> tuple[dict[str, str], bytes]:
    named = {getattr(headers, name.upper()): value for name, value in sent.items()}
    answer = await connection.client.request(SUBJECT, data, timeout=5, headers=named or None)
    return answer.headers or {}, answer.data


async def test_more_requests_than_can_be_in_work_are_told_to_come_back(
    nats_server: testing.NatsServer, bus: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The number of requests in work is bounded; one more is refused at once, and does not end the others."""
    monkeypatch.setattr(server, "TASKS", 2)
    go = asyncio.Event()

    async def wait(_asked: Asked) -> tuple[Message, int]:
        await go.wait()
        return ANSWER, 0

    async with serving(nats_server, wait) as answering:
        first = [asyncio.create_task(ask(bus)) for _ in range(2)]
        await toy.until(lambda: len(answering._tasks) == 2)
        with pytest.raises(Refusal) as refused:
            await ask(bus)
        go.set()

        assert refused.value.slug == "rate.limited"
        assert await asyncio.gather(*first) == [["a"], ["a"]]
        assert await ask(bus) == ["a"]


async def test_a_request_waits_for_a_service_that_is_just_starting(nats_server: testing.NatsServer, bus: Bus) -> None:
    """Nobody there yet is no error while the deadline stands."""
    asked = asyncio.create_task(ask(bus))
    await toy.until(lambda: bus._connection.client.stats["in_msgs"] > 1)  # no responders, twice
    async with serving(nats_server, at_once):
        assert await asked == ["a"]


async def test_what_is_no_request_is_refused(nats_server: testing.NatsServer, connection: Connection) -> None:
    """Bytes that are no such message are the caller's fault, and told so."""
    async with serving(nats_server, at_once):
        received, data = await raw(connection, b"\xff\xff\xff")

        assert received[headers.ERROR] == "request.invalid"
        assert "ListUsersRequest" in Refusal.decode(data).detail


@pytest.mark.parametrize("deadline", ["soon", "nan", "inf"])
async def test_what_is_no_deadline_is_refused(
    nats_server: testing.NatsServer, connection: Connection, deadline: str
) -> None:
    """A deadline is a time."""
    async with serving(nats_server, at_once):
        received, _data = await raw(connection, deadline=deadline)

        assert received[headers.ERROR] == "request.invalid"


@pytest.mark.parametrize("value", ["a\nb", "a\r\nNats-Msg-Id: 1", "é", "\x00", " a", "x" * 257, "a\x7f"])
@pytest.mark.parametrize("name", ["actor", "session", "key"])
async def test_what_a_header_cant_hold_is_never_sent(bus: Bus, name: str, value: str) -> None:
    """Nothing in an actor, a session or a key can end a header, or come out as something else."""
    actor = Actor(value if name == "actor" else "a", value if name == "session" else "s")
    key = value if name == "key" else ""
    with pytest.raises(Refusal) as refused:
        await bus.ask(REQUEST, service_pb2.ListUsersResponse, actor=actor, key=key)

    assert refused.value.slug == "request.invalid"


async def test_what_a_header_should_not_hold_is_not_believed(
    nats_server: testing.NatsServer, connection: Connection
) -> None:
    """The same is refused by the side that answers, whoever sent it."""
    async with serving(nats_server, at_once):
        received, _data = await raw(connection, actor="jané")

        assert received[headers.ERROR] == "request.invalid"


async def test_a_service_is_told_who_asks_and_under_which_key(nats_server: testing.NatsServer, bus: Bus) -> None:
    """Actor, session and key arrive as they were given, and without a key one is made."""
    seen: list[Asked] = []

    async def note(asked: Asked) -> tuple[Message, int]:
        seen.append(asked)
        return ANSWER, 7

    async with serving(nats_server, note):
        actor = Actor("jane", "host-1-Mon Nov 30")
        reply = await bus.ask(REQUEST, service_pb2.ListUsersResponse, actor=actor, key="my key")
        await bus.ask(REQUEST, service_pb2.ListUsersResponse, actor=Actor("", ""))

    assert reply.sequence == 7
    assert (seen[0].actor, seen[0].key) == (actor, "my key")
    assert seen[1].actor == Actor("", "")
    assert seen[1].key


async def test_who_signed_in_is_believed_from_the_gateway_alone(
    nats_server: testing.NatsServer, connection: Connection
) -> None:
    """What a token proved arrives from the gateway; another service that says so is not believed."""
    seen: list[Asked] = []

    async def note(asked: Asked) -> tuple[Message, int]:
        seen.append(asked)
        return ANSWER, 0

    async with serving(nats_server, note):
        for caller in ("gateway", "board"):
            actor = Actor("jane", "s1", "agent", operator=True)
            await Bus(connection, caller).ask(REQUEST, service_pb2.ListUsersResponse, actor=actor)

    assert [(asked.actor.proven, asked.actor.operator) for asked in seen] == [("agent", True), ("", False)]


async def test_what_is_not_done_by_its_deadline_is_ended(nats_server: testing.NatsServer, bus: Bus) -> None:
    """A request that takes too long holds no task beyond its deadline; its caller learns that it may be asked again."""
    async with serving(nats_server, never) as answering:
        with pytest.raises(Unavailable):
            await ask(bus, 0.2)
        await toy.until(lambda: not answering._tasks)


async def test_a_caller_whose_clock_is_ahead_gets_no_more_than_it_asked_for(
    nats_server: testing.NatsServer, connection: Connection
) -> None:
    """The time a caller allows bounds its deadline, so that a wrong clock keeps no task for an hour."""
    async with serving(nats_server, never):
        received, data = await raw(connection, deadline=str(time.time() + 3600), budget="0.1")

        assert received[headers.ERROR] == "unavailable"
        assert b"before its deadline" in data


async def test_a_request_that_comes_too_late_is_not_done(
    nats_server: testing.NatsServer, connection: Connection
) -> None:
    """Nothing is begun after the deadline, and a caller with a slow clock can see that this is why."""
    async with serving(nats_server, at_once):
        received, data = await raw(connection, deadline=str(time.time() - 5))

        assert received[headers.ERROR] == "deadline.passed"
        assert b"clocks" in data


async def test_a_request_without_a_deadline_gets_the_usual_one(
    nats_server: testing.NatsServer, connection: Connection
) -> None:
    """Headers are not needed to ask."""
    seen: list[datetime] = []

    async def note(asked: Asked) -> tuple[Message, int]:
        seen.append(asked.deadline)
        return ANSWER, 0

    async with serving(nats_server, note):
        await raw(connection)

    assert 0 < (seen[0] - datetime.now(UTC)).total_seconds() <= bus_module.TIMEOUT_S


async def test_what_is_unavailable_for_a_moment_is_asked_again(nats_server: testing.NatsServer, bus: Bus) -> None:
    """A service that can't just now is asked again under the same key, and its caller notices nothing."""
    keys: list[str] = []

    async def third_time(asked: Asked) -> tuple[Message, int]:
        keys.append(asked.key)
        if len(keys) < 3:
            raise Unavailable("not now")
        return ANSWER, 0

    async with serving(nats_server, third_time):
        assert await ask(bus) == ["a"]
    assert len(keys) == 3
    assert len(set(keys)) == 1


@pytest.mark.parametrize(("kind", "tries"), [(Unavailable, 5), (DeadlinePassed, 1), (StoreFull, 1)])
async def test_what_stays_unavailable_is_told(
    nats_server: testing.NatsServer, bus: Bus, kind: type[Unavailable], tries: int
) -> None:
    """A service that keeps saying no is believed, at once when a second try can't help; its reason arrives."""
    asked: list[Asked] = []

    async def fail(request: Asked) -> tuple[Message, int]:
        asked.append(request)
        raise kind("the reason")

    async with serving(nats_server, fail):
        with pytest.raises(Unavailable, match="the reason") as failed:
            await ask(bus)

    assert type(failed.value) is kind
    assert len(asked) == tries


async def test_a_refusal_arrives_as_it_was_raised(nats_server: testing.NatsServer, bus: Bus) -> None:
    """Slug, detail, next command and extras survive the way."""

    async def refuse(_asked: Asked) -> tuple[Message, int]:
        raise Refusal("room.not_found", "no room “demo”", "mycelium room create demo", near=["demos"], one="x")

    async with serving(nats_server, refuse):
        with pytest.raises(Refusal) as refused:
            await ask(bus)

    given = refused.value
    assert (given.slug, given.detail, given.next) == ("room.not_found", "no room “demo”", "mycelium room create demo")
    assert given.extras == {"near": ["demos"], "one": ["x"]}


async def test_a_time_out_inside_a_service_is_a_bug_not_a_deadline(nats_server: testing.NatsServer, bus: Bus) -> None:
    """Only the caller's own deadline is told as one."""

    async def fail(_asked: Asked) -> tuple[Message, int]:
        raise TimeoutError

    async with serving(nats_server, fail):
        with pytest.raises(Internal):
            await ask(bus)


async def test_an_answer_that_is_too_large_is_a_bug(nats_server: testing.NatsServer, bus: Bus) -> None:
    """An answer that NATS would not take is told as a bug, not left unanswered."""

    async def much(_asked: Asked) -> tuple[Message, int]:
        return service_pb2.ListUsersResponse(users=[views_pb2.User(name="x" * 9_000_000)]), 0

    async with serving(nats_server, much):
        with pytest.raises(Internal):
            await ask(bus)


async def test_a_request_that_is_too_large_is_refused(bus: Bus) -> None:
    """A request that NATS would not take is refused at once."""
    request = service_pb2.PostMessageRequest(content="x" * 9_000_000)
    with pytest.raises(Refusal) as refused:
        await bus.ask(request, service_pb2.PostMessageResponse, actor=ACTOR)

    assert refused.value.slug == "content.too_large"


async def test_an_answer_that_cant_be_read_is_a_bug(nats_server: testing.NatsServer, bus: Bus) -> None:
    """An error that is no refusal of ours is not shown to anybody."""
    connection = await Connection.open(nats_server.settings("rooms"))

    async def answer(message: Any) -> None:
        code = {headers.ERROR: "x", headers.ERROR_CODE: bus_module.REFUSED}
        await connection.client.publish(message.reply, b"\xff\xff", headers=code)

    await connection.client.subscribe(SUBJECT, cb=answer)
    await connection.client.flush()
    with pytest.raises(Internal):
        await ask(bus)
    await connection.close()


async def test_a_request_that_wants_no_answer_is_done_and_harms_nobody(
    nats_server: testing.NatsServer, bus: Bus, connection: Connection
) -> None:
    """Without a place to answer to, nothing is answered, and the next request is."""
    done = asyncio.Event()

    async def note(_asked: Asked) -> tuple[Message, int]:
        done.set()
        return ANSWER, 0

    async with serving(nats_server, note):
        await connection.client.publish(SUBJECT, b"")
        await asyncio.wait_for(done.wait(), 60)
        assert await ask(bus) == ["a"]


async def test_a_stopping_service_answers_what_it_has_taken(nats_server: testing.NatsServer, bus: Bus) -> None:
    """Requests in work at the stop are answered; later ones are not taken."""
    go = asyncio.Event()

    async def wait(_asked: Asked) -> tuple[Message, int]:
        await go.wait()
        return ANSWER, 0

    async with serving(nats_server, wait) as answering:
        asked = [asyncio.create_task(ask(bus)) for _ in range(10)]
        await toy.until(lambda: len(answering._tasks) == 10)
        stopping = asyncio.create_task(answering.stop())
        await toy.until(lambda: answering._micro and answering._micro.stopped.is_set())
        go.set()
        await stopping

        assert await asyncio.gather(*asked) == [["a"]] * 10
        with pytest.raises(Unavailable):
            await ask(bus, 0.2)


async def test_a_stop_without_nats_does_not_wait(nats_server: testing.NatsServer, bus: Bus) -> None:
    """Who can't be answered is not waited for."""
    async with serving(nats_server, never) as answering:
        asked = asyncio.create_task(ask(bus, 1))
        await toy.until(lambda: answering._tasks)
        nats_server.kill()
        await toy.until(lambda: not answering.connection.client.is_connected)
        async with asyncio.timeout(1):
            await answering.stop()
        assert not answering._tasks
        with pytest.raises(Unavailable):
            await asked


async def test_every_replica_answers_for_its_own_health_and_a_silent_service_nothing(start: Start, bus: Bus) -> None:
    """Health says `ok`, the version and the position, and which replica says so."""
    assert await bus.health("rooms", 0.2) == []
    async with start(), start(folder="others"):
        said = await bus.health("rooms", replicas=2)
        assert len({one.pop("instance") for one in said}) == 2
        assert said == 2 * [{"status": "ok", "detail": "", "version": "0.1.0", "position": 0}]


async def test_a_closed_connection_is_unavailable_at_once(connection: Connection) -> None:
    """There is no use in waiting on a connection that was closed on purpose."""
    bus = Bus(connection, "test")
    await connection.close()
    with pytest.raises(Unavailable, match="closed"):
        await ask(bus, 60)
