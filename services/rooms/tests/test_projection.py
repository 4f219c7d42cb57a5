"""The law of the tables: state and event give what all events from zero give, for every event there is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mycelium.rooms.v1 import folders_pb2, issuers_pb2, join_pb2, notices_pb2, status_pb2, transfer_pb2, views_pb2
from mycelium.rooms.v1 import service_pb2 as pb
from mycelium_kernel import events, subjects
from mycelium_kernel.applier import Applier
from mycelium_kernel.errors import Refusal
from mycelium_kernel.tables import Tables
from mycelium_rooms.service import PROJECTION
from services.rooms.tests.hub import Hub, rebuilt, rows_of

ROOMS = ("demo", "other")
HANDLES = ("avery", "kim", "engineer", "reviewer", "stranger")
SESSIONS = ("", "s1", "s2")
TEXTS = ("hello", "@engineer", "@engineer @reviewer#2", "@~kim @core", "@avery @kim", "@engineer#2 @engineer", "@all")
THREADS = ("", "0190aaaa-0000-7000-8000-00000000beef")
REASON = views_pb2.DELIVERY_REASON_CHANGED
STATES = (views_pb2.DELIVERY_STATE_DELIVERED, views_pb2.DELIVERY_STATE_ACKNOWLEDGED, views_pb2.DELIVERY_STATE_PARKED)
KINDS = (views_pb2.MEMBER_KIND_AGENT, views_pb2.MEMBER_KIND_USER, views_pb2.MEMBER_KIND_ENGINE)


def some_message(hub: Hub, place: int) -> str:
    rows = hub.tables.all("SELECT message_id FROM message ORDER BY sequence")
    return str(rows[place % len(rows)][0]) if rows else "12345678"


def some_room(hub: Hub) -> str:
    row = hub.tables.one("SELECT room_id FROM room")
    return str(row[0]) if row else ""


def request_of(hub: Hub, draw: Callable[[Any], Any]) -> Any:
    """A request, sensible or not."""
    room, handle, text, thread = (draw(st.sampled_from(values)) for values in (ROOMS, HANDLES, TEXTS, THREADS))
    place, seat = draw(st.integers(0, 9)), draw(st.sampled_from(("", "2")))
    message = some_message(hub, place)
    reply = draw(st.sampled_from(("", message)))
    makers: dict[str, Callable[[], Any]] = {
        "create": lambda: pb.CreateRoomRequest(name=room, private=place == 0),
        "change": lambda: pb.ChangeRoomRequest(room=room, title=text, private=place == 0),
        "file": lambda: folders_pb2.FileRoomRequest(room=room, folder=draw(st.sampled_from(("", "mine")))),
        "delete": lambda: pb.DeleteRoomRequest(room=room),
        "user": lambda: pb.SaveUserRequest(handle=handle, name=text, team=draw(st.sampled_from(("", "Core")))),
        "member": lambda: pb.SaveMemberRequest(
            room=room, handle=handle, kind=draw(st.sampled_from(KINDS)), team="core", paused=draw(st.booleans())
        ),
        "remove": lambda: pb.RemoveMemberRequest(room=room, handle=handle),
        "post": lambda: pb.PostMessageRequest(
            room=room, content=text, thread=thread, reply_to=reply, allow_unknown=True, respond=place == 0
        ),
        "amend": lambda: pb.AmendMessageRequest(room=room, message=message, content=text, allow_unknown=True),
        "take": lambda: pb.TakeDeliveryRequest(
            room=room, seat=seat, thread=thread, new_call=place > 2, acknowledge=message if place > 7 else ""
        ),
        "status": lambda: status_pb2.SetEventStatusRequest(
            room=room, message=message, status=draw(st.sampled_from(("open", "resolved")))
        ),
        "event": lambda: pb.PostMessageRequest(
            room=room,
            content=text,
            message_type="event",
            allow_unknown=True,
            thread=thread,
            metadata_json='{"kind": "action", "ttl_seconds": 1}',
        ),
        "notice": lambda: notices_pb2.PostNoticeRequest(
            room_id=some_room(hub),
            message_type=draw(st.sampled_from(("notice", "change"))),
            kind="x",
            sender_handle=handle,
            thread=thread,
            content="x",
            deliveries=[notices_pb2.NoticeDelivery(handle=one, reason=REASON) for one in HANDLES[: place % 4]],
        ),
        "expire": lambda: status_pb2.ExpireEventRequest(room_id=some_room(hub), message_id=message),
        "prove": lambda: issuers_pb2.ProveHandleRequest(
            handle=handle, issuer=f"https://{seat or '1'}", trusted=["https://1", "https://2"][place % 2 :]
        ),
        "code": lambda: join_pb2.MakeJoinCodeRequest(room=room, handle=handle, code_digest=f"c{place}"),
        "join": lambda: join_pb2.UseJoinCodeRequest(
            code_digest=f"c{place}", token_digest=f"t{place}", request_digest=seat or "r"
        ),
        "register": lambda: join_pb2.RegisterJoinedRequest(
            room_id=some_room(hub), handle=handle, joined=max(0, len(hub.facts) - place)
        ),
        "mark": lambda: pb.MarkDeliveryRequest(
            room=room, message=message, seat=seat, state=draw(st.sampled_from(STATES))
        ),
    }
    often = ("post", "post", "post", "take", "take", "take", "mark", "mark")
    return makers[draw(st.sampled_from((*makers, *often)))]()


@st.composite
def histories(draw: Callable[[Any], Any]) -> Hub:
    """A hub that has seen some requests."""
    hub = Hub()
    hub.user("avery", team="core")
    hub.room()
    hub.agent("engineer", "reviewer", team="core")
    for _ in range(draw(st.integers(1, 25))):
        hub.later(milliseconds=draw(st.integers(-5, 50)))
        request = request_of(hub, draw)
        if draw(st.booleans()):
            room = hub.tables.one("SELECT room_id FROM room")
            if room:
                hub.waiting(room[0], draw(st.sampled_from(HANDLES)))
        try:
            hub.ask(request, draw(st.sampled_from(HANDLES)), draw(st.sampled_from(SESSIONS)))
        except Refusal:
            continue
    return hub


@settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large], deadline=None)
@given(histories())
def test_state_and_event_give_the_state_from_zero(hub: Hub) -> None:
    """Promise 8. And the flags that are kept twice agree."""
    fresh = rows_of(rebuilt(hub.facts))
    assert fresh == rows_of(hub.tables)
    hub.sweep()
    assert fresh == rows_of(hub.tables)
    check_flags(hub.tables)


def check_flags(tables: Tables) -> None:
    """What holdings repeat of their delivery, and what a delivery's state says of its end."""
    assert not tables.all(
        """SELECT * FROM holding LEFT JOIN delivery USING (room_id, queue, message_id)
           WHERE delivery.handle IS NULL OR holding.answered != delivery.answered
           OR holding.ended != (delivery.ended_at > 0)"""
    )
    counted = tables.all("SELECT * FROM unread WHERE deliveries != 0 ORDER BY room_id, handle")
    sql = """SELECT room_id, handle, count(*) FROM delivery JOIN room USING (room_id)
             WHERE ended_at = 0 GROUP BY 1, 2 ORDER BY 1, 2"""
    assert counted == tables.all(sql)
    ended = (views_pb2.DELIVERY_STATE_ACKNOWLEDGED, views_pb2.DELIVERY_STATE_PARKED)
    assert not tables.all("SELECT * FROM delivery WHERE (ended_at > 0) != (state IN (?, ?))", *ended)
    assert not tables.all("SELECT * FROM message AS m JOIN room USING (room_id) WHERE ordered_at > last_message_at")


