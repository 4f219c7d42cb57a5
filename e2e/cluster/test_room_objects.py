"""Rooms as objects of the cluster: made, changed, deleted, by an operator that is killed on the way."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from e2e.cluster.kube import Namespace, Release
from e2e.requirements import requirement
from e2e.room import Document
from e2e.waiting import until
from e2e.web import Api, path

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]
WITHIN_S = 120.0


class Rooms:
    """Room objects of one namespace, and the rooms that they stand for."""

    def __init__(self, namespace: Namespace, api: Api) -> None:
        self.namespace = namespace
        self.api = api
        self.made: set[str] = set()

    def apply(self, object_name: str, **spec: Any) -> None:
        """Make an object, or change it."""
        self.made.add(object_name)
        metadata = {"name": object_name}
        self.namespace.apply(
            {"apiVersion": "mycelium.dev/v1alpha1", "kind": "Room", "metadata": metadata, "spec": spec}
        )

    def condition(self, name: str) -> Document:
        """The object's condition, and the generation `of` the object."""
        body = self.namespace.find("room", name) or {}
        conditions = body.get("status", {}).get("conditions") or [{}]
        return {**conditions[0], "of": body.get("metadata", {}).get("generation")}

    def ready(self, name: str) -> Document:
        """The object's condition, once it is ready as it was last applied."""

        def look() -> Document | None:
            seen = self.condition(name)
            is_current = seen.get("observedGeneration") == seen["of"]
            return seen if seen.get("status") == "True" and is_current else None

        return until(look, f"room {name} is ready", WITHIN_S)

    def grows(self, name: str) -> None:
        """Return once the room has a member more than now."""
        before = len(self.members(name)) if self.shown(name) else 0
        until(lambda: self.shown(name) and len(self.members(name)) > before, f"room {name} grows", WITHIN_S)

    def gone(self, name: str) -> None:
        """Return once the object is gone."""
        until(lambda: self.namespace.find("room", name) is None, f"the object {name} is gone", WITHIN_S)

    def shown(self, name: str) -> Document | None:
        """The room as the operator sees it."""
        reply = self.api.get(path("rooms", name), handle="operator")
        return reply.json if reply.status == 200 else None

    def members(self, name: str) -> set[str]:
        """The handles of the room's members."""
        page = self.api.get(path("rooms", name, "members"), handle="operator").ok(200).json
        found = {member["handle"] for member in page["items"]}
        while page["next"]:
            page = self.api.get(path("rooms", name, "members", cursor=page["next"]), handle="operator").ok(200).json
            found |= {member["handle"] for member in page["items"]}
        return found


@pytest.fixture
def rooms(release: Release, api: Api) -> Iterator[Rooms]:
    found = Rooms(release.namespace, api)
    yield found
    for name in found.made:
        release.namespace.kubectl("delete", "room", name, "--ignore-not-found", "--timeout=60s")


@requirement("cluster:room")
def test_an_object_makes_changes_and_deletes_a_room(rooms: Rooms, unique: Callable[[str], str]) -> None:
    """`kubectl get rooms` shows it with its condition; what is taken out of the list of members leaves."""
    name = unique("object")
    rooms.apply(name, title="First", members=[{"handle": "one"}, {"handle": "two"}])
    rooms.ready(name)
    assert (rooms.shown(name) or {})["title"] == "First"
    assert rooms.members(name) == {"one", "two"}
    table = rooms.namespace.kubectl("get", "rooms", name).splitlines()
    assert table[0].split()[:4] == ["NAME", "ROOM", "READY", "REASON"]
    assert table[1].split()[:4] == [name, name, "True", "AsWanted"]
    rooms.apply(name, title="Second", members=[{"handle": "two"}, {"handle": "three"}])
    rooms.ready(name)
    assert (rooms.shown(name) or {})["title"] == "Second"
    assert rooms.members(name) == {"two", "three"}
    assert "AsWanted" in rooms.namespace.kubectl("describe", "room", name)
    rooms.namespace.delete("room", name)
    rooms.gone(name)
    assert rooms.shown(name) is None


@requirement("cluster:engine")
def test_an_engine_of_an_object_answers_whoever_mentions_it(rooms: Rooms, unique: Callable[[str], str]) -> None:
    """Through Temporal on its volume; there is no model here, and it says so."""
    name = unique("helped")
    rooms.apply(name, engines=[{"handle": "greeter", "kind": "hello"}])
    rooms.ready(name)
    rooms.api.post(path("rooms", name, "messages"), {"content": "@greeter hello"}, handle="avery").ok(201)

    def answered() -> str:
        items = rooms.api.get(path("rooms", name, "messages"), handle="avery").ok(200).json["items"]
        return next((one["content"] for one in items if one["sender_handle"] == "greeter"), "")

    assert "model" in until(answered, "the engine answers", WITHIN_S)


@requirement("cluster:room:names")
def test_a_name_may_hold_spaces_and_accents_and_never_changes(rooms: Rooms, unique: Callable[[str], str]) -> None:
    """The API server refuses another name for the same object."""
    name, shown = unique("night"), unique("Équipe de nuit")
    rooms.apply(name, name=shown, private=True, members=[{"handle": "scout"}])
    rooms.ready(name)
    assert (rooms.shown(shown) or {})["private"]
    with pytest.raises(AssertionError, match="a room keeps its name"):
        rooms.apply(name, name="another")


@requirement("cluster:room:kept")
def test_a_room_is_kept_where_the_policy_says_so(rooms: Rooms, api: Api, unique: Callable[[str], str]) -> None:
    """So is one that was there before; neither object waits for anybody."""
    kept, older = unique("kept"), unique("older")
    api.post("/api/rooms", {"name": older}, handle="avery").ok(201)
    rooms.apply(kept, deletionPolicy="Retain")
    rooms.apply(older)
    assert rooms.ready(kept)["reason"] == "AsWanted"
    assert rooms.ready(older)["reason"] == "Adopted"
    for name in (kept, older):
        assert "finalizers" not in (rooms.namespace.find("room", name) or {})["metadata"]
        rooms.namespace.delete("room", name)
        rooms.gone(name)
        assert rooms.shown(name) is not None


@requirement("cluster:room:killed")
def test_an_operator_killed_between_two_steps_is_followed_by_one_that_goes_on(
    rooms: Rooms, release: Release, unique: Callable[[str], str]
) -> None:
    """Killed three times while it fills a room with many members: one room, every member, nobody twice."""
    name, many = unique("many"), [{"handle": f"agent-{number}"} for number in range(400)]
    rooms.apply(name, members=many)
    for _ in range(3):
        rooms.grows(name)
        assert len(rooms.members(name)) < len(many), "it was not between two steps"
        release.namespace.delete("pod", *release.pods("operator"), now=True)
    rooms.ready(name)
    assert rooms.members(name) == {member["handle"] for member in many}
    made = [one["name"] for one in rooms.api.get(path("rooms"), handle="operator").ok(200).json["items"]]
    assert made.count(name) == 1


@requirement("cluster:room:away")
def test_a_deletion_while_the_operator_is_down_is_caught_up_with(
    rooms: Rooms, release: Release, unique: Callable[[str], str]
) -> None:
    """The object waits for the next operator, which deletes the room first."""
    name = unique("later")
    rooms.apply(name)
    rooms.ready(name)
    release.scale("operator", 0)
    rooms.namespace.delete("room", name)
    assert rooms.shown(name) is not None
    assert (rooms.namespace.find("room", name) or {})["metadata"]["deletionTimestamp"]
    release.scale("operator", 1)
    rooms.gone(name)
    assert rooms.shown(name) is None
