"""Rooms as objects: made, changed, kept, deleted, by an operator that may be away at any moment."""

from __future__ import annotations

from typing import Any

import aiohttp

from e2e.web import path
from mycelium_operator import names
from mycelium_operator.cluster import Access, Cluster


def shown(kubernetes: Any, name: str) -> dict[str, Any] | None:
    reply = kubernetes.hub.api.ask("GET", path("rooms", name), handle="operator")
    return reply.json if reply.status == 200 else None


def handles(kubernetes: Any, name: str) -> set[str]:
    return {member["handle"] for member in (shown(kubernetes, name) or {})["members_list"]}


def finalizers(kubernetes: Any, name: str) -> list[str]:
    return list(kubernetes.room(name)["metadata"].get("finalizers") or [])


async def test_an_object_makes_a_room_and_its_condition_says_so(kubernetes: Any) -> None:
    """Title and members are as it asks; the object waits for the operator, since the room goes with it."""
    async with kubernetes.operator():
        await kubernetes.create("made", title="Made by an object", members=[{"handle": "scout"}])
        condition = await kubernetes.until_ready("made")
    assert condition["reason"] == names.AS_WANTED
    room = shown(kubernetes, "made")
    assert room is not None
    assert room["title"] == "Made by an object"
    assert handles(kubernetes, "made") == {"scout"}
    assert kubernetes.room("made")["status"]["made"] == room["id"]
    assert finalizers(kubernetes, "made") == [names.FINALIZER]


async def test_an_event_tells_of_it_once(kubernetes: Any) -> None:
    """`kubectl describe` shows what happened, and no line for every look."""
    async with kubernetes.operator(resync_s=0.1):
        await kubernetes.create("told")
        await kubernetes.until_ready("told")
        looks = len(kubernetes.server["get"])
        await kubernetes.until(lambda: len(kubernetes.server["get"]) > looks + 3)
    events = [request.data for request in kubernetes.server["post"] if request.data.get("kind") == "Event"]
    assert [(event["reason"], event["type"]) for event in events] == [(names.AS_WANTED, "Normal")]


async def test_a_name_may_hold_spaces_and_accents(kubernetes: Any) -> None:
    """`spec.name` is the room's name."""
    async with kubernetes.operator():
        await kubernetes.create("night", name="Équipe de nuit", private=True)
        await kubernetes.until_ready("night")
        room = shown(kubernetes, "Équipe de nuit")
        assert room is not None
        assert room["private"]
        await kubernetes.delete("night")
        await kubernetes.until(lambda: kubernetes.room("night") is None)
    assert shown(kubernetes, "Équipe de nuit") is None


async def test_a_change_is_made_in_the_room(kubernetes: Any) -> None:
    """Who is taken out of the list leaves; who joined by themselves stays."""
    async with kubernetes.operator():
        await kubernetes.create("changed", members=[{"handle": "one"}, {"handle": "two", "description": "old"}])
        await kubernetes.until_ready("changed")
        kubernetes.hub.api.post(path("rooms", "changed", "members"), {"handle": "guest"}, handle="guest").ok(201)
        spec = {"title": "New", "members": [{"handle": "two", "description": "new"}, {"handle": "three"}]}
        await kubernetes.patch("changed", spec=spec, metadata={"generation": 2})
        await kubernetes.until_ready("changed")
    room = shown(kubernetes, "changed")
    assert room is not None
    assert room["title"] == "New"
    assert handles(kubernetes, "changed") == {"two", "three", "guest"}


async def test_engines_are_added_and_removed_like_members(kubernetes: Any) -> None:
    """By the hub's own command for engines."""
    async with kubernetes.operator():
        await kubernetes.create("helped", engines=[{"handle": "greeter", "kind": "hello"}])
        await kubernetes.until_ready("helped")
        listed = kubernetes.hub.api.get(path("rooms", "helped", "engines"), handle="avery").ok(200).json
        assert [(one["handle"], one["kind"]) for one in listed["items"]] == [("greeter", "hello")]
        await kubernetes.patch("helped", spec={"engines": []}, metadata={"generation": 2})
        await kubernetes.until_ready("helped")
    assert handles(kubernetes, "helped") == set()


async def test_deleting_the_object_deletes_the_room_that_was_made_for_it(kubernetes: Any) -> None:
    """The policy is Delete unless it says otherwise."""
    async with kubernetes.operator():
        await kubernetes.create("deleted")
        await kubernetes.until_ready("deleted")
        await kubernetes.delete("deleted")
        await kubernetes.until(lambda: kubernetes.room("deleted") is None)
    assert shown(kubernetes, "deleted") is None


async def test_a_room_that_is_to_be_kept_outlives_its_object(kubernetes: Any) -> None:
    """Nothing holds such an object back."""
    async with kubernetes.operator():
        await kubernetes.create("kept", deletionPolicy="Retain")
        await kubernetes.until_ready("kept")
        assert finalizers(kubernetes, "kept") == []
        await kubernetes.delete("kept")
        await kubernetes.until(lambda: kubernetes.room("kept") is None)
    assert shown(kubernetes, "kept") is not None


