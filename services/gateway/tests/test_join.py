"""Joining by a code over HTTP: with sign-in off and on, and what the hub's own tokens are good for."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest

from e2e import oidc_server
from mycelium.rooms.v1 import service_pb2
from mycelium_gateway import joined
from mycelium_gateway.identity import Identity
from mycelium_kernel import run, testing
from mycelium_kernel.errors import Refusal
from mycelium_rooms.service import service as rooms_service
from services.gateway.tests.conftest import opened
from services.gateway.tests.door import Door
from services.gateway.tests.signed import bearer, settings

AVERY = {"Mycelium-Handle": "avery"}
BOUND = Identity("scout", "agent", "hub", "scout", 0.0, "01900000-0000-7000-8000-000000000001", "Demo room")


@pytest.fixture
async def guarded(
    nats_server: testing.NatsServer, tmp_path: Path, idp: oidc_server.OidcServer
) -> AsyncIterator[httpx2.AsyncClient]:
    """A hub that asks everybody for a token."""
    rooms = await run.start(rooms_service(), nats_server.settings("rooms"), tmp_path / "tables")
    try:
        async with opened(nats_server, settings(idp)) as door:
            yield door.http
    finally:
        await rooms.stop()


async def code_of(http: httpx2.AsyncClient, headers: dict[str, str], handle: str = "scout", room: str = "demo") -> str:
    made = await http.post(f"/api/rooms/{room}/join-codes", json={"handle": handle}, headers=headers)
    assert made.status_code == 201, made.text
    return str(made.json()["code"])


async def test_a_code_lets_in_once_however_it_is_typed(hub: Door) -> None:
    """identity: sign-in off. The answer says which member of which room; nobody has to be named to ask."""
    await hub.http.post("/api/rooms", json={"name": "demo"}, headers=AVERY)
    code = await code_of(hub.http, AVERY)
    assert re.fullmatch(r"[0-9a-hjkmnp-tv-z]{4}(-[0-9a-hjkmnp-tv-z]{4}){2}", code)
    typed = f" {code.upper().replace('-', ' ').replace('0', 'O').replace('1', 'l')} "
    answer = await hub.http.post("/api/join", json={"code": typed})
    assert (answer.status_code, answer.json()["room"], answer.json()["handle"]) == (200, "demo", "scout")
    assert answer.json()["token"] is None
    member = await hub.http.get("/api/rooms/demo/members/scout")
    assert (member.json()["kind"], member.json()["owner"]) == ("agent", "")
    again, wrong = [await hub.http.post("/api/join", json={"code": one}) for one in (code, "abcd-efgh-jkmn")]
    assert (again.status_code, again.json()["slug"]) == (403, "join.refused")
    assert again.content == wrong.content


async def test_a_repeat_under_one_key_is_answered(hub: Door) -> None:
    """The line was cut: the same request again is let in, and nobody else."""
    await hub.http.post("/api/rooms", json={"name": "demo"}, headers=AVERY)
    code = await code_of(hub.http, AVERY)
    for status, key in ((200, "k1"), (200, "k1"), (403, "k2")):
        answer = await hub.http.post("/api/join", json={"code": code}, headers={"Idempotency-Key": key})
        assert answer.status_code == status


async def test_a_member_that_alone_will_do_is_not_replaced(hub: Door) -> None:
    """A folder that is another's spends no code."""
    await hub.http.post("/api/rooms", json={"name": "demo"}, headers=AVERY)
    code = await code_of(hub.http, AVERY)
    refused = await hub.http.post("/api/join", json={"code": code, "handle": "other", "room": "demo"})
    assert (refused.status_code, refused.json()["slug"]) == (409, "join.other_member")
    joins = await hub.http.post("/api/join", json={"code": code, "handle": "scout", "room": "demo"})
    assert joins.status_code == 200


async def test_twenty_that_join_at_once_are_one(hub: Door) -> None:
    """The nineteen others are refused like any wrong code."""
    await hub.http.post("/api/rooms", json={"name": "demo"}, headers=AVERY)
    code = await code_of(hub.http, AVERY)
    answers = await asyncio.gather(*(hub.http.post("/api/join", json={"code": code}) for _ in range(20)))
    assert sorted(answer.status_code for answer in answers) == [200] + [403] * 19
    assert {answer.json()["slug"] for answer in answers if answer.status_code == 403} == {"join.refused"}


async def test_codes_can_be_tried_only_so_often(hub: Door) -> None:
    """429, told when to come back; a good code has to wait too."""
    most = joined.Tries.most
    answers = [await hub.http.post("/api/join", json={"code": "abcd"}) for _ in range(most)]
    assert {answer.status_code for answer in answers} == {403}
    burst = await asyncio.gather(*(hub.http.post("/api/join", json={"code": "abcd"}) for _ in range(most)))
    refused = [answer for answer in burst if answer.status_code == 429]
    assert refused
    assert (refused[0].json()["slug"], refused[0].headers["retry-after"]) == ("rate.limited", "1")


