"""Events: kinds, status, provenance, the end of their time; looking them up."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from mycelium.rooms.v1 import events_pb2, status_pb2, views_pb2
from mycelium.rooms.v1 import service_pb2 as pb
from mycelium_kernel import clock, names, run, subjects, testing
from mycelium_kernel.bus import Bus
from mycelium_kernel.connections import Connection
from mycelium_kernel.errors import Refusal
from mycelium_kernel.service import Actor, Done, Fact
from mycelium_rooms.service import service
from services.rooms.tests.hub import Hub

THREAD = "0190aaaa-0000-7000-8000-00000000beef"


def event(hub: Hub, kind: str, content: str = "x", thread: str = "", **metadata: Any) -> views_pb2.Message:
    text = json.dumps({"kind": kind, **metadata})
    return hub.post(content, message_type="event", metadata_json=text, thread=thread)


def set_status(hub: Hub, message: str, status: str, handle: str = "engineer") -> str:
    request = status_pb2.SetEventStatusRequest(room="demo", message=message, status=status)
    return str(hub.ask(request, handle).status)


def shown(hub: Hub, message: str) -> views_pb2.Message:
    answer: views_pb2.Message = hub.ask(pb.GetMessageRequest(room="demo", message=message)).message
    return answer


def listed(hub: Hub, **fields: Any) -> list[str]:
    return [message.content for message in hub.ask(pb.ListMessagesRequest(room="demo", **fields)).messages]


@pytest.mark.parametrize(
    ("kind", "given", "status"),
    [
        ("action", None, "open"), ("concern", None, "open"), ("source_event", None, ""), ("ci_result", None, ""),
        ("action", "in_progress", "in_progress"), ("note", "resolved", "resolved"),
    ],
)  # fmt: skip
def test_an_event_begins_with_a_status_of_its_kind(demo: Hub, kind: str, given: str | None, status: str) -> None:
    """R5: or with the one that is given."""
    message = event(demo, kind, **({"status": given} if given else {}))
    assert message.status == status
    assert message == shown(demo, message.id)


@pytest.mark.parametrize(
    ("metadata", "says"),
    [
        ({"status": "done"}, "metadata.status is 'done': use open, in_progress or resolved"),
        ({"status": "expired"}, "metadata.status"),
        ({"status": 1}, "metadata.status"),
        ({"ttl_seconds": 0}, "metadata.ttl_seconds is 0"),
        ({"ttl_seconds": -1}, "metadata.ttl_seconds"),
        ({"ttl_seconds": 1.5}, "metadata.ttl_seconds"),
        ({"ttl_seconds": True}, "metadata.ttl_seconds"),
        ({"ttl_seconds": "60"}, "metadata.ttl_seconds"),
        ({"ttl_seconds": 10**12}, "metadata.ttl_seconds"),
        ({"provenance": {}}, "metadata.provenance is a list"),
        ({"provenance": [{}] * 51}, "metadata.provenance is a list"),
        ({"provenance": ["pr"]}, "needs a type"),
        ({"provenance": [{"type": "PR", "ref": "x"}]}, "needs a type"),
        ({"provenance": [{"type": "pr"}]}, "needs a ref"),
        ({"provenance": [{"type": "pr", "ref": ""}]}, "needs a ref"),
    ],
)
def test_metadata_of_an_event_that_can_not_be_is_refused(demo: Hub, metadata: dict[str, Any], says: str) -> None:
    """What was given, and what can be."""
    text = json.dumps({"kind": "action", **metadata})
    request = pb.PostMessageRequest(room="demo", content="x", message_type="event", metadata_json=text)
    assert says in demo.refused("request.invalid", request, "avery").detail
    demo.post("x", metadata_json=text)  # a message may say what it likes


def test_metadata_is_kept_as_it_was_given(demo: Hub) -> None:
    """Payload and provenance."""
    given: dict[str, Any] = {
        "ttl_seconds": 1_209_600,
        "payload": {"source": "github", "number": 48},
        "provenance": [{"type": "pr", "ref": "org/repo#48"}],
    }
    message = event(demo, "source_event", **given)
    assert json.loads(message.metadata_json) == {"kind": "source_event", **given}


def test_a_status_is_set_by_any_handle_and_read_back(demo: Hub) -> None:
    """By full or short id; saying it again is no fact."""
    message = event(demo, "action", "build").id
    assert set_status(demo, names.short_id(message), "in_progress") == "in_progress"
    assert shown(demo, message).status == "in_progress"
    request = status_pb2.SetEventStatusRequest(room="demo", message=message, status="in_progress")
    assert isinstance(demo.decide(request, "stranger"), Done)
    assert set_status(demo, message, "resolved", "stranger") == "resolved"
    assert set_status(demo, message, "open") == "open"
    note = event(demo, "note").id
    assert set_status(demo, note, "resolved") == "resolved"


def test_a_status_is_one_conditional_fact_on_the_events_own_subject(demo: Hub) -> None:
    """Two that set it at once come one after the other."""
    message = event(demo, "action")
    fact = demo.decide(status_pb2.SetEventStatusRequest(room="demo", message=message.id, status="resolved"), "engineer")
    assert isinstance(fact, Fact)
    assert fact.on is not None
    assert fact.on.subject == subjects.fact("rooms", message.room_id, "event", message.id)
    assert fact.event == events_pb2.EventStatusSet(
        room_id=message.room_id, message_id=message.id, status="resolved", set_by="engineer",
        set_at=clock.to_timestamp(demo.now),
    )  # fmt: skip


def test_what_can_not_be_set_is_refused_with_the_reason(demo: Hub) -> None:
    """No event, no such status, nobody who asks, no such message."""

    def request(message: str, status: str = "resolved") -> status_pb2.SetEventStatusRequest:
        return status_pb2.SetEventStatusRequest(room="demo", message=message, status=status)

    plain, action = demo.post("hello").id, event(demo, "action").id
    refusal = demo.refused("event.not_an_event", request(plain), "engineer")
    assert refusal.detail == f"message {plain[-8:]} is no event; only events have a status"
    for status in ("expired", "done", ""):
        demo.refused("request.invalid", request(action, status), "engineer")
    demo.refused("handle.missing", request(action))
    demo.refused("message.not_found", request(THREAD), "engineer")


def test_an_event_expires_when_its_time_is_over(demo: Hub) -> None:
    """Whoever reads it sees that at once; it stays in history; its status can't be set any more."""
    message = event(demo, "source_event", "PR", ttl_seconds=60)
    assert message.expires_at.seconds - message.created_at.seconds == 60
    demo.later(seconds=59)
    assert (shown(demo, message.id).status, listed(demo, status="expired")) == ("", [])
    demo.later(seconds=1)
    assert (shown(demo, message.id).status, listed(demo, status="expired")) == ("expired", ["PR"])
    assert listed(demo) == ["PR"]
    request = status_pb2.SetEventStatusRequest(room="demo", message=message.id, status="open")
    refusal = demo.refused("event.expired", request, "engineer")
    assert refusal.detail == f"event {message.id[-8:]} expired at 2026-01-05T12:01:00.000Z"


