"""What is left on disk of a deleted room: nothing of what was said in it. On a real NATS server, through kills."""

from __future__ import annotations

import asyncio
import os
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from mycelium.rooms.v1 import events_pb2
from mycelium.rooms.v1 import service_pb2 as pb
from mycelium_kernel import events, subjects, testing
from mycelium_kernel.connections import Connection
from mycelium_kernel.run import Runtime
from mycelium_rooms import erasing
from services.rooms.tests.hub import demo_hub
from services.rooms.tests.live import Ask, running

BOUND_S = 60.0
SECRET, TITLE, NOTES = "zeppelin-secret", "zeppelin-title", "zeppelin-notes"


async def fill(ask: Ask, name: str, posts: int) -> str:
    """A room with a title, a member with notes, and messages; one of them amended, one delivered."""
    room_id = str((await ask(pb.CreateRoomRequest(name=name, title=f"{TITLE} {name}."))).room.id)
    await ask(pb.SaveMemberRequest(room=name, handle="bot", notes=f"{NOTES} {name}."))
    made = [ask(pb.PostMessageRequest(room=name, content=f"@bot {SECRET} {name}. {place}")) for place in range(posts)]
    first = (await asyncio.gather(*made))[0].message.id
    await ask(pb.AmendMessageRequest(room=name, message=first, content=f"{SECRET} {name}. amended"))
    await ask(pb.TakeDeliveryRequest(room=name, new_call=True), "bot")
    return room_id


def found(folder: Path, *texts: str) -> list[str]:
    """Files under `folder` that hold one of the texts, in either of the encodings in which a machine may keep it."""
    hits = []
    for place, _folders, names in os.walk(folder):  # which passes over what goes meanwhile
        for name in names:
            try:
                data = Path(place, name).read_bytes()
            except FileNotFoundError:
                hits.append(f"{name}: gone before it was known")
                continue
            hits += [f"{name}: {text}" for text in texts if text.encode() in data or text.encode("utf-16-le") in data]
    return hits


async def vanishes(folder: Path, *texts: str) -> None:
    async with asyncio.timeout(BOUND_S):
        while found(folder, *texts):  # noqa: ASYNC110 - what changes it is another process
            await asyncio.sleep(0.02)


def texts_of(name: str) -> tuple[str, ...]:
    return (f"{SECRET} {name}.", f"{TITLE} {name}.", f"{NOTES} {name}.")


async def test_nothing_of_a_deleted_room_is_left_on_disk_and_all_of_its_neighbour(
    nats_server: testing.NatsServer, tmp_path: Path, ask: Ask
) -> None:
    """R1: rooms `a` and `ab`; neither the log nor the tables hold a text, the title or the notes of `a`."""
    async with running(nats_server, tmp_path / "tables"):
        erased, kept = await fill(ask, "a", 40), await fill(ask, "ab", 20)
        assert found(tmp_path, *texts_of("a"))
        await ask(pb.DeleteRoomRequest(room="a"))
        await vanishes(tmp_path, *texts_of("a"))
        texts = [message.content for message in (await ask(pb.ListMessagesRequest(room="ab"))).messages]
        assert len(texts) == 20
        assert len(found(tmp_path, f"{SECRET} ab.")) >= 2  # in the log and in the tables
        assert (await ask(pb.CreateRoomRequest(name="a"))).room.id not in {erased, kept}
        assert (await ask(pb.ListMessagesRequest(room="a"))).messages == []
    async with running(nats_server, tmp_path / "again"):
        assert len((await ask(pb.ListMessagesRequest(room="ab"))).messages) == 20
        assert (await ask(pb.ListMessagesRequest(room="a"))).messages == []
        assert found(tmp_path, *texts_of("a")) == []


async def deleted_count(connection: Connection) -> int:
    info = await connection.jetstream.stream_info(subjects.STREAM)
    return int(info.state.num_deleted or 0)


async def begun(ask: Ask, runtime: Runtime) -> None:
    """A room of 60 messages is deleted, and some of its facts are gone."""
    await fill(ask, "a", 60)
    await ask(pb.DeleteRoomRequest(room="a"))
    async with asyncio.timeout(BOUND_S):
        while await deleted_count(runtime.connection) < 5:  # noqa: ASYNC110 - as above
            await asyncio.sleep(0)


async def test_an_erasure_that_was_cut_goes_on(nats_server: testing.NatsServer, tmp_path: Path, ask: Ask) -> None:
    """The service ended when some facts were gone and others were not."""
    async with running(nats_server, tmp_path / "tables") as runtime:
        await begun(ask, runtime)
    assert found(tmp_path, *texts_of("a"))
    async with running(nats_server, tmp_path / "tables"):
        await vanishes(tmp_path, *texts_of("a"))


