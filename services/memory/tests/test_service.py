"""The service on a real NATS server, beside the rooms service: repeats, races, a restart, an erased room."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from mycelium.memory.v1 import service_pb2 as pb
from mycelium.rooms.v1 import service_pb2 as rooms_pb
from mycelium_kernel import run, subjects, testing
from mycelium_kernel.errors import Refusal
from mycelium_kernel.run import Runtime
from mycelium_memory.service import service
from services.memory.tests.asking import Asker


@contextlib.asynccontextmanager
async def running(server: testing.NatsServer, folder: Path) -> AsyncIterator[Runtime]:
    """The service, for the time of the block."""
    runtime = await run.start(service(), server.settings("memory"), folder)
    try:
        yield runtime
    finally:
        await runtime.stop()


async def test_documents_come_back_from_the_log(nats_server: testing.NatsServer, tmp_path: Path, ask: Asker) -> None:
    """With new tables, everything that was acknowledged is there, every version of it."""
    async with running(nats_server, tmp_path / "a"):
        await ask(pb.WriteDocumentRequest(room="demo", key="a", body="one"))
        await ask(pb.WriteDocumentRequest(room="demo", key="a", body="two"), "kim")
    async with running(nats_server, tmp_path / "b") as runtime:
        shown = (await ask(pb.GetDocumentRequest(room="demo", key="a"))).document
        assert (shown.content.body, shown.version, shown.updated_by) == ("two", 2, "kim")
        was = (await ask(pb.GetVersionRequest(room="demo", key="a", version=1))).document
        assert (was.content.body, was.updated_by) == ("one", "avery")
        assert runtime.health()["status"] == "ok"


async def test_a_repeat_gets_the_first_answer(nats_server: testing.NatsServer, tmp_path: Path, ask: Asker) -> None:
    """The line was cut after the commit: one version, one answer; another body under the key is refused."""
    async with running(nats_server, tmp_path):
        request = pb.WriteDocumentRequest(room="demo", key="a", body="one", expect=0)
        first = await ask(request, key="k1")
        assert await ask(request, key="k1") == first
        removal = pb.RemoveDocumentRequest(room="demo", key="a")
        assert await ask(removal, key="k2") == await ask(removal, key="k2")
        with pytest.raises(Refusal, match=r"key\.reused"):
            await ask(pb.WriteDocumentRequest(room="demo", key="a", body="two"), key="k1")
        assert (await ask(pb.ListVersionsRequest(room="demo", key="a"))).versions[0].version == 2


@pytest.mark.parametrize("replicas", [1, 2])
async def test_of_many_who_expect_one_version_one_wins(
    nats_server: testing.NatsServer, tmp_path: Path, ask: Asker, replicas: int
) -> None:
    """Round after round, whichever replica they reach; the others are told who it was."""
    async with contextlib.AsyncExitStack() as stack:
        for number in range(replicas):
            await stack.enter_async_context(running(nats_server, tmp_path / str(number)))
        for expected in range(5):
            request = pb.WriteDocumentRequest(room="demo", key="a", expect=expected)
            tries = []
            for writer in range(10):
                request.body = f"{expected} by {writer}"
                copy = pb.WriteDocumentRequest()
                copy.CopyFrom(request)
                tries.append(ask(copy, f"writer-{writer}"))
            outcomes = await asyncio.gather(*tries, return_exceptions=True)
            won = [outcome for outcome in outcomes if not isinstance(outcome, BaseException)]
            lost = [outcome for outcome in outcomes if isinstance(outcome, Refusal)]
            assert (len(won), {refusal.slug for refusal in lost}) == (1, {"memory.stale"})
            assert len(lost) == len(tries) - 1
            assert {refusal.extras["updated_by"][0] for refusal in lost} == {won[0].document.updated_by}


async def test_a_deleted_room_s_documents_are_gone_from_the_log(
    nats_server: testing.NatsServer, tmp_path: Path, ask: Asker
) -> None:
    """The rooms service erases what stands under the room, whoever wrote it there."""
    async with running(nats_server, tmp_path / "m") as runtime:
        await ask(pb.WriteDocumentRequest(room="demo", key="a", body="secret"))
        await ask(rooms_pb.DeleteRoomRequest(room="demo"))
        with pytest.raises(Refusal, match=r"room\.not_found"):
            await ask(pb.GetDocumentRequest(room="demo", key="a"))
        async with asyncio.timeout(60):
            while await runtime.connection.last_sequence(subjects.of_service("memory")):  # noqa: ASYNC110
                await asyncio.sleep(0.02)
