"""What edits of documents do to tasks, when it is told, to whom, and that it is told once."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mycelium.board.v1 import events_pb2, service_pb2, views_pb2
from mycelium.memory.v1 import views_pb2 as memory_views_pb2
from mycelium.rooms.v1 import views_pb2 as rooms_views_pb2
from mycelium_board import lookup, notices
from mycelium_board.model import OF_ITSELF
from mycelium_kernel import events
from services.board.tests.hub import Hub, moving, rebuilt

KEY = "work/ship-it"
ASSIGNED, LEASE = rooms_views_pb2.DELIVERY_REASON_ASSIGNED, rooms_views_pb2.DELIVERY_REASON_LEASE


def edits(board: Hub) -> list[service_pb2.RecordEditRequest]:
    """What the reaction asks for, of everything that nobody has told yet."""
    sql = "SELECT document_id, sequence, move FROM edit ORDER BY sequence, move"
    return [
        service_pb2.RecordEditRequest(room_id=board.room_id, document_id=document_id, edit=edit, move=move)
        for document_id, edit, move in board.tables.all(sql)
    ]


def settled(board: Hub) -> list[str]:
    """Tell it; returns what was told, each as the move and who made it."""
    for request in edits(board):
        assert board.ask(request, OF_ITSELF.handle).recorded
    assert not edits(board)
    return [f"{views_pb2.Move.Name(event.move)[5:].lower()} by {event.by}" for event in moves(board) if event.edit]


def moves(board: Hub) -> list[events_pb2.TaskMoved]:
    """The facts of what was done to tasks."""
    name = events.type_name(events_pb2.TaskMoved)
    return [events_pb2.TaskMoved.FromString(fact.data) for fact in board.facts if fact.type == name]


def told(event: events_pb2.TaskMoved) -> dict[str, int]:
    """To whom a move is told, and why."""
    return {one.handle: one.reason for one in notices.notice(event, 1).deliveries}


@pytest.fixture
def board() -> Hub:
    """With one task, filed for nobody."""
    hub = Hub()
    hub.task(KEY, "# Ship it")
    settled(hub)
    return hub


@pytest.mark.parametrize("key", ["work/x", "decisions/x", "status/x", "failed/x"])
def test_the_first_version_files_a_task(key: str) -> None:
    """Wherever tasks are; elsewhere a document is none; another version is no other task."""
    board = Hub()
    board.task("context/x")
    board.task(key, assignee="@sec")
    board.task(key, assignee="@sec", priority="high")
    assert settled(board) == ["filed by avery"]
    event = moves(board)[-1]
    assert (event.key, event.assignee, event.edit) == (key, "sec", len(board.facts) - 2)
    assert told(event) == {"sec": ASSIGNED}


def test_what_is_brought_from_another_hub_was_filed_there() -> None:
    """And is a row all the same."""
    board = Hub()
    board.task(KEY, origin=memory_views_pb2.ORIGIN_IMPORT)
    assert settled(board) == []
    assert board.claim(KEY).holder == "sec"


def test_what_is_removed_and_written_again_is_filed_again(board: Hub) -> None:
    """It is there for everybody anew; its removal ended a claim, and its holder is told of that alone."""
    board.claim(KEY)
    board.remove(KEY)
    assert settled(board) == ["filed by avery", "removed by avery"]
    assert (told(moves(board)[-1]), notices.notice(moves(board)[-1], 1).for_its_deliveries) == ({"sec": LEASE}, True)
    board.task(KEY)
    assert settled(board)[2:] == ["filed by avery"]
    assert board.claim(KEY, "builder").holder == "builder"


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({}, {"status": "resolved"}, ["resolved"]),
        ({}, {"status": "dismissed"}, ["dismissed"]),
        ({"status": "resolved"}, {"status": "dismissed"}, []),
        ({"status": "resolved"}, {"status": "open"}, []),
        ({}, {"status": "blocked", "blocked_by": "#502"}, ["blocked"]),
        ({}, {"blocked_by": "#502"}, ["blocked"]),
        ({"blocked_by": "#502"}, {"blocked_by": "#503"}, ["blocked"]),
        ({"status": "blocked"}, {}, ["unblocked"]),
        ({"status": "blocked"}, {"status": "resolved"}, ["resolved"]),
        ({}, {"assignee": "@sec"}, ["assigned"]),
        ({"assignee": "@sec"}, {"assignee": "@builder"}, ["assigned"]),
        ({"assignee": "@sec"}, {"assignee": "sec"}, []),
        ({"assignee": "@sec"}, {}, []),
        ({}, {"assignee": "@sec", "status": "resolved"}, ["resolved", "assigned"]),
        ({}, {"title": "Other", "status": "in_progress", "priority": 1}, []),
    ],
)
def test_an_edit_is_told_as_the_move_that_it_is(
    before: dict[str, Any], after: dict[str, Any], expected: list[str]
) -> None:
    """Each thing that it did, and nothing for what is nobody else's business."""
    board = Hub()
    board.task(KEY, **before)
    settled(board)
    board.task(KEY, by="builder", **after)
    assert [one.removesuffix(" by builder") for one in settled(board)[1:]] == expected