@pytest.mark.parametrize("kill", [False, True], ids=["stopped", "killed"])
async def test_an_erasure_goes_on_when_nats_is_back(
    nats_server: testing.NatsServer, tmp_path: Path, ask: Ask, *, kill: bool
) -> None:
    """After a kill, the one fact that it was at may stay in its file, as `erasing` says; nobody can read it."""
    async with running(nats_server, tmp_path / "tables") as runtime:
        await begun(ask, runtime)
        (nats_server.kill if kill else nats_server.stop)()
        assert found(tmp_path, *texts_of("a"))
        await nats_server.start()
        async with asyncio.timeout(BOUND_S):
            while await facts_left(runtime) > 1:  # noqa: ASYNC110 - as above
                await asyncio.sleep(0.02)
        blocks = b"".join(path.read_bytes() for path in (tmp_path / "nats").rglob("*.blk"))
        assert blocks.count(SECRET.encode()) <= kill
        await vanishes(tmp_path / "tables", *texts_of("a"))


async def facts_left(runtime: Runtime) -> int:
    """Facts in the log, but for those that say that a look was taken: they say nothing of whose it is, and stay."""
    looks = subjects.of_entities("rooms", subjects.HUB, "look")
    info = await runtime.connection.jetstream.stream_info(subjects.STREAM, subjects_filter=looks)
    return int(info.state.messages) - sum((info.state.subjects or {}).values())


async def test_tombstones_stay_and_each_room_of_a_name_is_erased(
    nats_server: testing.NatsServer, tmp_path: Path, ask: Ask
) -> None:
    """A name that had two rooms keeps two tombstones, and nothing that says what it was."""
    async with running(nats_server, tmp_path / "tables") as runtime:
        for _ in range(2):
            await fill(ask, "zeppelin", 1)
            await ask(pb.DeleteRoomRequest(room="zeppelin"))
        async with asyncio.timeout(BOUND_S):
            while await facts_left(runtime) > 2:  # noqa: ASYNC110 - as above
                await asyncio.sleep(0.02)
        await vanishes(tmp_path, *texts_of("zeppelin"), "zeppelin")


async def deleted_with_a_late_fact(runtime: Runtime, ask: Ask, folder: Path) -> None:
    """A room was erased from the log, and then a fact of it was stored that had been decided before."""
    room_id = await fill(ask, "a", 1)
    await ask(pb.DeleteRoomRequest(room="a"))
    await vanishes(folder / "nats", *texts_of("a"))
    event = events_pb2.MessagePosted(room_id=room_id, message_id="x", content=f"{SECRET} a.")
    stored = {"Myc-Type": events.type_name(event)}
    deadline = runtime.clock() + timedelta(seconds=5)
    await runtime.log.append(subjects.posts(room_id), event.SerializeToString(), stored, expect=None, deadline=deadline)


async def test_a_fact_that_came_late_is_erased_by_the_timer(
    nats_server: testing.NatsServer, tmp_path: Path, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was decided before the room was deleted, and stored after."""
    monkeypatch.setattr(erasing, "AGAIN_S", 2.0)
    async with running(nats_server, tmp_path / "tables") as runtime:
        await deleted_with_a_late_fact(runtime, ask, tmp_path)
        assert found(tmp_path / "nats", *texts_of("a"))
        await vanishes(tmp_path, *texts_of("a"))


async def test_the_timers_of_late_facts_are_armed_again(
    nats_server: testing.NatsServer, tmp_path: Path, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They do not outlive NATS, the room's grave does."""
    monkeypatch.setattr(erasing, "AGAIN_S", 2.0)
    async with running(nats_server, tmp_path / "tables") as runtime:
        await deleted_with_a_late_fact(runtime, ask, tmp_path)
        nats_server.kill()
        await nats_server.start()
        await vanishes(tmp_path, *texts_of("a"))


def test_a_tombstone_says_which_room_who_and_when() -> None:
    """It is kept for ever, so it holds nothing else."""
    hub = demo_hub()
    room_id = hub.ask(pb.GetRoomRequest(room="demo"), "avery").room.id
    fact: Any = hub.decide(pb.DeleteRoomRequest(room="demo"), "avery")
    assert fact.event.room_id == room_id
    assert {field.name for field, _value in fact.event.ListFields()} == {"room_id", "deleted_by", "deleted_at"}
    assert hub.tables.all("SELECT * FROM grave") == []
    hub.store(fact)
    assert [row[0] for row in hub.tables.all("SELECT * FROM grave")] == [room_id]
