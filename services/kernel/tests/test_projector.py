"""The tables follow the log whatever happens to either, and nothing is answered from tables that do not."""

from __future__ import annotations

import asyncio
import dataclasses
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nats.aio.msg import Msg

from mycelium.rooms.v1 import events_pb2
from mycelium_kernel import events, headers, projector, run, subjects, testing
from mycelium_kernel.applier import Applier
from mycelium_kernel.bus import Bus
from mycelium_kernel.connections import Connection
from mycelium_kernel.errors import Unavailable
from mycelium_kernel.run import Runtime
from mycelium_kernel.service import Service
from mycelium_kernel.sweeping import Sweeper
from mycelium_kernel.tables import KEPT_FACTS, Tables
from mycelium_kernel.tail import RawFact
from services.kernel.tests import toy
from services.kernel.tests.toy import ROOM, Start

OTHER = "00000000-0000-7000-8000-000000000002"
ROOMS = st.sampled_from([ROOM, OTHER])
WORDS = st.sampled_from(["a", "b", "c"])


def saved(handle: str, name: str, room: str = subjects.HUB) -> tuple[str, Any]:
    return subjects.fact("rooms", room, "user", handle), events_pb2.UserSaved(handle=handle, name=name)


def posted(room: str, content: str) -> tuple[str, Any]:
    return subjects.posts(room), events_pb2.MessagePosted(room_id=room, content=content)


def deleted(room: str) -> tuple[str, Any]:
    return subjects.room_name(f"name of {room}"), events_pb2.RoomDeleted(room_id=room)


def joined(room: str) -> tuple[str, Any]:
    return subjects.fact("rooms", room, "member", "a"), events_pb2.MemberSaved(room_id=room)


CHANGES = st.one_of(
    st.builds(saved, WORDS, WORDS),
    st.builds(saved, WORDS, WORDS, ROOMS),
    st.builds(posted, ROOMS, WORDS),
    st.builds(deleted, ROOMS),
    st.builds(joined, ROOMS),
)
STEPS = st.sampled_from([1, 2, KEPT_FACTS - 1, KEPT_FACTS, KEPT_FACTS + 1])


@st.composite
def logs(draw: st.DrawFn) -> list[RawFact]:
    facts, sequence = [], 0
    for subject, event in draw(st.lists(CHANGES, min_size=1, max_size=10)):
        sequence += draw(STEPS)
        key = draw(WORDS)
        stored = {headers.KEY: key, headers.BODY: f"hash of {key}", headers.ACTOR: "tester"}
        facts.append(RawFact(sequence, subject, events.type_name(event), event.SerializeToString(), stored))
    return facts


def from_zero(facts: list[RawFact]) -> Tables:
    tables, applier = Tables.anew(None, toy.PROJECTION, "epoch"), Applier(toy.PROJECTION)
    tables.begin()
    for fact in facts:
        applier.apply(tables, fact)
    tables.commit(facts[-1].sequence)
    return tables


@given(facts=logs(), sweeps=st.lists(st.integers(0, 4), min_size=10, max_size=10))
@settings(deadline=None, max_examples=150)
def test_tables_and_one_more_fact_are_the_tables_rebuilt_from_zero(facts: list[RawFact], sweeps: list[int]) -> None:
    """The law, for every event, after rollbacks, across erased rooms and forgotten facts, swept or not yet."""
    tables, applier = Tables.anew(None, toy.PROJECTION, "epoch"), Applier(toy.PROJECTION)
    sweeper = Sweeper(toy.PROJECTION, tables)
    sweeper._rows = 1
    for place, fact in enumerate(facts):
        tables.begin()
        applier.apply(tables, fact)
        tables.rollback()
        tables.begin()
        applier.apply(tables, fact)
        tables.commit(fact.sequence)
        for _ in range(sweeps[place]):
            sweeper.step()
        fresh = from_zero(facts[: place + 1])

        assert tables.dump() == fresh.dump()
        fresh.close()
    tables.close()


