"""Long waits against the rooms service on a real log: each mention reaches its member, however a call ends."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from mycelium_gateway.settings import GatewaySettings
from mycelium_kernel import run, testing
from mycelium_rooms.service import service as rooms_service
from services.gateway.tests.conftest import opened
from services.gateway.tests.door import Door, metric, until

AVERY = {"Mycelium-Handle": "avery"}
BOB = {"Mycelium-Handle": "bob", "Mycelium-Session": "s1"}
BOB_AGAIN = {"Mycelium-Handle": "bob", "Mycelium-Session": "s2"}
DEMO = "/api/rooms/demo"


@pytest.fixture(autouse=True)
async def room(hub: Door) -> None:
    await hub.http.post("/api/rooms", json={"name": "demo"}, headers=AVERY)
    for handle in ("bob", "eve"):
        await hub.http.post(f"{DEMO}/members", json={"handle": handle}, headers=AVERY)


async def post(http: httpx2.AsyncClient, text: str, **fields: Any) -> dict[str, Any]:
    response = await http.post(f"{DEMO}/messages", json={"content": text, **fields}, headers=AVERY)
    assert response.status_code == 201
    found: dict[str, Any] = response.json()
    return found


async def wait(http: httpx2.AsyncClient, headers: dict[str, str] | None = None, **fields: Any) -> dict[str, Any] | None:
    """What a call of await got; None when nothing came in time."""
    response = await http.post(f"{DEMO}/await", json={"timeout_s": 0, **fields}, headers=headers or BOB)
    assert response.status_code in {200, 204}, response.text
    found: dict[str, Any] | None = response.json() if response.content else None
    return found


@contextlib.asynccontextmanager
async def waiting(
    http: httpx2.AsyncClient, headers: dict[str, str] | None = None, **fields: Any
) -> AsyncIterator[asyncio.Task[httpx2.Response]]:
    """A call of await that is open when the block begins."""
    body = {"timeout_s": 30, **fields}
    task = asyncio.create_task(http.post(f"{DEMO}/await", json=body, headers=headers or BOB))
    await metric(http, "mycelium_open_waits", 1.0)
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def answer(task: asyncio.Task[httpx2.Response]) -> dict[str, Any]:
    async with asyncio.timeout(10):
        response = await task
    found: dict[str, Any] = response.json()
    return found


async def states(http: httpx2.AsyncClient, message: dict[str, Any]) -> dict[str, str]:
    receipts = (await http.get(f"{DEMO}/messages/{message['id']}/receipts")).json()["items"]
    return {receipt["handle"]: receipt["state"] for receipt in receipts}


async def test_mentions_before_the_first_wait_all_come_oldest_first(hub: Door) -> None:
    """Each call acknowledges what the call before has received."""
    posted = [await post(hub.http, f"@bob {number}") for number in range(3)]
    got = [await wait(hub.http) for _ in range(4)]

    assert [one["message"]["content"] if one else None for one in got] == ["@bob 0", "@bob 1", "@bob 2", None]
    assert {(one["redelivered"], one["attempt"], one["reason"]) for one in got if one} == {(False, 1, "mention")}
    assert [await states(hub.http, one) for one in posted] == [{"bob": "acknowledged"}] * 3


async def test_a_mention_wakes_a_wait_and_no_other_does(hub: Door) -> None:
    """It brings what was said before; after the wait has ended, the next mention is queued."""
    await post(hub.http, "first some talk")
    async with waiting(hub.http) as task:
        await post(hub.http, "@eve not you")
        mention = await post(hub.http, "@bob hi")
        got = await answer(task)
    queued = await post(hub.http, "@bob again")

    assert got["message"]["id"] == mention["id"]
    assert got["earlier"][0]["content"] == "first some talk"
    assert queued["mentions"][0]["state"] == "queued"


async def known(http: httpx2.AsyncClient) -> None:
    """Wait until the rooms service has heard of the open wait."""

    async def is_known() -> bool:
        return bool((await http.get(f"{DEMO}/members/bob")).json()["waiting"])

    await until(is_known)


async def test_a_wait_that_rooms_has_heard_of_is_woken(hub: Door) -> None:
    """The member is shown as waiting, and its mention as woken."""
    async with waiting(hub.http) as task:
        await known(hub.http)
        message = await post(hub.http, "@bob hi")
        await answer(task)

    assert [(one["handle"], one["state"]) for one in message["mentions"]] == [("bob", "woken")]


async def test_a_wait_ends_after_its_time_and_acknowledges_nothing(hub: Door) -> None:
    """204, and the next mention is the first delivery."""
    assert await wait(hub.http, timeout_s=0.05) is None
    await post(hub.http, "@bob hi")
    got = await wait(hub.http)

    assert got is not None
    assert got["attempt"] == 1


async def test_a_client_that_vanishes_while_it_waits_has_received_nothing(hub: Door) -> None:
    """The mention that comes then is the next call's, as if the first had not been."""
    async with waiting(hub.http):
        pass
    await metric(hub.http, "mycelium_open_waits", 0.0)
    message = await post(hub.http, "@bob hi")
    assert message["mentions"][0]["state"] == "queued"
    got = await wait(hub.http)

    assert got is not None
    assert (got["message"]["id"], got["attempt"]) == (message["id"], 1)


