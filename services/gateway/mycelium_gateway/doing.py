"""What the members of a room are doing, from what they said, their open waits, and deliveries that they work on.

Pure: told what happens and what time it is. The rules are those by which the rooms service shows a member. Times are
milliseconds since 1970.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from mycelium.rooms.v1 import events_pb2, views_pb2
from mycelium_gateway import shapes
from mycelium_gateway.keys import INSTANCE, Said
from mycelium_kernel.clock import to_millis

OFFLINE, IDLE, WORKING = "offline", "idle", "working"
STATES = (IDLE, WORKING, "blocked")
WORKING_MS = 600_000  # a delivery that was given means work for so long, unless it was answered
LIVE_MS = 3_500  # a gateway that was not heard of for so long is gone, and its waits with it
ENCODED = re.compile(r"_([0-9a-f]+)_")


def untoken(token: str) -> str:
    """The text that `subjects.token` has encoded."""
    return ENCODED.sub(lambda found: chr(int(found[1], 16)), token)


def read_said(key: str, value: bytes) -> Said | None:
    """What a key of the bucket says; None when it can't be read: another version may have written it."""
    room_id, _, token = key.partition(".")
    try:
        said = json.loads(value)
        state, note = str(said["state"]), str(said.get("note", ""))
        found = Said(room_id, untoken(token), state, note, int(said.get("at", 0)), int(said["until"]))
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    return found if state in STATES else None


@dataclass
class Given:
    """A delivery that a member has and has not ended or answered: since when, and which sessions received it."""

    at: int
    received: set[str] = field(default_factory=set)


class Saying:
    """What members said, by room and handle; of two gateways the later word counts."""

    def __init__(self) -> None:
        self._said: dict[tuple[str, str], Said] = {}

    def put(self, said: Said) -> None:
        before = self._said.get((said.room_id, said.handle))
        if before is None or before.at <= said.at:
            self._said[said.room_id, said.handle] = said

    def of(self, room_id: str, handle: str, now: int) -> Said | None:
        """What a member says now."""
        said = self._said.get((room_id, handle))
        if said and said.until <= now:
            del self._said[room_id, handle]
            return None
        return said


class Waiting:
    """The waits that are open at any gateway, and when each gateway was heard of."""

    def __init__(self) -> None:
        self._waits: dict[tuple[str, str], dict[str, str]] = {}  # room and handle: wait to its gateway
        self._heard: dict[str, int] = {}

    def put(self, key: str, instance: str, now: int) -> tuple[str, str] | None:
        """A key was written; returns the room and handle whose wait it is, None when a gateway tells that it lives."""
        room_id, _, rest = key.partition(".")
        if room_id == INSTANCE:
            self._heard[rest] = now
            return None
        of = _whose(room_id, rest)
        self._waits.setdefault(of, {})[key] = instance
        return of

    def remove(self, key: str) -> list[tuple[str, str]]:
        """A key is gone; returns the rooms and handles that have a wait less: with a gateway go all of its own."""
        room_id, _, rest = key.partition(".")
        if room_id == INSTANCE:
            self._heard.pop(rest, None)
            return self._drop(rest)
        of = _whose(room_id, rest)
        waits = self._waits.get(of, {})
        waits.pop(key, None)
        if not waits:
            self._waits.pop(of, None)
        return [of]

    def silent(self, now: int) -> list[tuple[str, str]]:
        """Drop the gateways that were not heard of; returns as `remove` does."""
        gone = [instance for instance, at in self._heard.items() if now - at >= LIVE_MS]
        return [of for instance in gone for of in self.remove(f"{INSTANCE}.{instance}")]

    def _drop(self, instance: str) -> list[tuple[str, str]]:
        keys = [key for waits in self._waits.values() for key, there in waits.items() if there == instance]
        return [of for key in keys for of in self.remove(key)]

    def whose(self) -> list[tuple[str, str]]:
        """The rooms and handles that have a wait."""
        return list(self._waits)

    def is_open(self, room_id: str, handle: str) -> bool:
        """Whether a wait of the handle or one of its seats is open."""
        return any(instance in self._heard for instance in self._waits.get((room_id, handle), {}).values())


def _whose(room_id: str, rest: str) -> tuple[str, str]:
    return room_id, untoken(rest.partition(".")[0]).partition("#")[0]


class RoomDoing:
    """What is known of the members of one room since somebody watches it."""

    def __init__(self) -> None:
        self.shown: dict[str, tuple[str, str]] = {}  # handle to presence and note, as watchers have them
        self._given: dict[str, dict[str, Given]] = {}
        self._assumed: dict[str, int] = {}  # who worked when the watching began, and until when at most
        self._seen: dict[str, int] = {}

    def begin(self, members: Iterable[views_pb2.Member], now: int) -> None:
        """What the rooms service has just shown; what is known already stays."""
        for member in members:
            presence = shapes.PRESENCES[member.presence]
            if member.handle in self.shown:
                continue
            self.shown[member.handle] = (presence, member.presence_note)
            self.saw(member.handle, to_millis(member.last_seen))
            if presence == WORKING:
                self._assumed[member.handle] = now + WORKING_MS

    def saw(self, handle: str, at: int) -> None:
        """Something was heard of a member."""
        self._seen[handle] = max(at, self._seen.get(handle, 0))

    def seen(self, handle: str) -> int:
        """When a member was last heard of; 0 when never."""
        return self._seen.get(handle, 0)

    def is_working(self, handle: str, now: int) -> bool:
        """Whether a member works on a delivery."""
        given = self._given.get(handle, {})
        return self._assumed.get(handle, 0) > now or any(one.at > now - WORKING_MS for one in given.values())

    def happened(self, event: Any) -> str:
        """A fact of the room; returns the handle of the member of whom it tells something, if it does."""
        if isinstance(event, events_pb2.DeliveryOffered):
            return self._offered(event)
        if isinstance(event, events_pb2.DeliveryMarked):
            return self._marked(event)
        if isinstance(event, events_pb2.MessagePosted):
            return "" if event.message_type in shapes.TOLD else self._posted(event)
        if isinstance(event, events_pb2.MemberRemoved):
            self._given.pop(event.handle, None)
            self._assumed.pop(event.handle, None)
            return event.handle
        return ""

    def _offered(self, event: events_pb2.DeliveryOffered) -> str:
        handle = event.queue.partition("#")[0]
        at = to_millis(event.offered_at)
        given = self._given.setdefault(handle, {})
        for message_id in event.acknowledged:
            given.pop(message_id, None)
        if event.message_id:
            given.setdefault(event.message_id, Given(at)).at = at
        self._assumed.pop(handle, None)
        self.saw(handle, at)
        return handle

    def _marked(self, event: events_pb2.DeliveryMarked) -> str:
        handle = event.queue.partition("#")[0]
        given = self._given.get(handle, {})
        if event.state == views_pb2.DELIVERY_STATE_DELIVERED:
            if event.message_id in given:
                given[event.message_id].received.add(event.session)
        else:
            given.pop(event.message_id, None)
            self._assumed.pop(handle, None)
        return handle

    def _posted(self, event: events_pb2.MessagePosted) -> str:
        """Who speaks has dealt with what it answers, and with what its session has received."""
        handle = event.sender_handle
        given = self._given.get(handle, {})
        for message_id in [one for one, kept in given.items() if event.session in kept.received]:
            del given[message_id]
        given.pop(event.reply_to, None)
        self._assumed.pop(handle, None)
        self.saw(handle, to_millis(event.created_at))
        return handle
