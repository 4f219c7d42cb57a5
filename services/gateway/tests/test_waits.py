"""Long waits against the rooms service on a real log: each mention reaches its member, however a call ends."""

from __future__ import annotations

import asyncio

import pytest

from services.gateway.tests.door import Door, metric, until
from services.gateway.tests.waiting import (
    BOB,
    BOB_AGAIN,
    DEMO,
    answer,
    known,
    make_room,
    post,
    states,
    wait,
    waiting,
)


@pytest.fixture(autouse=True)
async def room(hub: Door) -> None:
    await make_room(hub)


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
    unknown = await hub.http.post(
        f"{DEMO}/ack",
        json={**body, "ack": message["id"][:-1] + ("1" if message["id"][-1] == "0" else "0")},
        headers=BOB,
    )
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


async def test_a_key_of_another_session_repeats_nothing(hub: Door) -> None:
    """Programs that number their keys get, in a new session, what comes next, not what the last session had."""
    await post(hub.http, "@bob one")
    first = await wait(hub.http, headers={**BOB, "Idempotency-Key": "1"})
    await wait(hub.http, headers={**BOB, "Idempotency-Key": "2"})
    await post(hub.http, "@bob two")
    other = await wait(hub.http, headers={**BOB_AGAIN, "Idempotency-Key": "1"})

    assert first is not None
    assert first["message"]["content"] == "@bob one"
    assert other is not None
    assert other["message"]["content"] == "@bob two"


async def test_no_key_of_a_client_is_one_of_the_hubs_own_steps(hub: Door) -> None:
    """What a delivery's receipt is stored under can't have been used by a post before."""
    headers = {**BOB, "Idempotency-Key": "k.received"}
    await hub.http.post("/api/rooms/demo/messages", json={"content": "hello"}, headers=headers)
    await post(hub.http, "@bob one")
    await wait(hub.http, headers={**BOB, "Idempotency-Key": "k"})
    again = await wait(hub.http, headers={**BOB, "Idempotency-Key": "k2"})

    assert again is None
