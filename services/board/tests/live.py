"""A board on a real NATS server, beside rooms and memory; as many replicas of it as a test wants."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from google.protobuf.message import Message

from mycelium.board.v1 import service_pb2, views_pb2
from mycelium.memory.v1 import service_pb2 as memory_pb2
from mycelium.rooms.v1 import service_pb2 as rooms_pb2
from mycelium.rooms.v1 import views_pb2 as rooms_views_pb2
from mycelium_board.service import service
from mycelium_kernel import clock, events, run, subjects, testing
from mycelium_kernel.bus import Bus
from mycelium_kernel.connections import Connection
from mycelium_kernel.run import Runtime
from mycelium_kernel.service import Actor
from mycelium_memory.service import service as memory_service
from mycelium_rooms.service import service as rooms_service

BOUND_S = 60.0


@dataclass
class Live:
    """Asks a hub over its bus; the room `demo` is there, with its members."""

    server: testing.NatsServer
    folder: Path
    bus: Bus
    boards: list[Runtime]

    async def ask(self, request: Message, handle: str = "avery", key: str = "") -> Any:
        response = events.message_type(subjects.method_of(request.DESCRIPTOR).output_type.full_name)
        return (await self.bus.ask(request, response, actor=Actor(handle, handle), key=key)).message

    async def write(self, key: str, body: str | None = None, by: str = "avery", **fields: Any) -> str:
        """A version of a document; returns its thread. A dash in a field's name is written as `_`."""
        named = {name.replace("_", "-") if name != "blocked_by" else name: value for name, value in fields.items()}
        request = memory_pb2.WriteDocumentRequest(room="demo", key=key, fields_json=json.dumps(named))
        if body is not None:
            request.body = body
        thread: str = (await self.ask(request, by)).document.thread
        return thread

    async def remove(self, key: str, by: str = "avery") -> None:
        await self.ask(memory_pb2.RemoveDocumentRequest(room="demo", key=key), by)

    async def claim(self, task: str, by: str = "sec", **fields: Any) -> views_pb2.Claim:
        claim: views_pb2.Claim = (
            await self.ask(service_pb2.ClaimTaskRequest(room="demo", task=task, **fields), by)
        ).claim
        return claim

    async def move(self, move: views_pb2.Move.ValueType, task: str, by: str = "avery", **fields: Any) -> None:
        await self.ask(service_pb2.MoveTaskRequest(room="demo", task=task, move=move, **fields), by)

    async def rows(self) -> dict[str, views_pb2.Row]:
        request = service_pb2.ListTasksRequest(room="demo", filter=service_pb2.FILTER_ALL)
        return {row.key: row for row in (await self.ask(request)).rows}

    async def notices(self, until: Callable[[list[dict[str, Any]]], bool]) -> list[dict[str, Any]]:
        """What the room was told, the oldest first, once it is as it should be."""
        end = asyncio.get_running_loop().time() + BOUND_S
        while True:
            listed = await self.ask(rooms_pb2.ListMessagesRequest(room="demo", limit=500))
            told = [
                json.loads(message.metadata_json)
                for message in reversed(listed.messages)
                if message.message_type == "notice"
            ]
            if until(told):
                return told
            assert asyncio.get_running_loop().time() < end, [f"{one['kind']} {one['task']}" for one in told]
            await asyncio.sleep(0.02)

    async def told(self, *wanted: str) -> list[dict[str, Any]]:
        """The notices, when they are those wanted, each as `kind key`, and no others, in any order."""
        named = sorted(wanted)
        return await self.notices(lambda told: sorted(f"{one['kind']} {one['task']}" for one in told) == named)

    async def given(self, handle: str) -> list[tuple[str, str]]:
        """What is delivered to a handle: for each the reason, and the kind with the key. It is acknowledged."""
        found: list[tuple[str, str]] = []
        while True:
            taken = await self.ask(rooms_pb2.TakeDeliveryRequest(room="demo", new_call=True), handle)
            if not taken.message_id:
                return found
            shown = await self.ask(rooms_pb2.GetDeliveryRequest(room="demo", message=taken.message_id), handle)
            state = rooms_views_pb2.DELIVERY_STATE_ACKNOWLEDGED
            await self.ask(rooms_pb2.MarkDeliveryRequest(room="demo", message=taken.message_id, state=state), handle)
            reason = rooms_views_pb2.DeliveryReason.Name(shown.reason).removeprefix("DELIVERY_REASON_").lower()
            told = json.loads(shown.message.metadata_json)
            found.append((reason, f"{told['kind']} {told['task']}"))

    async def given_all(self, handle: str, number: int) -> list[tuple[str, str]]:
        """The same of so many, which may be on their way, and no more."""
        found: list[tuple[str, str]] = []
        async with asyncio.timeout(BOUND_S):
            while len(found) < number:
                found += await self.given(handle)
        return found

    async def add_board(self, *, is_gated: bool = False, now: clock.Clock = clock.system_clock) -> Runtime:
        """One more replica."""
        place = self.folder / f"board-{len(self.boards)}"
        started = await run.start(service(is_gated=is_gated), self.server.settings("board"), place, clock=now)
        self.boards.append(started)
        return started


@contextlib.asynccontextmanager
async def live(server: testing.NatsServer, folder: Path, boards: int = 1, private: bool = False) -> AsyncIterator[Live]:
    """A hub for the time of the block."""
    others = [
        await run.start(rooms_service(), server.settings("rooms"), folder / "rooms"),
        await run.start(memory_service(), server.settings("memory"), folder / "memory"),
    ]
    connection = await Connection.open(server.settings("gateway"))
    hub = Live(server, folder, Bus(connection, "gateway"), [])
    try:
        await hub.ask(rooms_pb2.CreateRoomRequest(name="demo", private=private))
        for handle in ("sec", "builder", "avery"):
            await hub.ask(rooms_pb2.SaveMemberRequest(room="demo", handle=handle))
        for _ in range(boards):
            await hub.add_board()
        yield hub
    finally:
        await connection.close()
        for runtime in (*hub.boards, *others):
            await runtime.stop()