async def test_a_delivery_counts_as_received_once_its_answer_was_written(hub: Door) -> None:
    """The session's next call acknowledges it and goes on."""
    first, second = await post(hub.http, "@bob 1"), await post(hub.http, "@bob 2")
    await wait(hub.http)

    async def is_received() -> bool:
        return await states(hub.http, first) == {"bob": "delivered"}

    await until(is_received)
    got = await wait(hub.http)

    assert got is not None
    assert got["message"]["id"] == second["id"]
    assert await states(hub.http, first) == {"bob": "acknowledged"}


async def test_with_confirm_only_an_ack_says_that_it_was_received(hub: Door) -> None:
    """Without it the same session gets it again, marked."""
    message = await post(hub.http, "@bob hi")
    first = await wait(hub.http, confirm=True)
    again = await wait(hub.http, confirm=True)
    assert first is not None
    assert again is not None
    assert (again["message"]["id"], again["redelivered"], again["attempt"]) == (message["id"], True, 2)
    ack = {"ack": again["ack"], "outcome": "received"}
    assert (await hub.http.post(f"{DEMO}/ack", json=ack, headers=BOB)).status_code == 204
    assert await wait(hub.http, confirm=True) is None
    assert await states(hub.http, message) == {"bob": "acknowledged"}


@pytest.mark.parametrize("ticks", range(6))
async def test_a_client_that_vanishes_as_its_mention_comes_gets_it_when_it_is_back(hub: Door, ticks: int) -> None:
    """Cut at any moment between the post and the answer: what was not confirmed was not received."""
    body = b'{"timeout_s": 30, "confirm": true}'
    head = f"POST {DEMO}/await HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    head += "Mycelium-Handle: bob\r\nMycelium-Session: s1\r\n" + f"Content-Length: {len(body)}\r\n\r\n"
    _, writer = await asyncio.open_connection("127.0.0.1", hub.port)
    writer.write(head.encode() + body)
    await metric(hub.http, "mycelium_open_waits", 1.0)
    posting = asyncio.create_task(post(hub.http, "@bob hi"))
    for _ in range(ticks * 4):
        await asyncio.sleep(0)
    writer.transport.abort()
    message = await posting
    await metric(hub.http, "mycelium_open_waits", 0.0)
    got = await wait(hub.http, confirm=True)

    assert got is not None
    assert got["message"]["id"] == message["id"]


async def test_two_sessions_do_not_acknowledge_for_each_other(hub: Door) -> None:
    """What one has received, the other gets again."""
    message = await post(hub.http, "@bob hi")
    await wait(hub.http)
    other = await wait(hub.http, BOB_AGAIN)

    assert other is not None
    assert (other["message"]["id"], other["redelivered"]) == (message["id"], True)
    assert await wait(hub.http, BOB_AGAIN) is None
    assert await states(hub.http, message) == {"bob": "acknowledged"}


