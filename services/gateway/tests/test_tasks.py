"""Bringing an engine into a task, and waiting for a task to change hands, against real services on a real log."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from mycelium.rooms.v1 import notices_pb2
from mycelium_board.service import service as board_service
from mycelium_gateway.settings import GatewaySettings
from mycelium_kernel import run, testing
from mycelium_kernel.bus import Bus
from mycelium_kernel.connections import Connection
from mycelium_kernel.service import Actor
from mycelium_memory.service import service as memory_service
from mycelium_rooms.service import service as rooms_service
from services.gateway.tests.conftest import opened
from services.gateway.tests.door import Door, until
from services.gateway.tests.waiting import AVERY, BOB, DEMO, answer, make_room, post, wait, waiting

TASK = f"{DEMO}/tasks/work/login"
TOKEN = "ack"  # its name in an answer


@pytest.fixture
async def hub(nats_server: testing.NatsServer, tmp_path: Path) -> AsyncIterator[Door]:
    """A gateway with all services behind it, and the task `work/login` in `demo`."""
    async with contextlib.AsyncExitStack() as stack:
        for name, service in (("rooms", rooms_service), ("memory", memory_service), ("board", board_service)):
            runtime = await run.start(service(), nats_server.settings(name), tmp_path / "tables")
            stack.push_async_callback(runtime.stop)
        door = await stack.enter_async_context(opened(nats_server, GatewaySettings(port=0)))
        await make_room(door)
        await door.http.post("/api/users", json={"handle": "avery"}, headers=AVERY)
        await door.http.post(f"{DEMO}/tasks", json={"title": "Login"}, headers=AVERY)
        await noticed(door, "filed")
        yield door


async def noticed(hub: Door, kind: str) -> None:
    """Until the newest notice of the channel is of a kind."""

    async def is_so() -> bool:
        newest = (await hub.http.get(f"{DEMO}/messages", params={"limit": 1})).json()["items"]
        return bool(newest and newest[0]["metadata"].get("kind") == kind)

    await until(is_so)


async def do(hub: Door, verb: str, headers: dict[str, str] | None = None, **fields: Any) -> httpx2.Response:
    """Do something to the task."""
    return await hub.http.post(f"{TASK}/{verb}", json=fields, headers=headers or AVERY)


async def test_a_wait_for_a_task_is_woken_by_what_changes_its_hands(hub: Door) -> None:
    """Not by what happened before, nor by talk; what it says is the notice, and it takes no mention."""
    await do(hub, "claim")
    mention = await post(hub.http, "@bob hi")
    async with waiting(hub.http, lease="login") as task:
        await post(hub.http, "@bob again")
        await do(hub, "block", on="#502")
        await do(hub, "release", note="over to you")
        got = await answer(task)
    told = got["message"]["metadata"]
    assert (got["reason"], got["earlier"], got["redelivered"]) == ("lease", [], False)
    assert (told["task"], told["kind"], told["by"], told["sequence"]) == (
        "work/login",
        "released",
        "avery",
        got["sequence"],
    )
    assert got["message"]["message_type"] == "notice"
    queued = await wait(hub.http)
    assert queued is not None
    assert queued["message"]["id"] == mention["id"]


async def test_nothing_between_two_waits_is_missed(hub: Door) -> None:
    """Each move once, in order; one that only looks says where it began."""
    looked = await hub.http.post(f"{DEMO}/await", json={"timeout_s": 0, "lease": "work/login"}, headers=BOB)
    assert looked.status_code == 204
    since, after, kinds = int(looked.headers["mycelium-sequence"]), 0, []
    await do(hub, "claim")
    await do(hub, "release")
    await do(hub, "claim", BOB)
    await do(hub, "resolve", BOB)
    await noticed(hub, "resolved")
    while got := await wait(hub.http, lease="work/login", since=since, after=after):
        kinds.append(got["message"]["metadata"]["kind"])
        since, after = got["sequence"], got["message"]["seq"]
    assert kinds == ["claimed", "released", "claimed", "resolved"]


async def test_what_changed_since_a_refused_claim_is_not_missed(hub: Door) -> None:
    """Released right after the refusal; and nothing older wakes."""
    await do(hub, "claim")
    refused = (await do(hub, "claim", BOB)).json()
    assert (refused["slug"], refused["task"]) == ("claim.held", "work/login")
    assert await wait(hub.http, lease="login", since=refused["sequence"]) is None
    await do(hub, "release")
    await noticed(hub, "released")
    got = await wait(hub.http, lease="login", since=refused["sequence"])
    assert got is not None
    assert got["message"]["metadata"]["kind"] == "released"


async def test_there_is_nothing_to_acknowledge(hub: Door) -> None:
    """A client that acknowledges all it gets may say so; a delivery that is named in the body ends first."""
    mention = await post(hub.http, "@bob hi")
    taken = await wait(hub.http, confirm=True)
    assert taken is not None
    async with waiting(hub.http, lease="login", ack=taken[TOKEN]) as task:
        await do(hub, "claim")
        got = await answer(task)
    receipts = (await hub.http.get(f"{DEMO}/messages/{mention['id']}/receipts")).json()["items"]
    assert [one["state"] for one in receipts] == ["acknowledged"]
    for outcome in ("received", "acknowledged", "parked"):
        body = {"ack": got[TOKEN], "outcome": outcome}
        assert (await hub.http.post(f"{DEMO}/ack", json=body, headers=BOB)).status_code == 204
    assert await wait(hub.http, ack=got[TOKEN]) is None


async def test_a_task_that_is_deleted_ends_the_wait(hub: Door) -> None:
    """And one that is not there is not waited for."""
    async with waiting(hub.http, lease="login") as task:
        await hub.http.delete(f"{DEMO}/memory/work/login", headers=AVERY)
        body = await answer(task)
    assert (body["status"], body["slug"]) == (404, "task.not_found")
    gone = await hub.http.post(f"{DEMO}/await", json={"timeout_s": 30, "lease": "work/login"}, headers=BOB)
    assert (gone.status_code, gone.json()["slug"]) == (404, "task.not_found")


async def test_who_may_not_wait_for_a_task_is_told(hub: Door) -> None:
    """A stranger to a private room learns nothing; a wait for two things at once is none."""

    async def slug(handle: str, **fields: Any) -> str:
        body = {"timeout_s": 0, "lease": "login", **fields}
        response = await hub.http.post(f"{DEMO}/await", json=body, headers={"Mycelium-Handle": handle})
        return str(response.json()["slug"])

    assert await slug("ghost") == "handle.unregistered"
    assert await slug("bob", task="login") == "request.invalid"
    assert await slug("bob", seat="night") == "request.invalid"
    await hub.http.patch(DEMO, json={"private": True}, headers=AVERY)
    assert await slug("ghost") == "room.not_found"


async def test_a_mention_is_told_woken_by_a_wait_that_it_wakes(hub: Door) -> None:
    """Not by one for a task to change hands, nor by one for another thread; they are waits all the same."""
    thread = (await hub.http.get(f"{DEMO}/memory/work/login")).json()["thread"]

    async def is_waiting() -> bool:
        return bool((await hub.http.get(f"{DEMO}/members/bob")).json()["waiting"])

    async def state(**fields: Any) -> str:
        return str((await post(hub.http, "@bob hi", **fields))["mentions"][0]["state"])

    async def is_away() -> bool:
        return not await is_waiting()

    # Each in a wait of its own: one that looks after a ring promises nothing meanwhile.
    for wanted in ({"lease": "login"}, {"task": "login"}):
        async with waiting(hub.http, None, **wanted):
            await until(is_waiting)
            assert await state() == "queued", wanted
        await until(is_away)
    async with waiting(hub.http, task="login") as task:
        await until(is_waiting)
        assert await state(thread=thread) == "woken"
        assert (await answer(task))["message"]["thread"] == thread


async def test_a_notice_is_a_live_event_of_its_own(hub: Door, nats_server: testing.NatsServer) -> None:
    """With its place in the room's order, so that who comes back gets it; whoever the service is that says it."""
    seen: list[str] = []
    async with hub.http.stream("GET", f"{DEMO}/stream") as stream:
        lines = stream.aiter_lines()
        assert await anext(lines) == ": connected"
        room_id = (await hub.http.get(DEMO)).json()["id"]
        told = {"task": "work/login", "kind": "floor", "thread": "t", "title": "Login", "row_kind": "task"}
        request = notices_pb2.PostNoticeRequest(
            room_id=room_id, message_type="notice", kind="floor", sender_handle="bob", content="x",
            metadata_json=json.dumps(told),
        )  # fmt: skip
        async with bus(nats_server) as asking:
            await asking.ask(request, notices_pb2.PostNoticeResponse, actor=Actor("", ""), key="k")
        async with asyncio.timeout(60):
            async for line in lines:
                seen.append(line)
                if line.startswith("data: ") and seen[-2] == "event: notice":
                    break
    data = json.loads(seen[-1].removeprefix("data: "))
    assert seen[-3].startswith("id: ")
    assert (data["room"], data["kind"], data["task"], data["by"]) == ("demo", "floor", "work/login", "bob")
    assert (data["title"], data["row_kind"], data["thread"]) == ("Login", "task", "t")


