"""Pages of the board: every row once, in the one order, whatever a page holds; and what the statements read."""

from __future__ import annotations

import random
import re

import pytest

from mycelium.board.v1 import service_pb2, views_pb2
from mycelium.rooms.v1 import events_pb2 as rooms_pb2
from mycelium_board import queries
from mycelium_kernel import subjects
from mycelium_kernel.errors import Refusal
from services.board.tests.hub import Hub
from services.board.tests.test_rows import asked

FILTERS = [
    service_pb2.FILTER_UNSPECIFIED,
    service_pb2.FILTER_IN_FLIGHT,
    service_pb2.FILTER_RESOLVED,
    service_pb2.FILTER_ALL,
    service_pb2.FILTER_READY,
]
STATEMENTS = {
    name: (getattr(queries, name), count)
    for name, count in {
        "BY_PLACE": 6, "HELD": 6, "LATELY": 6, "COUNT_NEEDED": 2, "COUNT_HELD": 3, "COUNT_LATELY": 2
    }.items()
}  # fmt: skip


def full_board(count: int = 100) -> Hub:
    """Tasks of every sort, many of them of one moment."""
    board, chosen = Hub(), random.Random(7)
    for number in range(count):
        status = chosen.choice(["open", "in_progress", "blocked", "in_review", "resolved", "dismissed", "of our own"])
        board.task(f"{chosen.choice(['work', 'decisions'])}/{number}", status=status)
        if chosen.random() < 0.5:
            board.later(seconds=1)
        if status == "open":
            board.claim(str(number))
    return board


@pytest.mark.parametrize("wanted", FILTERS)
@pytest.mark.parametrize("limit", [1, 7])
def test_pages_hold_every_row_once(wanted: service_pb2.Filter.ValueType, limit: int) -> None:
    """In the order of one large page, with the same numbers on each."""
    board = full_board()
    whole = asked(board, filter=wanted)
    assert (len(whole.rows) > 5, whole.next) == (True, "")
    read: list[views_pb2.Row] = []
    cursor, numbers = "", set()
    while True:
        page = asked(board, filter=wanted, limit=limit, cursor=cursor)
        assert len(page.rows) <= limit
        read += page.rows
        numbers.add((page.needs_you, page.in_flight, page.resolved))
        cursor = page.next
        if not cursor:
            break
    assert read == list(whole.rows)
    assert numbers == {(whole.needs_you, whole.in_flight, whole.resolved)}


@pytest.mark.parametrize("wanted", FILTERS[:3])
def test_the_numbers_are_those_of_the_rows(wanted: service_pb2.Filter.ValueType) -> None:
    """Counted without reading them."""
    page = asked(full_board(), filter=wanted)
    assert len(page.rows) == (page.needs_you, page.in_flight, page.resolved)[wanted]


def test_a_page_ends_at_its_bytes() -> None:
    """Large fields make it short; a row that is larger than a page comes alone."""
    board = Hub()
    for number in range(6):
        board.task(f"decisions/{number}", note="x" * 200_000)
    board.task("work/huge", status="blocked", note="x" * 600_000)
    sizes, cursor = [], ""
    while True:
        page = asked(board, cursor=cursor)
        sizes.append(len(page.rows))
        cursor = page.next
        if not cursor:
            break
    assert sizes == [2, 2, 2, 1]


def test_a_page_of_what_is_ready_looks_at_so_many_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Among many that are not, it may be empty, and says where to go on."""
    monkeypatch.setattr(queries, "LOOKED_AT", 10)
    board = Hub()
    board.task("work/last")
    board.later(seconds=1)
    for number in range(25):
        board.task(f"work/{number}", status="blocked")
    found, cursor, pages = [], "", 0
    while True:
        page = asked(board, filter=service_pb2.FILTER_READY, cursor=cursor)
        found += [row.key for row in page.rows]
        pages, cursor = pages + 1, page.next
        if not cursor:
            break
    assert (found, pages) == (["work/last"], 3)


def steps(board: Hub, wanted: service_pb2.Filter.ValueType) -> int:
    """How many instructions of SQLite's machine a page of five takes."""
    counted = 0

    def count() -> int:
        nonlocal counted
        counted += 1
        return 0

    connection = board.tables._connection
    connection.set_progress_handler(count, 1)
    page = asked(board, filter=wanted, limit=5)
    connection.set_progress_handler(None, 0)
    assert (len(page.rows), page.needs_you, page.in_flight, page.resolved) == (5, 6, 6, 6)
    return counted


@pytest.mark.parametrize("wanted", FILTERS)
def test_a_large_board_is_read_like_a_small_one(wanted: service_pb2.Filter.ValueType) -> None:
    """A thousand tasks that are not shown, open ones and closed ones, cost a page and the numbers nothing."""
    cost = []
    for size in (8, 1_000):
        board = Hub()
        for number in range(size):
            board.task(f"work/old-{number}", status="open" if number % 2 else "resolved")
        board.later(days=1)
        for number in range(6):
            board.task(f"decisions/{number}")
            board.task(f"work/held-{number}")
            board.claim(f"held-{number}")
            board.task(f"work/done-{number}", status="resolved")
        cost.append(steps(board, wanted))
    assert cost[1] < 1.2 * cost[0], cost


@pytest.mark.parametrize("name", STATEMENTS)
def test_statements_read_what_they_show(name: str) -> None:
    """Each begins in an index at the room, and only claims, which are few, are sorted."""
    sql, count = STATEMENTS[name]
    plan = [row[3] for row in Hub().tables.all(f"EXPLAIN QUERY PLAN {sql}", *range(count))]
    assert not [line for line in plan if line.startswith("SCAN")], plan
    assert re.match(r"SEARCH (task|claim) USING .*\(room_id=\?", plan[0]), plan
    assert any("TEMP B-TREE" in line for line in plan) == (name == "HELD"), plan


@pytest.mark.parametrize("damage", ["{}x", "x{}", "x", "{}~", "00000000{}"])
def test_a_place_is_one_of_the_same_rows(damage: str) -> None:
    """One of another filter or room, or one that was damaged, is refused in a line: else rows would be left out."""
    board = full_board()
    cursor = asked(board, filter=service_pb2.FILTER_ALL, limit=1).next
    asked(board, filter=service_pb2.FILTER_ALL, cursor=cursor)
    asking = [(service_pb2.FILTER_ALL, damage.format(cursor)), (service_pb2.FILTER_READY, cursor)]
    for which, sent in [*asking, (service_pb2.FILTER_RESOLVED, cursor)]:
        with pytest.raises(Refusal) as caught:
            asked(board, filter=which, cursor=sent)
        assert caught.value.slug == "request.invalid"
        assert "of the same room and filter" in caught.value.detail
    created = rooms_pb2.RoomCreated(room_id=board.new_id(), name="other", created_by="avery")
    board.append(subjects.room_name("other"), created)
    request = service_pb2.ListTasksRequest(room="other", filter=service_pb2.FILTER_ALL, cursor=cursor)
    with pytest.raises(Refusal, match="of the same room and filter"):
        queries.list_tasks(board.tables, request, board.context("avery"))