@pytest.mark.parametrize("late", [False, True])
async def test_a_repeat_of_a_call_gets_the_first_delivery_again(hub: Door, late: bool) -> None:
    """Whether it was there at once or came while the call waited; nothing is acknowledged by the repeat."""
    headers = {**BOB, "Idempotency-Key": "k-1"}
    if late:
        async with waiting(hub.http, headers) as task:
            message = await post(hub.http, "@bob 1")
            first = await answer(task)
    else:
        message = await post(hub.http, "@bob 1")
        first = await wait(hub.http, headers) or {}
    await post(hub.http, "@bob 2")
    again = await wait(hub.http, headers)
    following = await wait(hub.http)

    assert first["message"]["id"] == message["id"]
    assert again is not None
    assert (again["message"]["id"], again["attempt"]) == (message["id"], 1)
    assert following is not None
    assert following["message"]["content"] == "@bob 2"


async def test_an_ack_in_the_body_ends_that_delivery_first(hub: Door) -> None:
    """One call instead of two."""
    message = await post(hub.http, "@bob 1")
    got = await wait(hub.http, confirm=True)
    assert got is not None
    assert await wait(hub.http, ack=got["ack"]) is None
    assert await states(hub.http, message) == {"bob": "acknowledged"}


async def test_a_parked_delivery_comes_no_more(hub: Door) -> None:
    """Its sender sees that it was set aside."""
    message = await post(hub.http, "@bob 1")
    got = await wait(hub.http)
    assert got is not None
    body = {"handle": "bob", "ack": got["ack"], "outcome": "parked"}
    assert (await hub.http.post(f"{DEMO}/ack", json=body, headers=BOB)).status_code == 204
    assert await wait(hub.http) is None
    assert await states(hub.http, message) == {"bob": "parked"}
    unknown = await hub.http.post(f"{DEMO}/ack", json={**body, "ack": message["id"][:-1] + "0"}, headers=BOB)
    assert (unknown.status_code, unknown.json()["slug"]) == (404, "delivery.not_found")


async def test_a_seat_has_a_queue_of_its_own(hub: Door) -> None:
    """And a token that knows it."""
    await post(hub.http, "@bob#review look")
    assert await wait(hub.http) is None
    got = await wait(hub.http, seat="review")
    assert got is not None
    assert await wait(hub.http, seat="", ack=got["ack"]) is None
    assert await states(hub.http, got["message"]) == {"bob#review": "acknowledged"}


async def test_a_wait_for_one_task_leaves_the_rest(hub: Door) -> None:
    """Only its thread wakes it."""
    root = await post(hub.http, "a task")
    async with waiting(hub.http, task=root["id"][-8:]) as task:
        other = await post(hub.http, "@bob elsewhere")
        wanted = await post(hub.http, "@bob here", thread=root["id"])
        got = await answer(task)
    rest = await wait(hub.http)

    assert got["message"]["id"] == wanted["id"]
    assert rest is not None
    assert rest["message"]["id"] == other["id"]


async def test_a_reply_goes_to_the_thread_of_the_last_delivery(hub: Door) -> None:
    """Right after the answer was read, before anything else was said about it."""
    root = await post(hub.http, "a task")
    message = await post(hub.http, "@bob here", thread=root["id"])
    await wait(hub.http)
    reply = (await hub.http.post(f"{DEMO}/respond", json={"content": "on it"}, headers=BOB)).json()

    assert (reply["thread"], reply["reply_to"], reply["sender_handle"]) == (root["id"], message["id"], "bob")


