"""Private rooms: a boundary. What a stranger asks is answered as if the room were not there."""

from collections.abc import Callable
from typing import Any, NamedTuple
from uuid import uuid4

import pytest

from e2e.harness import Hub, Machine
from e2e.oidc_server import OidcServer
from e2e.requirements import requirement
from e2e.room import Document, Room, states
from e2e.waiting import until
from e2e.web import Api, Reply, path

Unique = Callable[[str], str]
OWNER, MEMBER, STRANGER = "owner", "member", "stranger"

# What is sent to the operations that take a body. A new one has to be named here.
BODIES: dict[str, Document] = {
    "patch /api/rooms/{room}": {"title": "another"},
    "post /api/rooms/{room}/messages": {"content": "hello @member"},
    "patch /api/rooms/{room}/messages/{message}": {"status": "resolved"},
    "post /api/rooms/{room}/members": {"handle": "newcomer", "kind": "agent"},
    "patch /api/rooms/{room}/members/{handle}": {"description": "another"},
    "post /api/rooms/{room}/join-codes": {"handle": "joiner"},
    "post /api/rooms/{room}/engines": {"handle": "greeter", "kind": "hello"},
    "patch /api/rooms/{room}/budget": {"turns": 5},
    "post /api/rooms/{room}/await": {"timeout_s": 0},
    "post /api/rooms/{room}/ack": {"ack": "the member's", "outcome": "acknowledged"},
    "post /api/rooms/{room}/respond": {"content": "hello"},
    "put /api/rooms/{room}/memory/{key}": {"value": "text"},
    "patch /api/rooms/{room}/memory/{key}": {"meta": {"status": "open"}},
    "put /api/rooms/{room}/subscriptions": {"pattern": "work/"},
    "post /api/rooms/{room}/tasks": {"title": "a task"},
    "post /api/rooms/{room}/tasks/{task}/claim": {},
    "post /api/rooms/{room}/tasks/{task}/renew": {},
    "post /api/rooms/{room}/tasks/{task}/release": {},
    "post /api/rooms/{room}/tasks/{task}/resolve": {},
    "post /api/rooms/{room}/tasks/{task}/promote": {},
    "post /api/rooms/{room}/tasks/{task}/dismiss": {},
    "post /api/rooms/{room}/tasks/{task}/block": {"on": "#502"},
    "post /api/rooms/{room}/tasks/{task}/answer": {"answer": "yes"},
    "post /api/rooms/{room}/tasks/{task}/coordinate": {"engine": "aligner", "text": "agree"},
    "post /api/rooms/{room}/reservations": {"patterns": ["src/**"]},
    "post /api/rooms/{room}/reservations/check": {"paths": ["src/a"]},
    "post /api/rooms/{room}/reservations/renew": {},
    "post /api/rooms/{room}/reservations/release": {},
    "post /api/rooms/{room}/presence": {"state": "idle"},
}

# What is asked for where something has to be: the parameters that an address can't do without.
NEEDED = {"q": "a question", "pattern": "work/"}


class Operation(NamedTuple):
    """One operation of the hub that names a room, with what is sent to it."""

    method: str
    where: str
    body: Document | None
    streams: bool
    needs: tuple[str, ...]

    def target(self, room: str, message: str) -> str:
        """Its address for a room, with a message of the private room and a member of it where it names one."""
        if "{room}" not in self.where:
            return f"{self.where}?room={path(room).removeprefix('/api/')}"
        names = {"{room}": room, "{handle}": MEMBER}
        parts = self.where.removeprefix("/api/").split("/")
        filled = (names.get(part, message if part.startswith("{") else part) for part in parts)
        return path(*filled, **{name: NEEDED[name] for name in self.needs})


def operations(api: Api, ack: str) -> list[Operation]:
    """All of them, those that destroy last: as the hub's own document lists them."""
    bodies = {key: {**body, "ack": ack} if "ack" in body else body for key, body in BODIES.items()}
    found = []
    for where, methods in api.get("/openapi.json").ok(200).json["paths"].items():
        for method, said in methods.items():
            if method not in {"get", "post", "put", "patch", "delete"}:
                continue
            rows = [row for row in said.get("parameters", []) if row.get("in") == "query"]
            queries = [row["name"] for row in rows]
            if "{room}" not in where and "room" not in queries:
                continue
            key = f"{method} {where}"
            assert "requestBody" not in said or key in BODIES, f"say in BODIES what is sent to {key}"
            streams = "text/event-stream" in said["responses"]["200"].get("content", {}) if method == "get" else False
            needs = tuple(row["name"] for row in rows if row["required"] and row["name"] != "room")
            assert set(needs) <= set(NEEDED), f"say in NEEDED what {key} is asked for"
            found.append(Operation(method.upper(), where, bodies.get(key), streams, needs))
    assert len(found) >= 18, found
    return sorted(found, key=lambda one: (one.method == "DELETE", one.where.count("/") < 4))


