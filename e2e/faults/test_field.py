"""What broke hubs elsewhere, one test each."""

import asyncio
import json
import os
import signal

import pytest

from e2e import crowd
from e2e.faults.calls import events
from e2e.faults.havoc import Havoc, under_fire
from e2e.faults.load import Plan
from e2e.harness import Hub
from e2e.requirements import requirement
from e2e.room import Room

pytestmark = [pytest.mark.faults, pytest.mark.timeout(240)]
POLLS, STREAMS = 10, 5
QUIET = Plan(posters=1, agents=0, pairs=0, rivals=0, readers=1, pause_s=0.1)
SILENCE_S = 12.0  # longer than the heartbeats and the time after which a line counts as dead
ARRIVES_S = 10.0


async def poll(room: Room, handle: str, key: str = "", session: str = "", timeout_s: float = 60) -> crowd.Answer:
    """One long poll."""
    body = {"handle": handle, "timeout_s": timeout_s}
    url, target = room.api.url, room.at("await")
    return await crowd.ask(url, crowd.request(url, "POST", target, body, handle, key, session), timeout_s + 10)


async def sees(room: Room, content: str, connected: asyncio.Event) -> str:
    """A stream that stays open until that text comes."""
    async for event in events(room.api.url, room.at("stream")):
        connected.set()
        if event.get("event") == "message" and json.loads(event["data"])["content"] == content:
            return content
    return "cut"


@requirement("faults:field:silence")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
async def test_after_a_restart_of_nats_and_silence_a_post_arrives_or_health_is_red(
    fleet: Hub, number: signal.Signals
) -> None:
    """Ten long polls and five streams are open, NATS ends and comes back, nobody says anything, then somebody does."""
    async with under_fire(fleet, seed=7, plan=QUIET) as havoc:
        room = Room(fleet.api, fleet.machine, "silent").create()
        handles = [f"sec{number}" for number in range(POLLS)]
        room.join(*handles)
        polls = {handle: asyncio.create_task(poll(room, handle)) for handle in handles}
        connected = [asyncio.Event() for _ in range(STREAMS)]
        streams = {
            f"stream{number}": asyncio.create_task(sees(room, "@all now", one)) for number, one in enumerate(connected)
        }
        await asyncio.gather(*(one.wait() for one in connected))
        for handle in handles:
            await havoc.load.until(lambda handle=handle: room.member(handle)["waiting"], "it waits")  # type: ignore[misc]
        havoc.load.enough.set()
        await havoc.kill("nats", number)
        await havoc.found("nats")
        await havoc.passes(SILENCE_S)
        await asyncio.to_thread(room.post, "@all now")
        waiting = {**polls, **streams}
        _, missing = await asyncio.wait(waiting.values(), timeout=ARRIVES_S)
        health = fleet.api.get("/health").json
        late = [name for name, task in waiting.items() if task in missing]
        assert not late or health["status"] != "ok", f"{late} heard nothing, and health is green: {health}"
        answers = await asyncio.gather(*polls.values())
        assert {answer.status for answer in answers} == {200}, answers
        assert {json.loads(answer.body)["message"]["content"] for answer in answers} == {"@all now"}
        assert set(await asyncio.gather(*streams.values())) == {"@all now"}


@requirement("faults:field:held")
@pytest.mark.parametrize("name", ["rooms", "gateway"])
async def test_a_replica_that_is_paused_while_it_holds_requests_loses_and_repeats_nothing(
    fleet: Hub, name: str
) -> None:
    """Ten seconds in the middle of a crowd of posts; what it held is done by the other one, or by itself, once."""
    async with under_fire(fleet, seed=8, plan=Plan(posters=16, pause_s=0.0, mention_every=20)) as havoc:
        before = havoc.record.count
        await havoc.pause(name, 10.0)
        assert havoc.record.count > before, "the other replica did nothing meanwhile"
        await havoc.moment(50)
        await havoc.all_well()


@requirement("faults:field:broadcast")
async def test_a_broadcast_while_every_client_reconnects_reaches_each_once(fleet: Hub) -> None:
    """All gateways die at once, so that forty clients come back together, and broadcasts are stored meanwhile."""
    plan = Plan(posters=2, agents=10, pairs=0, rivals=0, readers=30, broadcast=True, pause_s=0.2)
    async with under_fire(fleet, seed=9, plan=plan) as havoc:
        for _ in range(4):
            await havoc.kill("gateway")
            await havoc.kill("gateway-2")
            await havoc.moment(5)
        await havoc.all_well()


def only(havoc: Havoc, *names: str) -> None:
    """From now on these gateways accept, and the others are stopped in their tracks."""
    havoc.record.note(f"only {names} accept")
    for name, pid in havoc.victims().items():
        if name.startswith("gateway"):
            os.kill(pid, signal.SIGCONT if name in names else signal.SIGSTOP)


@requirement("faults:field:other-gateway")
async def test_a_retry_that_lands_on_the_other_gateway_gets_the_first_answer(fleet: Hub) -> None:
    """A post and a wait, each asked of one gateway, its answer lost, and asked again of the other one."""
    async with under_fire(fleet, seed=11, plan=QUIET) as havoc:
        room = Room(fleet.api, fleet.machine, "two doors").create()
        room.join("sec")
        havoc.load.enough.set()
        try:
            only(havoc, "gateway")
            first = await asyncio.to_thread(room.try_post, "@sec one", key="post")
            taken = await poll(room, "sec", "wait", "s1")
            only(havoc, "gateway-2")
            again = await asyncio.to_thread(room.try_post, "@sec one", key="post")
            retaken = await poll(room, "sec", "wait", "s1")
        finally:
            only(havoc, "gateway", "gateway-2")
        assert again.json == first.json
        turns = [json.loads(answer.body) for answer in (taken, retaken)]
        assert turns[0] == turns[1]
        assert room.contents() == ["@sec one"]
        nothing = await poll(room, "sec", "next", "s1", timeout_s=0)
        assert nothing.status == 204, nothing
        assert room.receipts(first.json)["sec"]["deliveries"] == 1


@requirement("faults:field:other-gateway")
async def test_a_wait_that_moves_to_the_other_gateway_takes_one_delivery(fleet: Hub) -> None:
    """A long poll's gateway is lost; the same call is open at the other one when the mention comes."""
    async with under_fire(fleet, seed=12, plan=QUIET) as havoc:
        room = Room(fleet.api, fleet.machine, "moves").create()
        room.join("sec")
        havoc.load.enough.set()
        try:
            only(havoc, "gateway")
            held = asyncio.create_task(poll(room, "sec", "wait", "s1"))
            await havoc.load.until(lambda: room.member("sec")["waiting"], "it waits")
            only(havoc, "gateway-2")
            held.cancel()
            moved = asyncio.create_task(poll(room, "sec", "wait", "s1"))
            message = await asyncio.to_thread(room.post, "@sec one")
            turn = json.loads((await moved).body)
        finally:
            only(havoc, "gateway", "gateway-2")
        assert (turn["message"]["id"], turn["redelivered"], turn["attempt"]) == (message["id"], False, 1)
        assert (await poll(room, "sec", "next", "s1", timeout_s=0)).status == 204
        assert room.state(message, "sec") == "acknowledged"