def test_keys_of_long_ago_are_forgotten() -> None:
    """Neither the table of answered keys nor the feed grows for ever; both end at the same fact, in every process."""
    subject, event = posted(ROOM, "a")
    data, places = event.SerializeToString(), (1, 2, KEPT_FACTS + 1)
    facts = [
        RawFact(place, subject, events.type_name(event), data, {headers.KEY: f"k{place}", headers.BODY: "b"})
        for place in places
    ]
    tables = from_zero(facts)
    sweeper = Sweeper(toy.PROJECTION, tables)

    for rows in (3, 2):
        assert tables.kept_after == 1
        assert tables.answered("", "k1") is None
        assert tables.answered("", "k2") is not None
        assert [row.sequence for row in tables.feed([ROOM], 0)] == [2, KEPT_FACTS + 1]
        assert tables.one("SELECT count(*) FROM feed") == tables.one("SELECT count(*) FROM answered") == (rows,)
        while sweeper.step():
            pass
    tables.close()


async def test_the_tables_follow_through_a_killed_server(
    start: Start, bus: Bus, nats_server: testing.NatsServer
) -> None:
    """Writes around a SIGKILL of NATS are all in the tables, which equal tables rebuilt from zero."""
    async with start() as runtime:
        tries = [asyncio.create_task(toy.save(bus, f"u{n}")) for n in range(200)]
        await asyncio.wait(tries, return_when=asyncio.FIRST_COMPLETED)
        nats_server.kill()
        await nats_server.start()
        await asyncio.gather(*tries)

        assert len(await toy.names_of(bus)) == 200
        async with start(folder="rebuilt") as rebuilt:
            assert runtime.tables
            assert rebuilt.tables
            assert rebuilt.tables.dump() == runtime.tables.dump()


