"""Tangles of tasks: found once for an answer, as plain reachability has them, and never looked at for ever."""

from __future__ import annotations

import random
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mycelium.board.v1 import service_pb2, views_pb2
from mycelium_board import lookup, queries, readiness
from mycelium_board.tangles import Tangle, Tangles
from mycelium_kernel.callers import RoomRow
from services.board.tests.hub import Hub

Links = dict[str, set[str]]
NODES = [f"n{number:02}" for number in range(14)]
LINKS = st.dictionaries(st.sampled_from(NODES), st.sets(st.sampled_from(NODES), max_size=4))
READY, ALL = service_pb2.FILTER_READY, service_pb2.FILTER_ALL


def tangles(links: Links) -> Tangles:
    against: Links = {node: {one for one in NODES if node in links.get(one, set())} for node in NODES}
    return Tangles(lambda node: sorted(links.get(node, set())), lambda node: sorted(against[node]), lambda: False)


def reached(links: Links, start: str) -> set[str]:
    """All to which a way leads, however long."""
    seen: set[str] = set()
    waiting = [start]
    while waiting:
        for other in links.get(waiting.pop(), set()) - seen:
            seen.add(other)
            waiting.append(other)
    return seen


@given(links=LINKS, order=st.permutations(NODES))
def test_a_tangle_is_who_leads_to_each_other(links: Links, order: list[str]) -> None:
    """Whoever was asked for before, and its cycles are the same."""
    shared = tangles(links)
    reach = {node: reached(links, node) for node in NODES}
    for node in order:
        found = shared.of(node)
        assert set(found.within) == {one for one in reach[node] if node in reach[one]}
        assert found == tangles(links).of(node)
        if found.within:
            is_cycle(links, found, node)
            assert found.cycle(node) == tangles(links).of(node).cycle(node)


def is_cycle(links: Links, found: Tangle, node: str) -> None:
    """It begins where it was asked, nobody comes twice, and each leads to the next."""
    way = found.cycle(node)
    assert (way[0], len(set(way))) == (node, len(way))
    assert all(after in links[one] for one, after in zip(way, [*way[1:], node], strict=True))


def after(board: Hub, number: int, needs: list[str] | str) -> None:
    fields: dict[str, Any] = {"depends-on": needs}
    board.task(f"work/{number}", **fields)


def knotted(size: int, links: int = 12) -> Hub:
    """Tasks that depend on some of each other, so many that nearly all are one tangle."""
    board, chance = Hub(), random.Random(5)
    for number in range(size):
        needs = [f"work/{chance.randrange(size)}" for _ in range(links)]
        after(board, number, needs)
    return board


def in_a_row(size: int) -> Hub:
    """Tasks of which each depends on the next, in no order on the board."""
    board, order = Hub(), list(range(size))
    random.Random(5).shuffle(order)
    for number in order:
        after(board, number, f"work/{number + 1}")
    return board


def in_a_ring(size: int) -> Hub:
    board = Hub()
    for number in range(size):
        after(board, number, f"work/{(number + 1) % size}")
    return board


def page(board: Hub, **fields: int | str) -> service_pb2.ListTasksResponse:
    request = service_pb2.ListTasksRequest(room="demo", **fields)  # type: ignore[arg-type]
    return queries.list_tasks(board.tables, request, board.context("avery"))


