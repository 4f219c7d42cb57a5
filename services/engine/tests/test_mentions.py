"""From a mention to the reply: rooms, two replicas of the engine service, Temporal and a model, all real."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.message import Message
from temporalio.client import Client
from temporalio.service import RPCError

from e2e.model import KEY, Model, Question
from mycelium.engine.v1 import events_pb2, runs_pb2
from mycelium.rooms.v1 import service_pb2, views_pb2
from mycelium_engine import records
from mycelium_engine.calls import Call, Limits
from mycelium_engine.ledger import Ledger
from mycelium_engine.mentions import drain
from mycelium_engine.runs import Runs
from mycelium_engine.service import service
from mycelium_engine.settings import EngineSettings, ModelSettings
from mycelium_engine.strays import Strays
from mycelium_kernel import events, headers, run, subjects
from mycelium_kernel.run import Runtime
from mycelium_kernel.tail import RawFact
from mycelium_kernel.testing import NatsServer
from services.engine.tests.conftest import NAMESPACE
from services.rooms.tests.live import Ask, asking, running

pytestmark = pytest.mark.timeout(180)
BOUND_S = 60.0


@dataclass
class World:
    """A room `demo` with the engine @greeter, how to ask rooms, and what an engine service is started with."""

    ask: Ask
    nats: NatsServer
    settings: EngineSettings
    room_id: str
    server: Client

    @contextlib.asynccontextmanager
    async def engines(self, count: int) -> AsyncIterator[list[Runtime]]:
        """So many replicas of the service, for the time of the block."""
        async with contextlib.AsyncExitStack() as stack:
            runtimes = []
            for _ in range(count):
                runtime = await run.start(service(self.settings), self.nats.settings("engine"), None)
                stack.push_async_callback(runtime.stop)
                runtimes.append(runtime)
            yield runtimes

    async def post(self, text: str) -> views_pb2.Message:
        found: views_pb2.Message = (await self.ask(service_pb2.PostMessageRequest(room="demo", content=text))).message
        return found

    async def replies(self, message: views_pb2.Message) -> list[views_pb2.Message]:
        request = service_pb2.ListMessagesRequest(room="demo", limit=500, sender="greeter", all=True)
        found = (await self.ask(request)).messages
        return [reply for reply in found if reply.reply_to == message.id]

    async def answered(self, message: views_pb2.Message) -> list[views_pb2.Message]:
        """The replies, once there is one and the delivery is acknowledged."""
        async with asyncio.timeout(BOUND_S):
            while not (found := await self.replies(message)) or not await self.is_done(message):  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        return found

    def run_subject(self, message: views_pb2.Message) -> str:
        return records.subject(self.room_id, f"HelloRun:{self.room_id}:{message.id}:greeter")

    async def told(self, engine: Runtime, message: views_pb2.Message, kind: type[Message]) -> Any:
        """What is told of a message's run last, once it is of this kind."""
        async with asyncio.timeout(BOUND_S):
            while True:
                sequence, data = await engine.connection.last(self.run_subject(message))
                found = await engine.connection.get(sequence) if sequence else None
                if found and found[0][headers.TYPE] == events.type_name(kind):
                    return kind.FromString(data)
                await asyncio.sleep(0.02)

    async def is_done(self, message: views_pb2.Message) -> bool:
        receipts = (await self.ask(service_pb2.ListReceiptsRequest(room="demo", message=message.id))).receipts
        return all(receipt.state == views_pb2.DELIVERY_STATE_ACKNOWLEDGED for receipt in receipts)


@pytest.fixture
async def world(
    nats: NatsServer, server: Client, client: Client, key_file: str, model: Model, tmp_path: Path
) -> AsyncIterator[World]:
    """Everything but the engine service itself."""
    settings = EngineSettings(
        server.service_client.config.target_host,
        NAMESPACE,
        key_file,
        ModelSettings("openai/scripted", model.url, KEY, 30.0, 64),
    )
    async with running(nats, tmp_path / "tables"), asking(nats) as ask:
        room = (await ask(service_pb2.CreateRoomRequest(name="demo"))).room
        await ask(_engine())
        yield World(ask, nats, settings, room.id, client)