@pytest.fixture
def story() -> Hub:
    """A hub in which something of every kind has happened."""
    hub = Hub()
    tell_story(hub)
    return hub


def tell_story(hub: Hub) -> None:
    """One fact of every kind, and some of each that follow from others."""
    hub.user("avery", name="Avery", team="core")
    hub.ask(issuers_pb2.ProveHandleRequest(handle="avery", issuer="https://1", trusted=["https://1"]))
    hub.room()
    hub.room("doomed")
    hub.agent("engineer", "reviewer")
    hub.agent("engineer", room="doomed")
    hub.ask(pb.ChangeRoomRequest(room="demo", title="Demo"), "avery")
    hub.ask(folders_pb2.FileRoomRequest(room="demo", folder="work"), "avery")
    for room in ("demo", "doomed"):
        hub.ask(join_pb2.MakeJoinCodeRequest(room=room, handle="engineer", code_digest=f"code of {room}"), "avery")
        hub.ask(join_pb2.UseJoinCodeRequest(code_digest=f"code of {room}", token_digest=f"token of {room}"))
    hub.leave("reviewer")
    first = hub.post("@engineer @reviewer one", thread=THREADS[1])
    hub.post("@engineer gone", room="doomed")
    hub.receive("engineer", "s1")
    hub.receive("engineer", "s1", room="doomed")
    hub.take("engineer", "s2")
    hub.ask(pb.AmendMessageRequest(room="demo", message=first.id, content="@engineer#2 changed"), "avery")
    hub.post("done", "engineer", "s1", respond=True)
    event = hub.post("risk", message_type="event", metadata_json='{"kind": "concern", "ttl_seconds": 60}')
    hub.ask(status_pb2.SetEventStatusRequest(room="demo", message=event.id, status="in_progress"), "engineer")
    hub.receive("engineer", "s1", seat="2")
    hub.mark(first.id, "engineer", "s1", views_pb2.DELIVERY_STATE_PARKED, seat="2")
    hub.ask(pb.DeleteRoomRequest(room="doomed"), "avery")
    page = hub.ask(transfer_pb2.ExportRoomRequest(room="demo"), "avery")
    copy = hub.ask(transfer_pb2.ImportRoomRequest(name="copy", operator=True), "avery").room_id
    hub.ask(transfer_pb2.ImportFactsRequest(room_id=copy, facts=page.facts), "avery")
    hub.ask(transfer_pb2.FinishImportRequest(room_id=copy, facts=len(page.facts)), "avery")