def unlike() -> str:
    """A name like no other, so that a hub that looks for near ones finds none."""
    return uuid4().hex


@pytest.fixture
def private(hub: Hub, machine: Machine) -> Room:
    """A private room with a member."""
    room = Room(hub.api, machine, unlike(), OWNER).create(private=True)
    room.join(MEMBER)
    return room


def token(room: Room) -> str:
    """The token of a delivery to the member, which exists."""
    room.post("@member hello", sender=OWNER)
    turn = room.take(MEMBER)
    assert turn is not None
    return str(turn["ack"])


def ask(api: Api, operation: Operation, target: str, handle: str) -> Reply:
    """One request; of a stream only its beginning."""
    if operation.streams:
        try:
            api.stream(target, handle=handle).close()
        except AssertionError:
            pass
        else:
            return Reply(200, {}, b"a stream")
    return api.ask(operation.method, target, operation.body, handle=handle)


def seen(reply: Reply, room: str) -> tuple[Any, ...]:
    """All that a caller can tell an answer by, the room's name aside."""
    kept = {name: value for name, value in reply.headers.items() if name not in {"date", "content-length"}}
    return reply.status, reply.body.decode().replace(room, "ROOM"), kept


@requirement("private:same-as-absent")
@pytest.mark.parametrize("handle", [STRANGER, ""], ids=["a stranger", "nobody"])
def test_a_strangers_answers_are_those_of_a_room_that_is_not_there(private: Room, handle: str) -> None:
    """Every operation that names a room, by name and by id: status, slug, wording, headers."""
    message = private.post("the secret", sender=OWNER, message_type="event", metadata={"kind": "action"})
    number = private.api.get(private.at(), handle=OWNER).ok(200).json["id"]
    absent = unlike()
    faults = []
    for operation in operations(private.api, token(private)):
        for here, nowhere in ((private.name, absent), (number, str(uuid4()))):
            hidden = ask(private.api, operation, operation.target(here, message["id"]), handle)
            missing = ask(private.api, operation, operation.target(nowhere, message["id"]), handle)
            if seen(hidden, here) != seen(missing, nowhere) or hidden.status == 200:
                faults.append((operation.method, operation.where, seen(hidden, here), seen(missing, nowhere)))
    assert not faults, "\n".join(map(str, faults))
    assert private.found() == ["the secret", "@member hello"]


@requirement("private:same-as-absent")
@pytest.mark.parametrize(("role", "named"), [("user", ""), ("agent", ""), ("user", MEMBER)])
def test_who_has_signed_in_is_a_stranger_all_the_same(
    guarded_hub: Hub, idp: OidcServer, machine: Machine, role: str, named: str
) -> None:
    """By name and by id, also when the request names a member: a token opens no room."""
    owner = Api(guarded_hub.url, idp.user_token(OWNER))
    room = Room(owner, machine, unlike(), "").create(private=True)
    owner.post(room.at("members"), {"handle": MEMBER, "owner": OWNER}).ok(201)
    room.post("@member hello", sender="")
    turn = owner.post(room.at("await"), {"handle": MEMBER, "timeout_s": 0}, session="s1").ok(200).json
    number, absent = owner.get(room.at()).ok(200).json["id"], unlike()
    stranger = Api(guarded_hub.url, idp.user_token(STRANGER, mycelium_role=role))
    faults = []
    for operation in operations(stranger, str(turn["ack"])):
        for here, nowhere in ((room.name, absent), (number, str(uuid4()))):
            hidden, missing = (
                ask(stranger, operation, operation.target(one, turn["message"]["id"]), named) for one in (here, nowhere)
            )
            told = {404: "room.not_found", 403: "handle.forbidden"} if named else {404: "room.not_found"}
            if seen(hidden, here) != seen(missing, nowhere) or told.get(hidden.status) != hidden.json.get("slug"):
                faults.append((operation.method, operation.where, seen(hidden, here), seen(missing, nowhere)))
    assert not faults, "\n".join(map(str, faults))
    assert [message["content"] for message in owner.get(room.at("messages")).json["items"]] == ["@member hello"]


@requirement("private:same-as-absent", "private:members")
@pytest.mark.parametrize("handle", [MEMBER, OWNER])
def test_members_use_every_operation(private: Room, handle: str) -> None:
    """Found by name and id; for a room that is not there they get what strangers get."""
    message = private.post("a question", sender=handle, message_type="event", metadata={"kind": "action"})
    absent = unlike()
    faults = []
    for operation in operations(private.api, token(private)):
        reply = ask(private.api, operation, operation.target(private.name, message["id"]), handle)
        if b"room.not_found" in reply.body or reply.status in {401, 403, 500}:
            faults.append((operation.method, operation.where, reply.status, reply.body[:300]))
        if operation.where.endswith("/members/{handle}") and operation.method == "DELETE":
            private.join(MEMBER)
        missing = ask(private.api, operation, operation.target(absent, message["id"]), handle)
        if (missing.status, missing.json["slug"]) != (404, "room.not_found"):
            faults.append((operation.method, operation.where, missing.status, missing.body[:300]))
    assert not faults, "\n".join(map(str, faults))
    private.api.get(private.at(), handle=OWNER).refused(404, "room.not_found")