async def test_a_paused_server_makes_nobody_read_old_rows(
    start: Start, bus: Bus, nats_server: testing.NatsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the log can't be asked, reads are unavailable; one failed look does not spoil the next."""
    monkeypatch.setattr(projector, "LOOK_S", 0.1)
    monkeypatch.setattr(projector, "ATTEMPT_S", 0.1)
    async with start() as runtime:
        assert runtime.projector
        nats_server.pause()
        looks = [runtime.projector.catch_up() for _ in range(5)]
        failed = await asyncio.gather(*looks, return_exceptions=True)
        nats_server.resume()

        assert [type(error) for error in failed] == [Unavailable] * 5
        await toy.save(bus, "a")
        assert await toy.names_of(bus) == ["a"]


async def test_looks_shared_by_many_are_never_too_old(start: Start, bus: Bus) -> None:
    """However many read at once, each sees what was acknowledged before it began."""
    async with start() as runtime:
        follower = runtime.projector
        assert follower

        async def write_and_read(number: int) -> None:
            sequence = await toy.store(runtime, subjects.posts(ROOM), posted(ROOM, str(number))[1])
            await follower.catch_up()
            assert follower.tables.position >= sequence

        await asyncio.gather(*(write_and_read(number) for number in range(300)))


async def test_a_look_at_a_log_without_news_asks_one_question(
    start: Start, bus: Bus, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many subjects there are; facts of others are looked through once, and its own are never overlooked."""
    monkeypatch.setattr(projector, "FEW", 3)
    asked: list[str] = []

    async def note(message: Msg) -> None:
        asked.append(message.subject.removeprefix("$JS.API.STREAM.").partition(".FACTS")[0])

    await connection.client.subscribe("$JS.API.STREAM.>", cb=note)
    async with start() as runtime:
        follower = runtime.projector
        assert follower

        async def look() -> list[str]:
            await connection.client.flush()
            asked.clear()
            await follower.catch_up()
            await connection.client.flush()
            return list(asked)

        await toy.save(bus, "a")
        assert await look() == ["INFO"]
        for few in (1, 3):
            for number in range(few):
                await toy.store(runtime, subjects.fact("memory", ROOM, "note", str(number)), posted(ROOM, "x")[1])
            assert await look() == ["INFO", "MSG.GET"]
            assert await look() == ["INFO"]
        for number in range(4):
            await toy.store(runtime, subjects.fact("memory", ROOM, "note", str(number)), posted(ROOM, "x")[1])
        assert await look() == ["INFO", "MSG.GET"]  # for the last one under its filter
        assert await look() == ["INFO"]
        with follower.held():
            reading = asyncio.create_task(toy.names_of(bus))
            await toy.store(runtime, *saved("b", "b"))
            late = asyncio.create_task(follower.catch_up())
            await toy.until(lambda: len(follower._waiters) > 1)
            assert not late.done()
        await late
        assert follower.tables.one("SELECT name FROM user WHERE handle = 'b'") == ("b",)
        await reading


async def test_a_look_that_began_earlier_is_not_shared(start: Start, bus: Bus) -> None:
    """Who comes while the log is being asked waits, and then shares one look with all who waited."""
    async with start() as runtime:
        follower = runtime.projector
        assert follower
        answer = asyncio.Event()

        async def look_before() -> int:
            await answer.wait()
            return 0

        follower._look = before = asyncio.create_task(look_before())
        readers = [asyncio.create_task(follower.catch_up()) for _ in range(3)]
        await asyncio.wait(readers, timeout=0.01)
        answer.set()
        await asyncio.gather(*readers)

        assert follower._look is not before


async def test_a_cancelled_reader_leaves_nothing_behind(start: Start) -> None:
    """A caller that goes away while it waits is forgotten."""
    async with start() as runtime:
        assert runtime.projector
        waiting = asyncio.create_task(runtime.projector.wait(1000))
        await toy.until(lambda: runtime.projector and runtime.projector._waiters)
        waiting.cancel()
        await asyncio.wait({waiting})

        assert not runtime.projector._waiters


async def test_readers_are_told_that_the_service_stops(start: Start) -> None:
    """Whoever waits for a fact when the service stops is answered."""
    async with start() as runtime:
        assert runtime.projector
        waiting = asyncio.create_task(runtime.projector.wait(1000))
        await toy.until(lambda: runtime.projector and runtime.projector._waiters)
    with pytest.raises(Unavailable):
        await waiting


def garbage(path: Path) -> None:
    path.write_bytes(b"not a database" * 1000)


def half_garbage(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 3] + b"\xff" * (len(data) - len(data) // 3))


@pytest.mark.parametrize("spoil", [garbage, half_garbage, Path.unlink])
async def test_spoilt_tables_are_built_again(
    start: Start, bus: Bus, tmp_path: Path, spoil: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tables file that is damaged, wholly or in part, or gone, comes back from the log."""
    monkeypatch.setattr(projector, "MEND_S", (0.02, 0.1))
    async with start() as runtime:
        await asyncio.gather(*(toy.save(bus, f"user{n}") for n in range(500)))
        assert runtime.tables
        before = runtime.tables.dump()
    spoil(tmp_path / "tables" / "rooms.sqlite")

    async with start() as runtime:
        assert len(await toy.names_of(bus)) == 500
        await toy.save(bus, "one-more")
        assert len(await toy.names_of(bus)) == 501
        assert runtime.tables
        assert len(runtime.tables.dump()["user"]) == len(before["user"]) + 1
        assert runtime.health()["status"] == "ok"


@pytest.mark.parametrize("change", ["version", "schema", "epoch"])
def test_tables_of_another_shape_or_log_are_made_anew(tmp_path: Path, change: str) -> None:
    """Tables are kept over a restart only when schema, version and log are the same."""
    path, schema = tmp_path / "t.sqlite", tmp_path / "other.sql"
    schema.write_text(toy.PROJECTION.schemas[0].read_text() + "CREATE TABLE more (x);")
    tables = Tables.open(path, toy.PROJECTION, "epoch")
    tables.begin()
    tables.commit(7)
    tables.close()
    same = Tables.open(path, toy.PROJECTION, "epoch")
    same.close()
    changed = {
        "version": dataclasses.replace(toy.PROJECTION, version=2),
        "schema": dataclasses.replace(toy.PROJECTION, schemas=(schema,)),
        "epoch": toy.PROJECTION,
    }[change]
    other = Tables.open(path, changed, "another" if change == "epoch" else "epoch")
    other.close()

    assert same.position == 7
    assert other.position == 0


async def older_log(server: testing.NatsServer, later: Callable[[], Any]) -> None:
    """Let `later` write, then put the log back to what it was before, as a restored backup does."""
    store, kept = server.folder / "store", server.folder / "kept"
    server.stop()
    shutil.copytree(store, kept)
    await server.start()
    await later()
    server.stop()
    shutil.rmtree(store)
    shutil.move(kept, store)


async def test_tables_newer_than_a_restored_log_are_built_again(
    start: Start, bus: Bus, nats_server: testing.NatsServer
) -> None:
    """What a restored log has lost is not shown."""
    async with start():
        await toy.save(bus, "kept")

    async def later() -> None:
        async with start():
            await toy.save(bus, "lost")

    await older_log(nats_server, later)
    await nats_server.start()
    async with start():
        assert await toy.names_of(bus) == ["kept"]


@pytest.mark.parametrize("facts", [0, 1])
async def test_a_log_that_is_replaced_under_a_service_makes_it_refuse(
    start: Start, bus: Bus, nats_server: testing.NatsServer, facts: int
) -> None:
    """A service does not answer from tables whose log is another one now, and says so."""
    async with start() as runtime:
        for number in range(facts):
            await toy.save(bus, f"u{number}")
        nats_server.stop()
        shutil.rmtree(nats_server.folder / "store")
        await nats_server.start()
        await toy.until(lambda: "log" in runtime.health()["detail"])

        with pytest.raises(Unavailable):
            await toy.names_of(bus, timeout_s=1)
        assert runtime.health()["status"] == "degraded"


def poisoned(poison: set[str]) -> Service:
    def project_post(tables: Tables, event: events_pb2.MessagePosted, stored: Any) -> None:
        if event.content in poison:
            raise ZeroDivisionError
        toy.project_post(tables, event, stored)

    apply = {**toy.PROJECTION.apply, events_pb2.MessagePosted: project_post}
    return toy.service(projection=dataclasses.replace(toy.PROJECTION, apply=apply))


def contents(runtime: Runtime) -> list[str]:
    assert runtime.tables
    return [row[0] for row in runtime.tables.all("SELECT content FROM post ORDER BY sequence")]


async def test_a_fact_that_cant_be_applied_stops_the_tables_and_is_never_skipped(
    start: Start, bus: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everything before it is applied, nothing after it, everybody is told; when it can be applied, all goes on."""
    monkeypatch.setattr(projector, "MEND_S", (0.02, 0.05))
    poison = {"poison"}
    async with start(poisoned(poison)) as runtime:
        said = ["one", "two", "poison", "three"]
        await asyncio.gather(*(toy.store(runtime, subjects.posts(ROOM), posted(ROOM, text)[1]) for text in said))
        await toy.until(lambda: runtime.projector and runtime.projector.failure)
        with pytest.raises(Unavailable):
            await toy.names_of(bus)
        with pytest.raises(Unavailable):
            await toy.save(bus, "a")
        assert contents(runtime) == ["one", "two"]
        assert (await bus.health("rooms"))[0]["status"] == "degraded"
        assert "stopped after fact 2" in (await bus.health("rooms"))[0]["detail"]

        poison.clear()
        await toy.until(lambda: runtime.projector and not runtime.projector.failure)
        assert await toy.names_of(bus) == []
        assert contents(runtime) == said
        assert (await bus.health("rooms"))[0]["status"] == "ok"


async def test_a_service_starts_over_a_fact_it_cant_apply_and_says_so(
    start: Start, bus: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A poisonous log does not keep a service from telling what is wrong."""
    monkeypatch.setattr(projector, "MEND_S", (0.02, 0.05))
    async with start():
        await toy.say(bus, "poison")
    poison = {"poison"}
    async with start(poisoned(poison), folder="others"):
        assert (await bus.health("rooms"))[0]["status"] == "degraded"


async def test_an_erased_room_is_gone_from_every_table_and_from_the_file(
    start: Start, bus: Bus, tmp_path: Path
) -> None:
    """Rows, states, feed and keys of the room go, later facts of it are ignored, its text is not on disk."""
    secret = "the-secret-text"
    async with start() as runtime:
        tables = runtime.tables
        assert tables
        await toy.say(bus, secret)
        await toy.store(runtime, *saved(secret, secret, ROOM))
        await toy.store(runtime, *posted(OTHER, "stays"))
        await toy.save(bus, "stays")
        await toy.store(runtime, *deleted(ROOM))
        await toy.store(runtime, *posted(ROOM, secret))
        await toy.store(runtime, *saved(secret, "later", ROOM))
        await toy.names_of(bus)

        dump = tables.dump()
        assert ROOM not in repr({name: rows for name, rows in dump.items() if name != "erased"})
        await toy.until(lambda: tables.one("SELECT 1 FROM erased WHERE state"))
        for table in ("post", "feed", "answered"):
            assert not tables.all(f"SELECT * FROM {table} WHERE room_id = ?", ROOM)
        assert not tables.all("SELECT * FROM entity WHERE subject LIKE ?", f"%{ROOM}%")
        assert [row[2] for row in dump["post"]] == ["stays"]
        assert dump["erased"] == [(ROOM,)]
        assert next(tables.feed([ROOM, OTHER], 0)).sequence == 3
        assert [row[0] for row in dump["entity"]] == [toy.user_subject("stays")]
        # The toy keeps people by handle, so their table is not of a room.
        tables.execute("DELETE FROM user WHERE name = ?", secret)
        await toy.until(tables.shrink)
        on_disk = b"".join(path.read_bytes() for path in (tmp_path / "tables").iterdir())
        assert secret.encode() not in on_disk


async def test_shrink_says_when_a_reader_is_in_the_way(start: Start, bus: Bus, tmp_path: Path) -> None:
    """Erased text is claimed to be gone only when it is."""
    async with start() as runtime:
        tables = runtime.tables
        assert tables
        await asyncio.gather(*(toy.save(bus, f"u{n}") for n in range(50)))
        await toy.names_of(bus)
        reading = iter(tables.iterate("SELECT handle FROM user"))
        assert next(reading) == ("u0",)
        await toy.save(bus, "more")
        await toy.until(lambda: tables.one("SELECT 1 FROM user WHERE handle = 'more'"))
        assert not tables.shrink()
        del reading
        assert tables.shrink()


async def test_a_feed_is_read_in_order_up_to_a_place(start: Start, bus: Bus) -> None:
    """A watcher's gap is filled with exactly the facts of its rooms that it missed."""
    async with start() as runtime:
        for room in (ROOM, OTHER, ROOM, OTHER, ROOM):
            await toy.store(runtime, *posted(room, "x"))
        await toy.names_of(bus)
        tables = runtime.tables
        assert tables

        assert [row.sequence for row in tables.feed([ROOM], 1)] == [3, 5]
        assert [row.sequence for row in tables.feed([ROOM, OTHER, ROOM], 1, 4)] == [2, 3, 4]
        assert [row.sequence for row in tables.feed([], 0)] == []


async def test_a_service_without_tables_on_disk_keeps_them_in_memory(nats_server: testing.NatsServer) -> None:
    """No folder, no file."""
    runtime = await run.start(toy.service(), nats_server.settings("rooms"), None)
    assert runtime.tables
    assert runtime.tables.position == 0
    await runtime.stop()
