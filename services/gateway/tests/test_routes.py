"""Every route against the rooms service on a real log. The client holds each answer to the contract."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest

from services.gateway.tests.door import Door

AVERY = {"Mycelium-Handle": "avery"}


@pytest.fixture
async def http(hub: Door) -> httpx2.AsyncClient:
    """A client of a hub with a room `demo`, a user and an agent."""
    created = await hub.http.post("/api/rooms", json={"name": "demo", "title": "Demo"}, headers=AVERY)
    assert created.status_code == 201
    await hub.http.post("/api/users", json={"handle": "avery", "name": "Avery Quinn", "team": "core"})
    await hub.http.post("/api/rooms/demo/members", json={"handle": "engineer", "owner": "avery"}, headers=AVERY)
    return hub.http


def slug(response: httpx2.Response) -> tuple[int, str]:
    return response.status_code, response.json()["slug"]


async def test_a_room_is_made_shown_changed_and_deleted(http: httpx2.AsyncClient) -> None:
    """By its name, with spaces and accents, and by its id."""
    created = await http.post("/api/rooms", json={"name": "Café Team"}, headers=AVERY)
    room = created.json()
    path = created.headers["location"]

    assert (room["name"], room["created_by"], room["members"]) == ("Café Team", "avery", 0)
    assert path == "/api/rooms/Caf%C3%A9%20Team"
    assert int(created.headers["mycelium-sequence"]) > 0
    assert (await http.get(path)).json() == {**room, "members_list": [], "members_next": None}
    assert (await http.get(f"/api/rooms/{room['id']}")).json()["name"] == "Café Team"
    assert (await http.patch(path, json={"title": "T", "private": True}, headers=AVERY)).json()["title"] == "T"
    assert [one["name"] for one in (await http.get("/api/rooms", headers=AVERY)).json()["items"]] == [
        "Café Team",
        "demo",
    ]
    assert (await http.delete(path, headers=AVERY)).status_code == 204
    assert slug(await http.get(path, headers=AVERY)) == (404, "room.not_found")


async def test_a_room_can_not_be_made_twice(http: httpx2.AsyncClient) -> None:
    """The refusal is a problem with its slug."""
    assert slug(await http.post("/api/rooms", json={"name": "Demo"})) == (409, "room.name_taken")
    assert slug(await http.post("/api/rooms", json={"name": "a/b"})) == (422, "name.invalid")
    assert slug(await http.patch("/api/rooms/demo", json={})) == (422, "request.invalid")


async def test_an_engine_is_added_listed_shown_and_removed(http: httpx2.AsyncClient) -> None:
    """It is a member; an agent is none, and does not become one."""
    path = "/api/rooms/demo/engines"
    added = await http.post(path, json={"handle": "Greeter", "kind": "hello"}, headers=AVERY)
    again = await http.post(path, json={"handle": "greeter", "kind": "hello", "description": "says hello"})

    assert (added.status_code, again.status_code) == (201, 200)
    assert (await http.get(path)).json() == {"items": [again.json()], "next": None}
    assert (await http.get(f"{path}/greeter")).json() == again.json()
    assert (await http.get("/api/rooms/demo/members/greeter")).json()["kind"] == "engine"
    assert slug(await http.get(f"{path}/engineer")) == (404, "engine.not_found")
    assert slug(await http.post(path, json={"handle": "engineer", "kind": "hello"})) == (409, "handle.taken")
    assert slug(await http.post(path, json={"handle": "other", "kind": "unheard-of"})) == (422, "request.invalid")
    assert (await http.delete(f"{path}/greeter")).status_code == 204
    assert slug(await http.get(f"{path}/greeter")) == (404, "member.not_found")


async def test_a_member_is_added_listed_changed_and_removed(http: httpx2.AsyncClient) -> None:
    """Adding one that is there changes it."""
    path = "/api/rooms/demo/members"
    added = await http.post(path, json={"handle": "Scout", "description": "looks", "allow_from": ["avery"]})
    again = await http.post(path, json={"handle": "scout", "team": "core"})

    assert (added.status_code, added.json()["handle"], added.json()["kind"]) == (201, "scout", "agent")
    assert (again.status_code, again.json()["description"], again.json()["team"]) == (200, "looks", "core")
    assert again.json()["allow_from"] == ["avery"]
    assert [one["handle"] for one in (await http.get(f"{path}?team=core")).json()["items"]] == ["scout"]
    assert [one["handle"] for one in (await http.get(f"{path}?owner=avery")).json()["items"]] == ["engineer"]
    assert (await http.patch(f"{path}/scout", json={"notes": "n"})).json()["notes"] == "n"
    assert (await http.get(f"{path}/scout")).json()["notes"] == "n"
    assert (await http.delete(f"{path}/scout")).status_code == 204
    assert slug(await http.get(f"{path}/scout")) == (404, "member.not_found")
    assert slug(await http.patch(f"{path}/scout", json={"notes": "n"})) == (404, "member.not_found")


async def test_a_user_is_made_saved_listed_and_shown_with_agents(http: httpx2.AsyncClient) -> None:
    """`POST` makes only, `PUT` makes or changes."""
    assert slug(await http.post("/api/users", json={"handle": "avery"})) == (409, "handle.taken")
    assert (await http.put("/api/users/bo", json={"name": "Bo"})).status_code == 201
    assert (await http.put("/api/users/bo", json={"team": "core"})).json()["name"] == "Bo"
    assert [one["handle"] for one in (await http.get("/api/users")).json()["items"]] == ["avery", "bo"]
    assert (await http.get("/api/users/avery")).json()["agents"] == [{"room": "demo", "handle": "engineer"}]
    assert slug(await http.get("/api/users/nobody")) == (404, "user.not_found")


async def test_a_message_is_posted_shown_paged_and_amended(http: httpx2.AsyncClient) -> None:
    """With its short id, its receipts, and what became of its mentions."""
    path = "/api/rooms/demo/messages"
    metadata: dict[str, Any] = {"kind": "note", "n": [1, None, "é"]}
    posted = await http.post(path, json={"content": "@engineer hi", "metadata": metadata}, headers=AVERY)
    message = posted.json()

    assert posted.status_code == 201
    assert posted.headers["mycelium-sequence"] == str(message["seq"])
    assert (message["sender_name"], message["metadata"], message["room"]) == ("Avery Quinn", metadata, "demo")
    assert message["mentions"] == [{"handle": "engineer", "state": "queued", "last_seen": None}]
    assert (await http.get(f"{path}/{message['id'][-8:]}")).json() == message
    receipts = (await http.get(f"{path}/{message['id']}/receipts")).json()["items"]
    assert [(one["handle"], one["state"]) for one in receipts] == [("engineer", "queued")]
    amended = await http.patch(f"{path}/{message['id']}", json={"content": "hi all"}, headers=AVERY)
    assert (amended.json()["content"], amended.json()["edited_at"] is None) == ("hi all", False)
    assert slug(await http.patch(f"{path}/{message['id']}", json={"content": "x", "sender_handle": "bo"})) == (
        403,
        "message.not_yours",
    )
    await http.post(path, json={"content": "second", "sender_handle": "ci"})
    page = (await http.get(f"{path}?limit=1")).json()
    assert ([one["content"] for one in page["items"]], page["next"]) == (["second"], page["older_before"])
    older = (await http.get(path, params={"limit": 1, "before": page["next"], "since": "1d"})).json()
    assert ([one["content"] for one in older["items"]], older["next"]) == (["hi all"], None)


async def test_a_repeat_under_one_key_is_one_message(http: httpx2.AsyncClient) -> None:
    """And another body under that key is refused."""
    headers = {**AVERY, "Idempotency-Key": "k-1"}
    first = await http.post("/api/rooms/demo/messages", json={"content": "once"}, headers=headers)
    again = await http.post("/api/rooms/demo/messages", json={"content": "once"}, headers=headers)
    other = await http.post("/api/rooms/demo/messages", json={"content": "twice"}, headers=headers)

    assert first.json() == again.json()
    assert slug(other) == (422, "key.reused")
    assert len((await http.get("/api/rooms/demo/messages")).json()["items"]) == 1


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"content": ""}, (422, "content.empty")),
        ({"content": "a\x00b"}, (422, "content.invalid")),
        ({"content": "x" * 300_000}, (413, "content.too_large")),
        ({"content": "@enginer hi"}, (422, "mention.unknown")),
        ({"content": "hi", "thread": "ffffffff"}, (404, "thread.not_found")),
        ({"content": "hi", "reply_to": "ffffffff"}, (404, "message.not_found")),
    ],
)
async def test_a_message_that_can_not_be_posted_says_why(
    http: httpx2.AsyncClient, body: dict[str, Any], expected: tuple[int, str]
) -> None:
    """Each with a slug of its own."""
    assert slug(await http.post("/api/rooms/demo/messages", json=body, headers=AVERY)) == expected


async def test_the_hub_says_who_it_takes_the_caller_for(http: httpx2.AsyncClient) -> None:
    """A user, an agent, a stranger, nobody."""

    async def who(handle: str) -> tuple[str, bool, str | None, str]:
        body = (await http.get("/api/whoami", headers={"Mycelium-Handle": handle} if handle else {})).json()
        return body["handle"], body["registered"], body["kind"], body["name"]

    assert await who("@Avery") == ("avery", True, "user", "Avery Quinn")
    assert await who("engineer") == ("engineer", True, "agent", "")
    assert await who("stranger") == ("stranger", False, None, "")
    assert await who("") == ("", False, None, "")


async def test_health_is_ok_when_every_service_is(http: httpx2.AsyncClient) -> None:
    """No warnings, and what NATS it stands on."""
    body = (await http.get("/health")).json()

    assert (body["status"], body["warnings"], body["services"]["rooms"]["status"]) == ("ok", [], "ok")
    assert body["nats"]["version"].startswith("2.")


async def test_a_room_stands_in_a_folder_of_ones_own(http: httpx2.AsyncClient) -> None:
    """Nobody else's list changes; title and folder may be set at once."""
    bo = {"Mycelium-Handle": "bo"}
    filed = await http.patch("/api/rooms/demo", json={"folder": "clients", "title": "T"}, headers=AVERY)

    assert (filed.json()["folder"], filed.json()["title"], filed.json()["members"]) == ("clients", "T", 1)
    assert int(filed.headers["mycelium-sequence"]) > 0
    assert [one["folder"] for one in (await http.get("/api/rooms", headers=AVERY)).json()["items"]] == ["clients"]
    assert (await http.get("/api/rooms/demo", headers=AVERY)).json()["folder"] == "clients"
    assert (await http.get("/api/rooms/demo", headers=bo)).json()["folder"] == ""
    assert (await http.patch("/api/rooms/demo", json={"folder": "", "handle": "avery"})).json()["folder"] == ""
    assert slug(await http.patch("/api/rooms/demo", json={"folder": "x"})) == (422, "handle.missing")


async def test_a_long_list_of_members_is_paged(http: httpx2.AsyncClient) -> None:
    """By `cursor`, from the list and from the room; filters are kept by the caller."""
    notes = "x" * 15_000
    for number in range(40):
        body = {"handle": f"m{number:02d}", "notes": notes}
        assert (await http.post("/api/rooms/demo/members", json=body, headers=AVERY)).status_code == 201
    first = (await http.get("/api/rooms/demo/members")).json()
    second = (await http.get("/api/rooms/demo/members", params={"cursor": first["next"]})).json()
    room = (await http.get("/api/rooms/demo")).json()

    assert [one["handle"] for one in first["items"] + second["items"]] == [
        "engineer",
        *(f"m{number:02d}" for number in range(40)),
    ]
    assert (second["next"], room["members_next"]) == (None, first["next"])
    assert len(room["members_list"]) == len(first["items"])