@pytest.mark.parametrize(("board", "rows"), [(knotted(150), 150), (in_a_row(150), 150), (in_a_ring(150), 150)])
@pytest.mark.parametrize("wanted", [ALL, READY])
def test_a_page_looks_at_each_link_a_few_times(
    board: Hub, rows: int, wanted: service_pb2.Filter.ValueType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many rows of one tangle, or of one chain, are on it."""
    made: list[readiness.Graph] = []

    class Counted(readiness.Graph):
        def __init__(self, *args: object) -> None:
            super().__init__(*args)  # type: ignore[arg-type]
            made.append(self)

    monkeypatch.setattr(readiness, "Graph", Counted)
    links = len(board.tables.all("SELECT 1 FROM edge"))
    asked: list[str] = []
    board.tables._connection.set_trace_callback(asked.append)
    shown = page(board, filter=wanted)
    board.tables._connection.set_trace_callback(None)
    assert (len(shown.rows), shown.next) == (1 if wanted == READY and shown.rows[0].key == "work/149" else rows, "")
    assert len(asked) < 14 * rows
    assert sum(graph._work for graph in made) < 6 * links + 60 * rows


def test_a_long_cycle_is_told_in_part() -> None:
    """The first of it, and how many more there are; a short one whole."""
    rows = {row.key: row for row in page(in_a_ring(50), filter=ALL).rows}
    assert (list(rows["work/45"].cycle), rows["work/45"].cycle_more) == (
        [f"work/{number % 50}" for number in range(45, 65)],
        30,
    )
    assert all(row.ready and row.cycle_more == 30 for row in rows.values())
    small = page(in_a_ring(20), filter=ALL).rows[0]
    assert (len(small.cycle), small.cycle_more) == (20, 0)


@pytest.mark.parametrize("board", [knotted(60), in_a_row(60), in_a_ring(60)])
@pytest.mark.parametrize("wanted", [ALL, READY])
@pytest.mark.parametrize("most", [0, 300])
def test_a_page_ends_when_it_has_looked_at_enough(
    board: Hub, wanted: service_pb2.Filter.ValueType, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pages have every row once all the same, and each is as it is when it is asked for alone."""
    monkeypatch.setattr(readiness, "MOST_WORK", most)
    found: list[views_pb2.Row] = []
    cursor, pages = "", 0
    while cursor or not pages:
        shown = page(board, filter=wanted, cursor=cursor)
        found += shown.rows
        cursor, pages = shown.next, pages + 1
    assert pages > 1
    alone = [
        queries.row(board.tables, RoomRow(board.room_id, "demo"), f"work/{number}", board.now) for number in range(60)
    ]
    assert sorted(found, key=lambda row: row.key) == sorted(
        (row for row in alone if row.ready or wanted == ALL), key=lambda row: row.key
    )
    for row in alone:
        task = lookup.find_task(board.tables, RoomRow(board.room_id, "demo"), row.key)
        why = readiness.why_not_ready(board.tables, board.room_id, task, board.now)
        assert (why.line, list(why.waits_for)) == (row.reason, list(row.waits_for))


def test_links_are_read_by_their_names() -> None:
    """Not all those of a room, for each task."""
    board = in_a_ring(3)
    graph = readiness.Graph(board.tables, board.room_id)
    task = lookup.by_document(board.tables, board.room_id, lookup.document_of("work/1"))
    assert task
    asked: list[str] = []
    board.tables._connection.set_trace_callback(asked.append)  # what SQLite is really asked
    graph.waiting(task)
    graph.parts(task)
    board.tables._connection.set_trace_callback(None)
    plans = [row[3] for sql in asked for row in board.tables.all(f"EXPLAIN QUERY PLAN {sql}")]
    assert any("edge_target" in plan for plan in plans)
    assert not [plan for plan in plans if not re.match(r"SEARCH .*\(room_id=\? AND ", plan)], plans


def test_a_tangle_that_is_too_large_excuses_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of it waits for what it names, and says so; in one that can be looked through nobody waits."""
    board = in_a_ring(60)
    assert all(row.ready and row.cycle for row in page(board, filter=ALL).rows)
    monkeypatch.setattr(readiness, "MOST_WORK", 50)
    room = RoomRow(board.room_id, "demo")
    for number in range(60):
        row = queries.row(board.tables, room, f"work/{number}", board.now)
        assert (row.ready, [*row.waits_for], [*row.cycle]) == (False, [f"work/{(number + 1) % 60}"], [])
        assert row.reason == f"after work/{(number + 1) % 60}"
