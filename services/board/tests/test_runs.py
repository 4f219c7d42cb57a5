"""Runs of engines: rows while they are under way, one entry of the log when they have ended, turns in their threads."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from mycelium.board.v1 import log_pb2, service_pb2
from mycelium.engine.v1 import events_pb2 as engine_pb2
from mycelium.engine.v1 import runs_pb2
from mycelium.rooms.v1 import events_pb2 as rooms_pb2
from mycelium.rooms.v1 import service_pb2 as rooms_service_pb2
from mycelium_board import lookup, queries, turns
from mycelium_board.service import service
from mycelium_kernel import clock, events, headers, names, subjects
from mycelium_kernel.callers import RoomRow
from mycelium_kernel.clock import system_clock
from mycelium_kernel.errors import Refusal
from mycelium_kernel.run import start
from mycelium_kernel.service import Stored
from mycelium_kernel.testing import NatsServer
from services.board.tests.hub import rebuilt
from services.board.tests.live import Live, live
from services.board.tests.logged import WHAT, Logged

KEY = "work/pick-storage"
DONE, FAILED = runs_pb2.RUN_OUTCOME_DONE, runs_pb2.RUN_OUTCOME_FAILED


def run_of(message: str, thread: str = "", engine: str = "greeter") -> runs_pb2.Run:
    """A run that @avery asked for."""
    identifier = subjects.digest(f"{message} {engine}")
    return runs_pb2.Run(id=identifier, engine=engine, kind="hello", message_id=message, asked_by="avery", thread=thread)


class Running(Logged):
    """A board in whose room engines are asked."""

    def start(self, message: str, thread: str = "", engine: str = "greeter") -> runs_pb2.Run:
        run = run_of(message, thread, engine)
        run.started_at.CopyFrom(clock.to_timestamp(self.now))
        self.append(self.subject(run), engine_pb2.RunStarted(room_id=self.room_id, run=run))
        return run

    def end(self, run: runs_pb2.Run, outcome: runs_pb2.RunOutcome.ValueType = DONE) -> None:
        event = engine_pb2.RunEnded(room_id=self.room_id, run=run, outcome=outcome)
        event.ended_at.CopyFrom(clock.to_timestamp(self.now))
        self.append(self.subject(run), event)

    def subject(self, run: runs_pb2.Run) -> str:
        return subjects.fact("engine", self.room_id, "run", run.id)

    def page(self, wanted: service_pb2.Filter.ValueType = service_pb2.FILTER_ALL, limit: int = 0) -> list[str]:
        request = service_pb2.ListTasksRequest(room="demo", filter=wanted, limit=limit)
        page = queries.list_tasks(self.tables, request, self.context("avery"))
        return [f"{row.engine} for {row.asked_by} in {row.task or row.thread or '-'}" for row in page.runs]


@pytest.fixture
def board() -> Running:
    """With a task in it."""
    board = Running()
    board.task(KEY, title="Pick storage")
    return board


def test_a_run_is_a_row_while_it_is_under_way(board: Running) -> None:
    """With its task, since when, and who asked; the last first, at the end of all rows alone."""
    first = board.start(board.post("avery"))
    board.later(seconds=5)
    second = board.start(board.post("avery"), board.thread(KEY), "other")
    assert board.page() == [f"other for avery in {KEY}", "greeter for avery in -"]
    assert board.page(service_pb2.FILTER_UNSPECIFIED) == board.page(service_pb2.FILTER_IN_FLIGHT) == []
    board.task("work/another")
    assert board.page(limit=1) == [], "there is a next page"
    board.end(first)
    assert board.page() == [f"other for avery in {KEY}"]
    board.remove(KEY)
    assert board.page() == [f"other for avery in {second.thread}"]
    board.end(second, FAILED)
    assert board.page() == []


def test_a_run_is_told_once_though_it_posted(board: Running) -> None:
    """As one entry, with its outcome and its task; its answer is no message beside it, its other words are."""
    board.later(days=1)
    message = board.post("avery", thread=board.thread(KEY))
    run = board.start(message, board.thread(KEY))
    board.post("greeter", reply_to=message, thread=board.thread(KEY))
    board.later(minutes=1)
    board.end(run, FAILED)
    board.later(minutes=1)
    board.post("sec", reply_to=message)
    board.later(minutes=1)
    board.post("greeter", reply_to=message)  # of no run: that one is over
    day = board.read(since="today").days[0]
    told = [(entry.by, WHAT[entry.what], entry.key, entry.title, entry.outcome) for entry in day.entries]
    assert told == [
        ("greeter", "messages", "", "", ""),
        ("sec", "messages", "", "", ""),
        ("greeter", "run", KEY, "Pick storage", "failed"),
        ("avery", "messages", "", "", ""),
    ]
    assert (day.counts.total, day.counts.messages, day.counts.runs, day.counts.changes) == (4, 3, 1, 0)
    of_engine = board.read(since="today", by="greeter").days[0]
    assert (of_engine.counts.total, of_engine.counts.runs) == (2, 1)
    assert [(person.handle, person.counts.runs) for person in of_engine.people] == [("greeter", 1)]


@pytest.mark.parametrize("outcome", list(runs_pb2.RunOutcome.values())[1:])
def test_every_outcome_is_called_by_its_name(board: Running, outcome: runs_pb2.RunOutcome.ValueType) -> None:
    """As callers get it."""
    board.end(board.start(board.post()), outcome)
    assert [entry.outcome for entry in board.read().days[0].entries if entry.what == log_pb2.LOG_WHAT_RUN] == [
        runs_pb2.RunOutcome.Name(outcome).removeprefix("RUN_OUTCOME_").lower()
    ]


def test_a_row_of_a_run_can_t_be_changed(board: Running) -> None:
    """The refusal says what it is; one that is over is no row."""
    run = board.start(board.post("avery"))
    room = RoomRow(board.room_id, "demo")
    for name in (f"runs/{run.id}", f"runs/{run.id[-8:]}"):
        with pytest.raises(Refusal, match=r"row\.unchangeable"):
            lookup.find_task(board.tables, room, name)
    board.end(run)
    with pytest.raises(Refusal, match=r"task\.not_found"):
        lookup.find_task(board.tables, room, f"runs/{run.id}")


def test_tables_made_from_zero_are_the_same_and_a_deleted_room_leaves_nothing(board: Running) -> None:
    """After each fact, in whatever order the room, its documents and its engines are told of."""
    run = board.start(board.post("avery"), board.thread(KEY))
    board.start(board.post("avery"))
    assert board.tables.dump() == rebuilt(board.facts).dump()
    board.end(run)
    assert board.tables.dump() == rebuilt(board.facts).dump()
    board.append(subjects.room_name(names.fold_room_name("demo")), rooms_pb2.RoomDeleted(room_id=board.room_id))
    assert board.tables.all("SELECT * FROM run") == []
    board.start("late")
    assert board.tables.all("SELECT * FROM run") == []


async def store(hub: Live, room_id: str, run: runs_pb2.Run, *, started: int = 0) -> int:
    """A fact as the engine service stores it: the start of a run, or its end when it has `started`."""
    event = (
        engine_pb2.RunEnded(room_id=room_id, run=run, outcome=DONE, started=started)
        if started
        else engine_pb2.RunStarted(room_id=room_id, run=run)
    )
    subject = subjects.fact("engine", room_id, "run", run.id)
    stored = {headers.TYPE: events.type_name(event), headers.ACTOR: run.engine}
    deadline = system_clock() + timedelta(seconds=10)
    log = hub.boards[0].log
    return (await log.append(subject, event.SerializeToString(), stored, expect=started, deadline=deadline)).sequence


async def test_the_turn_in_a_tasks_thread_is_told_once_and_wakes_nobody(
    nats_server: NatsServer, tmp_path: Path
) -> None:
    """The engine's while it works, then another's that works there, then that of who asked; elsewhere nothing."""
    async with live(nats_server, tmp_path, boards=2) as hub:
        thread = await hub.write(KEY, "# Pick storage")
        room_id = (await hub.ask(rooms_service_pb2.GetRoomRequest(room="demo"))).room.id
        first, second = run_of("one", thread), run_of("two", thread, "other")
        await store(hub, room_id, run_of("three"))
        begun = await store(hub, room_id, first)
        await hub.told(f"filed {KEY}", f"floor {KEY}")
        other = await store(hub, room_id, second)
        await hub.told(f"filed {KEY}", *[f"floor {KEY}"] * 2)
        await store(hub, room_id, first, started=begun)
        await hub.told(f"filed {KEY}", *[f"floor {KEY}"] * 3)
        await store(hub, room_id, second, started=other)
        told = (await hub.told(f"filed {KEY}", *[f"floor {KEY}"] * 4))[1:]
        assert [one["by"] for one in told] == ["greeter", "other", "other", "avery"]
        assert {(one["thread"], one["title"], one["row_kind"]) for one in told} == {(thread, "Pick storage", "task")}
        assert await hub.given("avery") == await hub.given("sec") == []


async def test_a_turn_is_told_in_its_order_whichever_fact_is_come_to_first(
    nats_server: NatsServer, tmp_path: Path
) -> None:
    """Two replicas react to the end of a run before its beginning: it began before it ended, each told once."""
    async with live(nats_server, tmp_path, boards=0) as hub:
        by_hand = replace(service(), reactions=())
        board = await start(by_hand, nats_server.settings("board"), tmp_path / "board")
        hub.boards.append(board)
        thread = await hub.write(KEY, "# Pick storage")
        room_id = (await hub.ask(rooms_service_pb2.GetRoomRequest(room="demo"))).room.id
        begun = await store(hub, room_id, run_of("one", thread))
        ended = await store(hub, room_id, run_of("one", thread), started=begun)
        for sequence in (ended, begun, ended):
            found = await board.connection.get(sequence)
            assert found
            event = events.decode(found[0][headers.TYPE], found[1])
            await turns.TURNS.run(board, event, Stored(sequence, "", "", "", ""))
        told = await hub.told(*[f"floor {KEY}"] * 2)
        assert [one["by"] for one in told] == ["greeter", "avery"]
