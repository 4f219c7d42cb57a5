"""What the routes answer is what the schemas say: hot answers are not validated a second time, so a test does it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from google.protobuf.message import Message as Protobuf
from pydantic import BaseModel

from mycelium.rooms.v1 import events_pb2, views_pb2
from mycelium_gateway import shapes
from mycelium_gateway.schemas import members, messages, rooms, users
from mycelium_kernel.clock import from_millis

MOMENT = from_millis(1_756_917_667_250)


def room(**given: Any) -> views_pb2.Room:
    return views_pb2.Room(id="r", name="demo", created_at=MOMENT, **given)


def message(**given: Any) -> views_pb2.Message:
    return views_pb2.Message(id="m", sequence=7, room="demo", message_type="message", created_at=MOMENT, **given)


def member(**given: Any) -> views_pb2.Member:
    known: dict[str, Any] = {"kind": views_pb2.MEMBER_KIND_AGENT, "presence": views_pb2.PRESENCE_OFFLINE, **given}
    return views_pb2.Member(handle="engineer", created_at=MOMENT, updated_at=MOMENT, **known)


SEEN = views_pb2.Mention(handle="engineer", state=views_pb2.MENTION_STATE_QUEUED, last_seen=MOMENT)
UNSEEN = views_pb2.Mention(handle="new", state=views_pb2.MENTION_STATE_WOKEN)
CASES: list[tuple[type[BaseModel], Any, Protobuf]] = [
    (rooms.Room, shapes.room, room()),
    (rooms.Room, shapes.room, room(title="Demo", private=True, members=3, last_message_at=MOMENT)),
    (members.Member, shapes.member, member()),
    (members.Member, shapes.member, member(allow_from=["a", "b"], last_seen=MOMENT, waiting=True, unread=2)),
    (members.Member, shapes.member, member(paused=True, presence=views_pb2.PRESENCE_BLOCKED, presence_note="key")),
    (users.User, shapes.user, views_pb2.User(handle="avery", agents=[views_pb2.OwnedAgent(room="demo", handle="a")])),
    (messages.Message, shapes.message, message()),
    (messages.Message, shapes.message, message(metadata_json='{"a":[1]}', edited_at=MOMENT, mentions=[SEEN, UNSEEN])),
    (messages.Message, shapes.message, message(status="expired", expires_at=MOMENT)),
    (messages.Receipt, shapes.receipt, views_pb2.Receipt(handle="a", state=views_pb2.DELIVERY_STATE_QUEUED)),
    (
        messages.Receipt,
        shapes.receipt,
        views_pb2.Receipt(
            handle="a",
            state=views_pb2.DELIVERY_STATE_PARKED,
            attempts=3,
            session="s",
            delivered_at=MOMENT,
            ended_at=MOMENT,
        ),
    ),
]


@pytest.mark.parametrize(("schema", "shape", "view"), CASES)
def test_an_answer_fits_its_schema(schema: type[BaseModel], shape: Any, view: Protobuf) -> None:
    """With nothing set and with everything set."""
    schema.model_validate_json(shapes.encode(shape(view)), strict=True)


def test_a_live_message_has_the_shape_of_history() -> None:
    """A client keeps one function for both."""
    fact = events_pb2.MessagePosted(
        room_id="r", message_id="m", content="hi", message_type="event", created_at=MOMENT, mentions=[SEEN],
        status="open", expires_at=MOMENT,
    )  # fmt: skip
    view = message(content="hi", mentions=[SEEN], status="open", expires_at=MOMENT)
    view.message_type = "event"

    assert shapes.posted(fact, 7, "demo") == shapes.message(view)


@pytest.mark.parametrize("number", [value for value in views_pb2.MentionState.values() if value])
def test_every_state_of_a_mention_is_in_the_schema(number: Any) -> None:
    """A new state is a change of the surface."""
    messages.Mention.model_validate(shapes.mention(views_pb2.Mention(state=number)))


@pytest.mark.parametrize("number", [value for value in views_pb2.DeliveryState.values() if value])
def test_every_state_of_a_delivery_is_in_the_schema(number: Any) -> None:
    """A new state is a change of the surface."""
    messages.Receipt.model_validate(shapes.receipt(views_pb2.Receipt(state=number)))


@pytest.mark.parametrize("number", [value for value in views_pb2.MentionState.values() if value])
def test_what_stands_in_the_way_of_a_delivery_is_its_state(number: Any) -> None:
    """That it is queued beneath is no news to its sender."""
    receipt = shapes.receipt(views_pb2.Receipt(state=views_pb2.DELIVERY_STATE_QUEUED, mention=number))
    assert receipt["state"] == shapes.MENTION_STATES[number]
    messages.Receipt.model_validate(receipt)


def test_any_text_comes_out_as_it_went_in() -> None:
    """Emoji and line separators are not escaped, and stay JSON."""
    text = 'a\u2028😀\n\t\\"'
    assert json.loads(shapes.encode({"content": text})) == {"content": text}
