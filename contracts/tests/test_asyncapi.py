"""The AsyncAPI document lists every fact of the protocol and every live event, no other, as they are sent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from jsonschema import Draft202012Validator
from referencing import Registry
from referencing.jsonschema import DRAFT202012

from mycelium.board.v1 import events_pb2 as board_events_pb2
from mycelium.board.v1 import reservations_pb2
from mycelium.engine.v1 import events_pb2 as engine_events_pb2
from mycelium.memory.v1 import events_pb2 as memory_events_pb2
from mycelium.memory.v1 import views_pb2 as memory_views_pb2
from mycelium.rooms.v1 import events_pb2, join_pb2, views_pb2
from mycelium_gateway import frames
from mycelium_gateway.stream import MISSED
from mycelium_kernel.clock import from_millis

CONTRACTS = Path(__file__).parent.parent
DOCUMENT: dict[str, Any] = yaml.safe_load((CONTRACTS / "asyncapi.yaml").read_text(encoding="utf-8"))
OPENAPI: dict[str, Any] = json.loads((CONTRACTS / "openapi.json").read_text(encoding="utf-8"))
L9: dict[str, Any] = json.loads((CONTRACTS / "l9.json").read_text(encoding="utf-8"))
FACTS = (events_pb2, engine_events_pb2, memory_events_pb2, board_events_pb2)
# Those that stand beside what is asked about them.
BESIDE = (
    reservations_pb2.PatternsReserved,
    reservations_pb2.ReservationsRenewed,
    reservations_pb2.ReservationsEnded,
    join_pb2.JoinCodeMade,
    join_pb2.JoinCodeUsed,
)
LIVE_EVENTS = frames.LIVE_EVENTS | frames.MEMORY_EVENTS
ROOM = "0199f2a0-4a51-7c3e-9d20-0c5b3a77e101"


def fact_types() -> dict[str, type[Message]]:
    """The events of the protocol: messages of `events.proto` that are no state."""
    return {kind.DESCRIPTOR.name: kind for kind in BESIDE} | {
        name: getattr(module, name)
        for module in FACTS
        for name in module.DESCRIPTOR.message_types_by_name
        if not name.endswith("State")
    }


def sample(kind: type[Message]) -> Message:
    """An event with something in every field."""
    event = kind()
    fill(event)
    if "room_id" in event.DESCRIPTOR.fields_by_name:
        setattr(event, "room_id", ROOM)  # noqa: B010 - the type is known at run time only
    return event


def fill(message: Message) -> None:
    for field in message.DESCRIPTOR.fields:
        if field.message_type is not None and field.message_type.full_name == "google.protobuf.Timestamp":
            getattr(message, field.name).CopyFrom(from_millis(1_756_917_600_250))
        elif field.message_type is not None:
            target = getattr(message, field.name)
            fill(target.add() if field.is_repeated else target)
        else:
            value = "{}" if field.name == "metadata_json" else plain(field)
            if field.is_repeated:
                getattr(message, field.name).append(value)
            else:
                setattr(message, field.name, value)


def plain(field: Any) -> Any:
    if field.enum_type is not None:
        return 1
    if field.name in {"message_type", "status"}:
        return {"message_type": "message", "status": "open"}[field.name]
    return {FieldDescriptor.TYPE_STRING: "text", FieldDescriptor.TYPE_BOOL: True}.get(field.type, 1)


def errors_of(name: str, value: object) -> list[str]:
    """Why `value` is not the payload of the message `name`."""
    files = {
        "https://contracts/asyncapi.yaml": DOCUMENT,
        "https://contracts/openapi.json": OPENAPI,
        "https://contracts/l9.json": L9,
    }
    registry: Registry[Any] = Registry().with_resources(
        (uri, DRAFT202012.create_resource(contents)) for uri, contents in files.items()
    )
    schema = {"$ref": f"https://contracts/asyncapi.yaml#/components/messages/{name}/payload"}
    return [error.message for error in Draft202012Validator(schema, registry=registry).iter_errors(value)]


def data_of(frame: bytes) -> tuple[str, dict[str, Any]]:
    lines = dict(line.split(": ", 1) for line in frame.decode().strip().split("\n"))
    assert ("id" in lines) == (lines["event"] not in frames.UNNUMBERED)
    found: dict[str, Any] = json.loads(lines["data"])
    return lines["event"], found


def test_every_fact_is_listed_and_none_is_stray() -> None:
    """What travels on the bus stands in the document under its full name."""
    listed = {message["name"] for message in DOCUMENT["components"]["messages"].values() if "." in message["name"]}

    assert listed == {str(kind.DESCRIPTOR.full_name) for kind in fact_types().values()}


def test_every_fact_is_shown_to_watchers_or_kept_from_them_on_purpose() -> None:
    """A new event is decided about: it has a live event, or is named as unseen."""
    assert set(LIVE_EVENTS) | set(frames.UNSEEN) == set(fact_types().values())
    assert not set(LIVE_EVENTS) & set(frames.UNSEEN)
    assert not set(frames.LIVE_EVENTS) & set(frames.MEMORY_EVENTS)


def test_every_live_event_is_listed_and_none_is_stray() -> None:
    """The stream's channels carry the events that the code sends."""
    sent = {name for live in LIVE_EVENTS.values() for name in live.names} | set(frames.UNNUMBERED)

    assert set(DOCUMENT["channels"]["room"]["messages"]) == sent
    assert set(DOCUMENT["channels"]["rooms"]["messages"]) == sent
    assert {name for name, one in DOCUMENT["components"]["messages"].items() if "." not in one["name"]} == sent