@pytest.mark.parametrize("path", ["await", "respond", "ack"])
async def test_an_unregistered_handle_is_told_how_to_register(hub: Door, path: str) -> None:
    """Posting is open to anybody, taking part is not."""
    ack = "0199f2a1-5b7c-7a10-8f42-3d1e9c04b7aa"
    bodies: dict[str, dict[str, Any]] = {
        "await": {"timeout_s": 0},
        "respond": {"content": "hi"},
        "ack": {"ack": ack, "outcome": "received"},
    }
    response = await hub.http.post(f"{DEMO}/{path}", json={"handle": "ci", **bodies[path]})
    assert (response.status_code, response.json()["slug"]) == (403, "handle.unregistered")
    assert response.json()["next"]


async def test_a_wait_ends_with_its_room(hub: Door) -> None:
    """The caller is told what happened."""
    async with waiting(hub.http) as task:
        await hub.http.delete(DEMO, headers=AVERY)
        body = await answer(task)
    assert (body["status"], body["slug"]) == (404, "room.not_found")
    assert body["detail"] == "room 'demo' was deleted while you waited, or is no longer for you"


async def test_a_paused_member_gets_nothing_until_it_is_resumed(hub: Door) -> None:
    """Then its open wait is woken."""
    path = f"{DEMO}/members/bob"
    paused = (await hub.http.patch(path, json={"paused": True}, headers=AVERY)).json()
    message = await post(hub.http, "@bob hi")
    assert (paused["paused"], message["mentions"][0]["state"]) == (True, "paused")
    async with waiting(hub.http) as task:
        resumed = (await hub.http.patch(path, json={"paused": False}, headers=AVERY)).json()
        got = await answer(task)

    assert (resumed["paused"], resumed["unread"]) == (False, 1)
    assert got["message"]["id"] == message["id"]


async def test_a_wait_ends_with_its_membership(hub: Door) -> None:
    """A removed member is nobody there."""
    async with waiting(hub.http) as task:
        await hub.http.delete(f"{DEMO}/members/bob", headers=AVERY)
        body = await answer(task)
    assert (body["status"], body["slug"]) == (403, "handle.unregistered")


async def test_a_wait_survives_a_restart_of_nats(nats_server: testing.NatsServer, hub: Door) -> None:
    """It stays open, is known as open again, and is woken by what comes then."""
    async with waiting(hub.http) as task:
        nats_server.kill()
        await nats_server.start()
        await known(hub.http)
        message = await post(hub.http, "@bob hi")
        got = await answer(task)

    assert got["message"]["id"] == message["id"]
    assert message["mentions"][0]["state"] == "woken"


async def test_a_wait_survives_a_restart_of_the_rooms_service(nats_server: testing.NatsServer, tmp_path: Path) -> None:
    """It asks again for as long as it lasts."""
    folder = tmp_path / "again"
    rooms = await run.start(rooms_service(), nats_server.settings("rooms"), folder)
    async with opened(nats_server, GatewaySettings(port=0)) as door, waiting(door.http) as task:
        message = await post(door.http, "@eve hi")
        await rooms.stop()
        rooms = await run.start(rooms_service(), nats_server.settings("rooms"), folder)
        message = await post(door.http, "@bob hi")
        got = await answer(task)
    await rooms.stop()

    assert got["message"]["id"] == message["id"]


async def test_a_hub_that_stops_sends_its_waits_to_the_next(nats_server: testing.NatsServer, hub: Door) -> None:
    """503 at once; nothing was received."""
    loop = asyncio.get_running_loop()
    async with opened(nats_server, GatewaySettings(port=0)) as door, waiting(door.http) as task:
        began = loop.time()
        stopping = asyncio.ensure_future(door.stop())
        body = await answer(task)
        await stopping
        assert loop.time() - began < 2.0
    assert (body["status"], body["detail"]) == (503, "the hub is stopping")


async def test_an_answer_larger_than_the_sockets_buffers_arrives_whole(hub: Door) -> None:
    """Thirty messages of earlier talk with the mention."""
    for number in range(5):
        await post(hub.http, f"{number}" + "é" * 25_000)
    await post(hub.http, "@bob " + "😀" * 60_000)
    got = await wait(hub.http)

    assert got is not None
    assert len(got["message"]["content"]) == 60_005
    assert len(json.dumps(got["earlier"], ensure_ascii=False).encode()) > 200_000
