"""The ledger on a real NATS server: replicas that race, kills between two steps, rooms that go."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

from mycelium.engine.v1 import service_pb2
from mycelium.rooms.v1 import events_pb2
from mycelium_engine.calls import Limits, Use
from mycelium_engine.ledger import Ledger
from mycelium_engine.service import service
from mycelium_engine.settings import EngineSettings, ModelSettings
from mycelium_kernel import events, headers, run, subjects
from mycelium_kernel.bus import Bus
from mycelium_kernel.clock import system_clock
from mycelium_kernel.run import Runtime
from mycelium_kernel.service import Actor
from mycelium_kernel.testing import NatsServer

ROOM = "01900000-0000-7000-8000-000000000001"
BY = "greeter"


@contextlib.asynccontextmanager
async def replicas(nats: NatsServer, limits: Limits, count: int = 2) -> AsyncIterator[list[Runtime]]:
    """So many engine services, without Temporal, and a room that has a member."""
    settings = EngineSettings("127.0.0.1:9", "mycelium", "", ModelSettings(limits=limits))
    async with contextlib.AsyncExitStack() as stack:
        runtimes = []
        for _ in range(count):
            runtime = await run.start(service(settings), nats.settings("engine"), None)
            stack.push_async_callback(runtime.stop)
            runtimes.append(runtime)
        await joined(runtimes[0])
        yield runtimes


async def joined(runtime: Runtime, room_id: str = ROOM) -> None:
    fact = events_pb2.MemberSaved(room_id=room_id)
    deadline = system_clock().replace(year=9999)
    stored = {headers.TYPE: events.type_name(fact), headers.ACTOR: BY}
    subject = subjects.fact("rooms", room_id, "member", BY)
    await runtime.log.append(subject, fact.SerializeToString(), stored, expect=0, deadline=deadline)


async def test_replicas_that_race_never_take_more_turns_than_there_are(nats: NatsServer) -> None:
    """Thirty steps over two replicas, all at once, for eight turns."""
    limits = Limits(turns=8)
    async with replicas(nats, limits) as runtimes:
        ledgers = [Ledger(runtime, limits) for runtime in runtimes]
        verdicts = await asyncio.gather(
            *(ledgers[step % 2].admit(ROOM, step, step, BY, is_priced=True) for step in range(1, 31))
        )
        state = (await ledgers[0].read(ROOM)).state

    assert sum(not verdict.slug for verdict in verdicts) == 8
    assert {verdict.slug for verdict in verdicts} == {"", "model.over_budget"}
    assert state is not None
    assert state.turns == 8


async def test_what_many_took_at_once_is_all_counted_and_each_once(nats: NatsServer) -> None:
    """Every use told to both replicas, as when the first died before it could say that it had counted."""
    async with replicas(nats, Limits()) as runtimes:
        ledgers = [Ledger(runtime, Limits()) for runtime in runtimes]
        uses = [Use(step, step, False, "reported", step, 1, 10) for step in range(1, 21)]
        await asyncio.gather(*(ledger.record(ROOM, use, BY) for use in uses for ledger in ledgers))
        state = (await ledgers[1].read(ROOM)).state

    assert state is not None
    assert (state.turns, state.input_tokens, state.output_tokens, state.pico_usd) == (20, sum(range(1, 21)), 20, 200)


async def test_a_kill_between_the_turn_and_its_use_costs_no_second_turn(nats: NatsServer) -> None:
    """The replica that asked is gone, and the log's server was killed as well; another goes on where it was."""
    limits = Limits(turns=1)
    async with replicas(nats, limits, 1) as (first,):
        assert not (await Ledger(first, limits).admit(ROOM, 1, 11, BY, is_priced=True)).slug
    nats.kill()
    await nats.start()
    settings = EngineSettings("127.0.0.1:9", "mycelium", "", ModelSettings(limits=limits))
    second = await run.start(service(settings), nats.settings("engine"), None)
    try:
        ledger = Ledger(second, limits)
        assert not (await ledger.admit(ROOM, 1, 12, BY, is_priced=True)).slug
        assert (await ledger.admit(ROOM, 2, 13, BY, is_priced=True)).slug == "model.over_budget"
        await ledger.record(ROOM, Use(1, 12, True, "reported", 5, 6, 7), BY)
        state = (await ledger.read(ROOM)).state
    finally:
        await second.stop()

    assert state is not None
    assert (state.turns, state.lost, state.input_tokens) == (1, 1, 5)


async def test_a_room_that_is_gone_gets_no_fact_any_more(nats: NatsServer) -> None:
    """It would outlive the room; nobody would erase it."""
    gone = ROOM[:-1] + "2"
    async with replicas(nats, Limits(), 1) as (runtime,):
        await Ledger(runtime, Limits()).record(gone, Use(1, 1, False, "reported", 1, 1, 1), BY)
        assert await runtime.connection.last_sequence(subjects.of_room(gone)) == 0


async def test_a_budget_is_asked_for_and_changed_over_the_bus(nats: NatsServer) -> None:
    """By another service; a repeat under one key has one effect."""
    async with replicas(nats, Limits(turns=9)) as (runtime, _other):
        bus, actor = Bus(runtime.connection, "engine"), Actor("avery", "s")
        await Ledger(runtime, Limits()).record(ROOM, Use(1, 1, False, "reported", 3, 4, None), BY)
        change = service_pb2.ChangeBudgetRequest(room_id=ROOM, turns=service_pb2.Limit(most=2), renew=True)
        changed = await bus.ask(change, service_pb2.ChangeBudgetResponse, actor=actor, key="k")
        await Ledger(runtime, Limits()).record(ROOM, Use(2, 2, False, "reported", 3, 4, None), BY)
        again = await bus.ask(change, service_pb2.ChangeBudgetResponse, actor=actor, key="k")
        told = await bus.ask(service_pb2.GetBudgetRequest(room_id=ROOM), service_pb2.GetBudgetResponse, actor=actor)

    assert changed.sequence > 0
    assert (changed.message.budget.turns.used, changed.message.budget.turns.limit) == (0, 2)
    assert told.message.budget == again.message.budget
    budget = told.message.budget
    assert (budget.turns.used, budget.turns.own, budget.tokens.used, budget.unpriced) == (1, True, 7, 1)
