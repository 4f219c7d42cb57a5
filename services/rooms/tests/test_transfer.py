"""A room brought from one hub to another: whole, hidden until complete, once, and not by everybody."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.message import Message
from hypothesis import given
from hypothesis import strategies as st

from mycelium.rooms.v1 import events_pb2, folders_pb2, status_pb2, transfer_pb2, views_pb2
from mycelium.rooms.v1 import service_pb2 as pb
from mycelium_kernel import clock, events, run, subjects, testing
from mycelium_kernel.bus import Bus
from mycelium_kernel.connections import Connection
from mycelium_kernel.errors import Refusal
from mycelium_kernel.service import Actor, Done, Fact
from mycelium_rooms import imports
from mycelium_rooms.commands_portable import PORTABLE
from mycelium_rooms.service import service
from services.rooms.tests.hub import AGENT, USER, Hub, demo_hub

THREAD = "0190aaaa-0000-7000-8000-00000000beef"
ID = "0190aaaa-0000-7000-8000-000000000001"


@pytest.fixture
def source() -> Hub:
    """A hub with a private room in which something of every kind has happened."""
    hub = demo_hub()
    hub.ask(pb.ChangeRoomRequest(room="demo", title="The demo", private=True), "avery")
    hub.agent("avery", kind=USER)
    hub.agent("gone", notes="n")
    hub.leave("gone")
    first = hub.post("@engineer one", thread=THREAD)
    hub.later(minutes=1)
    hub.post("@engineer @reviewer#2 two")
    hub.receive("engineer", "s")
    hub.post("done", "engineer", "s", respond=True)
    hub.ask(pb.AmendMessageRequest(room="demo", message=first.id, content="@engineer changed"), "avery")
    event = hub.post("risk", message_type="event", metadata_json='{"kind": "concern", "ttl_seconds": 9999}')
    hub.ask(status_pb2.SetEventStatusRequest(room="demo", message=event.id, status="in_progress"), "engineer")
    hub.post("@engineer three")
    hub.receive("engineer", "s2")
    hub.ask(folders_pb2.FileRoomRequest(room="demo", folder="mine"), "avery")
    return hub


def exported(hub: Hub, limit: int = 0, room: str = "demo") -> list[transfer_pb2.PortableFact]:
    facts: list[transfer_pb2.PortableFact] = []
    while True:
        after = facts[-1].sequence if facts else 0
        page = hub.ask(transfer_pb2.ExportRoomRequest(room=room, after=after, limit=limit), "avery")
        facts += page.facts
        if not page.more:
            return facts


def begin(hub: Hub, handle: str = "avery", **fields: Any) -> str:
    given: dict[str, Any] = {"name": "copy", "created_by": "avery", "private": True, "members": ["engineer"]}
    given["created_at"] = clock.from_millis(1_000)
    return str(hub.ask(transfer_pb2.ImportRoomRequest(**{**given, **fields}), handle).room_id)


def bring(hub: Hub, room_id: str, facts: list[transfer_pb2.PortableFact], step: int = 200) -> int:
    for place in range(0, len(facts), step):
        request = transfer_pb2.ImportFactsRequest(room_id=room_id, facts=facts[place : place + step])
        answer = hub.ask(request, "avery")
        assert answer.last == facts[min(place + step, len(facts)) - 1].sequence
    return len(facts)


def copied(hub: Hub, facts: list[transfer_pb2.PortableFact], step: int = 200) -> str:
    room_id = begin(hub)
    count = bring(hub, room_id, facts, step)
    hub.ask(transfer_pb2.FinishImportRequest(room_id=room_id, facts=count), "avery")
    return room_id


def seen(hub: Hub, room: str) -> list[Any]:
    """What members see of a room, but for what differs by nature: the ids and names of the room, and the order."""
    found: list[Any] = []
    for message in hub.ask(pb.ListMessagesRequest(room=room, all=True, limit=500), "avery").messages:
        history = hub.ask(pb.GetMessageRequest(room=room, message=message.id, history=True), "avery").history
        receipts = hub.ask(pb.ListReceiptsRequest(room=room, message=message.id), "avery").receipts
        for field in ("sequence", "room", "room_id"):
            message.ClearField(field)
        found.append((message, list(history), list(receipts)))
    return [found, list(hub.ask(pb.ListMembersRequest(room=room), "avery").members)]


@pytest.mark.parametrize("step", [1, 3, 200])
def test_a_room_arrives_as_it_was(source: Hub, step: int) -> None:
    """R1: texts, times, authors, ids, threads, statuses, earlier texts, receipts, members, unread; however it came."""
    expected = seen(source, "demo")
    other = Hub()
    other.user("avery", name="Avery Quinn")
    other.now = source.now
    copied(other, exported(source), step)
    assert seen(other, "copy") == expected
    room = other.ask(pb.GetRoomRequest(room="copy"), "avery").room
    assert (room.title, room.private, room.created_by, room.folder) == ("The demo", True, "avery", "")
    other.refused("room.not_found", pb.GetRoomRequest(room="copy"), "stranger")


def test_unread_queues_are_kept(source: Hub) -> None:
    """What had not ended comes in order, marked when it was given out before; what had ended does not."""
    other = Hub()
    copied(other, exported(source))
    first = other.take("engineer", "s9", room="copy")
    assert (first.attempt, first.redelivered) == (2, True)
    assert other.take("reviewer", "s9", room="copy", seat="2").attempt == 1
    assert other.take("avery", "s9", room="copy").message_id == ""


def test_the_copy_lives_on(source: Hub) -> None:
    """Members change, events are resolved, a title is set, messages are posted: each entity goes on where it was."""
    other = Hub(ids=1_000)
    other.user("avery")
    copied(other, exported(source))
    other.ask(pb.ChangeRoomRequest(room="copy", title="mine now"), "avery")
    other.agent("gone", "engineer", room="copy", description="d")
    event = other.ask(pb.ListMessagesRequest(room="copy", kind="concern"), "avery").messages[0]
    other.ask(status_pb2.SetEventStatusRequest(room="copy", message=event.id, status="resolved"), "engineer")
    assert other.receive("engineer", room="copy")
    assert other.post("more", room="copy").room == "copy"


def test_an_export_comes_in_pages_and_leaves_folders_out(source: Hub) -> None:
    """The same facts whatever the limit; nobody's folders, and not the room's making."""
    facts = exported(source)
    assert exported(source, limit=2) == facts
    assert [fact.sequence for fact in facts] == sorted({fact.sequence for fact in facts})
    entities = {fact.entity.split(".")[0] for fact in facts}
    assert entities == {"room", "member", "message", "queue", "event"}
    assert {fact.type for fact in facts} == set(PORTABLE)
    page = source.ask(transfer_pb2.ExportRoomRequest(room="demo", limit=1), "engineer")
    assert (page.more, page.room.name, list(page.members)) == (True, "demo", ["avery", "engineer", "reviewer"])
    source.post("later")
    until = transfer_pb2.ExportRoomRequest(room="demo", until=page.until)
    assert list(source.ask(until, "engineer").facts) == facts
    source.refused("room.not_found", transfer_pb2.ExportRoomRequest(room="demo"), "stranger")


def test_a_room_is_hidden_until_its_import_is_finished(source: Hub) -> None:
    """From its creator and members too; only its name is taken."""
    other, facts = Hub(), exported(source)
    room_id = begin(other)
    bring(other, room_id, facts)
    for handle in ("avery", "engineer", ""):
        assert other.ask(pb.ListRoomsRequest(), handle).rooms == []
        for room in ("copy", room_id):
            other.refused("room.not_found", pb.GetRoomRequest(room=room), handle)
            other.refused("room.not_found", pb.PostMessageRequest(room=room, content="x"), handle)
    other.refused("room.name_taken", pb.CreateRoomRequest(name="Copy"), "avery")
    request = transfer_pb2.FinishImportRequest(room_id=room_id, facts=len(facts) + 1)
    assert "facts of the bundle" in other.refused("room.import_refused", request, "avery").detail
    request.facts = len(facts)
    other.ask(request, "avery")
    assert isinstance(other.decide(request, "avery"), Done)
    assert [room.name for room in other.ask(pb.ListRoomsRequest(), "avery").rooms] == ["copy"]
    for late in (
        transfer_pb2.ImportFactsRequest(room_id=room_id, facts=facts[:1]),
        transfer_pb2.AbandonImportRequest(room_id=room_id),
    ):
        other.refused("room.not_found", late, "avery")


def test_a_step_that_is_repeated_brings_nothing_twice(source: Hub) -> None:
    """Also one that overlaps with what was brought."""
    other, facts = Hub(), exported(source)
    room_id = begin(other)
    bring(other, room_id, facts[:5])
    again = transfer_pb2.ImportFactsRequest(room_id=room_id, facts=facts[:5])
    assert isinstance(other.decide(again, "avery"), Done)
    fact = other.decide(transfer_pb2.ImportFactsRequest(room_id=room_id, facts=facts[3:7]), "avery")
    assert isinstance(fact, Fact)
    assert [also.headers["Myc-Imported"] for also in fact.also] == [str(part.sequence) for part in facts[5:7]]
    assert fact.on is not None
    assert fact.on.subject == subjects.fact("rooms", room_id, "import", room_id)


def test_an_import_that_was_given_up_leaves_nothing(source: Hub) -> None:
    """A tombstone, like that of any room."""
    other = Hub()
    room_id = begin(other)
    bring(other, room_id, exported(source))
    other.ask(transfer_pb2.AbandonImportRequest(room_id=room_id), "avery")
    other.sweep()
    for table in ("room", "member", "message", "delivery", "holding", "revision"):
        assert other.tables.all(f"SELECT * FROM {table}") == [], table
    assert begin(other) != room_id
    other.refused("room.not_found", transfer_pb2.FinishImportRequest(room_id=room_id), "avery")


def test_only_the_operator_or_who_is_of_the_room_brings_it(hub: Hub) -> None:
    """And under a name that is free and legal."""
    for handle, fields in (("stranger", {}), ("kim", {"members": ["engineer"], "created_by": ""})):
        request = transfer_pb2.ImportRoomRequest(name="x", **{"created_by": "avery", **fields})  # type: ignore[arg-type]
        assert "neither a member" in hub.refused("room.import_refused", request, handle).detail
    hub.refused("handle.missing", transfer_pb2.ImportRoomRequest(name="x", created_by="avery"))
    begin(hub, "engineer", name="by a member")
    begin(hub, "", name="by the operator", operator=True)
    hub.room("taken")
    request = transfer_pb2.ImportRoomRequest(name="taken", operator=True)
    assert hub.refused("room.name_taken", request).next == "mycelium room import FILE --name 'taken 2'"
    hub.refused("name.invalid", transfer_pb2.ImportRoomRequest(name="a/b", operator=True))
    late = transfer_pb2.ImportRoomRequest(name="y", operator=True, created_at=clock.from_millis(10**15))
    hub.refused("room.import_refused", late)


# --- what may come in -------------------------------------------------------------------------------------------------

PARKED = views_pb2.DELIVERY_STATE_PARKED
POST = events_pb2.MessagePosted(message_id=ID, sender_handle="a", content="x", created_at=clock.from_millis(1))
LATE = clock.from_millis(10**15)


def member(handle: str, kind: Any) -> events_pb2.MemberSaved:
    return events_pb2.MemberSaved(member=views_pb2.Member(handle=handle, kind=kind))


def changed(event: Message, **fields: Any) -> Message:
    other = type(event)()
    other.CopyFrom(event)
    other.MergeFrom(type(event)(**fields))
    return other


@pytest.mark.parametrize(
    "event",
    [
        changed(POST, message_id="x"), changed(POST, sender_handle="no handle"), changed(POST, content="a\0"),
        changed(POST, content="x" * 262_145), changed(POST, thread="x"), changed(POST, reply_to="x"),
        changed(POST, message_type="note"), changed(POST, metadata_json="["), changed(POST, kind="No"),
        changed(POST, status="done"), changed(POST, deliver_to=["A"]), changed(POST, deliver_to=["a#"]),
        changed(POST, created_at=LATE), changed(POST, expires_at=LATE),
        changed(POST, deliver_to=["a", "b"], reasons=[1]), changed(POST, deliver_to=["a"], reasons=[99]),
        changed(POST, message_type="notice", sender_handle="no handle"),
        changed(POST, mentions=[views_pb2.Mention(handle="a", state=99)]),  # type: ignore[arg-type]
        events_pb2.MemberSaved(), member("", AGENT), member("all", AGENT), member("a", 0), member("a", 9),
        events_pb2.MemberRemoved(handle="#"), events_pb2.MessageAmended(message_id=ID),
        events_pb2.EventStatusSet(message_id=ID, status="done"), events_pb2.EventStatusSet(status="open"),
        events_pb2.DeliveryOffered(queue="a#B"), events_pb2.DeliveryOffered(queue="a", acknowledged=["x"]),
        events_pb2.DeliveryMarked(queue="a", message_id=ID), events_pb2.DeliveryMarked(queue="a", state=PARKED),
        events_pb2.FolderSet(handle="a", folder="x"), events_pb2.RoomDeleted(), events_pb2.UserSaved(handle="a"),
        events_pb2.RoomCreated(name="x"), events_pb2.RoomImported(),
    ],
    ids=lambda event: event.DESCRIPTOR.name,
)  # fmt: skip
def test_a_fact_that_no_command_could_have_made_is_refused(hub: Hub, event: Message) -> None:
    """A bundle may have been written by anybody; nothing of the step is stored."""
    room_id = begin(hub)
    good = transfer_pb2.PortableFact(sequence=1, type=events.type_name(POST), data=POST.SerializeToString())
    bad = transfer_pb2.PortableFact(sequence=2, type=events.type_name(event), data=event.SerializeToString())
    request = transfer_pb2.ImportFactsRequest(room_id=room_id, facts=[good, bad])
    assert "bundle" in hub.refused("room.import_refused", request, "avery").detail
    assert hub.tables.all("SELECT * FROM message") == []


@given(st.sampled_from(sorted(PORTABLE)), st.binary(max_size=60))
def test_any_bytes_are_let_in_or_refused_and_the_tables_take_them(type_name: str, data: bytes) -> None:
    """The projector is never stopped by a bundle."""
    hub = Hub()
    room_id = begin(hub)
    fact = transfer_pb2.PortableFact(sequence=1, type=type_name, data=data)
    refusal = None
    try:
        hub.ask(transfer_pb2.ImportFactsRequest(room_id=room_id, facts=[fact]), "avery")
    except Refusal as caught:
        refusal = caught
    assert refusal is None or refusal.slug == "room.import_refused"


def test_a_message_comes_once_and_a_handle_is_of_one_kind(hub: Hub) -> None:
    """On this hub too."""
    hub.user("kim")
    hub.room("here")
    hub.agent("bot", room="here")
    room_id = begin(hub)

    def refused(*given: Message, first: int = 1) -> str:
        facts = [
            transfer_pb2.PortableFact(sequence=place, type=events.type_name(event), data=event.SerializeToString())
            for place, event in enumerate(given, first)
        ]
        request = transfer_pb2.ImportFactsRequest(room_id=room_id, facts=facts)
        return hub.refused("room.import_refused", request, "avery").detail

    assert refused(POST, POST) == f"the bundle holds message {ID} twice"
    fact = transfer_pb2.PortableFact(sequence=1, type=events.type_name(POST), data=POST.SerializeToString())
    hub.ask(transfer_pb2.ImportFactsRequest(room_id=room_id, facts=[fact]), "avery")
    assert refused(POST, first=2) == f"the bundle holds message {ID} twice"
    assert refused(member("kim", AGENT), first=2) == "@kim is an agent in the bundle and a user on this hub"
    assert refused(member("bot", USER), first=2) == "@bot is a user in the bundle and an agent on this hub"


def test_a_step_has_a_size(hub: Hub) -> None:
    """It is one batch of the log."""
    room_id = begin(hub)
    facts = [transfer_pb2.PortableFact(sequence=place) for place in range(1, 202)]
    hub.refused("request.invalid", transfer_pb2.ImportFactsRequest(room_id=room_id, facts=facts), "avery")
    large = transfer_pb2.PortableFact(sequence=1, data=b"x" * 4_200_000)
    hub.refused("request.invalid", transfer_pb2.ImportFactsRequest(room_id=room_id, facts=[large]), "avery")


# --- on a real log ----------------------------------------------------------------------------------------------------


@pytest.fixture
async def bus(nats_server: testing.NatsServer, tmp_path: Path) -> AsyncIterator[Bus]:
    runtime = await run.start(service(), nats_server.settings("rooms"), tmp_path / "tables")
    connection = await Connection.open(nats_server.settings("gateway"))
    yield Bus(connection, "gateway")
    await connection.close()
    await runtime.stop()


async def test_an_import_that_stands_still_is_given_up(
    nats_server: testing.NatsServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its caller was killed: neither a hidden room nor its name is left."""
    monkeypatch.setattr(imports, "STALE_MS", 300)
    monkeypatch.setattr(imports, "LOOK_S", 0.05)
    runtime = await run.start(service(), nats_server.settings("rooms"), tmp_path / "tables")
    connection = await Connection.open(nats_server.settings("gateway"))
    bus, avery = Bus(connection, "gateway"), Actor("avery", "")
    request = transfer_pb2.ImportRoomRequest(name="copy", operator=True)
    await bus.ask(request, transfer_pb2.ImportRoomResponse, actor=avery)
    with pytest.raises(Refusal, match=r"room\.name_taken"):
        await bus.ask(pb.CreateRoomRequest(name="copy"), pb.CreateRoomResponse, actor=avery)
    async with asyncio.timeout(60):
        while True:
            with contextlib.suppress(Refusal):
                await bus.ask(pb.CreateRoomRequest(name="copy"), pb.CreateRoomResponse, actor=avery)
                break
            await asyncio.sleep(0.02)
    await connection.close()
    await runtime.stop()