def test_tries_are_counted_by_address_and_come_back() -> None:
    """One a second; no address is forgotten that tries now, and no more are remembered than there is room for."""
    now = [0.0]
    tries = joined.Tries(lambda: now[0])
    for _ in range(tries.most):
        tries.take("a")
    with pytest.raises(Refusal, match=r"rate\.limited"):
        tries.take("a")
    tries.take("b")
    now[0] = 1.0
    tries.take("a")
    with pytest.raises(Refusal, match=r"rate\.limited"):
        tries.take("a")
    tries.addresses = 2
    for address in ("c", "a", "d"):
        now[0] += 1
        tries.take(address)
    assert list(tries._full_at) == ["a", "d"]


async def test_an_agents_own_token_is_good_in_its_room(
    guarded: httpx2.AsyncClient, idp: oidc_server.OidcServer
) -> None:
    """With sign-in on: no token is needed to join; other rooms are not there, and nothing of the hub is its own."""
    avery = bearer(idp.user_token("avery"))
    for room in ("demo", "other"):
        await guarded.post("/api/rooms", json={"name": room}, headers=avery)
        record = {"handle": "scout", "kind": "agent", "owner": "avery"}
        await guarded.post(f"/api/rooms/{room}/members", json=record, headers=avery)
    answer = await guarded.post("/api/join", json={"code": await code_of(guarded, avery)})
    token = answer.json()["token"]
    assert re.fullmatch(r"myc_[A-Za-z0-9_-]{43}", token)
    own = bearer(token)
    posted = await guarded.post("/api/rooms/demo/messages", json={"content": "hello"}, headers=own)
    assert (posted.status_code, posted.json()["sender_handle"]) == (201, "scout")
    waited = await guarded.post("/api/rooms/demo/await", json={"timeout_s": 0}, headers=own)
    assert waited.status_code == 204
    as_avery = await guarded.post(
        "/api/rooms/demo/messages", json={"content": "x", "sender_handle": "avery"}, headers=own
    )
    assert (as_avery.status_code, as_avery.json()["slug"]) == (403, "handle.forbidden")
    assert [room["name"] for room in (await guarded.get("/api/rooms", headers=own)).json()["items"]] == ["demo"]
    there, nowhere = [await guarded.get(f"/api/rooms/{room}", headers=own) for room in ("other", "ether")]
    assert there.status_code == 404
    assert there.text == nowhere.text.replace("ether", "other")
    elsewhere = await guarded.post("/api/rooms/other/messages", json={"content": "x"}, headers=own)
    assert elsewhere.json()["slug"] == "room.not_found"
    created = await guarded.post("/api/rooms", json={"name": "mine"}, headers=own)
    assert (created.status_code, created.json()["slug"]) == (403, "auth.refused")


async def test_a_token_ends_with_its_membership_its_room_and_the_next_join(
    guarded: httpx2.AsyncClient, idp: oidc_server.OidcServer
) -> None:
    """At once, and each is answered as a token that never was."""
    avery = bearer(idp.user_token("avery"))
    record = {"handle": "scout", "kind": "agent", "owner": "avery"}

    async def join() -> dict[str, str]:
        await guarded.post("/api/rooms", json={"name": "demo"}, headers=avery)
        await guarded.post("/api/rooms/demo/members", json=record, headers=avery)
        answer = await guarded.post("/api/join", json={"code": await code_of(guarded, avery)})
        headers = bearer(answer.json()["token"])
        assert (await guarded.get("/api/whoami", headers=headers)).json()["handle"] == "scout"
        return headers

    async def refused(headers: dict[str, str]) -> str:
        answer = await guarded.get("/api/rooms/demo", headers=headers)
        assert (answer.status_code, answer.json()["slug"]) == (401, "token.refused")
        assert answer.headers["www-authenticate"].startswith("Bearer")
        return str(answer.text)

    first = await join()
    second = await join()
    said = await refused(first)
    await guarded.delete("/api/rooms/demo/members/scout", headers=avery)
    assert await refused(second) == said
    third = await join()
    await guarded.delete("/api/rooms/demo", headers=avery)
    assert await refused(third) == said == await refused(bearer(joined.new_token()))
    assert await refused(bearer("myc_short")) == said


