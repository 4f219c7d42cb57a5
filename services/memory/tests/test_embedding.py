"""The embedder: the real model in its process, and what becomes of a question when that process is not there."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from array import array
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio

from mycelium_memory import models
from mycelium_memory.child import Away, Child, Failed
from mycelium_memory.embedding import MOST_CHARACTERS, Embedder

pytestmark = pytest.mark.asyncio(loop_scope="module")

PAIRS = [
    ("where do we keep the data", "Rooms are folders on disk; each memory is a markdown file."),
    ("who pays for the servers", "The invoice of the hosting company goes to finance."),
    ("why was the release late", "Shipping slipped by a week because the tests kept failing."),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("models")


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def embedder(folder: Path) -> AsyncIterator[Embedder]:
    """One process for all tests here: a model takes seconds to load."""
    made = Embedder(models.choose("minilm", folder, {}))
    yield made
    await made.stop()


def cosine(one: bytes, other: bytes) -> float:
    return sum(a * b for a, b in zip(array("f", one), array("f", other), strict=True))


async def test_a_question_is_nearest_to_the_text_that_answers_it_without_sharing_its_words(embedder: Embedder) -> None:
    """Meaning, and not words, by the model that comes with the program."""
    texts = await embedder.embed([text for _question, text in PAIRS])
    for number, (question, _text) in enumerate(PAIRS):
        asked = await embedder.embed_query(question)
        assert cosine(asked, asked) == pytest.approx(1, abs=1e-4)
        assert max(range(len(texts)), key=lambda n: cosine(asked, texts[n])) == number


@pytest.mark.parametrize(
    "text", ["", " ", "\0", "\ud800 half a pair", "日本語 🎉", "x" * 1_000_000, "[CLS] [SEP] <|end|>"]
)
async def test_any_text_has_a_vector(embedder: Embedder, text: str) -> None:
    """However odd or long; only its beginning counts."""
    vector, _other = await embedder.embed([text, "beside it"])
    assert cosine(vector, vector) == pytest.approx(1, abs=1e-4)
    assert cosine(vector, await embedder.embed_query(text[:MOST_CHARACTERS])) > 0.98


async def test_vectors_come_in_the_order_of_the_texts_whatever_their_number(embedder: Embedder) -> None:
    """A batch is sent in pieces, and put together again."""
    texts = [f"text number {number}" for number in range(19)]
    together = await embedder.embed(texts)
    assert len(together) == 19
    assert cosine(together[17], await embedder.embed_query(texts[17])) > 0.98
    assert await embedder.embed([]) == []


async def test_a_question_overtakes_the_texts_that_wait(embedder: Embedder) -> None:
    """It is answered while a long batch, here one that is not even sent in pieces, is still being done."""
    await embedder.embed(["it is up"])
    texts = ["a long text about nothing in particular " * 60] * 12
    batch = asyncio.create_task(embedder._ask(texts, urgent=False, within_s=60, patience_s=0))
    await asyncio.sleep(0)  # it has been sent
    await embedder.embed_query("what is going on?")
    assert not batch.done()
    assert len(await batch) == 12


async def test_a_killed_embedder_fails_what_was_asked_and_is_started_again(embedder: Embedder) -> None:
    """The caller is told at once, and asks again."""
    await embedder.embed(["it is up"])
    first = embedder.pid
    assert first is not None
    asked = asyncio.create_task(embedder.embed(["a long text " * 200] * 40))
    await embedder.embed(["the other has begun"])
    os.kill(first, signal.SIGKILL)
    with pytest.raises(Away):
        await asked
    assert "the embedder" in embedder.why_not
    await embedder.embed(["again"])  # waits for the pause before a second start
    assert embedder.pid != first


async def test_a_question_does_not_wait_for_a_model_that_is_not_loaded(folder: Path) -> None:
    """It is told so at once, and the model is loaded for the next one."""
    embedder = Embedder(models.choose("minilm", folder, {}))
    with pytest.raises(Away, match="is starting"):
        await embedder.embed_query("anything")
    assert len(await embedder.embed_query("anything", patience_s=60)) == 4 * 384
    assert embedder.is_ready
    assert embedder.why_not == ""
    await embedder.stop()
    with pytest.raises(Away, match="stopped"):
        await embedder.embed_query("anything")


async def test_files_of_the_model_that_comes_along_may_be_deleted(tmp_path: Path) -> None:
    """With the index that they lie beside, at any moment: the next process has them again."""
    embedder = Embedder(models.choose("minilm", tmp_path, {}))
    try:
        for file in (tmp_path / "all-MiniLM-L6-v2").iterdir():
            file.unlink()
        (tmp_path / "all-MiniLM-L6-v2").rmdir()
        assert len(await embedder.embed(["a text"])) == 1
    finally:
        await embedder.stop()


async def test_the_embedder_dies_with_the_process_that_started_it(folder: Path, tmp_path: Path) -> None:
    """Also when that one is killed."""
    program = f"""
import asyncio, pathlib
from mycelium_memory import models
from mycelium_memory.embedding import Embedder
async def main():
    embedder = Embedder(models.choose("minilm", pathlib.Path({str(folder)!r}), {{}}))
    await embedder.embed(["up"])
    print(embedder.pid, flush=True)
    await asyncio.sleep(3600)
asyncio.run(main())
"""
    parent = await asyncio.create_subprocess_exec(sys.executable, "-c", program, stdout=asyncio.subprocess.PIPE)
    assert parent.stdout is not None
    child = int(await parent.stdout.readline())
    os.kill(child, signal.SIGSTOP)  # as busy as can be: it can't see that its standard input has ended
    parent.kill()
    await parent.wait()
    await ended(child)


async def ended(pid: int) -> None:
    """When a process, which need not be ours, has ended."""
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    loop, over = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(process, over.set)
    try:
        async with asyncio.timeout(60):
            await over.wait()
    finally:
        loop.remove_reader(process)
        os.close(process)


async def test_a_model_that_cannot_be_loaded_is_told_with_its_reason_and_tried_again_later(tmp_path: Path) -> None:
    """Nothing hangs, and nothing is tried in a circle."""
    model = replace(models.choose("minilm", tmp_path, {}), name=models.BGE)
    (model.folder / models.WEIGHTS[models.BGE]).write_bytes(b"not a model")
    embedder = Embedder(model)
    with pytest.raises(Away, match="could not be started"):
        await embedder.embed(["anything"])
    with pytest.raises(Away, match="could not be started"):
        await embedder.embed_query("anything")
    await embedder.stop()


async def test_a_child_that_does_not_answer_is_killed_and_one_that_errs_says_so(tmp_path: Path) -> None:
    """A frozen process costs its deadline once; an error is an answer."""
    child = Child("the keeper", "mycelium_memory.keeper", (str(tmp_path / "vectors"), "8", "1000"))
    with pytest.raises(Failed, match="KeyError"):
        await child.ask({"verb": "delete_room"}, within_s=60, patience_s=60)
    pid = child.pid
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    with pytest.raises(Away, match="did not answer within"):
        await child.ask({"verb": "count", "rooms": []}, within_s=0.2, patience_s=60)
    await ended(pid)
    await child.stop()