def test_what_was_resolved_in_time_stays_resolved(demo: Hub) -> None:
    """But is not opened again after it."""
    message = event(demo, "action", ttl_seconds=60).id
    set_status(demo, message, "resolved")
    demo.later(seconds=61)
    assert shown(demo, message).status == "resolved"
    assert set_status(demo, message, "resolved") == "resolved"
    demo.refused(
        "event.expired", status_pb2.SetEventStatusRequest(room="demo", message=message, status="open"), "avery"
    )


def test_the_end_of_an_events_time_is_a_fact_once(demo: Hub) -> None:
    """Not before it is so, not for what was resolved, is no event, or is gone."""
    room_id = demo.ask(pb.GetRoomRequest(room="demo")).room.id
    message, done = event(demo, "action", ttl_seconds=60).id, event(demo, "action", ttl_seconds=60).id
    set_status(demo, done, "resolved")

    def decided(message_id: str) -> Fact | Done:
        return demo.decide(status_pb2.ExpireEventRequest(room_id=room_id, message_id=message_id))

    assert isinstance(decided(message), Done)
    demo.later(seconds=60)
    for other in (done, THREAD, demo.post("plain").id):
        assert isinstance(decided(other), Done)
    fact = decided(message)
    assert isinstance(fact, Fact)
    assert fact.event.status == "expired"  # type: ignore[attr-defined]
    demo.store(fact)
    assert isinstance(decided(message), Done)
    assert (shown(demo, message).status, len(listed(demo, status="expired"))) == ("expired", 1)


