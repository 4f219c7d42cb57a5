"""Why a task can't be begun: what it waits for, however that is written; cycles; parts; what a claim makes of it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mycelium.board.v1 import service_pb2
from mycelium.rooms.v1 import events_pb2 as rooms_pb2
from mycelium_board import lookup, queries, readiness
from mycelium_board.edges import written
from mycelium_board.model import Task
from mycelium_board.service import service
from mycelium_kernel import subjects
from services.board.tests.hub import Hub, rebuilt

LINKS = {"depends_on": "depends-on", "part_of": "part-of"}


def task_of(board: Hub, key: str) -> Task:
    found = lookup.by_document(board.tables, board.room_id, lookup.document_of(key))
    assert found
    return found


def why(board: Hub, key: str) -> readiness.Why:
    return readiness.why_not_ready(board.tables, board.room_id, task_of(board, key), board.now)


def after(board: Hub, key: str, *needed: str, **fields: Any) -> str:
    """A task that depends on others; returns its thread."""
    return linked(board, key, depends_on=list(needed), **fields)


def linked(board: Hub, key: str, **fields: Any) -> str:
    """A task with these fields, whose names have dashes; returns its thread."""
    return board.task(key, **{LINKS.get(name, name): value for name, value in fields.items()})


@pytest.mark.parametrize(
    ("field", "names"),
    [
        ("work/a", ["work/a"]),
        ("work/a, work/b,", ["work/a", "work/b"]),
        ("[[work/a]]", ["work/a"]),
        ("[[work/a|the first]] [[work/b#part]], c", ["work/a", "work/b", "c"]),
        (["work/a", "Work/A", "[[B]]"], ["work/a", "b"]),
        ([["work/a"]], ["work/a"]),
        (["work/a, b", ["c"]], ["work/a", "b", "c"]),
        ("myc://work/a", ["work/a"]),
        ("![[work/a]]", ["work/a"]),
        (12345678, ["12345678"]),
        (True, []),
        ({"work/a": 1}, []),
        ("", []),
        (None, []),
        (" , [[]], ", []),
    ],
)
def test_names_are_read_however_they_are_written(field: Any, names: list[str]) -> None:
    """A text, a list between commas, a list in YAML, links; each name once."""
    assert written({"depends-on": field}) == [("depends-on", name) for name in names]


def test_a_task_is_a_part_of_one_other() -> None:
    """The first that is named."""
    assert written({"part-of": "work/a, work/b"}) == [("part-of", "work/a")]


def test_a_task_waits_for_what_is_there_and_open() -> None:
    """By any name of it; a note, a key that nothing has and a closed task are references."""
    board = Hub()
    first, second = board.task("work/a"), board.task("decisions/b")
    board.task("context/note")
    board.task("work/done", status="resolved")
    after(board, "work/x", "a", second[-8:], "context/note", "work/done", "work/nope", "work/a", first)
    assert why(board, "work/x") == readiness.Why("waiting", ("work/a", "decisions/b"), (), "after work/a, decisions/b")
    board.task("work/nope")
    assert why(board, "work/x").waits_for == ("work/a", "decisions/b", "work/nope")
    board.remove("work/a")
    board.resolve("decisions/b")
    assert why(board, "work/x").line == "after work/nope"
    board.remove("work/nope")
    assert why(board, "work/x") == readiness.Why("")


def test_the_reasons_in_their_order() -> None:
    """Closed, blocked, waiting, held; what it waits for is said of every open one."""
    board = Hub()
    board.task("work/a")
    for number in range(4):
        board.task(f"work/n{number}")
    after(board, "work/x", "work/a", status="blocked", blocked_by="#502")
    assert why(board, "work/x") == readiness.Why("blocked", ("work/a",), (), "waiting on #502")
    after(board, "work/x", "work/a", "n0", "n1", "n2", "n3")
    assert why(board, "work/x").line == "after work/a, work/n0, work/n1 and 2 more"
    board.claim("work/x")
    assert why(board, "work/x").reason == "waiting"
    after(board, "work/x")
    assert why(board, "work/x").line == "held by @sec until 2026-01-05T12:30:00.000Z"
    board.later(minutes=30)
    assert why(board, "work/x").reason == ""
    board.resolve("work/x")
    assert why(board, "work/x") == readiness.Why("closed", (), (), "resolved")


def test_nobody_of_a_cycle_waits_in_it() -> None:
    """Of any length, and through parts; who waits for the cycle from outside still waits, and the row names it."""
    board = Hub()
    after(board, "work/self", "work/self")
    assert why(board, "work/self") == readiness.Why("", (), ("work/self",))
    for number in range(5):
        after(board, f"work/c{number}", f"work/c{(number + 1) % 5}", "work/d")
    board.task("work/d")
    after(board, "work/outside", "work/c0")
    assert why(board, "work/outside").waits_for == ("work/c0",)
    assert why(board, "work/c1").cycle == tuple(f"work/c{number}" for number in (1, 2, 3, 4, 0))
    assert why(board, "work/c1").waits_for == ("work/d",)
    board.resolve("work/c4")
    assert why(board, "work/c1") == readiness.Why("waiting", ("work/c2", "work/d"), (), "after work/c2, work/d")


def test_a_parent_may_wait_for_its_part_and_the_part_not_for_it() -> None:
    """The second would be for ever; a part can be closed while its parent is blocked."""
    board = Hub()
    after(board, "work/epic", "work/part")
    linked(board, "work/part", part_of="work/epic")
    assert (why(board, "work/epic").waits_for, why(board, "work/epic").cycle) == (("work/part",), ())
    after(board, "work/part", "work/epic", **{"part-of": "epic"})
    after(board, "work/epic")
    assert why(board, "work/part") == readiness.Why("", (), ("work/part", "work/epic"))
    board.task("work/epic", status="blocked")
    board.resolve("work/part")
    assert why(board, "work/epic").reason == "blocked"


def test_rows_say_it_with_parent_and_parts() -> None:
    """The same as the function; closed parts are parts."""
    board = Hub()
    board.task("work/epic")
    linked(board, "work/b", part_of="work/epic", depends_on="work/a")
    linked(board, "work/a", part_of="epic")
    linked(board, "work/lost", part_of="work/nope")
    request = service_pb2.ListTasksRequest(room="demo", filter=service_pb2.FILTER_ALL)
    rows = {row.key: row for row in queries.list_tasks(board.tables, request, board.context("avery")).rows}
    assert list(rows["work/epic"].parts) == ["work/a", "work/b"]
    assert (rows["work/b"].parent, rows["work/b"].ready, rows["work/b"].reason) == ("work/epic", False, "after work/a")
    assert (rows["work/a"].ready, rows["work/lost"].parent) == (True, "")
    assert list(rows["work/b"].waits_for) == ["work/a"]
    board.resolve("work/a")
    rows = {row.key: row for row in queries.list_tasks(board.tables, request, board.context("avery")).rows}
    assert list(rows["work/epic"].parts) == ["work/a", "work/b"]
    assert rows["work/b"].ready


def test_the_gate_refuses_what_waits() -> None:
    """With what it waits for; by force it is claimed, and its holder is shown the claim again."""
    board = Hub()
    board.task("work/a")
    after(board, "work/x", "work/a")
    assert board.claim("work/x").holder == "sec", "there is no gate"
    board.release("work/x")
    board.commands = {command.request: command for command in service(is_gated=True).commands}
    request = service_pb2.ClaimTaskRequest(room="demo", task="work/x")
    refusal = board.refused("task.waiting", request)
    assert (refusal.detail, refusal.extras["waits_for"]) == ("work/x waits for work/a", ["work/a"])
    assert refusal.next == "mycelium board claim work/x --room demo --force"
    held = board.claim("work/x", force=True)
    assert board.claim("work/x").token == held.token
    board.release("work/x")
    board.resolve("work/a")
    assert board.claim("work/x", "builder").holder == "builder"


def freed(board: Hub, key: str, closed: int = 0) -> list[str]:
    """Who is told that they wait no longer, when a task was closed by the last fact, or that; as the reaction asks."""
    closed = closed or len(board.facts)
    gone = Task(lookup.document_of(key), key, "", "", "")
    found = []
    for one in readiness.waited(board.tables, board.room_id, gone, closed):
        request = service_pb2.UnblockTaskRequest(
            room_id=board.room_id, document_id=one.document_id, cause=key, closed=closed, by="sec"
        )
        if board.ask(request, "").unblocked:
            found.append(one.key)
            assert not board.ask(request, "").unblocked, "told once"
    return found


def test_the_end_of_waiting_is_told_to_who_waits_for_nothing_else() -> None:
    """Once; not to who is blocked, waits for another, was in a cycle, or named it only afterwards."""
    board = Hub()
    board.task("work/a")
    board.task("work/b")
    after(board, "work/x", "a")
    after(board, "work/both", "work/a", "work/b")
    after(board, "work/blocked", "work/a", status="blocked")
    board.claim("work/x")
    board.resolve("work/a")
    closed = len(board.facts)
    after(board, "work/afterwards", "work/a")
    assert freed(board, "work/a", closed) == ["work/x"]
    assert board.claim("work/x").holder == "sec", "who holds it holds it still"
    after(board, "work/late", "work/b")
    board.remove("work/b")
    assert freed(board, "work/b") == ["work/both", "work/late"]
    linked(board, "work/c", depends_on="work/round")
    after(board, "work/round", "work/c")
    board.resolve("work/c")
    assert freed(board, "work/c") == []
    assert rebuilt(board.facts).dump() == board.tables.dump()


def test_of_two_that_are_closed_at_once_one_tells() -> None:
    """Both reactions come after both."""
    board = Hub()
    for key in ("work/a", "work/b"):
        board.task(key)
    after(board, "work/x", "work/a", "work/b")
    board.resolve("work/a")
    first = len(board.facts)
    board.resolve("work/b")
    request = service_pb2.UnblockTaskRequest(
        room_id=board.room_id, document_id=lookup.document_of("work/x"), cause="work/a", closed=first, by="sec"
    )
    assert board.ask(request, "").unblocked
    request.cause, request.closed = "work/b", first + 1
    assert not board.ask(request, "").unblocked
    board.task("work/b", status="resolved", move=first + 1)
    board.task("work/b", status="open")
    board.resolve("work/b")
    assert freed(board, "work/b") == ["work/x"], "it waited again"


NODES = st.integers(0, 11)


@settings(max_examples=150, deadline=None)
@given(
    needs=st.sets(st.tuples(NODES, NODES), max_size=30),
    parents=st.dictionaries(NODES, NODES, max_size=8),
    closed=st.sets(NODES, max_size=4),
)
def test_waiting_is_as_reachability_has_it(
    needs: set[tuple[int, int]], parents: dict[int, int], closed: set[int]
) -> None:
    """Of any graph: a task waits for what it names, open, unless a way leads back; and somebody can always begin."""
    board = Hub()
    for node in range(12):
        fields: dict[str, Any] = {"depends-on": [f"work/{to}" for at, to in sorted(needs) if at == node]}
        if node in parents:
            fields["part-of"] = f"work/{parents[node]}"
        board.task(f"work/{node}", status="resolved" if node in closed else "open", **fields)
    onward = {at: {to for one, to in needs if one == at} - closed for at in range(12)}
    for part, parent in parents.items():
        if part not in closed:
            onward[parent].add(part)
    reached = {at: set(onward[at]) for at in range(12)}
    for through in range(12):
        if through not in closed:
            for at in range(12):
                reached[at] |= reached[through] if through in reached[at] else set()
    found = {node: why(board, f"work/{node}") for node in range(12) if node not in closed}
    for node, told in found.items():
        waits = {to for at, to in needs if at == node and to not in closed and node not in reached[to]} - {node}
        assert set(told.waits_for) == {f"work/{to}" for to in waits}
        assert bool(told.cycle) == (node in reached[node])
        around = [int(key.removeprefix("work/")) for key in told.cycle]
        assert all(to in onward[at] for at, to in zip(around, around[1:] + around[:1], strict=True))
    assert not found or any(not told.waits_for for told in found.values())


def test_a_deleted_room_takes_everything() -> None:
    """Edges, edits and what moves asked for count no more."""
    board = Hub()
    after(board, "work/x", "work/a")
    board.resolve("work/x")
    deleted = rooms_pb2.RoomDeleted(room_id=board.room_id)
    board.append(subjects.fact("rooms", subjects.HUB, "erased", board.room_id), deleted)
    for table in ("task", "edge", "asked", "edit", "claim"):
        assert board.tables.all(board.tables.rows_of(table)) == []


def test_thousands_of_tasks_beside_it_cost_nothing() -> None:
    """What is asked of the tables goes by an index, for every question that a row asks."""
    board = Hub()
    board.task("work/x")
    graph = readiness.Graph(board.tables, board.room_id)
    asked: list[str] = []
    board.tables._connection.set_trace_callback(asked.append)  # what SQLite is really asked
    graph.waiting(task_of(board, "work/x"))
    graph.parts(task_of(board, "work/x"))
    graph.named("work/y")
    board.tables._connection.set_trace_callback(None)
    plans = [row[3] for sql in asked for row in board.tables.all(f"EXPLAIN QUERY PLAN {sql}")]
    assert plans
    assert not [plan for plan in plans if plan.startswith("SCAN")]
