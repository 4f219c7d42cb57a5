"""As whom a signed-in caller writes, and for which agents it may wait: against the rooms service on a real log."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from e2e import oidc_server
from mycelium_kernel import run, testing
from mycelium_rooms.service import service as rooms_service
from services.gateway.tests import signed
from services.gateway.tests.conftest import opened
from services.gateway.tests.door import Door, until
from services.gateway.tests.signed import bearer
from services.gateway.tests.watching import watching

DEMO = "/api/rooms/demo"
BOUND_S = 60.0


@pytest.fixture
async def hub(nats_server: testing.NatsServer, tmp_path: Path, idp: oidc_server.OidcServer) -> AsyncIterator[Door]:
    """A hub that asks for tokens, without leeway; alice has made the room `demo`, with `bot`, which is hers."""
    rooms = await run.start(rooms_service(), nats_server.settings("rooms"), tmp_path / "tables")
    try:
        async with opened(nats_server, signed.settings(idp, leeway_s=0.0)) as door:
            alice = bearer(idp.user_token("alice"))
            for name in ("demo", "other"):
                assert (await door.http.post("/api/rooms", json={"name": name}, headers=alice)).status_code == 201
            bot = {"handle": "bot", "owner": "alice", "allow_from": ["@Ops-Lead"]}
            assert (await door.http.post(f"{DEMO}/members", json=bot, headers=alice)).status_code == 201
            yield door
    finally:
        await rooms.stop()


class As:
    """Calls as somebody."""

    def __init__(self, hub: Door, token: str) -> None:
        self.http = hub.http
        self.token = token

    async def __call__(self, method: str, path: str, body: Any = None, **headers: str) -> httpx2.Response:
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        return await self.http.request(method, path, json=body, headers=bearer(self.token, **sent))


def told(response: httpx2.Response) -> tuple[int, str]:
    return response.status_code, response.json().get("slug", "") if response.content else ""


@pytest.fixture
def alice(hub: Door, idp: oidc_server.OidcServer) -> As:
    return As(hub, idp.user_token("alice"))


async def test_what_is_written_is_the_tokens(hub: Door, alice: As) -> None:
    """Whether the handle is left out, given in another case, or as a session; the session is kept."""
    for named in (None, "alice", "@Alice", " ALICE", "alice#a8f3"):
        body = {"content": "hello", **({"sender_handle": named} if named else {})}
        answer = await alice("POST", f"{DEMO}/messages", body)
        assert (answer.status_code, answer.json()["sender_handle"]) == (201, "alice"), named
    for header in ("alice", "@Alice", "alice#a8f3"):
        answer = await alice("POST", f"{DEMO}/messages", {"content": "hello"}, Mycelium_Handle=header)
        assert answer.json()["sender_handle"] == "alice"
    assert told(await alice("POST", f"{DEMO}/messages", {"content": "x", "sender_handle": "alice#é"}))[0] == 422
    assert (await alice("GET", "/api/rooms/demo")).json()["created_by"] == "alice"


async def test_who_one_is_says_the_token(hub: Door, alice: As, idp: oidc_server.OidcServer) -> None:
    """Handle, role, issuer and when it runs out; nothing is proven of whom nobody asked."""
    said = (await alice("GET", "/api/whoami")).json()
    assert (said["handle"], said["role"], said["issuer"], said["proven"]) == ("alice", "user", idp.issuer, True)
    assert said["expires_at"].endswith("Z")
    agent = As(hub, idp.agent_token("release-agent", mycelium_role="agent"))
    assert (await agent("GET", "/api/whoami")).json()["role"] == "agent"


async def test_one_waits_for_oneself_and_for_agents_that_say_so(
    hub: Door, alice: As, idp: oidc_server.OidcServer
) -> None:
    """By owner or allow-from of the record in that room. Others are refused, whether the agent is there or not."""
    lead, mallory, bot = (As(hub, token) for token in (
        idp.user_token("ops-lead"), idp.user_token("mallory"), idp.agent_token("bot", mycelium_role="agent"),
    ))  # fmt: skip
    calls: list[tuple[str, dict[str, Any]]] = [
        ("await", {"timeout_s": 0}),
        ("ack", {"ack": "0199f2a1-5b7c-7a10-8f42-3d1e9c04b7aa", "outcome": "received"}),
        ("presence", {"state": "working"}),
    ]
    for verb, body in calls:
        for who in (alice, lead, bot):
            for said in ({"handle": "bot"}, {"handle": "@Bot"}, {"handle": "bot#2"}):
                answer = await who("POST", f"{DEMO}/{verb}", {**body, **said})
                assert told(answer)[0] in {204, 404}, (verb, told(answer))
                assert told(answer)[1] in {"", "delivery.not_found"}, (verb, told(answer))
        by_header = await alice("POST", f"{DEMO}/{verb}", body, Mycelium_Handle="bot")
        assert told(by_header)[1] in {"", "delivery.not_found"}
        refused = await mallory("POST", f"{DEMO}/{verb}", {**body, "handle": "bot"})
        absent = await mallory("POST", f"{DEMO}/{verb}", {**body, "handle": "nobody"})
        header = await mallory("POST", f"{DEMO}/{verb}", body, Mycelium_Handle="bot")
        elsewhere = await alice("POST", f"/api/rooms/other/{verb}", {**body, "handle": "bot"})
        both = await alice("POST", f"{DEMO}/{verb}", {**body, "handle": "alice"}, Mycelium_Handle="bot")
        assert [told(one) for one in (refused, absent, header, elsewhere)] == [(403, "acting.forbidden")] * 4
        assert told(both) == (403, "handle.forbidden")
        assert refused.json()["detail"].replace("@bot", "@nobody") == absent.json()["detail"]


async def test_acting_for_an_agent_is_not_writing_as_it(hub: Door, alice: As) -> None:
    """Its owner may read its queue, and never speaks in its name."""
    for verb, body in (
        ("respond", {"content": "hi", "handle": "bot"}),
        ("messages", {"content": "hi", "sender_handle": "bot"}),
    ):
        assert told(await alice("POST", f"{DEMO}/{verb}", body)) == (403, "handle.forbidden")


async def test_a_person_is_acted_for_by_nobody(hub: Door, alice: As, idp: oidc_server.OidcServer) -> None:
    """A record of a person that names somebody as owner gives nobody the person's queue."""
    bob = As(hub, idp.user_token("bob"))
    assert (await bob("PUT", "/api/users/bob", {"name": "Bob"})).status_code == 201
    member = {"handle": "bob", "kind": "user", "owner": "alice", "allow_from": ["alice"]}
    await alice("POST", f"{DEMO}/members", member)
    assert told(await alice("POST", f"{DEMO}/await", {"timeout_s": 0, "handle": "bob"})) == (403, "acting.forbidden")


