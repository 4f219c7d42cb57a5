"""Search whole, on a real server with the real model: what is found, what is forgotten, who may see, which replica."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from mycelium.memory.v1 import search_pb2 as pb
from mycelium.memory.v1 import service_pb2
from mycelium.rooms.v1 import service_pb2 as rooms_pb
from mycelium_kernel import run, testing
from mycelium_kernel.errors import Refusal, Unavailable
from mycelium_kernel.run import Runtime
from mycelium_memory.service import service
from mycelium_memory.settings import IndexSettings
from services.memory.tests.asking import Asker

CLOUD = "Our servers are rented from a hosting company in Finland."
LUNCH = "Every Tuesday the team eats together in the garden."


@contextlib.asynccontextmanager
async def memory(
    server: testing.NatsServer, folder: Path, *, owner: bool = True, model: str = "minilm"
) -> AsyncIterator[Runtime]:
    """The service, with the index of `folder` unless it is not the owner."""
    owned = IndexSettings(folder=folder.parent / "index", model=model) if owner else None
    runtime = await run.start(service(owned), server.settings("memory"), folder)
    try:
        yield runtime
    finally:
        await runtime.stop()


async def write(ask: Asker, key: str, body: str, handle: str = "avery", room: str = "demo", **fields: object) -> None:
    await ask(service_pb2.WriteDocumentRequest(room=room, key=key, body=body, **fields), handle)  # type: ignore[arg-type]


async def search(
    ask: Asker, query: str, handle: str = "avery", room: str = "demo", **fields: object
) -> pb.SearchDocumentsResponse:
    asked = pb.SearchDocumentsRequest(room=room, query=query, **fields)  # type: ignore[arg-type]
    found: pb.SearchDocumentsResponse = await ask(asked, handle)
    return found


async def indexed(ask: Asker, room: str = "demo", handle: str = "avery") -> pb.SearchDocumentsResponse:
    """When nothing waits, and meaning answers."""
    return await eventually(lambda: search(ask, "anything", handle, room), lambda one: one.meaning == settled(one))


def settled(answer: pb.SearchDocumentsResponse) -> pb.MeaningState:
    return pb.MeaningState(model=answer.meaning.model or "none")


async def eventually(
    ask: Callable[[], Awaitable[pb.SearchDocumentsResponse]], is_so: Callable[[pb.SearchDocumentsResponse], bool]
) -> pb.SearchDocumentsResponse:
    """The first answer that is so."""
    async with asyncio.timeout(60):
        while not is_so(answer := await ask()):  # noqa: ASYNC110 - another process
            await asyncio.sleep(0.05)
        return answer


def places(answer: pb.SearchDocumentsResponse) -> list[str]:
    return [f"{one.document.key}#{one.section}" for one in answer.sections]


async def test_words_and_meaning_find_together(nats_server: testing.NatsServer, tmp_path: Path, ask: Asker) -> None:
    """The section with its text, by which way, under which model; a write is found by words at once."""
    async with memory(nats_server, tmp_path / "m") as runtime:
        await write(ask, "decisions/infra", f"# Infrastructure\n\nIntro.\n\n## Where we run\n\n{CLOUD}\n")
        at_once = await search(ask, "finland")
        assert places(at_once) == ["decisions/infra#where-we-run"]
        assert at_once.sections[0].by_words == 1
        await write(ask, "notes/lunch", LUNCH, tags=service_pb2.Tags(tags=["Food"]))
        await indexed(ask)
        found = await search(ask, "cloud provider")
        best = found.sections[0]
        assert (best.document.key, best.section, best.title) == ("decisions/infra", "where-we-run", "Where we run")
        assert best.text == f"## Where we run\n\n{CLOUD}"
        assert (best.by_words, best.by_meaning, best.cut) == (0, 1, False)
        assert found.meaning.model == "sentence-transformers/all-MiniLM-L6-v2"
        assert runtime.health()["search"]["model"] == found.meaning.model
        assert runtime.health()["search"]["state"] == "ready"
        both = (await search(ask, "where do we eat in the garden")).sections[0]
        assert (both.document.key, both.by_words, both.by_meaning) == ("notes/lunch", 1, 1)
        assert list(both.document.content.tags) == ["Food"]
        assert places(await search(ask, "cloud provider", tags=["food"])) == ["notes/lunch#"]
        assert places(await search(ask, "cloud provider", prefix="decisions/", limit=1)) == [
            "decisions/infra#where-we-run"
        ]
        assert places(await search(ask, "cloud provider", author="kim")) == []
        assert places(await search(ask, "cloud provider", until="1d")) == []
        assert places(await search(ask, '"rented from" cloud')) == ["decisions/infra#where-we-run"]


async def test_a_replaced_text_is_never_found_again(
    nats_server: testing.NatsServer, tmp_path: Path, ask: Asker
) -> None:
    """Not while its vectors wait, not afterwards, not after a restart, nor with an index of yesterday."""
    async with memory(nats_server, tmp_path / "m"):
        await write(ask, "a", CLOUD)
        await write(ask, "b", LUNCH)
        await indexed(ask)
        shutil.copytree(tmp_path / "index" / "vectors", tmp_path / "yesterday", ignore_dangling_symlinks=True)
        await write(ask, "a", "Penguins live in the south.")
        for _ in range(20):
            assert all(CLOUD not in one.text for one in (await search(ask, "cloud provider")).sections)
        assert (await search(ask, "finland hosting")).sections[0].by_words == 0
        await ask(service_pb2.RemoveDocumentRequest(room="demo", key="b"))
        assert places(await search(ask, "team lunch")) in ([], ["a#"])
        await indexed(ask)
        assert places(await search(ask, "team lunch")) == ["a#"]
    shutil.rmtree(tmp_path / "index" / "vectors")
    shutil.move(tmp_path / "yesterday", tmp_path / "index" / "vectors")
    async with memory(nats_server, tmp_path / "m"):
        for _ in range(20):
            assert {one.text for one in (await search(ask, "cloud provider")).sections} <= {
                "Penguins live in the south."
            }
        await indexed(ask)
        assert [one.text for one in (await search(ask, "animals")).sections] == ["Penguins live in the south."]


async def test_the_index_may_be_deleted_and_comes_back(
    nats_server: testing.NatsServer, tmp_path: Path, ask: Asker
) -> None:
    """Vectors, tables, or both; and by `RenewVectors` while it is there."""
    async with memory(nats_server, tmp_path / "m"):
        await write(ask, "a", CLOUD)
        await indexed(ask)
        renewed = await ask(pb.RenewVectorsRequest(room="demo"))
        assert renewed.documents == 1
        await indexed(ask)
        assert (await search(ask, "cloud provider")).sections[0].by_meaning == 1
    for lost in (["index"], ["index", "m"]):
        for name in lost:
            shutil.rmtree(tmp_path / name)
        async with memory(nats_server, tmp_path / "m"):
            await indexed(ask)
            assert (await search(ask, "cloud provider")).sections[0].by_meaning == 1


async def test_what_is_left_out_of_meaning_is_found_by_words_alone(
    nats_server: testing.NatsServer, tmp_path: Path, ask: Asker
) -> None:
    """From the version that says so."""
    async with memory(nats_server, tmp_path / "m"):
        await write(ask, "a", CLOUD)
        await write(ask, "b", LUNCH)
        await indexed(ask)
        await ask(service_pb2.WriteDocumentRequest(room="demo", key="a", unsearched=True))
        await indexed(ask)
        assert places(await search(ask, "cloud provider")) == ["b#"]
        best = (await search(ask, "finland")).sections[0]
        assert (best.document.key, best.by_words, best.by_meaning) == ("a", 1, 0)


async def test_a_private_room_is_no_room_to_a_stranger(
    nats_server: testing.NatsServer, tmp_path: Path, ask: Asker
) -> None:
    """Nor do its documents show in what waits, in what is near, or in the order of another room's."""
    async with memory(nats_server, tmp_path / "m"):
        await ask(rooms_pb.CreateRoomRequest(name="secret", private=True))
        await write(ask, "a", LUNCH)
        for number in range(5):
            await write(ask, f"s{number}", CLOUD, room="secret")
        stranger = await search(ask, "cloud provider", "mallory")
        assert stranger.meaning.waiting <= 1
        await indexed(ask)
        await indexed(ask, "secret")
        assert places(await search(ask, "cloud provider", "mallory", limit=50)) == ["a#"]
        assert len((await search(ask, "cloud provider", room="secret")).sections) == 5
        for room in ("secret", "nowhere"):
            with pytest.raises(Refusal, match=r"room\.not_found"):
                await search(ask, "x", "mallory", room)
            with pytest.raises(Refusal, match=r"room\.not_found"):
                await ask(pb.RenewVectorsRequest(room=room), "mallory")
        await ask(rooms_pb.DeleteRoomRequest(room="secret"))
        await ask(rooms_pb.CreateRoomRequest(name="secret"))
        await indexed(ask, "secret")
        assert places(await search(ask, "cloud provider", room="secret")) == []


