"""What every statement of the service costs, by SQLite's own plan: none reads or sorts a table that may be large.

Every statement is heard, whoever wrote it, by asking every request there is. So one that is new is looked at too.
"""

from __future__ import annotations

import re
from functools import partial
from typing import Any

import pytest
from google.protobuf.message import Message

from mycelium.rooms.v1 import join_pb2, leases_pb2, notices_pb2, status_pb2, transfer_pb2
from mycelium.rooms.v1 import service_pb2 as pb
from mycelium_kernel.errors import Refusal
from mycelium_rooms import erasing, expiry, imports
from mycelium_rooms.service import PROJECTION
from services.rooms.tests.hub import Hub
from services.rooms.tests.test_projection import THREADS, tell_story

LARGE = {*PROJECTION.swept_tables, "feed", "answered", "entity", "erased", "grave"}
STATEMENT = re.compile(r"\s*(SELECT|INSERT|UPDATE|DELETE|WITH)\b")
SEARCH = re.compile(r"SEARCH (\w+) USING (?:COVERING )?(INDEX|PRIMARY KEY|INTEGER PRIMARY KEY)(?: \w+)? \((.*?)\)")
SORTED = {  # few by nature
    "holding_received",  # what one session has received and nobody has ended
    "message_short",  # ids that share eight digits
}
ENDS_EARLY = re.compile(r"LIMIT \d+\s*\)?\s*$")
HISTORY: tuple[dict[str, Any], ...] = (
    {}, {"sender": "avery"}, {"sender": "avery", "all": True}, {"all": True}, {"kind": "concern"}, {"query": "one"},
    {"status": "open"}, {"status": "expired"}, {"thread": THREADS[1]}, {"since": "1d", "before": "1s"},
)  # fmt: skip


