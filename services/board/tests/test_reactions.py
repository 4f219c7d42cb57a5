"""What follows from moves and edits, on a real NATS server, with memory and rooms: once, on however many replicas."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from pathlib import Path

import pytest

from mycelium.board.v1 import events_pb2, views_pb2
from mycelium.memory.v1 import moves_pb2
from mycelium.memory.v1 import service_pb2 as memory_pb2
from mycelium_board import lookup, model, notices, reactions
from mycelium_kernel import clock, events, headers, subjects, testing
from mycelium_kernel.errors import Refusal
from mycelium_kernel.service import Stored
from services.board.tests.live import BOUND_S, live


async def test_a_pipeline_runs_by_its_notices(nats_server: testing.NatsServer, tmp_path: Path) -> None:
    """Filed, claimed, blocked, cleared, resolved, unblocked: each is told once by two replicas, to whom it concerns."""
    async with live(nats_server, tmp_path, boards=2) as hub:
        await hub.write("work/first", "First", assignee="@sec")
        await hub.write("work/second", "Second", depends_on="first")
        await hub.write("work/part", "Part", part_of="work/first")
        await hub.claim("work/first", "sec")
        await hub.move(views_pb2.MOVE_BLOCKED, "work/first", on="#502")
        await hub.move(views_pb2.MOVE_UNBLOCKED, "work/first", "sec")
        await hub.move(views_pb2.MOVE_RESOLVED, "work/first", "builder", note="done")
        told = await hub.told(
            "filed work/first", "filed work/second", "filed work/part", "claimed work/first", "blocked work/first",
            "unblocked work/first", "resolved work/first", "unblocked work/second",
        )  # fmt: skip
        resolved = next(one for one in told if one["kind"] == "resolved")
        assert (resolved["by"], resolved["note"], resolved["title"]) == ("builder", "done", "First")
        assert await hub.given("sec") == [
            ("assigned", "filed work/first"), ("lease", "blocked work/first"), ("lease", "resolved work/first"),
        ]  # fmt: skip
        assert (await hub.given("builder"), await hub.given("avery")) == ([], [])
        rows = await hub.rows()
        assert (rows["work/second"].ready, list(rows["work/first"].parts)) == (True, ["work/part"])


async def test_edits_by_hand_are_told_as_moves(nats_server: testing.NatsServer, tmp_path: Path) -> None:
    """A claim ends with its task; who waited is told; whom the task is given to gets it."""
    async with live(nats_server, tmp_path, boards=2) as hub:
        for key in ("work/a", "work/b"):
            await hub.write(key, key)
        await hub.write("work/x", "x", depends_on=["work/a", "[[work/b]]"])
        token = (await hub.claim("work/a", "sec")).token
        await hub.write("work/a", status="resolved", by="builder")
        await hub.told("filed work/a", "filed work/b", "filed work/x", "claimed work/a", "resolved work/a")
        await hub.remove("work/b")
        await hub.write("work/x", assignee="@sec")
        await hub.notices(lambda told: (told[-1]["task"], told[-1]["kind"]) == ("work/x", "unblocked"))
        assert await hub.given_all("sec", 2) == [("lease", "resolved work/a"), ("assigned", "filed work/x")]
        await hub.write("work/a", status="open")
        assert (await hub.claim("work/a", "builder")).token > token


async def test_a_fact_that_is_reacted_to_again_changes_nothing(nats_server: testing.NatsServer, tmp_path: Path) -> None:
    """As if every replica had died just before it could say that it is done."""
    async with live(nats_server, tmp_path) as hub:
        await hub.write("work/a", "a", assignee="@sec")
        await hub.write("work/x", "x", depends_on="work/a")
        await hub.claim("work/a", "sec")
        await hub.write("work/a", blocked_by="#1")
        await hub.notices(lambda told: bool(told) and told[-1]["kind"] == "blocked")
        await hub.move(views_pb2.MOVE_RESOLVED, "work/a")
        wanted = [
            "filed work/a", "filed work/x", "claimed work/a", "blocked work/a", "resolved work/a", "unblocked work/x",
        ]  # fmt: skip
        await hub.told(*wanted)
        board = await hub.add_board()
        assert board.projector
        for sequence in range(1, board.projector.tables.position + 1):
            found = await board.connection.get(sequence)
            if found is None:
                continue
            event = events.decode(found[0][headers.TYPE], found[1])
            if isinstance(event, events_pb2.TaskMoved):
                subject = model.subject(event.room_id, lookup.document_of(event.key))
            elif events.type_name(event).startswith("mycelium.memory.v1.Document"):
                subject = subjects.fact("memory", event.room_id, "document", lookup.document_of(event.key))  # type: ignore[attr-defined]
            else:
                continue
            stored = Stored(sequence, subject, found[0].get(headers.KEY, ""), "", "")
            for reaction in (reactions.AFTER, reactions.TELLER, notices.NOTICES):
                if isinstance(event, reaction.on):
                    await reaction.run(board, event, stored)
        await hub.told(*wanted)
        versions = await hub.ask(memory_pb2.ListVersionsRequest(room="demo", key="work/a"))
        assert len(versions.versions) == 3
        assert await hub.given("sec") == [
            ("assigned", "filed work/a"), ("lease", "blocked work/a"), ("lease", "resolved work/a"),
        ]  # fmt: skip


async def test_moves_at_once_reach_the_document_in_their_order(nats_server: testing.NatsServer, tmp_path: Path) -> None:
    """Round after round, on two replicas: the document says what the last move made of it."""
    async with live(nats_server, tmp_path, boards=2) as hub:
        await hub.write("work/a", "a")
        for _ in range(5):
            await asyncio.gather(
                hub.move(views_pb2.MOVE_BLOCKED, "work/a", "sec", on="#1"),
                hub.move(views_pb2.MOVE_BLOCKED, "work/a", "builder", on="#2"),
                hub.move(views_pb2.MOVE_BLOCKED, "work/a", "avery", on="#3"),
            )
            row = (await hub.rows())["work/a"]
            shown = await hub.ask(memory_pb2.GetDocumentRequest(room="demo", key="work/a"))
            said = json.loads(shown.document.content.fields_json)
            assert (said["status"], said["blocked_by"]) == ("blocked", row.blocked_by)
            await hub.move(views_pb2.MOVE_UNBLOCKED, "work/a")


async def test_a_concern_is_over_by_itself(nats_server: testing.NatsServer, tmp_path: Path) -> None:
    """In a private room too: its document is dismissed, by the hub."""
    for private in (False, True):
        server = nats_server if not private else None
        if server is None:
            async with testing.nats_server(tmp_path / "other") as other:
                await _concern_ends(other, tmp_path / "private", private=True)
        else:
            await _concern_ends(server, tmp_path / "open", private=False)


async def _concern_ends(server: testing.NatsServer, folder: Path, *, private: bool) -> None:
    async with live(server, folder, boards=0, private=private) as hub:
        await hub.write("work/worry", "worry", kind="concern")
        await hub.add_board(now=lambda: clock.system_clock() + timedelta(days=8))
        await hub.told("filed work/worry", "expired work/worry")
        async with asyncio.timeout(BOUND_S):
            while True:
                shown = await hub.ask(memory_pb2.GetDocumentRequest(room="demo", key="work/worry"))
                if json.loads(shown.document.content.fields_json).get("status") == "dismissed":
                    break
                await asyncio.sleep(0.02)
        assert shown.document.updated_by == "hub"


async def test_nobody_but_the_board_says_what_a_move_wrote(nats_server: testing.NatsServer, tmp_path: Path) -> None:
    """Not even the gateway, whose caller is who it says."""
    async with live(nats_server, tmp_path, boards=0) as hub:
        request = moves_pb2.FollowMoveRequest(room_id="x", key="work/a", fields_json="{}", by="avery")
        with pytest.raises(Refusal) as caught:
            await hub.ask(request)
        assert caught.value.slug == "auth.refused"
