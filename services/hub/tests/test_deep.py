"""`doctor --deep`: one flipped bit anywhere in a store or a table is found and named, and put right.

`make test LONG=1` flips more of them.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from mycelium_hub import deep
from mycelium_hub.deep_store import FACTS, Store
from mycelium_hub.finding import FIXED, NOTE, OK, WRONG, Finding
from mycelium_hub.home import Home
from services.hub.tests import calls
from services.hub.tests.conftest import HubCommand, wait_for
from services.hub.tests.test_doctor import look

SEED = 5
DELETED = 204
BITS, TABLE_BITS = (8, 20) if os.environ.get("LONG") else (3, 8)  # of each file of a store, of the tables
SEALED = ("meta.inf", "meta.sum", "msgs/1.blk", "msgs/index.db")
CONSUMER = ("obs/rooms-eraser/meta.inf", "obs/rooms-eraser/meta.sum", "obs/rooms-eraser/o.dat")
Wait = Callable[[Callable[[], object]], None]


def tell(url: str) -> None:
    """A story with two rooms, members, mentions, memory, texts that were changed; a third room was deleted."""
    for room in ("demo", "other", "gone"):
        body = {"name": room, "handle": "tester"}
        assert calls.call(url, "POST", "/api/rooms", body)[0] == calls.CREATED
        member = {"handle": "engineer", "kind": "agent"}
        assert calls.call(url, "POST", f"/api/rooms/{room}/members", member)[0] == calls.CREATED
        for place in range(6):
            body = {"content": f"@engineer look at {place} in {room}: äöü, once more", "sender_handle": "tester"}
            assert calls.call(url, "POST", f"/api/rooms/{room}/messages", body)[0] == calls.CREATED
        for text, status in ((f"# Why\nOne in {room}\n## How\nTwo: äöü", calls.CREATED), ("once more", calls.OK)):
            body = {"value": text, "handle": "tester"}
            assert calls.call(url, "PUT", f"/api/rooms/{room}/memory/decisions%2Fstorage", body)[0] == status
    message = calls.post(url, "first words")
    calls.call(url, "PATCH", f"/api/rooms/demo/messages/{message['id']}", {"content": "better words"})
    calls.call(url, "POST", "/api/rooms/demo/await", {"handle": "engineer", "timeout_s": 1})
    assert calls.call(url, "DELETE", "/api/rooms/gone")[0] == DELETED


def is_erased(home: Home) -> bool:
    """Whether nothing of the deleted room is left in the log."""
    return not any(b"in gone" in fact.data for fact in Store(home.store).read())


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """The home of a hub that was stopped."""
    hub = HubCommand(tmp_path_factory.mktemp("kept") / "home")
    hub.start()
    tell(hub.url)
    wait_for(lambda: is_erased(hub.home))
    assert hub("down").returncode == 0
    return hub.home


@pytest.fixture
def home(kept: Home, tmp_path: Path) -> Home:
    """A copy of it."""
    shutil.copytree(kept.path, tmp_path / "home")
    return Home(tmp_path / "home")


def wrong(found: list[Finding]) -> list[Finding]:
    return [finding for finding in found if finding.state == WRONG]


def flip(path: Path, at: int, bit: int) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ 1 << bit]))


def places(path: Path, count: int) -> Iterator[tuple[int, int]]:
    """Where bits are flipped: the same ones each time."""
    chance = random.Random(f"{SEED} {path.name}")
    size = path.stat().st_size
    return ((chance.randrange(size), chance.randrange(8)) for _ in range(count))


def test_a_whole_home_has_nothing_wrong(home: Home) -> None:
    """A line for the store, with what it has, and one for the tables of each service."""
    found = deep.check(home)
    parts = [(finding.part, finding.state) for finding in found]
    assert parts == [("store", OK), ("contents", OK), ("contents", OK), ("contents", OK)], found
    assert re.search(r"every checksum is right; \d small files have none", found[0].seen), found[0].seen
    for finding, name in zip(found[1:], ("rooms", "memory", "board"), strict=True):
        assert finding.seen.startswith(f"tables/{name}.sqlite: row by row what the log says, up to fact ")


@pytest.mark.parametrize("name", [*SEALED, *CONSUMER])
def test_one_flipped_bit_in_a_store_is_named_and_put_right(home: Home, name: str) -> None:
    """R1: in every file that has a checksum, and in where a consumer is while nothing is in work."""
    path = home.store / FACTS / name
    whole = path.read_bytes()
    for at, bit in places(path, BITS):
        flip(path, at, bit)
        found = wrong(deep.check(home))
        assert [finding.part for finding in found] == ["store"], (at, bit)
        assert str(path.relative_to(home.path)).removesuffix(path.suffix) in found[0].seen
        assert found[0].mended().state == FIXED
        if path.exists():
            assert path.read_bytes() == whole
        assert wrong(deep.check(home)) == []
        path.write_bytes(whole)


def test_a_flipped_bit_names_fact_room_and_place(home: Home) -> None:
    """And says what to type."""
    path = home.store / FACTS / "msgs/1.blk"
    at = path.read_bytes().index(b"better words")
    flip(path, at, 3)
    [finding] = wrong(deep.check(home))
    with closing(sqlite3.connect(home.tables / "rooms.sqlite")) as tables:
        room, sequence = tables.execute("SELECT room_id, max(sequence) FROM revision").fetchone()
    place = f"bit 3 of byte {at} is wrong (fact {sequence} of room {room})"
    assert finding.seen == f"nats/{FACTS}/msgs/1.blk: {place}"
    assert finding.next == "mycelium down && mycelium doctor --deep --fix && mycelium up"


def test_more_than_a_bit_is_named_and_what_the_tables_still_have(home: Home) -> None:
    """Nobody can put it right: the copy of the home is needed."""
    path = home.store / FACTS / "msgs/1.blk"
    at = path.read_bytes().index(b"look at 3 in demo")
    for place in range(4):
        flip(path, at + place, 3)
    found = deep.check(home)
    first, *others = wrong(found)
    assert "no record that its checksum confirms (after fact " in first.seen
    assert first.mend is None
    assert first.next.startswith("mycelium down, then bring back a copy of the home")
    assert {other.seen.split(",")[0].partition("fact ")[0] for other in others} == {"nats: lacks "}
    assert {other.seen.split("which ")[1] for other in others} == {"rooms.sqlite has read", "board.sqlite has read"}
    assert found[-1].state == NOTE


def test_a_store_that_ends_too_early_is_named(home: Home) -> None:
    """The tables have read facts that are not there any more."""
    path = home.store / FACTS / "msgs/1.blk"
    facts = list(Store(home.store).read())
    content = path.read_bytes()
    path.write_bytes(content[: content.index(facts[-1].data)])
    assert any(f"lacks fact {facts[-1].sequence} of room " in finding.seen for finding in wrong(deep.check(home)))


def copied(path: Path) -> bytes:
    """All that SQLite reads of a file, in a file of its own making."""
    copy = path.with_name("copy.sqlite")
    copy.unlink(missing_ok=True)
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as tables:
        tables.execute("VACUUM INTO ?", (str(copy),))
    found = copy.read_bytes()
    copy.unlink()
    return found


def test_one_flipped_bit_in_a_table_is_named_or_holds_nothing(home: Home, record_property: Any) -> None:
    """R1: what is not found is a byte that SQLite does not read: its copy of the file is the same."""
    path = home.tables / "rooms.sqlite"
    whole, meaning = path.read_bytes(), copied(path)
    count = {"found": 0, "empty": 0}
    written = [at for at, byte in enumerate(whole) if byte]
    anywhere = list(places(path, TABLE_BITS))
    for at, bit in anywhere + [(written[at % len(written)], bit) for at, bit in anywhere]:
        flip(path, at, bit)
        found = wrong(deep.check(home))
        if found:
            assert {finding.part for finding in found} == {"contents"}, (at, bit)
            assert all(finding.seen.startswith("tables/rooms.sqlite: ") for finding in found)
        else:
            assert copied(path) == meaning, (at, bit)
        count["found" if found else "empty"] += 1
        path.write_bytes(whole)
    record_property("bits", count)
    assert count["found"] >= TABLE_BITS // 2, count


@pytest.mark.parametrize(
    ("sql", "seen"),
    [
        ("UPDATE message SET thread = 'x' WHERE sequence = (SELECT max(sequence) FROM message)", "table message, row "),
        (
            "UPDATE chain SET hash = x'00' WHERE sequence = (SELECT max(sequence) FROM chain)",
            "table chain, row room_id",
        ),
        ("DELETE FROM seen", "table seen, row "),
        ("INSERT INTO feed VALUES (9999, 'r', 't', x'')", "is not in the log"),
        ("UPDATE message_words_data SET block = x'00' WHERE id > 10", "message_words"),
        ("INSERT INTO message_words (rowid, place, content) VALUES (1, 'a', 'b')", "words are not those"),
    ],
)
def test_a_row_that_the_log_does_not_say_is_named(home: Home, sql: str, seen: str) -> None:
    """With table, row and column; no text of it."""
    path = home.tables / "rooms.sqlite"
    with closing(sqlite3.connect(path, isolation_level=None)) as tables:
        tables.execute(sql)
    found = wrong(deep.check(home))
    assert any(seen in finding.seen for finding in found), found
    assert found[0].mended().state == FIXED
    assert not path.exists()


def test_words_of_memory_that_the_log_does_not_say_are_named(home: Home) -> None:
    """Its index of words has tables beneath it that only read it: those are whole, and this is named."""
    path = home.tables / "memory.sqlite"
    with closing(sqlite3.connect(path, isolation_level=None)) as tables:
        tables.execute("INSERT INTO passage_words (rowid, said) VALUES (1, 'never said')")
    [finding] = wrong(deep.check(home))
    assert finding.seen == "tables/memory.sqlite: table passage_words, 2 words are not those of the texts"
    assert finding.mended().state == FIXED


def test_a_running_hub_is_looked_at_while_it_works_and_mends_its_own_tables(hub: HubCommand, wait: Wait) -> None:
    """What comes meanwhile is no finding; --fix has the service make its tables again, and nothing is lost."""
    hub.start()
    tell(hub.url)
    status, rows = look(hub, "--deep")
    assert status == 0, rows
    said = calls.texts(hub.url)
    with closing(sqlite3.connect(hub.home.tables / "rooms.sqlite", timeout=5)) as tables, tables:
        tables.execute("UPDATE message SET content = 'never said'")
    status, rows = look(hub, "--deep", "--fix")
    assert {row["state"] for row in rows if "rooms.sqlite" in row["seen"]} == {FIXED}
    wait(lambda: calls.texts_or_none(hub.url) == said)
    assert look(hub, "--deep")[0] == 0


def test_tables_that_were_never_written_into_their_file_are_whole(hub: HubCommand, wait: Wait) -> None:
    """Those just made again lie in SQLite's log beside the file, whose own header is older than they are."""
    hub.start()
    calls.call(hub.url, "POST", "/api/rooms", {"name": "demo"})
    calls.post(hub.url, "first words")
    with closing(sqlite3.connect(hub.home.tables / "rooms.sqlite", timeout=5)) as tables, tables:
        tables.execute("UPDATE message SET content = 'never said'")
    look(hub, "--deep", "--fix")
    wait(lambda: calls.texts_or_none(hub.url) == ["first words"])
    status, rows = look(hub, "--deep")
    assert status == 0, rows
