"""Who is here and what they are doing: what agents said a moment ago, else what their waits and deliveries show.

A gateway writes what an agent says into a bucket in memory, as `<room id>.<token of the handle>`, with a time to live:
`{"state": "idle|working|blocked", "note": "...", "until": ms, "at": ms}`. It counts until `until`, by our own clock,
so that a key which nobody removed never makes anybody present. Never a fact.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mycelium.rooms.v1 import views_pb2
from mycelium_kernel import clock, subjects
from mycelium_rooms.waits import Waits
from mycelium_rooms.watching import Follower, Shown

if TYPE_CHECKING:
    from mycelium_kernel.run import Runtime

BUCKET = "gateway_presence"
WORKING_MS = 600_000  # a delivery that was taken means work for so long, unless it was answered
STATES = {
    "idle": views_pb2.PRESENCE_IDLE,
    "working": views_pb2.PRESENCE_WORKING,
    "blocked": views_pb2.PRESENCE_BLOCKED,
}


@dataclass(frozen=True)
class Said:
    """What a member said of itself; times in milliseconds since 1970."""

    state: views_pb2.Presence.ValueType
    note: str
    until: int
    at: int


def read(value: str) -> Said | None:
    """What a key's value says; None when it can't be read."""
    try:
        said = json.loads(value)
        return Said(STATES[said["state"]], str(said.get("note", "")), int(said["until"]), int(said.get("at", 0)))
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


class Picture:
    """The keys of the bucket as a watch has shown them."""

    def __init__(self) -> None:
        self.said: dict[str, Said] = {}

    def put(self, key: str, value: str, _now: float) -> None:
        """A member said something."""
        said = read(value)
        if said:
            self.said[key] = said

    def remove(self, key: str) -> None:
        """It has not said it again."""
        self.said.pop(key, None)


class Presences:
    """What is known of members now; `watch_presence` is the worker that keeps it up to date."""

    def __init__(self, waits: Waits) -> None:
        self._waits = waits
        self._picture = Picture()

    def complete(self, member: views_pb2.Member, room_id: str, given_at: int, now: int) -> None:
        """Fill in what a member is doing: given when it last took a delivery that it has not answered, and the time."""
        member.waiting = self._waits.is_waiting(room_id, member.handle)
        said = self._picture.said.get(f"{room_id}.{subjects.token(member.handle)}")
        if said and said.until > now:
            member.presence, member.presence_note = said.state, said.note
            if said.at > clock.to_millis(member.last_seen):
                member.last_seen.CopyFrom(clock.from_millis(said.at))
        elif member.waiting:
            member.presence = views_pb2.PRESENCE_IDLE
        elif given_at > now - WORKING_MS:
            member.presence = views_pb2.PRESENCE_WORKING
        else:
            member.presence = views_pb2.PRESENCE_OFFLINE

    async def watch_presence(self, runtime: Runtime) -> None:
        """Follow the bucket for ever."""
        await Follower(BUCKET, Picture, self._show).follow(runtime)

    def _show(self, picture: Shown) -> None:
        assert isinstance(picture, Picture)
        self._picture = picture
