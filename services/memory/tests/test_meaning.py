"""Search by meaning, whole: the real model and a real folder of vectors, over documents in a dictionary."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import shutil
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from mycelium_kernel import tasks
from mycelium_memory import models
from mycelium_memory.child import Away
from mycelium_memory.embedding import Embedder
from mycelium_memory.meaning import Meaning, Text
from mycelium_memory.models import Model
from mycelium_memory.vectors import Indexed, Near, Within
from mycelium_memory.vectors_edge import EdgeStore, EdgeVectors

ROOM = Within(("room-1",))
STORAGE = "Rooms are folders on disk; each memory is a markdown file."
MONEY = "The invoice of the hosting company goes to finance."


class Documents:
    """The documents that there are, as the tables of the service would tell."""

    def __init__(self) -> None:
        self.texts: dict[tuple[str, str], Text] = {}
        self.sequence = 0
        self.held: set[str] = set()  # that can't be read for now

    def write(self, document: str, text: str, room_id: str = "room-1") -> tuple[str, str]:
        self.sequence += 1
        self.texts[room_id, document] = Text(self.sequence, (("top", text),))
        return room_id, document

    def documents(self) -> Iterator[Indexed]:
        return iter([Indexed(*key, text.sequence) for key, text in self.texts.items()])

    def read(self, room_id: str, document: str) -> Text | None:
        if document in self.held:
            raise Away(f"{document} is held back")
        return self.texts.get((room_id, document))


@pytest.fixture
def documents() -> Documents:
    made = Documents()
    made.write("decisions/storage", STORAGE)
    made.write("status/money", MONEY)
    return made


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    return models.choose("minilm", tmp_path_factory.mktemp("models"), {})


@asynccontextmanager
async def working(folder: Path, model: Model, documents: Documents, *old: Model) -> AsyncIterator[Meaning]:
    """A `Meaning` with its worker; `old` are the models that are still to be had besides."""
    made = {one.stamp: one for one in old}
    meaning = Meaning(
        EdgeStore(folder), Embedder(model), documents, lambda stamp: Embedder(made[stamp]) if stamp in made else None
    )
    worker = asyncio.create_task(meaning.work())
    try:
        yield meaning
    finally:
        await tasks.end([worker], again_s=10)


async def settled(meaning: Meaning) -> None:
    """When everything is indexed."""
    assert await meaning.settled(["room-1", "room-2"], 30)


async def current(meaning: Meaning) -> None:
    """When the new model answers, and the store says so."""
    async with asyncio.timeout(30), meaning._rested:
        await meaning._rested.wait_for(lambda: meaning._is_current)


async def hits(meaning: Meaning, question: str, within: Within = ROOM) -> list[Near]:
    return await meaning.search(question, within, 10, patience_s=30)


async def best(meaning: Meaning, question: str) -> str:
    return (await hits(meaning, question))[0].document


async def test_what_there_is_at_the_start_is_found_by_meaning(
    tmp_path: Path, model: Model, documents: Documents
) -> None:
    """Without anybody telling of it; and what is in force is named."""
    async with working(tmp_path, model, documents) as meaning:
        await settled(meaning)
        assert await best(meaning, "where do we keep the data") == "decisions/storage"
        assert await best(meaning, "who pays for the servers") == "status/money"
        assert meaning.health() == {
            "model": "sentence-transformers/all-MiniLM-L6-v2",
            "chosen": "the setting names it",
            "waiting": 0,
            "state": "ready",
        }
        assert meaning.model == model


async def test_a_write_is_found_once_settled_and_what_it_replaced_is_not(
    tmp_path: Path, model: Model, documents: Documents
) -> None:
    """Written, replaced, removed, and with its room."""
    async with working(tmp_path, model, documents) as meaning:
        await settled(meaning)
        meaning.changed(*documents.write("decisions/storage", "The cat is fed twice a day."))
        meaning.changed(*documents.write("elsewhere", STORAGE, "room-2"))
        await settled(meaning)
        assert await best(meaning, "when does the pet eat") == "decisions/storage"
        found = [(near.document, near.sequence) for near in await hits(meaning, "where do we keep the data")]
        assert sorted(found) == [("decisions/storage", 3), ("status/money", 2)]
        del documents.texts["room-1", "decisions/storage"]
        meaning.changed("room-1", "decisions/storage")
        await settled(meaning)
        assert [near.document for near in await hits(meaning, "when does the pet eat")] == ["status/money"]
        del documents.texts["room-2", "elsewhere"]
        meaning.room_gone("room-2")
        async with asyncio.timeout(60):
            while await hits(meaning, "data", Within(("room-2",))):
                pass


async def test_what_changed_while_nothing_ran_is_made_up_for(
    tmp_path: Path, model: Model, documents: Documents
) -> None:
    """A write, a removal and a deleted room that nobody told of."""
    documents.write("gone", STORAGE, "room-2")
    async with working(tmp_path, model, documents) as meaning:
        await settled(meaning)
    del documents.texts["room-2", "gone"]
    del documents.texts["room-1", "status/money"]
    documents.write("new", "The cat is fed twice a day.")
    async with working(tmp_path, model, documents) as meaning:
        await settled(meaning)
        assert {near.document for near in await hits(meaning, "anything")} == {"decisions/storage", "new"}
        assert await hits(meaning, "where do we keep the data", Within(("room-2",))) == []


@pytest.mark.parametrize("harm", ["deleted", "emptied", "garbage", "truncated"])
async def test_a_store_that_was_deleted_or_damaged_comes_back(
    tmp_path: Path, model: Model, documents: Documents, harm: str
) -> None:
    """At any moment; here with the service down, and in the next test while it runs."""
    async with working(tmp_path, model, documents) as meaning:
        await settled(meaning)
    damage(tmp_path, model, harm)
    async with working(tmp_path, model, documents) as meaning:
        await settled(meaning)
        assert await best(meaning, "where do we keep the data") == "decisions/storage"


def damage(folder: Path, model: Model, harm: str) -> None:
    shard = folder / model.stamp / "shard-1"
    if harm == "deleted":
        shutil.rmtree(folder)
        return
    if harm == "emptied":
        shutil.rmtree(shard)
        shard.mkdir()
        return
    for file in shard.rglob("*.json" if harm == "garbage" else "*"):
        if file.is_file():
            file.write_bytes(b"garbage" if harm == "garbage" else file.read_bytes()[: file.stat().st_size // 2])


async def test_a_folder_deleted_under_a_running_keeper_that_is_then_killed_comes_back(
    tmp_path: Path, model: Model, documents: Documents
) -> None:
    """The next keeper finds nothing, says so, and everything is indexed again."""
    async with working(tmp_path, model, documents) as meaning:
        await current(meaning)
        vectors = meaning._new.vectors
        assert isinstance(vectors, EdgeVectors)
        assert vectors.pid is not None
        shutil.rmtree(tmp_path / model.stamp)
        (tmp_path / "current").unlink()
        os.kill(vectors.pid, signal.SIGKILL)
        async with asyncio.timeout(30):
            while not await found(meaning, "where do we keep the data"):
                pass
        assert await best(meaning, "where do we keep the data") == "decisions/storage"
        await current(meaning)
        assert await EdgeStore(tmp_path).current() == model.stamp, "the next start knows which model answers"


async def found(meaning: Meaning, question: str) -> list[Near]:
    """What is found, nothing while the store is away."""
    try:
        return await hits(meaning, question)
    except Away:
        await asyncio.sleep(0)
        return []


async def test_a_changed_model_is_indexed_beside_the_old_one_which_answers_meanwhile(
    tmp_path: Path, model: Model, documents: Documents
) -> None:
    """Also for what is written in between; then the new one takes over, and the old vectors are gone."""
    documents.write("gate", "Nothing of interest.")
    async with working(tmp_path, model, documents) as meaning:
        await current(meaning)
    documents.held.add("gate")
    other = dataclasses.replace(model, stamp="another-384-0")
    async with working(tmp_path, other, documents, model) as meaning:
        async with meaning._rested:
            await meaning._rested.wait_for(lambda: meaning.model == model)
        assert await best(meaning, "where do we keep the data") == "decisions/storage"
        assert meaning.model == model
        assert meaning.health()["next_model"] == other.name
        meaning.changed(*documents.write("pet", "The cat is fed twice a day."))
        assert await meaning.settled(["room-1"], 30)
        assert meaning.model == model
        assert await best(meaning, "when does the pet eat") == "pet"
        documents.held.clear()
        await current(meaning)
        assert meaning.model == other
        assert await best(meaning, "when does the pet eat") == "pet"
        assert await EdgeStore(tmp_path).current() == other.stamp
    assert not (tmp_path / model.stamp).exists()


async def test_before_the_worker_has_begun_a_question_is_told_why_there_is_no_answer(
    tmp_path: Path, model: Model, documents: Documents
) -> None:
    """So that the caller answers by words, and says so."""
    meaning = Meaning(EdgeStore(tmp_path), Embedder(model), documents)
    with pytest.raises(Away, match="not open yet"):
        await meaning.search("anything", ROOM, 10)


async def test_making_every_vector_again_ends_with_the_same_answers(
    tmp_path: Path, model: Model, documents: Documents
) -> None:
    """`memory reindex`."""
    async with working(tmp_path, model, documents) as meaning:
        await settled(meaning)
        before = await hits(meaning, "where do we keep the data")
        assert meaning.renew() == 2
        await settled(meaning)
        after = await hits(meaning, "where do we keep the data")
        assert [(near.document, near.sequence) for near in after] == [(near.document, near.sequence) for near in before]