def test_the_story_has_every_kind_of_fact(story: Hub) -> None:
    """So that the tests below leave none out."""
    kinds = {*PROJECTION.apply, *PROJECTION.entities, *PROJECTION.erased}
    assert {fact.type for fact in story.facts} == {events.type_name(kind) for kind in kinds}
    check_flags(story.tables)


def test_tables_closed_and_opened_between_any_two_facts_end_the_same(story: Hub, tmp_path: Path) -> None:
    """A restart anywhere: nothing is held outside the tables."""
    path = tmp_path / "rooms.sqlite"
    for count, fact in enumerate(story.facts, 1):
        tables = Tables.open(path, PROJECTION, "log")
        tables.begin()
        Applier(PROJECTION).apply(tables, fact)
        tables.commit(fact.sequence)
        rows, expected = rows_of(tables), rows_of(rebuilt(story.facts[:count]))
        tables.close()
        for found in (rows, expected):
            found.pop("meta")  # holds the position, which the rebuilt ones were not told
        assert rows == expected


def test_facts_of_an_erased_room_are_ignored_for_good(story: Hub) -> None:
    """Also those that were on their way when it was deleted."""
    before = rows_of(story.tables)
    late = [fact for fact in story.facts if story.tables.is_erased(subjects.room_of(fact.subject))]
    assert late
    for fact in late:
        story.applier.apply(story.tables, fact)
    assert rows_of(story.tables) == before