async def test_a_private_room_is_not_there_for_a_stranger_who_would_act(
    hub: Door, alice: As, idp: oidc_server.OidcServer
) -> None:
    """Whatever the record says: a stranger learns nothing of it, and the answer is that of a room that is none."""
    await alice("POST", "/api/rooms", {"name": "secret", "private": True})
    await alice("POST", "/api/rooms/secret/members", {"handle": "bot", "owner": "alice"})
    mallory = As(hub, idp.user_token("mallory"))
    answers = [
        told(await mallory("POST", f"/api/rooms/{room}/await", {"timeout_s": 0, "handle": handle}))
        for room in ("secret", "none")
        for handle in ("bot", "alice", "mallory")
    ]
    assert set(answers) == {(404, "room.not_found")}


async def test_who_may_not_act_any_more_gets_nothing_more(hub: Door, alice: As, idp: oidc_server.OidcServer) -> None:
    """A wait that was open when the record changed ends refused, and the mention after it is not told to it."""
    lead, bot = As(hub, idp.user_token("ops-lead")), As(hub, idp.agent_token("bot", mycelium_role="agent"))
    waiting = asyncio.create_task(lead("POST", f"{DEMO}/await", {"timeout_s": 60, "handle": "bot"}))

    async def is_open() -> bool:
        return bool((await alice("GET", f"{DEMO}/members/bot")).json()["waiting"])

    await until(is_open)
    changed = await bot("PATCH", f"{DEMO}/members/bot", {"allow_from": []})
    assert changed.status_code == 200, changed.text
    async with asyncio.timeout(BOUND_S):
        assert told(await waiting) == (403, "acting.forbidden")


async def test_nothing_that_lasts_outlives_its_token(hub: Door, alice: As, idp: oidc_server.OidcServer) -> None:
    """A wait ends as if nothing had come, a stream ends: both are taken up again with a new token."""
    assert (await alice("PUT", "/api/users/alice", {})).status_code == 201
    idp.tokens_live(4)
    try:
        short = As(hub, idp.user_token("alice"))
    finally:
        idp.tokens_live(3600)
    async with asyncio.timeout(BOUND_S):
        waiting = asyncio.create_task(short("POST", f"{DEMO}/await", {"timeout_s": 600}))
        async with watching(hub.port, "demo", headers=bearer(short.token)) as stream:
            while await stream.next():
                pass
        assert (await waiting).status_code == 204
    assert told(await short("GET", "/api/rooms")) == (401, "token.refused")


async def test_a_bundle_is_brought_in_by_the_operator_alone(
    hub: Door, alice: As, nats_server: testing.NatsServer, idp: oidc_server.OidcServer
) -> None:
    """It says what others have said: whoever can write one could speak as anybody."""
    refused = await hub.http.post("/api/rooms/import?name=copy", content=b"{}", headers=bearer(alice.token))
    assert told(refused) == (403, "auth.refused")
    async with opened(nats_server, signed.settings(idp, localhost_bypass=True)) as door:
        for headers in ({}, bearer(alice.token)):
            read = await door.http.post("/api/rooms/import?name=copy", content=b"{}", headers=headers)
            assert told(read) == (422, "room.import_refused")
    named = signed.settings(idp, operators=frozenset({"alice"}))
    async with opened(nats_server, named) as door:
        for handle, expected in (("alice", (422, "room.import_refused")), ("mallory", (403, "auth.refused"))):
            headers = bearer(idp.user_token(handle))
            read = await door.http.post("/api/rooms/import?name=copy", content=b"{}", headers=headers)
            assert told(read) == expected, handle


async def test_an_operator_changes_records_that_are_not_theirs(
    hub: Door, alice: As, nats_server: testing.NatsServer, idp: oidc_server.OidcServer
) -> None:
    """identity: by `auth.operators` alone, as themselves; nobody else may, nor who only says to be one of them."""
    assert told(await alice("POST", "/api/rooms", {"name": "kept"})) == (201, "")
    member = {"handle": "keeper", "kind": "agent", "owner": "alice"}
    assert told(await alice("POST", "/api/rooms/kept/members", member)) == (201, "")
    named = signed.settings(idp, operators=frozenset({"ops"}))
    async with opened(nats_server, named) as door:
        for handle, expected in (("mallory", (403, "record.foreign")), ("ops", (200, ""))):
            headers = bearer(idp.user_token(handle), **{"Myc-Operator": "yes"})
            url = "/api/rooms/kept/members/keeper"
            changed = await door.http.patch(url, json={"notes": "seen to"}, headers=headers)
            assert told(changed) == expected, handle
