"""What ends by itself: each is ended once, many side by side, and nothing holds up the others."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

from google.protobuf.message import Message

from mycelium.rooms.v1 import events_pb2, service_pb2
from mycelium_kernel import due
from mycelium_kernel.errors import Refusal, Unavailable
from mycelium_kernel.run import Runtime
from mycelium_kernel.service import Command, Context, Direct, Done, Fact, Service
from services.kernel.tests import toy
from services.kernel.tests.toy import Start

NOW = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)
NOW_MS = 1_767_614_400_000
MANY = due.BATCH * 3 + 7


def over(handle: str) -> service_pb2.SaveUserRequest:
    return service_pb2.SaveUserRequest(handle=handle)


# A user whose name is a moment ends by then: it has none after that.
USERS = due.Due(
    "a user",
    rows="SELECT handle FROM user WHERE name != '' AND CAST(name AS INTEGER) <= ? ORDER BY name, handle LIMIT ?",
    next="SELECT min(CAST(name AS INTEGER)) FROM user WHERE name != ''",
    request=over,
)


def save(entity: toy.UserEntity, request: service_pb2.SaveUserRequest, context: Context) -> Fact | Done:
    """Refuses those that are stuck, and finds nothing to do for those that are deaf."""
    if request.handle.startswith("stuck"):
        raise Refusal("handle.taken", "it can't end")
    if request.handle.startswith("deaf"):
        return Done(service_pb2.SaveUserResponse())
    return toy.save_user(entity, request, context)


SERVICE = toy.service(commands=(Command(service_pb2.SaveUserRequest, toy.load_user, save, toy.answer_user),))


async def fill(runtime: Runtime, handles: list[str], at: int = NOW_MS) -> None:
    runtime.clock = lambda: NOW

    async def put(handle: str) -> int:
        return await toy.store(runtime, toy.user_subject(handle), events_pb2.UserSaved(handle=handle, name=str(at)))

    assert runtime.projector
    await runtime.projector.wait(max(await asyncio.gather(*map(put, handles))))


def left(runtime: Runtime) -> list[str]:
    assert runtime.tables
    return [row[0] for row in runtime.tables.all("SELECT handle FROM user WHERE name != '' ORDER BY handle")]


def facts(runtime: Runtime) -> int:
    assert runtime.tables
    return runtime.tables.position


async def test_all_that_is_due_ends_once(start: Start) -> None:
    """However many there are; and nothing of what is due later."""
    async with start() as runtime:
        await fill(runtime, [f"u{number}" for number in range(MANY)])
        await fill(runtime, ["later"], NOW_MS + 400)
        before = facts(runtime)
        assert await due.end(runtime, USERS) == 0.4
        assert left(runtime) == ["later"]
        assert facts(runtime) == before + MANY


async def test_ends_are_asked_for_side_by_side(start: Start) -> None:
    """A whole batch at once: nobody is answered before all of it has been asked for; and never more than that."""
    asked, most, full = 0, 0, asyncio.Event()

    async def slow(runtime: Runtime, request: service_pb2.SaveUserRequest, _context: Context) -> tuple[Message, int]:
        nonlocal asked, most
        asked += 1
        most = max(most, asked)
        if asked == due.BATCH:
            full.set()
        async with asyncio.timeout(toy.BOUND_S):
            await full.wait()
        asked -= 1
        event = events_pb2.UserSaved(handle=request.handle)
        return service_pb2.SaveUserResponse(), await toy.store(runtime, toy.user_subject(request.handle), event)

    service = toy.service(commands=(), direct=(Direct(service_pb2.SaveUserRequest, slow),))
    async with start(service) as runtime:
        await fill(runtime, [f"u{number}" for number in range(MANY)])
        await due.end(runtime, USERS)
        assert left(runtime) == []
        assert most == due.BATCH


async def test_what_can_not_be_ended_holds_up_nothing(start: Start) -> None:
    """More of it than are asked for at once, and due before all others; each is asked for once, then a second later."""
    stuck = [f"stuck{number}" for number in range(due.BATCH + 5)] + ["deaf"]
    async with start(SERVICE) as runtime:
        await fill(runtime, stuck, NOW_MS - 1)
        await fill(runtime, ["a", "b"])
        before = facts(runtime)
        assert await due.end(runtime, USERS) == due.LOOK_S[1]
        assert left(runtime) == sorted(stuck)
        assert facts(runtime) == before + 2


async def test_who_can_not_answer_is_not_asked_for_the_rest(start: Start) -> None:
    """The whole batch was asked for; a second later is soon enough."""
    asked: set[str] = set()

    async def away(_runtime: Runtime, request: service_pb2.SaveUserRequest, _context: Context) -> tuple[Message, int]:
        asked.add(request.handle)
        raise Unavailable("not now")

    async with start(toy.service(commands=(), direct=(Direct(service_pb2.SaveUserRequest, away),))) as runtime:
        handles = [f"u{number:03}" for number in range(MANY)]
        await fill(runtime, handles)
        assert await due.end(runtime, USERS) == due.LOOK_S[1]
        assert sorted(asked) == handles[: due.BATCH]


async def test_the_loop_looks_again_when_the_next_is_due(start: Start) -> None:
    """In the end nothing is left, whenever it came to be due; it is never looked at all the time."""

    async def loop(runtime: Runtime) -> None:
        await due.watch(runtime, USERS)

    service: Service = toy.service(workers=(loop,))
    async with start(service) as runtime:
        await fill(runtime, ["now"])
        await fill(runtime, ["soon"], NOW_MS + 1)
        await toy.until(lambda: left(runtime) == ["soon"])
        assert await due.end(runtime, USERS) == due.LOOK_S[0]
        runtime.clock = lambda: NOW + timedelta(seconds=1)
        await toy.until(lambda: left(runtime) == [])
        assert await due.end(runtime, USERS) == due.LOOK_S[1]