@requirement("private:members")
def test_a_private_room_works_for_those_who_are_in_it(private: Room) -> None:
    """Talk, mentions, waits, watching, search; the creator is in it without being added."""
    waiting = private.wait(MEMBER, "--json", "--timeout", "20")
    with private.api.stream(private.at("stream"), handle=OWNER) as stream:
        assert states(private.post("@member hello", sender=OWNER)) == {MEMBER: "woken"}
        assert stream.next("message").data["content"] == "@member hello"
    assert waiting.ended().json["message"]["content"] == "@member hello"
    private.machine.run("respond", "@owner hello", handle=MEMBER, room=private.name).ok()
    turn = private.take(OWNER)
    assert turn is not None
    assert turn["message"]["content"] == "@owner hello"
    assert private.found(q="hello", sender=MEMBER) == ["@owner hello"]


@requirement("private:lists")
def test_lists_and_counts_tell_a_stranger_nothing(hub: Hub, private: Room, machine: Machine, unique: Unique) -> None:
    """Rooms, people's agents, near names, health and metrics."""
    person = unique("person")
    hub.api.post(path("users"), {"handle": person}, handle=OWNER).ok(201)
    helper = unique("helper")
    private.join(helper, owner=person)

    def listed(handle: str) -> bool:
        rows = hub.api.get(path("rooms"), handle=handle).ok(200).json["items"]
        return private.name in {row["name"] for row in rows}

    assert {handle: listed(handle) for handle in (OWNER, MEMBER, STRANGER, person, "")} == {
        OWNER: True, MEMBER: True, STRANGER: False, person: False, "": False,
    }  # fmt: skip

    def agents(handle: str) -> list[Document]:
        found: list[Document] = hub.api.get(path("users", person), handle=handle).ok(200).json["agents"]
        return found

    assert agents(MEMBER) == [{"room": private.name, "handle": helper}]
    assert agents(STRANGER) == agents("") == []
    shared = Room(hub.api, machine, unique("shared")).create()
    problem = shared.try_post(f"@{helper}x hello", sender=STRANGER).refused(422, "mention.unknown")
    assert problem.get("near", []) == []
    for handle in (STRANGER, ""):
        problem = hub.api.get(path("rooms", f"{private.name}x"), handle=handle).refused(404, "room.not_found")
        assert private.name not in str(problem).replace(f"{private.name}x", "")
    for target in ("/health", "/metrics", "/openapi.json"):
        assert private.name.encode() not in hub.api.get(target).body


@requirement("private:members", "private:lists")
def test_a_person_of_the_hub_is_nobody_in_a_private_room(private: Room, unique: Unique) -> None:
    """Until they are added: not mentioned, not waiting; after they are removed again, as before."""
    person = unique("person")
    private.api.post(path("users"), {"handle": person}, handle=OWNER).ok(201)
    private.try_post(f"@{person} hello", sender=OWNER).refused(422, "mention.unknown")
    private.api.get(private.at("messages"), handle=person).refused(404, "room.not_found")
    private.api.post(private.at("members"), {"handle": person, "kind": "user"}, handle=OWNER).ok(201)
    assert states(private.post(f"@{person} hello", sender=OWNER)) == {person: "queued"}
    turn = private.take(person)
    assert turn is not None
    private.api.delete(private.at("members", person), handle=OWNER).ok(204)
    private.api.get(private.at("messages"), handle=person).refused(404, "room.not_found")
    private.try_take(person).refused(404, "room.not_found")


@requirement("private:ids")
def test_ids_of_a_private_room_are_worth_nothing_elsewhere(
    hub: Hub, private: Room, machine: Machine, unique: Unique
) -> None:
    """As a message, as what is answered: the same as an id that nobody has."""
    secret = private.post("the secret", sender=OWNER)["id"]
    shared = Room(hub.api, machine, unique("shared")).create()
    for known in (secret, secret[-8:]):
        unknown = str(uuid4())[-len(known) :]
        for target in ("messages", "receipts"):
            parts = ("messages", known) if target == "messages" else ("messages", known, "receipts")
            other = tuple(unknown if part == known else part for part in parts)
            here, there = hub.api.get(shared.at(*parts)), hub.api.get(shared.at(*other))
            assert seen(here, known) == seen(there, unknown)
        answers = [shared.try_post("hello", reply_to=one) for one in (known, unknown)]
        assert seen(answers[0], known) == seen(answers[1], unknown)
    assert shared.contents() == []