class ListeningHub(Hub):
    """A hub that knows what it was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: set[type[Message]] = set()

    def ask(self, request: Message, handle: str | None = None, session: str = "") -> Any:
        self.asked.add(type(request))
        return super().ask(request, handle, session)


def refused(hub: Hub, request: Any, handle: str = "avery") -> None:
    with pytest.raises(Refusal):
        hub.ask(request, handle)


def ask_everything(hub: Hub) -> None:
    """What the story left out: every query, names that are short, unknown or nearly known, the workers."""
    message = hub.ask(pb.ListMessagesRequest(room="demo", all=True), "avery").messages[-1]
    short, thread = message.id[-8:], THREADS[1][-8:]
    for filters in HISTORY:
        hub.ask(pb.ListMessagesRequest(room="demo", **filters), "avery")
    for request in (
        pb.GetRoomRequest(room="demo"), pb.ListRoomsRequest(), pb.GetUserRequest(handle="avery"),
        pb.ListUsersRequest(), pb.DescribeHandleRequest(handle="engineer"), pb.ListMembersRequest(room="demo"),
        pb.GetMemberRequest(room="demo", handle="engineer"), pb.ListReceiptsRequest(room="demo", message=short),
        pb.GetMessageRequest(room="demo", message=short, history=True), pb.ReadFeedRequest(rooms=["demo", "copy"]),
        pb.PostMessageRequest(room="demo", content="@engineer", thread=thread, reply_to=short),
        status_pb2.ExpireEventRequest(room_id=message.room_id, message_id=message.id),
        notices_pb2.PostNoticeRequest(
            room_id=message.room_id, message_type="notice", kind="x", sender_handle="avery", content="x",
            deliveries=[notices_pb2.NoticeDelivery(handle="engineer")],
        ),
        leases_pb2.FindNoticeRequest(room="demo", thread=THREADS[1]),
        join_pb2.FindJoinedRequest(token_digest="token of demo"),
        join_pb2.RegisterJoinedRequest(room_id=message.room_id, handle="engineer"),
    ):  # fmt: skip
        hub.ask(request, "avery")
    hub.take("engineer", "s3", thread=thread)
    hub.ask(pb.GetDeliveryRequest(room="demo", message=hub.take("engineer", "s3").message_id), "engineer", "s3")
    refused(hub, pb.GetRoomRequest(room="dem"))
    refused(hub, pb.GetMessageRequest(room="demo", message="12345678"))
    refused(hub, pb.GetMemberRequest(room="demo", handle="engineers"))
    refused(hub, pb.PostMessageRequest(room="demo", content="@engineers @team"))
    abandoned = hub.ask(transfer_pb2.ImportRoomRequest(name="again", operator=True), "avery").room_id
    hub.ask(transfer_pb2.AbandonImportRequest(room_id=abandoned), "avery")
    for sql in (imports.STALE, erasing.YOUNG):
        hub.tables.all(sql, 0)
    hub.tables.all(expiry.EVENTS.rows, 0, 1)
    hub.tables.all(expiry.EVENTS.next)
    hub.tables.answered("avery", "key")
    hub.tables.put_answered(10_000, "avery", "key", "body", message.room_id)
    hub.sweep()


@pytest.fixture(scope="module")
def plans() -> list[tuple[str, list[str]]]:
    """Every statement that was run while everything was asked, and the steps of its plan."""
    hub = ListeningHub()
    heard: list[str] = []
    hub.tables._connection.set_trace_callback(heard.append)
    tell_story(hub)
    ask_everything(hub)
    hub.tables._connection.set_trace_callback(None)
    assert hub.asked == {*hub.commands, *hub.queries}
    statements = [sql for sql in dict.fromkeys(heard) if STATEMENT.match(sql)]
    return [(sql, [row[3] for row in hub.tables.all(f"EXPLAIN QUERY PLAN {sql}")]) for sql in statements]


def test_every_large_table_is_looked_into(plans: list[tuple[str, list[str]]]) -> None:
    """So that the tests below bite."""
    found = {match[1] for _sql, steps in plans for step in steps if (match := SEARCH.match(step))}
    assert found >= LARGE


def test_no_statement_reads_a_large_table_whole(plans: list[tuple[str, list[str]]]) -> None:
    """R3: each goes down an index; all that a room has of something is read only by who stops early."""
    for sql, steps in plans:
        for step in steps:
            scanned = re.match(r"SCAN (\w+)(?! VIRTUAL)", step)
            assert not scanned or scanned[1] not in LARGE, (step, sql)
            match = SEARCH.match(step)
            if match and match[1] in LARGE and match[3] == "room_id=?" and match[1] not in {"erased", "grave"}:
                assert ENDS_EARLY.search(sql), (step, sql)


def test_no_statement_sorts_what_may_be_much(plans: list[tuple[str, list[str]]]) -> None:
    """R3: the order is that of the index; SQLite sorts only what is few by nature."""
    for sql, steps in plans:
        if any("TEMP B-TREE" in step for step in steps):
            used = {match[1] for step in steps if (match := re.match(r"(?:SEARCH|SCAN) (\w+)", step))}
            assert not used & LARGE or any(index in sql for index in SORTED), (steps, sql)


def test_a_hundred_thousand_facts_of_a_room_cost_a_watcher_nothing(demo_feed: Hub) -> None:
    """R9: to read a page of one room or of two, counted by SQLite's own steps."""
    for rooms in (["demo"], ["demo", "other"]):
        request = pb.ReadFeedRequest(rooms=rooms, after=10, limit=100)
        page = demo_feed.ask(request, "avery")
        assert (len(page.facts), page.more) == (100, True)
        assert demo_feed.cost(partial(demo_feed.ask, request, "avery")) < 10_000


@pytest.fixture
def demo_feed(demo: Hub) -> Hub:
    """Two rooms with a long past."""
    demo.room("other")
    for room in ("demo", "other"):
        room_id = demo.ask(pb.GetRoomRequest(room=room), "avery").room.id
        demo.tables.execute(
            """WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000)
               INSERT INTO feed SELECT 1000 + 2 * i + ?, ?, 'x', x'' FROM n""",
            room == "demo", room_id,
        )  # fmt: skip
    return demo