@contextlib.asynccontextmanager
async def bus(server: testing.NatsServer) -> AsyncIterator[Bus]:
    """The bus as the board has it."""
    connection = await Connection.open(server.settings("board"))
    try:
        yield Bus(connection, "board")
    finally:
        await connection.close()


async def test_an_engine_is_brought_into_a_task(hub: Door) -> None:
    """By a message in its thread; who holds the task, and how it stands, stays."""
    await hub.http.post(f"{DEMO}/engines", json={"handle": "greeter", "kind": "hello"}, headers=AVERY)
    await do(hub, "claim")
    before = (await hub.http.get(f"{DEMO}/board", params={"filter": "all"})).json()["items"]
    asked = await do(hub, "coordinate", BOB, engine="@Greeter", text="agree with @eve on storage")
    message = asked.json()
    assert (asked.status_code, message["content"]) == (201, "@greeter agree with @eve on storage")
    assert (message["sender_handle"], message["thread"]) == ("bob", before[0]["thread"])
    assert [one["handle"] for one in message["mentions"]] == ["greeter", "eve"]
    assert (await hub.http.get(f"{DEMO}/board", params={"filter": "all"})).json()["items"] == before


async def test_what_is_no_engine_of_the_room_is_refused(hub: Door) -> None:
    """With the near one, or those that there are; nothing is posted."""
    await hub.http.post(f"{DEMO}/engines", json={"handle": "greeter", "kind": "hello"}, headers=AVERY)
    for engine, hint in (
        ("greter", "did you mean @greeter?"),
        ("aligner", "there is @greeter"),
        ("bob", "there is @greeter"),
    ):
        refused = await do(hub, "coordinate", engine=engine, text="agree")
        assert (refused.status_code, refused.json()["slug"]) == (404, "engine.not_found")
        assert refused.json()["detail"] == f"@{engine} is no engine of 'demo'; {hint}"
        assert refused.json()["next"] == "mycelium engine ls --room demo"
    channel = (await hub.http.get(f"{DEMO}/messages")).json()["items"]
    thread = (await hub.http.get(f"{DEMO}/messages", params={"thread": "work/login"})).json()["items"]
    assert [one for one in [*channel, *thread] if one["message_type"] == "message"] == []


