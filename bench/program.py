"""A service in a process of its own: `python -m bench.program NAME NATS_URL FOLDER`, NAME `rooms`, `bare` or `set`.

`bare` is the least that the kernel can be asked to do: its one command decides on a free fact, and its tables are one
row. `set` is the least that a claim could be: its command reads what is there now, and stores a fact if that is
nothing. Prints a line when it answers.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import uvloop

import mycelium_rooms.service
from mycelium.rooms.v1 import events_pb2, service_pb2, views_pb2
from mycelium_kernel import clock, run, subjects
from mycelium_kernel.connections import NatsSettings
from mycelium_kernel.errors import Refusal
from mycelium_kernel.service import Command, Context, Entity, Evolution, Fact, Projection, Service, Stored
from mycelium_kernel.tables import Tables
from mycelium_kernel.testing import PASSWORD

ROOM = "bare"
SCHEMA = "CREATE TABLE last (room_id TEXT PRIMARY KEY, sequence INTEGER NOT NULL) WITHOUT ROWID;"


def bare(schema: Path) -> Service:
    """A service that stores what it is told, as posts of one room. It answers on the subject of `PostMessage`."""

    def load(_tables: Tables, _request: service_pb2.PostMessageRequest, _context: Context) -> None:
        return None

    def decide(_loaded: None, request: service_pb2.PostMessageRequest, context: Context) -> Fact:
        event = events_pb2.MessagePosted(
            room_id=ROOM,
            message_id=context.new_id(),
            content=request.content,
            created_at=clock.to_timestamp(context.now),
        )
        return Fact(event, subject=subjects.posts(ROOM))

    def answer(_event: events_pb2.MessagePosted, _sequence: int) -> service_pb2.PostMessageResponse:
        return service_pb2.PostMessageResponse()

    def apply(tables: Tables, event: events_pb2.MessagePosted, stored: Stored) -> None:
        tables.execute("INSERT OR REPLACE INTO last VALUES (?, ?)", event.room_id, stored.sequence)

    schema.write_text(SCHEMA, encoding="utf-8")
    projection = Projection(
        (schema,), 1, (subjects.of_service("rooms"),), {events_pb2.MessagePosted: apply}, {}, feed=False
    )
    command = Command(service_pb2.PostMessageRequest, load, decide, answer)
    return Service(name="rooms", version="0.0.0", projection=projection, commands=(command,))


def setting(schema: Path) -> Service:
    """A service that stores a name for a handle that has none. It answers on the subject of `SaveUser`."""
    state = events_pb2.UserState

    def load(tables: Tables, request: service_pb2.SaveUserRequest, _context: Context) -> Entity[events_pb2.UserState]:
        return tables.entity(subjects.fact("bench", ROOM, "user", request.handle), state)

    def decide(loaded: Entity[events_pb2.UserState], request: service_pb2.SaveUserRequest, _context: Context) -> Fact:
        if loaded.state:
            raise Refusal("handle.taken", f"{request.handle} is taken")
        return Fact(events_pb2.UserSaved(handle=request.handle, name=request.name), on=loaded)

    def answer(_event: events_pb2.UserSaved, _sequence: int) -> service_pb2.SaveUserResponse:
        return service_pb2.SaveUserResponse()

    def evolve(_state: events_pb2.UserState | None, event: events_pb2.UserSaved) -> events_pb2.UserState:
        return events_pb2.UserState(user=views_pb2.User(handle=event.handle, name=event.name))

    schema.write_text("", encoding="utf-8")
    projection = Projection(
        schemas=(schema,),
        version=1,
        filters=(subjects.of_service("bench"),),
        apply={},
        entities={events_pb2.UserSaved: (Evolution(state, evolve),)},
        feed=False,
    )
    command = Command(service_pb2.SaveUserRequest, load, decide, answer, fresh=True)
    return Service(name="rooms", version="0.0.0", projection=projection, commands=(command,))


async def main(name: str, url: str, folder: Path) -> None:
    """Answer until ended."""
    made = {"bare": bare, "set": setting}
    service = made[name](folder / "schema.sql") if name in made else mycelium_rooms.service.service()
    settings = NatsSettings((url,), "rooms", PASSWORD, 1, "monitor", PASSWORD)
    runtime = await run.start(service, settings, folder)
    print("ready", flush=True)
    try:
        await asyncio.Event().wait()
    finally:
        await runtime.stop()


if __name__ == "__main__":
    uvloop.run(main(sys.argv[1], sys.argv[2], Path(sys.argv[3])))