def test_closing_by_hand_ends_the_claim(board: Hub) -> None:
    """The holder is told; who made a new one after it was opened again keeps that."""
    board.claim(KEY)
    board.task(KEY, status="resolved", by="builder")
    [request] = edits(board)
    board.task(KEY, status="open")
    assert board.ask(request, OF_ITSELF.handle).recorded
    assert told(moves(board)[-1]) == {"sec": LEASE}
    board.task(KEY, status="resolved", by="builder")
    [request] = edits(board)
    board.task(KEY, status="open")
    kept = board.claim(KEY)
    assert board.ask(request, OF_ITSELF.handle).recorded
    assert board.claim(KEY).token == kept.token
    assert told(moves(board)[-1]) == {}


def test_an_edit_is_told_once(board: Hub) -> None:
    """However often the reaction asks."""
    board.task(KEY, status="resolved")
    [request] = edits(board)
    assert board.ask(request, OF_ITSELF.handle).recorded
    assert not board.ask(request, OF_ITSELF.handle).recorded


def test_what_a_move_wrote_is_no_edit(board: Hub) -> None:
    """Nor is an edit that comes between a move and its writing one that changes the status back."""
    board.ask(moving(views_pb2.MOVE_BLOCKED, KEY, on="#502"))
    move = len(board.facts)
    board.task(KEY, assignee="@builder")
    assert board.tables.one("SELECT blocked_by FROM task") == ("#502",), "what the move said counts until then"
    board.task(KEY, status="blocked", blocked_by="#502", assignee="@builder", move=move)
    assert settled(board) == ["filed by avery", "assigned by avery"]
    assert board.tables.one("SELECT moved_status, status, blocked_by FROM task") == ("", "blocked", "#502")
    assert board.tables.all("SELECT * FROM asked") == []


def test_moves_are_written_in_their_order(board: Hub) -> None:
    """Until the document has both, both are known."""
    board.ask(moving(views_pb2.MOVE_BLOCKED, KEY, on="#502"))
    board.ask(moving(views_pb2.MOVE_RESOLVED, KEY), "builder")
    asked = board.tables.all("SELECT by_handle, fields FROM asked ORDER BY sequence")
    assert [(by, json.loads(fields)["status"]) for by, fields in asked] == [("sec", "blocked"), ("builder", "resolved")]
    first = len(board.facts) - 1
    board.task(KEY, status="blocked", blocked_by="#502", move=first)
    board.refused("task.closed", service_pb2.ClaimTaskRequest(room="demo", task=KEY))
    board.task(KEY, status="resolved", blocked_by="#502", move=first + 1)
    assert board.tables.all("SELECT * FROM asked") == []
    assert rebuilt(board.facts).dump() == board.tables.dump()


def test_nobody_is_told_of_what_they_did(board: Hub) -> None:
    """Whom a claim is made for is told, and whom it was taken from; not who resolves what they hold."""
    board.claim(KEY)
    assert told(moves(board)[-1]) == {}
    board.claim(KEY, "sec", to="builder")
    assert told(moves(board)[-1]) == {"builder": ASSIGNED}
    board.claim(KEY, "avery", force=True)
    assert told(moves(board)[-1]) == {"builder": LEASE}
    board.ask(moving(views_pb2.MOVE_BLOCKED, KEY, on="#502"), "sec")
    assert told(moves(board)[-1]) == {"avery": LEASE}
    board.resolve(KEY, "avery")
    assert told(moves(board)[-1]) == {}


def test_a_notice_is_one_line_of_the_fixed_kinds(board: Hub) -> None:
    """Whatever a title has in it, and whoever a document says it is for."""
    board.task("work/odd", title="two\nlines\t\x1b[31m", assignee="the whole team")
    settled(board)
    asked = notices.notice(moves(board)[-1], 7)
    assert (asked.kind, list(asked.deliveries)) == ("filed", [])
    assert asked.content == "@avery filed work/odd for the whole team — two lines [31m"
    assert json.loads(asked.metadata_json)["sequence"] == 7


def metadata(event: events_pb2.TaskMoved) -> dict[str, Any]:
    """What a program is told of a move."""
    found: dict[str, Any] = json.loads(notices.notice(event, 1).metadata_json)
    return found


