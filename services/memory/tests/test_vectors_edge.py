"""What only the store of this machine has: a keeper that may be killed, an index that is built aside, broken files."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
from array import array
from collections.abc import AsyncIterator
from pathlib import Path

import numpy as np
import pytest

from mycelium_memory.child import Away
from mycelium_memory.vectors import Entry, Found, Passage, Within
from mycelium_memory.vectors_edge import EdgeVectors

SIZE = 32
MANY = 2_500
ROOMS = Within(("room-0",))


@pytest.fixture
async def vectors(tmp_path: Path) -> AsyncIterator[EdgeVectors]:
    """One that builds an index from a thousand vectors on."""
    made = EdgeVectors(tmp_path / "vectors", SIZE, unindexed=1_000)
    yield made
    await made.close()


def drawn(count: int, seed: int = 3) -> list[bytes]:
    rows = np.random.default_rng(seed).standard_normal((count, SIZE)).astype("<f4")
    return [row.tobytes() for row in rows]


def entry(number: int, vector: bytes, sequence: int = 1) -> Entry:
    return Entry(f"room-{number % 2}", f"d{number}", sequence, (Passage("", vector),))


def exact(rows: dict[int, bytes], asked: bytes) -> list[str]:
    numbers = [number for number in rows if number % 2 == 0]
    table = np.array([array("f", rows[number]) for number in numbers])
    scores = (table / np.linalg.norm(table, axis=1, keepdims=True)) @ np.array(array("f", asked))
    return [f"d{numbers[place]}" for place in np.argsort(-scores)[:10]]


async def recall(vectors: EdgeVectors, rows: dict[int, bytes]) -> float:
    hit = 0
    for asked in drawn(40, seed=4):
        near = await vectors.search(asked, ROOMS, 10)
        hit += len({one.document for one in near} & set(exact(rows, asked)))
    return hit / 400


async def indexed(vectors: EdgeVectors) -> None:
    while (await vectors.state()).is_building:
        pass


async def test_an_index_is_built_aside_and_what_changed_meanwhile_is_in_it(vectors: EdgeVectors) -> None:
    """Writes and searches go on; afterwards nothing is missing, nothing is back, and ten of ten are found."""
    rows = dict(enumerate(drawn(MANY)))
    await vectors.put([entry(number, vector) for number, vector in rows.items()])
    async with asyncio.timeout(30):
        while not (await vectors.state()).is_building:
            pass
    changed = dict(enumerate(drawn(50, seed=5), start=100))
    await vectors.put([entry(number, vector, sequence=2) for number, vector in changed.items()])
    for number in range(50):
        await vectors.delete(f"room-{number % 2}", f"d{number}", 1)
    assert await vectors.count(["room-0", "room-1"]) == MANY - 50
    await indexed(vectors)
    state = await vectors.state()
    assert state.vectors == MANY - 50
    assert state.indexed >= 1_000
    rows = {number: changed.get(number, vector) for number, vector in rows.items() if number >= 50}
    versions = {(one.document, one.sequence) async for page in vectors.documents() for one in page}
    assert versions == {(f"d{number}", 2 if number in changed else 1) for number in rows}
    assert await recall(vectors, rows) >= 0.99


async def test_a_killed_keeper_has_kept_every_write_that_it_answered(vectors: EdgeVectors, tmp_path: Path) -> None:
    """Also when it is killed while an index is built beside it, of which nothing is left."""
    await vectors.put([entry(number, vector) for number, vector in enumerate(drawn(MANY))])
    while not list((tmp_path / "vectors").glob("shard-2/segments")):
        await vectors.state()
    await vectors.put([entry(MANY, drawn(1)[0])])
    assert vectors.pid is not None
    os.kill(vectors.pid, signal.SIGKILL)
    async with asyncio.timeout(30):
        while vectors.opened is None or vectors.opened.times < 2:
            with contextlib.suppress(Away):
                await vectors.count(["room-0"])
    assert await vectors.count(["room-0", "room-1"]) == MANY + 1
    opened = vectors.opened
    assert opened is not None
    assert (opened.found, opened.times) == (Found.KEPT, 2)


async def test_files_on_which_the_keeper_ends_again_and_again_are_given_up(
    vectors: EdgeVectors, tmp_path: Path
) -> None:
    """Three openings without an answer; the fourth begins with nothing, and says so."""
    await vectors.put([entry(0, drawn(1)[0])])
    await vectors.close()
    (tmp_path / "vectors" / "tries").write_bytes(b"...")
    again = EdgeVectors(tmp_path / "vectors", SIZE)
    opened = await again.open()
    assert (opened.found, opened.why) == (Found.BROKEN, "it was opened 3 times and never answered")
    await again.close()
    once_more = EdgeVectors(tmp_path / "vectors", SIZE)
    assert (await once_more.open()).found is Found.KEPT
    await once_more.close()


async def test_a_folder_without_its_shard_is_found_broken(vectors: EdgeVectors, tmp_path: Path) -> None:
    """And not taken for an empty one."""
    await vectors.put([entry(0, drawn(1)[0])])
    await vectors.close()
    shutil.rmtree(tmp_path / "vectors" / "shard-1")
    again = EdgeVectors(tmp_path / "vectors", SIZE)
    opened = await again.open()
    assert opened.found is Found.BROKEN
    assert "shard-1 is missing" in opened.why
    await again.close()


async def test_two_keepers_never_have_one_folder_open(vectors: EdgeVectors, tmp_path: Path) -> None:
    """The second waits for the first to end, as one does whose parent was started again."""
    await vectors.put([entry(0, drawn(1)[0])])
    second = EdgeVectors(tmp_path / "vectors", SIZE)
    opening = asyncio.create_task(second.open())
    assert await vectors.count(["room-0"]) == 1
    assert not opening.done()
    await vectors.close()
    assert (await opening).found is Found.KEPT
    assert await second.count(["room-0"]) == 1
    await second.close()


async def test_a_deleted_room_leaves_nothing_on_the_disk(vectors: EdgeVectors, tmp_path: Path) -> None:
    """Neither keys nor sections, once the files are written anew; the other rooms are found all the while."""
    await vectors.open()
    rows = dict(enumerate(drawn(20)))
    await vectors.put([entry(number, vector) for number, vector in rows.items()])
    gone = Entry("room-gone", "zzyzx-road", 1, (Passage("kumquat", rows[0]),), ("persimmon",), "quince")
    await vectors.put([gone])
    await vectors.delete_room("room-gone")
    async with asyncio.timeout(30):
        while any(holds(tmp_path, word) for word in (b"zzyzx", b"kumquat", b"persimmon", b"quince")):
            assert await recall(vectors, rows) == 1.0
    assert await recall(vectors, rows) == 1.0
    assert await vectors.count(["room-0", "room-1", "room-gone"]) == 20
    await vectors.close()

    again = EdgeVectors(tmp_path / "vectors", SIZE, unindexed=1_000)
    try:
        assert (await again.open()).found is Found.KEPT
        assert await recall(again, rows) == 1.0
    finally:
        await again.close()


def holds(folder: Path, word: bytes) -> list[Path]:
    """The files in which a word stands."""
    found = []
    for place, _folders, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                if word in Path(place, name).read_bytes():
                    found.append(Path(place, name))
    return found