async def test_a_room_without_engines_says_how_to_add_one(hub: Door) -> None:
    """And what is no task, or says nothing, is refused first."""
    refused = (await do(hub, "coordinate", engine="aligner", text="agree")).json()
    assert refused["detail"] == "@aligner is no engine of 'demo', which has none"
    assert refused["next"] == "mycelium engine create aligner --kind KIND --room demo"
    assert (await do(hub, "coordinate", engine="aligner", text=" \n")).json()["slug"] == "content.empty"
    missing = await hub.http.post(f"{DEMO}/tasks/nope/coordinate", json={"engine": "a", "text": "b"}, headers=AVERY)
    assert missing.json()["slug"] == "task.not_found"


async def test_a_filed_decision_takes_one_of_its_options(hub: Door) -> None:
    """Its row shows them, and any other answer is refused; a release answers which task it was."""
    wanted = {"title": "How long?", "kind": "decision", "options": ["15m", " 60m ", ""]}
    filed = await hub.http.post(f"{DEMO}/tasks", json=wanted, headers=AVERY)
    assert (filed.status_code, filed.json()["options"]) == (201, ["15m", "60m"])
    decision = f"{DEMO}/tasks/decisions/how-long"
    assert (await hub.http.post(f"{decision}/answer", json={"answer": "5m"}, headers=AVERY)).status_code == 422
    assert (await hub.http.post(f"{decision}/claim", json={}, headers=AVERY)).status_code == 200
    short = filed.json()["thread"][-8:]
    released = await hub.http.post(f"{DEMO}/tasks/{short}/release", json={}, headers=AVERY)
    assert released.json() == {"task": "decisions/how-long", "thread": filed.json()["thread"], "held_by": None}
    assert (await hub.http.post(f"{decision}/answer", json={"answer": "60m"}, headers=AVERY)).status_code == 200


async def test_a_task_is_filed_behind_others(hub: Door) -> None:
    """Its claim says what it waits for; what is no task is refused, as a parent is."""
    wanted = {"title": "Ship", "depends_on": ["login"], "priority": "high"}
    filed = await hub.http.post(f"{DEMO}/tasks", json=wanted, headers=AVERY)
    assert filed.status_code == 201
    assert (filed.json()["meta"]["depends-on"], filed.json()["meta"]["priority"]) == (["work/login"], "high")
    claim = await hub.http.post(f"{DEMO}/tasks/work/ship/claim", json={}, headers=AVERY)
    assert claim.json()["waits_for"] == ["work/login"]
    wrong = {**wanted, "depends_on": ["work/nope"]}
    refused = await hub.http.post(f"{DEMO}/tasks", json=wrong, headers=AVERY)
    assert (refused.status_code, refused.json()["slug"]) == (404, "task.not_found")