def _engine(*, paused: bool | None = None) -> service_pb2.SaveMemberRequest:
    return service_pb2.SaveMemberRequest(
        room="demo",
        handle="greeter",
        kind=views_pb2.MEMBER_KIND_ENGINE,
        engine_kind=views_pb2.ENGINE_KIND_HELLO,
        paused=paused,
    )


async def test_two_replicas_answer_each_mention_once(world: World, model: Model) -> None:
    """Who of them gets a mention, and how often it is told, makes no difference."""
    async with world.engines(2) as engines:
        messages = await asyncio.gather(*(world.post(f"@greeter number {number}") for number in range(6)))
        replies = [await world.answered(message) for message in messages]

        runs = [await world.told(engines[0], message, events_pb2.RunEnded) for message in messages]

    assert [len(found) for found in replies] == [1] * 6
    assert len(model.asked) == 6
    assert {run.outcome for run in runs} == {runs_pb2.RUN_OUTCOME_DONE}
    assert [(run.run.engine, run.run.kind, run.run.asked_by, run.run.message_id) for run in runs] == [
        ("greeter", "hello", "avery", message.id) for message in messages
    ]


async def test_a_run_is_told_while_the_model_is_asked_and_its_end_once(world: World, model: Model) -> None:
    """With the thread that it works in; what the model fails by is the reason of its end."""
    asked = threading.Event()

    def hold(_question: Question) -> None:
        asked.wait(BOUND_S)

    model.on_asked, model.fault = hold, "auth"
    async with world.engines(1) as (engine,):
        first = await world.post("a thread begins")
        request = service_pb2.PostMessageRequest(room="demo", content="@greeter hello", thread=first.id)
        message = (await world.ask(request)).message
        began = await world.told(engine, message, events_pb2.RunStarted)
        place = await engine.connection.last_sequence(world.run_subject(message))
        asked.set()
        ended = await world.told(engine, message, events_pb2.RunEnded)

    assert began.run == ended.run
    assert (began.run.thread, began.run.asked_by) == (first.id, "avery")
    assert (ended.outcome, ended.reason, ended.started) == (runs_pb2.RUN_OUTCOME_FAILED, "model.auth", place)
    assert began.run.started_at.ToNanoseconds() <= ended.ended_at.ToNanoseconds()


async def test_a_mention_that_comes_twice_makes_one_run(world: World, model: Model) -> None:
    """The run was started, and the service died before it could say so: the mention comes again."""
    async with world.engines(1):
        await world.answered(await world.post("@greeter warm up"))
    message = await world.post("@greeter hello")
    call = Call(world.room_id, message.id, "greeter")
    async with world.engines(2) as replicas:
        runs = Runs(world.settings)
        working = asyncio.create_task(runs.work(replicas[0]))
        await _started(runs, call)
        for replica in (*replicas, *replicas):
            await drain(replica, runs, world.room_id, "greeter", views_pb2.ENGINE_KIND_HELLO)
        assert len(await world.answered(message)) == 1
        working.cancel()
        await asyncio.wait((working,))

    assert len(model.asked) == 2


async def _started(runs: Runs, call: Call) -> None:
    await _reached(runs)
    assert await runs.start(views_pb2.ENGINE_KIND_HELLO, call)
    assert await runs.start(views_pb2.ENGINE_KIND_HELLO, call)


async def test_a_paused_engine_answers_when_it_is_resumed(world: World, model: Model) -> None:
    """Like any member: what came meanwhile waits for it."""
    await world.ask(_engine(paused=True))
    async with world.engines(1):
        message = await world.post("@greeter hello")
        other = await world.post("nobody is named here")
        assert not await world.replies(message)
        await world.ask(_engine(paused=False))
        assert len(await world.answered(message)) == 1

    assert other.mentions == []
    assert len(model.asked) == 1


