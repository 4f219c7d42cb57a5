"""A tree of files on a real NATS server: the rooms service and memory, a person with an editor, and what must be so."""

from __future__ import annotations

import asyncio
import contextlib
import json
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.message import Message

from mycelium.memory.v1 import service_pb2 as pb
from mycelium.memory.v1 import views_pb2
from mycelium.rooms.v1 import service_pb2 as rooms_pb
from mycelium_kernel import events, run, subjects, testing
from mycelium_kernel.bus import Bus
from mycelium_kernel.connections import Connection
from mycelium_kernel.errors import Refusal
from mycelium_kernel.run import Runtime
from mycelium_kernel.service import Actor
from mycelium_memory.service import service
from mycelium_rooms.service import service as rooms_service

WITHIN_S = 60.0


class Desk:
    """One who asks over the bus and works in the folders of rooms."""

    def __init__(self, server: testing.NatsServer, tables: Path, root: Path, bus: Bus) -> None:
        self.server, self.tables, self.root, self._bus = server, tables, root, bus
        self.memory: Runtime | None = None

    async def ask(self, request: Message, handle: str = "avery") -> Any:
        response = events.message_type(subjects.method_of(request.DESCRIPTOR).output_type.full_name)
        return (await self._bus.ask(request, response, actor=Actor(handle, handle))).message

    async def start(self, *, tree: bool = True) -> None:
        """Memory begins to keep the tree, unless nobody shall."""
        root = self.root if tree else None
        self.memory = await run.start(service(tree=root), self.server.settings("memory"), self.tables)

    async def stop(self) -> None:
        if self.memory:
            await self.memory.stop()
        self.memory = None

    async def restart(self) -> None:
        await self.stop()
        await self.start()

    async def room(self, name: str = "demo") -> Path:
        """A new room's folder."""
        await self.ask(rooms_pb.CreateRoomRequest(name=name))
        await until((self.root / name / ".room").exists, "the room has a folder")
        return self.root / name

    async def set(self, key: str, body: str, room: str = "demo", **fields: Any) -> views_pb2.Document:
        request = pb.WriteDocumentRequest(room=room, key=key, body=body, **fields)
        document: views_pb2.Document = (await self.ask(request)).document
        return document

    async def patch(self, key: str, **fields: Any) -> None:
        """Change fields of one's own."""
        await self.ask(pb.WriteDocumentRequest(room="demo", key=key, fields_json=json.dumps(fields)))

    async def rows(self) -> Any:
        """Every row of the tables, once they hold all that is stored."""
        assert self.memory is not None
        assert self.memory.projector is not None
        await self.memory.projector.catch_up()
        return self.memory.projector.tables.dump()

    async def remove(self, key: str, room: str = "demo") -> None:
        await self.ask(pb.RemoveDocumentRequest(room=room, key=key))

    async def get(self, key: str, room: str = "demo") -> views_pb2.Document | None:
        try:
            document: views_pb2.Document = (await self.ask(pb.GetDocumentRequest(room=room, key=key))).document
        except Refusal:
            return None
        return document

    async def body(self, key: str, room: str = "demo") -> str | None:
        document = await self.get(key, room)
        return document.content.body if document else None

    async def versions(self, key: str, room: str = "demo") -> list[views_pb2.Version]:
        return list((await self.ask(pb.ListVersionsRequest(room=room, key=key))).versions)

    async def documents(self, room: str = "demo") -> dict[str, str]:
        """Every document of a room as its file should be."""
        found: dict[str, str] = {}
        request = pb.ListDocumentsRequest(room=room, brief=True)
        for document in (await self.ask(request)).documents:
            answer = await self.ask(pb.GetDocumentRequest(room=room, key=document.key, as_file=True))
            found[f"{document.key}.md"] = answer.file
        return found

    def files(self, room: str = "demo") -> dict[str, str]:
        """Every file of a room that is a document's."""
        folder = self.root / room
        return {
            str(path.relative_to(folder)): path.read_text()
            for path in folder.rglob("*.md")
            if path.is_file() and not any(part.startswith(".") for part in path.relative_to(folder).parts)
        }

    async def same(self, room: str = "demo") -> dict[str, str]:
        """Wait until the files are the documents, and return them."""
        async with asyncio.timeout(WITHIN_S):
            while True:
                with contextlib.suppress(FileNotFoundError, Refusal):
                    documents, files = await self.documents(room), self.files(room)
                    if documents == files:
                        return documents
                await asyncio.sleep(0.02)


async def until(true: Callable[[], Any], what: str) -> None:
    """Wait for something that can be looked at."""
    try:
        async with asyncio.timeout(WITHIN_S):
            while not true():  # noqa: ASYNC110 - files have no events here
                await asyncio.sleep(0.01)
    except TimeoutError:
        raise AssertionError(f"not within {WITHIN_S} s: {what}") from None


async def until_body(desk: Desk, key: str, body: str | None, room: str = "demo") -> None:
    """Wait until a document has that text; None: it is gone."""
    async with asyncio.timeout(WITHIN_S):
        while await desk.body(key, room) != body:  # noqa: ASYNC110 - what is waited for is told by nobody
            await asyncio.sleep(0.02)


@contextlib.contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """Nobody can write into a folder, for the time of the block. Skips the test where nothing may be mounted."""
    for words in (["--bind", str(folder), str(folder)], ["-o", "remount,bind,ro", str(folder)]):
        done = subprocess.run(["mount", *words], capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"nothing can be mounted ({done.stderr.strip()}); try as root, or under `unshare -Urm`")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


@contextlib.asynccontextmanager
async def desk_at(server: testing.NatsServer, folder: Path) -> AsyncIterator[Desk]:
    """Rooms and memory with their folders, and a connection to ask by."""
    root = folder / "home" / "rooms"
    root.mkdir(parents=True)
    rooms = await run.start(rooms_service(rooms_folder=root), server.settings("rooms"), folder / "tables-rooms")
    connection = await Connection.open(server.settings("gateway"))
    desk = Desk(server, folder / "tables-memory", root, Bus(connection, "gateway"))
    try:
        await desk.start()
        yield desk
    finally:
        await desk.stop()
        await connection.close()
        await rooms.stop()