async def test_a_policy_that_changes_lets_the_object_go(kubernetes: Any) -> None:
    """From Delete to Retain: the finalizer is taken off."""
    async with kubernetes.operator():
        await kubernetes.create("freed")
        await kubernetes.until_ready("freed")
        assert finalizers(kubernetes, "freed") == [names.FINALIZER]
        await kubernetes.patch("freed", spec={"deletionPolicy": "Retain"}, metadata={"generation": 2})
        await kubernetes.until(lambda: finalizers(kubernetes, "freed") == [])


async def test_a_room_that_was_there_is_taken_over_and_never_deleted(kubernetes: Any) -> None:
    """The finalizer is for the room that the operator made."""
    kubernetes.hub.api.post("/api/rooms", {"name": "older", "title": "Theirs"}, handle="avery").ok(201)
    async with kubernetes.operator():
        await kubernetes.create("older", members=[{"handle": "scout"}])
        condition = await kubernetes.until_ready("older")
        assert condition["reason"] == names.ADOPTED
        assert finalizers(kubernetes, "older") == []
        await kubernetes.delete("older")
        await kubernetes.until(lambda: kubernetes.room("older") is None)
    room = shown(kubernetes, "older")
    assert room is not None
    assert room["title"] == "Theirs"


async def test_a_name_that_others_hold_in_private_is_said(kubernetes: Any) -> None:
    """The operator can't see that room, and leaves it alone."""
    kubernetes.hub.api.post("/api/rooms", {"name": "secret", "private": True}, handle="avery").ok(201)
    async with kubernetes.operator():
        await kubernetes.create("secret")
        condition = await kubernetes.until_ready("secret", "False")
    assert condition["reason"] == names.NAME_TAKEN
    assert finalizers(kubernetes, "secret") == []


async def test_what_the_hub_refuses_is_said_in_its_own_words(kubernetes: Any) -> None:
    """The slug and the sentence."""
    async with kubernetes.operator():
        await kubernetes.create("refused", members=[{"handle": "not a handle"}])
        condition = await kubernetes.until_ready("refused", "False")
    assert condition["reason"] == names.REFUSED
    assert "handle.invalid" in condition["message"]


async def test_a_hub_that_is_away_is_said_and_tried_again(kubernetes: Any) -> None:
    """Nothing is lost: the next operator that reaches it goes on."""
    async with kubernetes.operator(hub_url="http://127.0.0.1:9"):
        await kubernetes.create("waiting")
        condition = await kubernetes.until_ready("waiting", "False")
        assert condition["reason"] == names.HUB_AWAY
    async with kubernetes.operator():
        await kubernetes.until_ready("waiting")
    assert shown(kubernetes, "waiting") is not None


async def test_a_room_that_somebody_deleted_is_made_again(kubernetes: Any) -> None:
    """What is wanted is looked at again and again, whether the object changed or not."""
    async with kubernetes.operator(resync_s=0.1):
        await kubernetes.create("again")
        await kubernetes.until_ready("again")
        first = shown(kubernetes, "again")
        kubernetes.hub.api.delete(path("rooms", "again"), handle="avery").ok(204)
        second = await kubernetes.until(lambda: shown(kubernetes, "again"))
    assert first is not None
    assert second["id"] != first["id"]


async def test_an_operator_that_was_killed_before_it_wrote_the_room_down_knows_it_again(kubernetes: Any) -> None:
    """The room was made under the object's own key: it is not taken for somebody else's."""
    made = kubernetes.hub.api.post(
        "/api/rooms", {"name": "half", "private": False}, handle="operator", key="uid-half."
    ).ok(201)
    await kubernetes.create("half")
    async with kubernetes.operator():
        condition = await kubernetes.until_ready("half")
    assert condition["reason"] == names.AS_WANTED
    assert kubernetes.room("half")["status"]["made"] == made.json["id"]
    assert finalizers(kubernetes, "half") == [names.FINALIZER]


async def test_a_deletion_while_the_operator_is_away_is_caught_up_with(kubernetes: Any) -> None:
    """The object waits; the next operator deletes the room and lets it go."""
    async with kubernetes.operator():
        await kubernetes.create("later")
        await kubernetes.until_ready("later")
    await kubernetes.delete("later")
    assert kubernetes.room("later") is not None
    async with kubernetes.operator():
        await kubernetes.until(lambda: kubernetes.room("later") is None)
    assert shown(kubernetes, "later") is None


async def test_a_room_that_was_made_but_not_written_down_is_deleted_too(kubernetes: Any) -> None:
    """Killed after making it, then the object deleted while the operator was down."""
    kubernetes.hub.api.post("/api/rooms", {"name": "lost", "private": False}, handle="operator", key="uid-lost.").ok(
        201
    )
    await kubernetes.create("lost")
    await kubernetes.patch("lost", metadata={"finalizers": [names.FINALIZER]})
    await kubernetes.delete("lost")
    async with kubernetes.operator():
        await kubernetes.until(lambda: kubernetes.room("lost") is None)
    assert shown(kubernetes, "lost") is None


async def test_a_cluster_without_the_kind_is_noticed(kubernetes: Any) -> None:
    """The operator ends and says which chart to install, instead of watching nothing."""
    async with aiohttp.ClientSession() as session:
        cluster = Cluster(session, Access(kubernetes.url))
        assert await cluster.knows_rooms()
        del kubernetes.server.resources[f"{names.API_VERSION}/{names.ROOMS}"]
        assert not await cluster.knows_rooms()
