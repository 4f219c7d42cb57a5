"""One suite over both stores of vectors: the folder of this machine, and the client of a Qdrant server.

The client runs in its local mode, for no server can be had here; it answers the same calls.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import numpy as np
import pytest
import pytest_asyncio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mycelium_memory.vectors import Entry, Found, Indexed, Near, Passage, Store, Vectors, Within
from mycelium_memory.vectors_edge import EdgeStore
from mycelium_memory.vectors_server import LOCAL, ServerStore

SIZE = 8
STAMP = "a-model-8-0123"


pytestmark = pytest.mark.asyncio(loop_scope="module")


@asynccontextmanager
async def made(kind: str, folder: Path) -> AsyncIterator[Store]:
    if kind == "edge":
        yield EdgeStore(folder)
        return
    server = ServerStore(LOCAL)
    yield server
    await server.close()


@pytest.fixture(params=["edge", "server"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    async with made(request.param, tmp_path / "vectors") as store:
        yield store


@pytest_asyncio.fixture(loop_scope="module", scope="module", params=["edge", "server"])
async def opened(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Vectors]:
    """One for all tests here, since a process takes its time to start."""
    async with made(request.param, tmp_path_factory.mktemp("vectors")) as store:
        vectors = store.vectors(STAMP, SIZE)
        yield vectors
        await vectors.close()


@pytest_asyncio.fixture(loop_scope="module")
async def vectors(opened: Vectors) -> Vectors:
    """The one for all, empty."""
    for room_id in {one.room_id for one in await everything(opened)}:
        await opened.delete_room(room_id)
    return opened


def vector(*numbers: float) -> bytes:
    filled = [*numbers, *[0.0] * (SIZE - len(numbers))]
    return struct.pack(f"<{SIZE}f", *filled)


def entry(document: str, *numbers: float, room: str = "room-1", sequence: int = 1, **more: object) -> Entry:
    return Entry(room, document, sequence, (Passage("top", vector(*numbers)),), **more)  # type: ignore[arg-type]


async def found(vectors: Vectors, within: Within, *numbers: float, most: int = 10) -> list[str]:
    return [near.document for near in await vectors.search(vector(*numbers), within, most)]


async def everything(vectors: Vectors) -> list[Indexed]:
    return sorted(
        [one async for page in vectors.documents() for one in page], key=lambda one: (one.room_id, one.document)
    )


async def test_what_was_put_is_found_nearest_first_with_section_version_and_cosine(vectors: Vectors) -> None:
    """A hit says which section of which version it is, and how near."""
    sections = (Passage("storage", vector(1, 0)), Passage("cost", vector(0, 1)))
    await vectors.put([Entry("room-1", "decisions/db", 7, sections), entry("work/ui", -1, 0)])
    near = await vectors.search(vector(1, 0.1), Within(("room-1",)), 2)
    assert [(one.room_id, one.document, one.section, one.sequence) for one in near] == [
        ("room-1", "decisions/db", "storage", 7),
        ("room-1", "decisions/db", "cost", 7),
    ]
    assert near[0].score == pytest.approx(0.995, abs=0.001)


async def test_a_replaced_version_is_never_found_again(vectors: Vectors) -> None:
    """Also when the new version has fewer sections, or none."""
    await vectors.put([Entry("room-1", "a", 1, tuple(Passage(str(n), vector(1, n)) for n in range(5)))])
    await vectors.put([Entry("room-1", "a", 2, (Passage("new", vector(0, 1)),))])
    assert [(near.section, near.sequence) for near in await vectors.search(vector(1), Within(("room-1",)), 10)] == [
        ("new", 2)
    ]
    await vectors.put([Entry("room-1", "a", 3, ())])
    assert await vectors.count(["room-1"]) == 0


async def test_an_older_version_does_not_come_back(vectors: Vectors) -> None:
    """A write that is repeated late changes nothing."""
    await vectors.put([entry("a", 1, 0, sequence=5)])
    await vectors.put([entry("a", 0, 1, sequence=4)])
    assert await everything(vectors) == [Indexed("room-1", "a", 5)]
    assert (await vectors.search(vector(1, 0), Within(("room-1",)), 1))[0].score == pytest.approx(1)


async def test_deleting_takes_that_document_up_to_that_version_and_no_other(vectors: Vectors) -> None:
    """Neighbours in name and namesakes in other rooms stay, and so does a version that came after."""
    await vectors.put([entry(name, 1, sequence=3) for name in ("work/a", "work/ab", "work/a/b")])
    await vectors.put([entry("work/a", 1, room="room-10", sequence=3)])
    await vectors.delete("room-1", "work/a", 2)
    assert len(await everything(vectors)) == 4
    await vectors.delete("room-1", "work/a", 3)
    assert [(one.room_id, one.document) for one in await everything(vectors)] == [
        ("room-1", "work/a/b"),
        ("room-1", "work/ab"),
        ("room-10", "work/a"),
    ]


async def test_deleting_a_room_leaves_nothing_of_it_and_everything_of_the_others(vectors: Vectors) -> None:
    """Rooms whose ids begin alike are not touched."""
    await vectors.put([entry("a", 1, room=room) for room in ("room", "room-1", "room-2")])
    await vectors.delete_room("room")
    assert await vectors.count(["room"]) == 0
    assert [one.room_id for one in await everything(vectors)] == ["room-1", "room-2"]


async def test_only_the_rooms_that_were_named_are_looked_at(vectors: Vectors) -> None:
    """Neither a hit nor a count tells of another room, and no room at all finds nothing."""
    await vectors.put([entry(f"d{number}", 1, number, room=f"room-{number % 3}") for number in range(9)])
    near = await vectors.search(vector(1), Within(("room-0", "room-2")), 100)
    assert {one.room_id for one in near} == {"room-0", "room-2"}
    assert len(near) == 6
    assert await vectors.count(["room-1"]) == 3
    assert await vectors.count([]) == 0
    assert await vectors.search(vector(1), Within(()), 10) == []


@pytest.mark.parametrize(
    ("narrowed", "expected"),
    [
        ({"prefix": "work/a/"}, ["work/a/x"]),
        ({"prefix": "work/a"}, ["work/a/x", "work/ab"]),
        ({"prefix": "Work/"}, []),
        ({"tags": ("red",)}, ["work/a/x", "work/ab"]),
        ({"tags": ("red", "blue")}, ["work/ab"]),
        ({"tags": ("re",)}, []),
        ({"author": "julia"}, ["café/1", "work/ab"]),
        ({"since_ms": 2_000}, ["café/1", "work/ab"]),
        ({"until_ms": 2_000}, ["work/a/x"]),
        ({"since_ms": 2_000, "until_ms": 3_000, "prefix": "café/"}, ["café/1"]),
        ({"since_ms": 3_000, "author": "sam"}, []),
    ],
)
async def test_a_search_is_narrowed_by_prefix_tags_author_and_time(
    vectors: Vectors, narrowed: dict[str, object], expected: list[str]
) -> None:
    """Each narrows exactly, and all together."""
    await vectors.put(
        [
            entry("work/a/x", 1, tags=("red",), author="sam", time_ms=1_000),
            entry("work/ab", 1, tags=("red", "blue"), author="julia", time_ms=3_000),
            entry("café/1", 1, author="julia", time_ms=2_000),
        ]
    )
    within = Within(("room-1",), **narrowed)  # type: ignore[arg-type]
    assert sorted(await found(vectors, within, 1)) == expected


async def test_everything_is_listed_with_its_version_page_by_page(vectors: Vectors) -> None:
    """What a caller needs in order to see what is missing and what is too much."""
    many = [entry(f"d{number:04}", 1, number, sequence=number) for number in range(300)]
    await vectors.put(many)
    assert await everything(vectors) == [Indexed("room-1", f"d{number:04}", number) for number in range(300)]


async def test_what_is_kept_under_one_stamp_is_still_there_when_it_is_opened_again(store: Store) -> None:
    """And an opening says what it found."""
    first = store.vectors(STAMP, SIZE)
    assert (await first.open()).found is Found.NOTHING
    await first.put([entry("a", 1)])
    await first.close()
    second = store.vectors(STAMP, SIZE)
    opened = await second.open()
    assert (opened.found, opened.times) == (Found.KEPT, 1)
    assert await found(second, Within(("room-1",)), 1) == ["a"]
    await second.close()


async def test_vectors_of_another_length_are_found_broken_and_replaced_by_an_empty_store(store: Store) -> None:
    """So that the caller fills it anew."""
    first = store.vectors(STAMP, SIZE)
    await first.put([entry("a", 1)])
    await first.close()
    second = store.vectors(STAMP, SIZE * 2)
    opened = await second.open()
    assert opened.found is Found.BROKEN
    assert opened.why
    assert await second.count(["room-1"]) == 0
    await second.close()


async def test_the_old_model_serves_until_the_switch_and_is_gone_after_it(store: Store) -> None:
    """Two models side by side, one of them current; a switch drops the other."""
    assert await store.current() == ""
    old = store.vectors("old-8-1", SIZE)
    await old.put([entry("a", 1)])
    await store.switch("old-8-1")
    assert await store.current() == "old-8-1"
    new = store.vectors("new-16-2", SIZE * 2)
    await new.open()
    assert await store.current() == "old-8-1"
    assert await found(old, Within(("room-1",)), 1) == ["a"]
    await old.close()
    await store.switch("new-16-2")
    assert await store.current() == "new-16-2"
    again = store.vectors("old-8-1", SIZE)
    assert (await again.open()).found is Found.NOTHING
    await again.close()
    await new.close()


OPERATION = st.tuples(
    st.sampled_from(["put", "put", "put", "delete", "room"]),
    st.sampled_from(["r", "r1"]),
    st.sampled_from(["a", "ab", "a/b"]),
    st.integers(0, 3),
    st.integers(-3, 3),
)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(OPERATION, max_size=15))
async def test_any_order_of_writes_leaves_what_a_plain_table_would(
    vectors: Vectors, steps: list[tuple[str, str, str, int, int]]
) -> None:
    """Listing, counts and the order of hits are those of a dictionary under the same writes."""
    table: dict[tuple[str, str], tuple[int, list[float]]] = {}
    for room in ("r", "r1"):
        await vectors.delete_room(room)
    for sequence, (verb, room, document, passages, number) in enumerate(steps, start=1):
        if verb == "put":
            numbers = [[1.0, float(number), float(passage)] for passage in range(passages)]
            await vectors.put([Entry(room, document, sequence, tuple(Passage("", vector(*one)) for one in numbers))])
            table[room, document] = (
                sequence,
                [one / np.linalg.norm(one) @ (1, 0, 0) for one in map(np.array, numbers)],
            )
        elif verb == "delete":
            await vectors.delete(room, document, sequence)
            table.pop((room, document), None)
        else:
            await vectors.delete_room(room)
            table = {key: value for key, value in table.items() if key[0] != room}
    kept = {key: value for key, value in table.items() if value[1]}
    assert await everything(vectors) == [Indexed(*key, value[0]) for key, value in sorted(kept.items())]
    for room in ("r", "r1"):
        scores = sorted((score for key, value in kept.items() if key[0] == room for score in value[1]), reverse=True)
        near = await vectors.search(vector(1), Within((room,)), 100)
        assert [one.score for one in near] == pytest.approx(scores, abs=1e-5)


def random_vectors(count: int, size: int = SIZE) -> list[bytes]:
    drawn = np.random.default_rng(7).standard_normal((count, size)).astype("<f4")
    return [row.tobytes() for row in drawn]


async def test_nothing_is_missed_that_an_exact_search_finds(vectors: Vectors) -> None:
    """Below the number from which an index is built, every search is exact, whatever room it is narrowed to."""
    drawn = random_vectors(210)
    await vectors.put([Entry(f"room-{n % 3}", f"d{n}", 1, (Passage("", one),)) for n, one in enumerate(drawn)])
    table = np.array([array("f", one) for one in drawn])
    table /= np.linalg.norm(table, axis=1, keepdims=True)
    for asked in random_vectors(5):
        scores = table @ np.array(array("f", asked))
        best = [f"d{n}" for n in sorted(range(1, 210, 3), key=lambda n: -scores[n])[:10]]
        near: list[Near] = await vectors.search(asked, Within(("room-1",)), 10)
        assert [one.document for one in near] == best