def test_a_notice_names_its_move_and_who_holds_the_task(board: Hub) -> None:
    """The kinds are few; the move says what it was. Who waits for a task is told that it is held still."""
    board.claim(KEY, "builder")
    board.ask(moving(views_pb2.MOVE_BLOCKED, KEY, on="#502", note="asked them"), "avery")
    told_of = metadata(moves(board)[-1])
    assert [told_of[name] for name in ("kind", "move", "holder", "on", "note")] == [
        "blocked", "blocked", "builder", "#502", "asked them",
    ]  # fmt: skip
    assert notices.line(moves(board)[-1]) == "@avery blocked work/ship-it on #502 — # Ship it · asked them"
    board.ask(moving(views_pb2.MOVE_UNBLOCKED, KEY), "avery")
    assert metadata(moves(board)[-1])["holder"] == "builder"
    board.ask(moving(views_pb2.MOVE_DISMISSED, KEY), "avery")
    told_of = metadata(moves(board)[-1])
    assert (told_of["kind"], told_of["move"], "holder" in told_of, "on" in told_of) == (
        "resolved", "dismissed", False, False,
    )  # fmt: skip


@pytest.mark.parametrize(("later_s", "holder"), [(59, "builder"), (61, None)])
def test_an_unblocked_task_names_who_holds_it(board: Hub, later_s: int, holder: str | None) -> None:
    """Nobody whose time is over, even before that is said: who waited for the task may take it."""
    board.task("work/first")
    first: Any = {"depends-on": "work/first"}
    board.task(KEY, **first)
    settled(board)
    board.claim(KEY, "builder", ttl_s=60)
    board.resolve("work/first")
    unblock = service_pb2.UnblockTaskRequest(
        room_id=board.room_id, document_id=lookup.document_of(KEY), cause="work/first", closed=len(board.facts)
    )
    board.later(seconds=later_s)
    assert board.ask(unblock, "").unblocked
    assert moves(board)[-1].lease.holder == "builder"
    assert metadata(moves(board)[-1]).get("holder") == holder


def test_a_task_that_an_edit_blocks_says_on_what(board: Hub) -> None:
    """Once, not as a note besides; and one that is only called blocked waits for nothing that anybody named."""
    board.task(KEY, status="blocked", blocked_by="#7")
    settled(board)
    told_of = metadata(moves(board)[-1])
    assert (told_of["on"], "note" in told_of) == ("#7", False)
    assert notices.line(moves(board)[-1]).startswith("@avery blocked work/ship-it on #7")
    assert notices.line(moves(board)[-1]).count("#7") == 1
    board.task("work/other", status="blocked")
    settled(board)
    assert "on" not in metadata(moves(board)[-1])


def test_an_answer_is_told(board: Hub) -> None:
    """In the line, and to programs."""
    board.task("decisions/ttl", options=["15m", "60m"])
    board.ask(moving(views_pb2.MOVE_ANSWERED, "decisions/ttl", answer="60m"), "avery")
    told_of = metadata(moves(board)[-1])
    assert (told_of["move"], told_of["answer"]) == ("answered", "60m")
    assert notices.line(moves(board)[-1]).startswith("@avery answered decisions/ttl: 60m")


def test_concerns_that_nobody_takes_up_are_closed() -> None:
    """A week after anybody did something to them; a claim, a renewal or an edit keeps them."""
    board = Hub()
    board.task("work/worry", kind="concern")
    settled(board)
    [document_id] = board.tables.one("SELECT document_id FROM task") or [""]
    ending = service_pb2.ExpireConcernRequest(room_id=board.room_id, document_id=document_id)
    board.later(days=6, hours=23)
    assert not board.ask(ending, "").expired
    board.claim("work/worry", ttl_s=7 * 24 * 3600)
    board.later(days=6, hours=23)
    board.renew("work/worry")
    board.later(hours=2)
    assert not board.ask(ending, "").expired
    board.release("work/worry")
    board.later(days=7)
    assert board.ask(ending, "").expired
    event = moves(board)[-1]
    assert (event.move, event.by, json.loads(event.fields_json)) == (
        views_pb2.MOVE_EXPIRED,
        "",
        {"status": "dismissed"},
    )
    assert not board.ask(ending, "").expired
    assert rebuilt(board.facts).dump() == board.tables.dump()


def test_tables_are_the_same_from_zero(board: Hub) -> None:
    """After edits of every kind, told and not yet told."""
    for needed in (["work/a, work/b", "[[work/c]]"], ["work/b"]):
        fields: dict[str, Any] = {"part-of": KEY, "depends-on": needed}
        board.task("work/part", **fields)
    board.claim(KEY)
    board.task(KEY, status="resolved", by="builder")
    settled(board)
    board.task(KEY, status="open")
    board.task(KEY, status="blocked")
    board.remove("work/part")
    assert board.tables.all("SELECT * FROM edit")
    assert rebuilt(board.facts).dump() == board.tables.dump()