def test_every_message_stands_in_a_channel() -> None:
    """A message that no channel carries is described for nobody."""
    carried = {name for channel in DOCUMENT["channels"].values() for name in channel["messages"]}

    assert carried == set(DOCUMENT["components"]["messages"])


@pytest.mark.parametrize("kind", LIVE_EVENTS, ids=lambda kind: kind.DESCRIPTOR.name)
def test_a_live_event_has_the_shape_that_is_listed(kind: type[Message]) -> None:
    """What the code sends for a fact fits the payload in the document, whichever of its names the event has."""
    full, bare = sample(kind), kind()
    if isinstance(bare, events_pb2.MemberSaved):
        bare.member.kind = views_pb2.MEMBER_KIND_AGENT
    if isinstance(bare, events_pb2.MessagePosted):
        bare.message_type = "message"
    if isinstance(bare, memory_events_pb2.DocumentWritten | memory_events_pb2.DocumentRemoved):
        bare.origin = memory_views_pb2.ORIGIN_CALL
    if isinstance(bare, events_pb2.EventStatusSet):
        bare.status = "open"

    for event in (full, bare):
        name, data = data_of(frames.frame("e", 7, event, "demo"))
        assert name in LIVE_EVENTS[kind].names
        assert errors_of(name, data) == []


def test_a_reset_has_the_shape_that_is_listed() -> None:
    """A watcher of another log is told so."""
    name, data = data_of(frames.reset(MISSED))

    assert (name, errors_of(name, data)) == ("reset", [])


def test_a_ping_has_the_shape_that_is_listed() -> None:
    """A post in a thread is told twice: whole with its id, and by a ping without one."""
    post = sample(events_pb2.MessagePosted)
    whole, ping, rest = frames.live("e", 7, post, "demo").split(b"\n\n")

    assert (data_of(whole)[0], rest) == ("message", b"")
    name, data = data_of(ping)
    assert (name, errors_of(name, data)) == ("ping", [])
    assert data["message_id"] == data_of(whole)[1]["id"]


@pytest.mark.parametrize(
    "told",
    [
        {},
        {"task": "work/x", "thread": ROOM, "title": "X", "row_kind": "task", "holder": "a"},
        {"task": "work/x", "thread": ROOM, "move": "blocked", "on": "#502", "note": "soon"},
        {"task": "work/x", "thread": ROOM, "move": "answered", "answer": "15m"},
    ],
)
def test_a_notice_has_the_shape_that_is_listed(told: dict[str, str]) -> None:
    """It stands in the room's order, so it has an id; one that a bundle brought may say little."""
    post = events_pb2.MessagePosted(
        message_id=ROOM, message_type="notice", kind="claimed", sender_handle="bob", metadata_json=json.dumps(told)
    )
    frame = frames.live("e", 7, post, "demo")
    name, data = data_of(frame)
    assert frame.startswith(b"id: e-7\n")
    assert (name, errors_of(name, data), data["by"]) == ("notice", [], "bob")
    assert data["thread"] == told.get("thread")
    assert [data[name] for name in ("move", "on", "answer", "note")] == [
        told.get(name, "") for name in ("move", "on", "answer", "note")
    ]


def test_the_kinds_of_notices_are_those_of_the_reference() -> None:
    """The list is fixed: a new kind is a change of the surface."""
    kinds = ["filed", "claimed", "released", "resolved", "blocked", "unblocked", "expired", "floor"]
    ping, notice = L9["examples"]

    assert L9["$defs"]["kind"]["enum"] == kinds
    assert [errors_of("notice", {**notice, "kind": kind}) for kind in kinds] == [[]] * len(kinds)
    assert errors_of("notice", {**notice, "kind": "deleted"}) != []
    assert errors_of("ping", ping) == []


@pytest.mark.parametrize("last_seen", [None, "2026-09-03T16:41:07.250Z"])
def test_presence_has_the_shape_that_is_listed(last_seen: str | None) -> None:
    """It carries no id: who was away reads the members."""
    told = {"room": "demo", "handle": "bob", "presence": "blocked", "note": "key", "last_seen": last_seen}
    name, data = data_of(frames.presence(told))
    assert (name, data, errors_of(name, data)) == ("presence", told, [])
