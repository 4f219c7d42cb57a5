"""The law of the tables: state and event give what all events from zero give, for every event there is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mycelium.memory.v1 import files_pb2, subscriptions_pb2
from mycelium.memory.v1 import service_pb2 as pb
from mycelium_kernel import events
from mycelium_kernel.errors import Refusal
from mycelium_memory.service import PROJECTION
from services.memory.tests.hub import Hub, rebuilt, rows_of

ROOMS = ("demo", "other")
HANDLES = ("avery", "kim")
KEYS = ("a", "A", "work/x", "work/xy", "notes/é")
TEXTS = ("", "one", "# One\n\n[[a]] [[work/x#one]] [[work/xy]]", "two words")
TAGS = ((), ("t",), ("t", "u"))


def do(hub: Hub, room_ids: dict[str, str], draw: Callable[[Any], Any]) -> None:
    """One step of somebody, sensible or not."""
    room, handle, key, text = (draw(st.sampled_from(values)) for values in (ROOMS, HANDLES, KEYS, TEXTS))
    expect, room_id = draw(st.sampled_from((None, 0, 1, 2))), room_ids[room]
    write = pb.WriteDocumentRequest(room=room, key=key, body=text, expect=expect, fields_json='{"status": "open"}')
    write.tags.tags.extend(draw(st.sampled_from(TAGS)))
    steps: dict[str, Callable[[], Any]] = {
        "write": lambda: hub.ask(write, handle),
        "value": lambda: hub.ask(pb.WriteDocumentRequest(room=room, key=key, value_json='{"a": 1}'), handle),
        "patch": lambda: hub.ask(pb.WriteDocumentRequest(room=room, key=key, fields_json='{"b": null}'), handle),
        "file": lambda: hub.ask(files_pb2.TakeFileRequest(room_id=room_id, key=key, file=text, seen=expect), handle),
        "gone": lambda: hub.ask(files_pb2.TakeFileRequest(room_id=room_id, key=key, seen=expect), handle),
        "remove": lambda: hub.ask(pb.RemoveDocumentRequest(room=room, key=key, expect=expect), handle),
        "user": lambda: hub.user(handle),
        "subscribe": lambda: hub.ask(subscriptions_pb2.SubscribeRequest(room=room, pattern=key), handle),
        "unsubscribe": lambda: hub.ask(subscriptions_pb2.UnsubscribeRequest(room=room, pattern=key), handle),
        "join": lambda: hub.join(room_id, handle),
        "leave": lambda: hub.leave(room_id, handle),
        "private": lambda: hub.set_private(room_id, private=draw(st.booleans())),
        "imported": lambda: hub.finish_import(room_id),
        "delete": lambda: hub.delete_room(room_id, room),
    }
    often = ("write", "write", "write", "patch", "remove")
    steps[draw(st.sampled_from((*often, *steps)))]()


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_tables_and_an_event_are_the_tables_from_zero(data: st.DataObject) -> None:
    """Whatever was asked, in whatever order."""
    hub = Hub()
    room_ids = {"demo": hub.room("demo"), "other": hub.room("other", importing=True)}
    for _step in range(data.draw(st.integers(1, 25))):
        try:
            do(hub, room_ids, data.draw)
        except Refusal:
            continue
    assert rows_of(hub.tables) == rows_of(rebuilt(hub.facts))


def test_every_event_is_applied(demo: Hub) -> None:
    """The table of contents names them all."""
    room_id = demo.room("other", importing=True)
    demo.write("a", "x")
    demo.remove("a")
    demo.join(room_id, "kim")
    demo.leave(room_id, "kim")
    demo.user("kim")
    demo.ask(subscriptions_pb2.SubscribeRequest(room="demo", pattern="*"), "kim")
    demo.ask(subscriptions_pb2.UnsubscribeRequest(room="demo", pattern="*"), "kim")
    demo.set_private(room_id)
    demo.finish_import(room_id)
    demo.delete_room(room_id, "other")
    assert {fact.type for fact in demo.facts} == {
        events.type_name(kind) for kind in {*PROJECTION.apply, *PROJECTION.erased}
    }