async def test_a_step_is_stored_whole_in_the_log(bus: Bus, source: Hub) -> None:
    """With the number that each fact had; under one key, once. And read from there again, it is the same."""
    avery, facts = Actor("avery", ""), exported(source)
    request = transfer_pb2.ImportRoomRequest(name="copy", created_by="avery", private=True)
    room_id = (await bus.ask(request, transfer_pb2.ImportRoomResponse, actor=avery)).message.room_id
    step = transfer_pb2.ImportFactsRequest(room_id=room_id, facts=facts)
    first = await bus.ask(step, transfer_pb2.ImportFactsResponse, actor=avery, key="k")
    assert await bus.ask(step, transfer_pb2.ImportFactsResponse, actor=avery, key="k") == first
    assert (await bus.ask(step, transfer_pb2.ImportFactsResponse, actor=avery)).sequence == 0
    handles = {fact.entity for fact in facts if fact.type.endswith("MemberSaved")}
    assert first.sequence == len(facts) + len(handles) + 2  # the room, how each looks, the facts, and the step itself
    finish = transfer_pb2.FinishImportRequest(room_id=room_id, facts=len(facts))
    await bus.ask(finish, transfer_pb2.FinishImportResponse, actor=avery)
    shown = await bus.ask(pb.ListMessagesRequest(room="copy", all=True), pb.ListMessagesResponse, actor=avery)
    assert len(shown.message.messages) == 5
    again: list[transfer_pb2.PortableFact] = []
    for _ in range(len(facts)):
        after = again[-1].sequence if again else 0
        export = transfer_pb2.ExportRoomRequest(room="copy", after=after, limit=2)
        page = (await bus.ask(export, transfer_pb2.ExportRoomResponse, actor=avery)).message
        again += page.facts
        if not page.more:
            break
    assert [(fact.type, fact.entity, fact.at) for fact in again] == [(f.type, f.entity, f.at) for f in facts]