async def test_a_stream_and_a_wait_end_with_the_token_that_opened_them(
    guarded: httpx2.AsyncClient, idp: oidc_server.OidcServer
) -> None:
    """Also in a room that everybody sees: once another join took its place, nothing more is told to the first."""
    avery = bearer(idp.user_token("avery"))
    await guarded.post("/api/rooms", json={"name": "demo"}, headers=avery)
    record = {"handle": "scout", "kind": "agent", "owner": "avery"}
    await guarded.post("/api/rooms/demo/members", json=record, headers=avery)
    answer = await guarded.post("/api/join", json={"code": await code_of(guarded, avery)})
    own = bearer(answer.json()["token"])
    waits = asyncio.create_task(guarded.post("/api/rooms/demo/await", json={"timeout_s": 60}, headers=own))
    async with guarded.stream("GET", "/api/rooms/demo/stream", headers=own) as stream:
        lines = stream.aiter_lines()
        assert await anext(lines) == ": connected"
        await guarded.post("/api/join", json={"code": await code_of(guarded, avery)})
        await guarded.post("/api/rooms/demo/messages", json={"content": "@scout secret"}, headers=avery)
        rest = [line async for line in lines]
    assert "event: room_deleted" in rest
    assert not [line for line in rest if "secret" in line]
    ended = await waits
    assert (ended.status_code, ended.json()["slug"]) == (401, "token.refused")


async def test_a_token_ends_with_the_right_of_who_made_its_code(
    guarded: httpx2.AsyncClient, idp: oidc_server.OidcServer
) -> None:
    """identity: its next request, its open wait and its open stream; nothing of the room comes after."""
    avery, kim = (bearer(idp.user_token(handle)) for handle in ("avery", "kim"))
    await guarded.post("/api/rooms", json={"name": "demo"}, headers=avery)
    record = {"handle": "scout", "kind": "agent", "owner": "avery", "allow_from": ["kim"]}
    await guarded.post("/api/rooms/demo/members", json=record, headers=avery)
    answer = await guarded.post("/api/join", json={"code": await code_of(guarded, kim)})
    own = bearer(answer.json()["token"])
    waits = asyncio.create_task(guarded.post("/api/rooms/demo/await", json={"timeout_s": 60}, headers=own))
    async with guarded.stream("GET", "/api/rooms/demo/stream", headers=own) as stream:
        lines = stream.aiter_lines()
        assert await anext(lines) == ": connected"
        scout = "/api/rooms/demo/members/scout"
        assert (await guarded.patch(scout, json={"notes": "x"}, headers=avery)).status_code == 200
        assert (await guarded.get("/api/rooms/demo", headers=own)).status_code == 200
        assert (await guarded.patch(scout, json={"allow_from": []}, headers=avery)).status_code == 200
        await guarded.post("/api/rooms/demo/messages", json={"content": "@scout secret"}, headers=avery)
        rest = [line async for line in lines]
    assert "event: room_deleted" in rest
    assert not [line for line in rest if "secret" in line]
    ended = await waits
    refused = await guarded.get("/api/rooms/demo", headers=own)
    for said in (ended, refused):
        assert (said.status_code, said.json()["slug"]) == (401, "token.refused")


async def test_codes_are_made_by_those_who_may_act(guarded: httpx2.AsyncClient, idp: oidc_server.OidcServer) -> None:
    """With sign-in on: the owner, whom the record lets, the agent itself; nobody else."""
    avery, kim, sec = (bearer(idp.user_token(handle)) for handle in ("avery", "kim", "sec"))
    scout = bearer(idp.agent_token("scout", mycelium_role="agent"))
    await guarded.post("/api/rooms", json={"name": "demo"}, headers=avery)
    record = {"handle": "scout", "kind": "agent", "owner": "avery", "allow_from": ["kim"]}
    await guarded.post("/api/rooms/demo/members", json=record, headers=avery)
    statuses = {}
    for name, headers in (("avery", avery), ("kim", kim), ("scout", scout), ("sec", sec), ("nobody", {})):
        asked = await guarded.post("/api/rooms/demo/join-codes", json={"handle": "scout"}, headers=headers)
        statuses[name] = asked.json().get("slug", asked.status_code)
    assert statuses == {
        "avery": 201, "kim": 201, "scout": 201, "sec": "acting.forbidden", "nobody": "token.missing",
    }  # fmt: skip


def test_requests_of_a_bound_token_are_about_its_room() -> None:
    """By its name however it is written, or its id; every other and what is of the whole hub is refused."""
    for text in ("demo ROOM", " Demo room ", BOUND.room_id.upper()):
        request = service_pb2.GetRoomRequest(room=text)
        joined.bind(request, BOUND)
        assert request.room == BOUND.room_id
    feed = service_pb2.ReadFeedRequest(rooms=["Demo room", BOUND.room_id])
    joined.bind(feed, BOUND)
    assert list(feed.rooms) == [BOUND.room_id] * 2
    for refused, slug in (
        (service_pb2.GetRoomRequest(room="x" * 200), r"room\.not_found"),
        (service_pb2.ReadFeedRequest(rooms=["Demo room", "other"]), r"room\.not_found"),
        (service_pb2.SaveUserRequest(handle="scout"), r"auth\.refused"),
    ):
        with pytest.raises(Refusal, match=slug):
            joined.bind(refused, BOUND)
    anything = service_pb2.GetRoomRequest(room="other")
    joined.bind(anything, Identity("avery", "user", "https://issuer", "avery", 0.0))
    assert anything.room == "other"