def test_events_are_looked_up_by_kind_and_status(demo: Hub) -> None:
    """In the channel and every thread, newest first, from a time on; with any other filter."""
    event(demo, "source_event", "pr 1")
    demo.later(minutes=10)
    event(demo, "source_event", "pr 2")
    done = event(demo, "action", "a done")
    event(demo, "action", "a open", thread=THREAD)
    event(demo, "concern", "c open")
    event(demo, "action", "a short", ttl_seconds=1)
    set_status(demo, done.id, "resolved")
    demo.later(seconds=2)
    demo.post("talk")
    assert listed(demo, kind="source_event") == ["pr 2", "pr 1"]
    assert listed(demo, kind="source_event", since="5m") == ["pr 2"]
    assert listed(demo, kind="action", status="open") == ["a open"]
    assert listed(demo, status="open") == ["c open", "a open"]
    assert listed(demo, kind="action") == ["a short", "a open", "a done"]
    assert listed(demo, kind="action", thread=THREAD) == ["a open"]
    assert listed(demo, status="resolved", sender="avery") == ["a done"]
    assert listed(demo, status="resolved", sender="engineer") == []
    assert listed(demo, kind="action", query="open") == ["a open"]
    assert listed(demo, kind="concern", status="resolved") == []
    assert listed(demo, kind="nothing") == []
    demo.refused("request.invalid", pb.ListMessagesRequest(room="demo", kind="No"))
    demo.refused("request.invalid", pb.ListMessagesRequest(room="demo", status="done"))


async def test_the_service_says_that_an_event_expired(nats_server: testing.NatsServer, tmp_path: Path) -> None:
    """Within a second of its time, also after a restart in between."""
    connection = await Connection.open(nats_server.settings("gateway"))
    bus, actor = Bus(connection, "gateway"), Actor("avery", "")
    runtime = await run.start(service(), nats_server.settings("rooms"), tmp_path / "a")
    await bus.ask(pb.CreateRoomRequest(name="demo"), pb.CreateRoomResponse, actor=actor)
    request = pb.PostMessageRequest(
        room="demo", content="x", message_type="event", metadata_json='{"kind": "action", "ttl_seconds": 2}'
    )
    posted = await bus.ask(request, pb.PostMessageResponse, actor=actor)
    await runtime.stop()
    runtime = await run.start(service(), nats_server.settings("rooms"), tmp_path / "b")
    subject = subjects.fact("rooms", posted.message.message.room_id, "event", posted.message.message.id)
    async with asyncio.timeout(60):
        while not (sequence := await connection.last_sequence(subject)):  # noqa: ASYNC110 - another process
            await asyncio.sleep(0.05)
    found = await connection.get(sequence)
    assert found is not None
    assert events_pb2.EventStatusSet.FromString(found[1]).status == "expired"
    await runtime.stop()
    await connection.close()


def test_a_refusal_of_a_status_names_no_secret(demo: Hub) -> None:
    """Long values are cut: a refusal is one line."""
    text = json.dumps({"kind": "action", "status": "x" * 1000})
    request = pb.PostMessageRequest(room="demo", content="x", message_type="event", metadata_json=text)
    with pytest.raises(Refusal) as caught:
        demo.ask(request, "avery")
    assert len(caught.value.detail) < 120