@requirement("private:nobody")
def test_a_private_room_has_somebody(hub: Hub, machine: Machine, unique: Unique) -> None:
    """One of nobody would be seen by nobody; its name is the one thing that can be known."""
    name = unique("hidden")
    hub.api.post(path("rooms"), {"name": name, "private": True}).refused(422, "handle.missing")
    assert machine.run("room", "create", name, "--private").status == 2
    hub.api.post(path("rooms"), {"name": name, "private": True}, handle=OWNER).ok(201)
    taken = hub.api.post(path("rooms"), {"name": name.upper()}, handle=STRANGER).refused(409, "room.name_taken")
    assert OWNER not in str(taken)


def open_waits(hub: Hub) -> float:
    """How many waits the hub counts: one of a stranger is shown nowhere else."""
    text = hub.api.get("/metrics").ok(200).body.decode()
    return next(float(line.split()[1]) for line in text.splitlines() if line.startswith("mycelium_open_waits "))


@requirement("private:later")
def test_a_room_made_private_is_gone_for_strangers_at_once(hub: Hub, machine: Machine, unique: Unique) -> None:
    """Members stay; a stranger who watches or waits is told what everybody is told of a room that is deleted."""
    person = unique("person")
    hub.api.post(path("users"), {"handle": person}, handle=OWNER).ok(201)
    room = Room(hub.api, machine, unique("shared"), OWNER).create()
    room.join(MEMBER)
    room.post("old talk", sender=OWNER)
    before = open_waits(hub)
    waiting = machine.start("await", "--room", room.name, "--timeout", "60", handle=person)
    until(lambda: open_waits(hub) > before, "the stranger waits")
    kept = room.wait(MEMBER, "--json", "--timeout", "60")
    with (
        room.api.stream(room.at("stream"), handle=STRANGER) as foreign,
        room.api.stream(room.at("stream"), handle=MEMBER) as own,
    ):
        room.api.patch(room.at(), {"private": True}, handle=MEMBER).ok(200)
        gone = foreign.next("room_deleted")
        assert (gone.id, gone.data) == ("", {"room": room.name})
        assert foreign.rest() == []
        room.post("@member hello", sender=OWNER)
        assert own.until("@member hello")
    assert kept.ended().json["message"]["content"] == "@member hello"
    ended = waiting.ended()
    assert (ended.status, "was deleted while you waited" in ended.err) == (3, True), ended
    room.api.get(room.at("messages"), handle=STRANGER).refused(404, "room.not_found")
    room.api.patch(room.at(), {"private": False}, handle=OWNER).ok(200)
    assert room.api.get(room.at("messages"), handle=STRANGER).ok(200).json["items"][0]["content"] == "@member hello"


@requirement("private:later")
def test_nobody_locks_themselves_out(hub: Hub, machine: Machine, unique: Unique) -> None:
    """Who is no member can't make a room private; nobody at all can't either."""
    room = Room(hub.api, machine, unique("shared"), OWNER).create()
    refused = room.api.patch(room.at(), {"private": True}, handle=STRANGER)
    refused.refused(403, "handle.unregistered")
    room.api.patch(room.at(), {"private": True}).refused(422, "handle.missing")
    assert room.api.get(room.at(), handle=STRANGER).ok(200).json["private"] is False


@requirement("private:command-line")
def test_private_rooms_on_the_command_line(machine: Machine, unique: Unique) -> None:
    """Made, listed in their group, filtered, shared again."""
    mine, other = unique("mine"), unique("other")
    name, shared = unique("hidden"), unique("shared")
    made = machine.run("room", "create", name, "--private", handle=mine).ok().out
    assert f"created private room {name}" in made
    machine.run("room", "create", shared, handle=mine).ok()
    listed = machine.run("room", "ls", handle=mine).ok().out.splitlines()
    start = listed.index("Private")
    assert any(name in line for line in listed[start:])
    assert any(shared in line for line in listed[:start])

    def names(*words: str, handle: str) -> set[str]:
        rows = machine.run("room", "ls", *words, "--json", handle=handle).json["items"]
        return {row["name"] for row in rows} & {name, shared}

    assert (names("--private", handle=mine), names("--shared", handle=mine)) == ({name}, {shared})
    assert names(handle=other) == {shared}
    missing = machine.run("room", "show", name, handle=other)
    assert (missing.status, f"404 Room not found: '{name}'" in missing.err) == (3, True)
    machine.run("room", "set", name, "--shared", handle=mine).ok()
    assert names(handle=other) == {name, shared}
    machine.run("room", "set", name, "--private", handle=mine).ok()
    assert names(handle=other) == {shared}