async def test_the_replica_without_the_index_asks_its_owner(
    nats_server: testing.NatsServer, tmp_path: Path, ask: Asker
) -> None:
    """While the owner is away it answers by words and says so, at once after it has found out."""
    async with memory(nats_server, tmp_path / "other", owner=False):
        await write(ask, "a", CLOUD)
        for _ in range(2):
            alone = await search(ask, "finland")
            assert (places(alone), alone.sections[0].by_meaning) == (["a#"], 0)
            assert alone.meaning.why_not == "no replica that keeps the index answers"
        with pytest.raises(Unavailable):
            await ask(pb.RenewVectorsRequest(room="demo"))
        async with memory(nats_server, tmp_path / "owner"):
            await indexed(ask)
            for _ in range(20):  # one of the two takes each
                found = await search(ask, "cloud provider")
                assert (places(found), found.sections[0].by_meaning) == (["a#"], 1)
                assert found.meaning.model == "sentence-transformers/all-MiniLM-L6-v2"


async def test_a_model_that_is_not_here_is_said_and_words_answer(
    nats_server: testing.NatsServer, tmp_path: Path, ask: Asker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the answer and in health; nothing is taken in its place."""
    monkeypatch.setenv("HF_HOME", str(tmp_path / "none"))
    monkeypatch.setenv("HOME", str(tmp_path))
    async with memory(nats_server, tmp_path / "m", model="bge") as runtime:
        await write(ask, "a", CLOUD)
        found = await eventually(lambda: search(ask, "finland"), lambda one: "are not in" in one.meaning.why_not)
        assert (places(found), found.meaning.model) == (["a#"], "")
        health = runtime.health()
        assert (health["status"], health["search"]["state"]) == ("degraded", found.meaning.why_not)
