"""A service in a process of its own: `python -m bench.program NAME NATS_URL FOLDER`, NAME `rooms` or `bare`.

`bare` is the least that the kernel can be asked to do: its one command decides on a free fact, and its tables are one
row. Prints a line when it answers.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import uvloop

import mycelium_rooms.service
from mycelium.rooms.v1 import events_pb2, service_pb2
from mycelium_kernel import clock, run, subjects
from mycelium_kernel.connections import NatsSettings
from mycelium_kernel.service import Command, Context, Fact, Projection, Service, Stored
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


async def main(name: str, url: str, folder: Path) -> None:
    """Answer until ended."""
    service = bare(folder / "schema.sql") if name == "bare" else mycelium_rooms.service.service()
    settings = NatsSettings((url,), "rooms", PASSWORD, 1, "monitor", PASSWORD)
    runtime = await run.start(service, settings, folder)
    print("ready", flush=True)
    try:
        await asyncio.Event().wait()
    finally:
        await runtime.stop()


if __name__ == "__main__":
    uvloop.run(main(sys.argv[1], sys.argv[2], Path(sys.argv[3])))