async def test_a_run_that_was_ended_in_temporal_is_told_as_stopped_and_no_other(
    world: World, server: Client, model: Model
) -> None:
    """While it runs it is left alone; whoever ends its workflow leaves it to the engine to say so, once."""
    asked = threading.Event()

    def hold(_question: Question) -> None:
        asked.wait(BOUND_S)

    async with world.engines(1) as (engine,):
        done = await world.post("@greeter warm up")
        over = await world.told(engine, done, events_pb2.RunEnded)
        model.on_asked = hold
        message = await world.post("@greeter hello")
        began = await world.told(engine, message, events_pb2.RunStarted)
        runs = Runs(world.settings)
        working = asyncio.create_task(runs.work(engine))
        await _reached(runs)
        strays = Strays(runs)
        strays.hear([await _fact(engine, world.run_subject(one)) for one in (done, message)])
        strays.hear([await _fact(engine, world.run_subject(message))])
        await strays.look(engine)
        assert (await _fact(engine, world.run_subject(message))).type == events.type_name(events_pb2.RunStarted)
        await server.get_workflow_handle(f"HelloRun:{world.room_id}:{message.id}:greeter").terminate()
        await strays.look(engine)
        await strays.look(engine)
        told = events_pb2.RunEnded.FromString((await _fact(engine, world.run_subject(message))).data)
        asked.set()
        working.cancel()
        await asyncio.wait((working,))
        assert await world.told(engine, done, events_pb2.RunEnded) == over

    assert (told.outcome, told.reason, told.run) == (runs_pb2.RUN_OUTCOME_STOPPED, "run.lost", began.run)


async def _fact(engine: Runtime, subject: str) -> RawFact:
    sequence, data = await engine.connection.last(subject)
    found = await engine.connection.get(sequence)
    assert found
    return RawFact(sequence, subject, found[0][headers.TYPE], data, found[0])


async def _reached(runs: Runs) -> None:
    async with asyncio.timeout(BOUND_S):
        while runs._client is None:  # noqa: ASYNC110 - it tells nobody
            await asyncio.sleep(0.05)


async def test_who_takes_the_handle_of_an_engine_that_left_says_nothing_that_it_was_asked(
    world: World, model: Model
) -> None:
    """Removed while the model is asked: what that took is counted, and nothing is posted under the handle."""
    removed = threading.Event()

    def hold(_question: Question) -> None:
        removed.wait(BOUND_S)

    model.on_asked = hold
    async with world.engines(1) as (engine,):
        message = await world.post("@greeter hello")
        async with asyncio.timeout(BOUND_S):
            while not model.asked:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        await world.ask(service_pb2.RemoveMemberRequest(room="demo", handle="greeter"))
        await world.ask(service_pb2.SaveMemberRequest(room="demo", handle="greeter", kind=views_pb2.MEMBER_KIND_AGENT))
        removed.set()
        ended = world.server.get_workflow_handle(f"HelloRun:{world.room_id}:{message.id}:greeter").result()
        await asyncio.wait_for(ended, BOUND_S)
        assert (await Ledger(engine, Limits()).read(world.room_id)).state is not None
        told = await world.told(engine, message, events_pb2.RunEnded)
        assert told.outcome == runs_pb2.RUN_OUTCOME_STOPPED

    assert not await world.replies(message)


async def test_a_deleted_rooms_runs_and_what_they_spent_are_erased(world: World, server: Client) -> None:
    """With the room goes what was said about it in Temporal, and what it spent; runs of other rooms stay."""
    async with world.engines(1) as (engine,):
        message = await world.post("@greeter hello")
        await world.answered(message)
        run_id = f"HelloRun:{world.room_id}:{message.id}:greeter"
        await server.get_workflow_handle(run_id).describe()
        assert await engine.connection.last_sequence(subjects.spending(world.room_id))
        await world.told(engine, message, events_pb2.RunEnded)
        await world.ask(service_pb2.DeleteRoomRequest(room="demo"))
        async with asyncio.timeout(BOUND_S):
            with contextlib.suppress(RPCError):
                while await server.get_workflow_handle(run_id).describe():  # noqa: ASYNC110
                    await asyncio.sleep(0.05)
            while await engine.connection.last_sequence(subjects.of_room(world.room_id)):  # noqa: ASYNC110
                await asyncio.sleep(0.05)
