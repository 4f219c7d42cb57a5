"""Live streams of documents: who asked for them is told of each change that matches, once and in order."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from mycelium_gateway.settings import GatewaySettings
from mycelium_kernel import run, testing
from mycelium_memory import queries_changes
from mycelium_memory.service import service as memory_service
from mycelium_rooms.service import service as rooms_service
from services.gateway.tests.conftest import opened
from services.gateway.tests.door import Door
from services.gateway.tests.watching import Event, watching

AVERY = {"Mycelium-Handle": "avery"}


@pytest.fixture
async def hub(nats_server: testing.NatsServer, tmp_path: Path) -> AsyncIterator[Door]:
    """A gateway, rooms and memory behind it, and the room `demo`."""
    rooms = await run.start(rooms_service(), nats_server.settings("rooms"), tmp_path / "tables")
    memory = await run.start(memory_service(), nats_server.settings("memory"), tmp_path / "tables")
    try:
        async with opened(nats_server, GatewaySettings(port=0, stream_ping_s=0.2)) as door:
            await door.http.post("/api/rooms", json={"name": "demo"}, headers=AVERY)
            yield door
    finally:
        await memory.stop()
        await rooms.stop()


async def put(hub: Door, key: str, room: str = "demo", handle: str = "avery") -> None:
    written = await hub.http.put(
        f"/api/rooms/{room}/memory/{key}", json={"value": "secret words"}, headers={"Mycelium-Handle": handle}
    )
    assert written.status_code in {200, 201}


async def remove(hub: Door, key: str) -> None:
    assert (await hub.http.delete(f"/api/rooms/demo/memory/{key}", headers=AVERY)).status_code == 204


def told(events: list[Event]) -> list[tuple[str, str, int]]:
    """Name, key and version of each."""
    return [(event.name, event.data["key"], event.data["version"]) for event in events]


async def test_a_follower_is_told_of_documents_that_match_and_of_nothing_else(hub: Door) -> None:
    """By headline, never the text; a watcher of the room is told nothing of documents."""
    async with (
        watching(hub.port, "demo", memory="decisions/*") as following,
        watching(hub.port, "demo") as watching_room,
    ):
        await put(hub, "notes/x")
        await hub.http.post("/api/rooms/demo/messages", json={"content": "hi"}, headers=AVERY)
        await put(hub, "decisions/db")
        await put(hub, "decisions/api/style", handle="kim")
        await remove(hub, "decisions/db")
        events = await following.some(3)
        await hub.http.post("/api/rooms/demo/messages", json={"content": "bye"}, headers=AVERY)
        seen = await watching_room.some(2)

    assert told(events) == [
        ("memory_written", "decisions/db", 1),
        ("memory_written", "decisions/api/style", 1),
        ("memory_removed", "decisions/db", 2),
    ]
    assert set(events[1].data) == {
        "room", "key", "version", "removed", "updated_by", "updated_at", "origin", "moved_from",
    }  # fmt: skip
    assert (events[1].data["updated_by"], events[1].data["room"], events[2].data["removed"]) == ("kim", "demo", True)
    assert [event.data["content"] for event in seen] == ["hi", "bye"]


async def test_a_follower_that_comes_back_gets_what_it_missed(hub: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    """Page by page, in order, without gap or repeat, then live; also from a place without an event."""
    monkeypatch.setattr(queries_changes, "CHANGES", 2)
    monkeypatch.setattr(queries_changes, "LOOKED_AT", 3)
    async with watching(hub.port, "demo", memory="work/") as stream:
        await put(hub, "work/a")
        first = await stream.next()
    assert first is not None
    for key in ("work/b", "notes/1", "notes/2", "notes/3", "notes/4", "work/c", "work/a", "work/d", "notes/5"):
        await put(hub, key)
    await remove(hub, "work/d")
    async with watching(hub.port, "demo", last_id=first.id, memory="work/") as stream:
        missed = await stream.some(5)
        await put(hub, "work/e")
        missed += await stream.some(1)

    assert [(key, version) for _name, key, version in told(missed)] == [
        ("work/b", 1), ("work/c", 1), ("work/a", 2), ("work/d", 1), ("work/d", 2), ("work/e", 1),
    ]  # fmt: skip
    places = [int(event.id.rpartition("-")[2]) for event in missed]
    assert places == sorted(set(places))


async def test_several_rooms_are_followed_over_one_connection(hub: Door) -> None:
    """In the log's order, also what was missed."""
    await hub.http.post("/api/rooms", json={"name": "ops"}, headers=AVERY)
    async with watching(hub.port, "demo", "ops", memory="*") as stream:
        await put(hub, "a", "ops")
        first = await stream.next()
    assert first is not None
    for key, room in (("b", "demo"), ("c", "ops"), ("d", "demo")):
        await put(hub, key, room)
    async with watching(hub.port, "demo", "ops", last_id=first.id, memory="*") as stream:
        missed = await stream.some(3)
    assert [(event.data["key"], event.data["room"]) for event in missed] == [("b", "demo"), ("c", "ops"), ("d", "demo")]


async def test_who_loses_a_private_room_is_told_no_more_than_that_it_is_gone(hub: Door) -> None:
    """A stranger can't follow it; of a member that is removed the stream ends."""
    await hub.http.post("/api/rooms", json={"name": "board", "private": True}, headers=AVERY)
    target = "/api/rooms/board/stream?memory=*"
    assert (await hub.http.get(target, headers={"Mycelium-Handle": "eve"})).status_code == 404
    await hub.http.post("/api/rooms/board/members", json={"handle": "kim"}, headers=AVERY)
    async with watching(hub.port, "board", headers={"Mycelium-Handle": "kim"}, memory="*") as stream:
        await put(hub, "a", "board")
        first = await stream.next()
        await hub.http.delete("/api/rooms/board/members/kim", headers=AVERY)
        await put(hub, "b", "board")
        last, end = await stream.next(), await stream.next()
    assert (first and first.data["key"], last and last.name, end) == ("a", "room_deleted", None)


async def test_what_can_t_be_a_pattern_is_refused(hub: Door) -> None:
    """Before the stream begins."""
    refused = await hub.http.get("/api/rooms/demo/stream?memory=/x")
    assert (refused.status_code, refused.json()["slug"]) == (422, "request.invalid")
