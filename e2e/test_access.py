"""Who may do what, asked of every operation as every kind of caller, with a token and without.

The list of operations is the hub's own document, and so is the rule of each (`x-access`): a new one is in it by being
there. What a caller may not see is answered as what is not there, to the letter.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import pytest

from e2e.guarding import OPERATOR
from e2e.harness import Hub, Machine
from e2e.oidc_server import OidcServer
from e2e.requirements import requirement
from e2e.room import Document, Room
from e2e.test_private import Operation, operations, seen
from e2e.web import Api, Reply, path

Unique = Callable[[str], str]
CALLERS = ("stranger", "member", "owner", "agent", "friend")  # friend: in the `allow_from` of the agent
INSIDE = CALLERS[1:]
KINDS = {"stranger": "user", "member": "user", "owner": "user", "agent": "agent", "friend": "user"}
# What may be refused to somebody who sees the room: it is another's record, another's message.
REFUSED = {"keeper": {"record.foreign"}, "author": {"message.not_yours"}, "acting": {"acting.forbidden"}}


@dataclass(frozen=True)
class Cast:
    """A hub where everybody signs in, a private room, and who comes to it, each by a name and a token of their own."""

    url: str
    room: Room
    foreign: str
    message: str
    handles: dict[str, str]
    tokens: dict[str, str]

    def api(self, caller: str) -> Api:
        """The hub, as this caller speaks to it."""
        return Api(self.url, self.tokens[caller])


@pytest.fixture
def cast(guarded_hub: Hub, idp: OidcServer, unique: Unique) -> Iterator[Cast]:
    """Everybody, in a room and outside of it."""
    handles = {caller: unique(caller) for caller in CALLERS}
    tokens = {
        caller: idp.agent_token(handle, mycelium_role="agent") if caller == "agent" else idp.user_token(handle)
        for caller, handle in handles.items()
    }
    machine = Machine(guarded_hub.home.parent / unique("client"), guarded_hub.url)
    room = Room(Api(guarded_hub.url, tokens["owner"]), machine, uuid4().hex, handles["owner"]).create(private=True)
    for caller in CALLERS:
        Api(guarded_hub.url, tokens[caller]).put(path("users", handles[caller]), {}) if caller != "agent" else None
    for caller in ("member", "friend"):
        room.api.post(room.at("members"), {"handle": handles[caller], "kind": "user"}).ok(201)
    record = {"handle": handles["agent"], "kind": "agent", "owner": handles["owner"], "allow_from": [handles["friend"]]}
    room.api.post(room.at("members"), record).ok(201)
    foreign = uuid4().hex
    Api(guarded_hub.url, idp.user_token(unique("elsewhere"))).post(
        path("rooms"), {"name": foreign, "private": True}
    ).ok(201)
    event = {"content": "the secret", "message_type": "event", "metadata": {"kind": "action"}}
    message = Api(guarded_hub.url, tokens["member"]).post(room.at("messages"), event).ok(201).json["id"]
    yield Cast(guarded_hub.url, room, foreign, message, handles, tokens)
    machine.close()


def document(url: str) -> Document:
    """What the hub says of itself; no token is needed for it."""
    found: Document = Api(url).get("/openapi.json").ok(200).json
    return found


def rules(url: str) -> dict[tuple[str, str], Document]:
    """Each operation with what the document says of it."""
    return {
        (method.upper(), where): said
        for where, methods in document(url)["paths"].items()
        for method, said in methods.items()
    }


def in_rooms(cast: Cast) -> list[Operation]:
    """The operations that name a room; `ack` is of a delivery to the agent, which exists."""
    room = cast.room
    room.api.post(room.at("messages"), {"content": f"@{cast.handles['agent']} hello"}).ok(201)
    agent = cast.api("agent")
    turn = agent.post(room.at("await"), {"timeout_s": 0}, session="the agent's").ok(200).json
    return operations(Api(cast.url), str(turn["ack"]))


def ask(api: Api, operation: Operation, room: str, message: str, body: Document | None, **said: Any) -> Reply:
    """One request; of a stream only its beginning."""
    target = operation.target(room, message)
    if operation.streams:
        try:
            api.stream(target, handle=said.get("handle", "")).close()
        except AssertionError:
            pass
        else:
            return Reply(200, {}, b"a stream")
    return api.ask(operation.method, target, body, **said)


@requirement("access:no-token")
def test_without_a_token_nothing_is_told(cast: Cast) -> None:
    """401 with how to sign in, whatever is asked; what is open is open, and tells nothing of a room."""
    api, faults = Api(cast.url), []
    for (method, where), said in rules(cast.url).items():
        for room in (cast.room.name, cast.foreign, uuid4().hex):
            filled = where.replace("{room}", room).replace("{handle}", cast.handles["agent"])
            filled = (
                filled.replace("{message}", cast.message).replace("{task}", "work/one").replace("{key}", "work/one")
            )
            reply = api.ask(method, filled, {} if "requestBody" in said else None)
            is_open = said["x-access"] == "open"
            if is_open == (reply.status == 401):
                faults.append((method, where, said["x-access"], reply.status, reply.body[:200]))
            elif not is_open:
                reply.refused(401, "token.missing")
                assert reply.headers["www-authenticate"].startswith("Bearer"), (method, where)
            elif room.encode() in reply.body:
                faults.append((method, where, "tells of a room", reply.status, reply.body[:200]))
    assert not faults, "\n".join(map(str, faults))


@requirement("access:matrix")
@pytest.mark.parametrize("caller", CALLERS)
def test_who_may_do_what(cast: Cast, caller: str) -> None:
    """Own rooms by the rule of each operation; foreign and absent ones answer the same, by name."""
    found, faults = rules(cast.url), []
    api = cast.api(caller)
    for operation in in_rooms(cast):
        access = found[operation.method, operation.where]["x-access"]
        absent = uuid4().hex
        foreign = ask(api, operation, cast.foreign, cast.message, operation.body)
        missing = ask(api, operation, absent, cast.message, operation.body)
        if seen(foreign, cast.foreign) != seen(missing, absent) or missing.status != 404:
            faults.append((operation.method, operation.where, "foreign", seen(foreign, cast.foreign), missing.body))
        own = ask(api, operation, cast.room.name, cast.message, operation.body)
        if caller == "stranger":
            if seen(own, cast.room.name) != seen(missing, absent):
                faults.append((operation.method, operation.where, "own", seen(own, cast.room.name), missing.body))
        elif not allowed(own, access):
            faults.append((operation.method, operation.where, access, (own.status, own.body), b""))
    assert not faults, "\n".join(map(str, faults))


def allowed(reply: Reply, access: str) -> bool:
    """Whether an answer is one for somebody who sees the room; what was asked may not be there, or be another's."""
    if reply.status == 403:
        return reply.json["slug"] in REFUSED.get(access, set())
    return reply.status not in {401, 500} and b"room.not_found" not in reply.body


@requirement("access:own-name")
@pytest.mark.parametrize("caller", INSIDE)
def test_nobody_speaks_as_another(cast: Cast, caller: str) -> None:
    """By header or body, on every operation that does something: refused, and nothing is done."""
    another = cast.handles["stranger"]
    found, schemas, faults = rules(cast.url), document(cast.url)["components"]["schemas"], []
    api = cast.api(caller)
    asked, before = in_rooms(cast), written(cast)
    for operation in asked:
        said = found[operation.method, operation.where]
        if said["x-access"] not in {"own", "acting", "author"}:
            continue
        tries: list[tuple[Document | None, str]] = [(operation.body, another), (operation.body, another.upper())]
        tries += [({**(operation.body or {}), field: f"@{another}"}, "") for field in speaks(said, schemas)]
        for body, handle in tries:
            reply = ask(api, operation, cast.room.name, cast.message, body, handle=handle)
            allowed = {"handle.forbidden"} | ({"acting.forbidden"} if said["x-access"] == "acting" else set())
            if reply.status != 403 or reply.json["slug"] not in allowed:
                faults.append((operation.method, operation.where, body, handle, reply.status, reply.body[:300]))
    assert not faults, "\n".join(map(str, faults))
    assert written(cast) == before


def written(cast: Cast) -> list[str]:
    """The ids of what stands in the room's channel."""
    return [one["id"] for one in cast.room.api.get(cast.room.at("messages")).ok(200).json["items"]]


def speaks(said: Document, schemas: Document) -> list[str]:
    """The fields of a body that name the caller. An engine's own handle is what the request is about."""
    if "requestBody" not in said or said["operationId"] == "add_engine":
        return []
    schema = said["requestBody"]["content"].get("application/json", {}).get("schema", {})
    fields = schemas.get(schema.get("$ref", "").rpartition("/")[2], schema).get("properties", {})
    return sorted({"handle", "sender_handle"} & set(fields))


@requirement("access:acting")
def test_who_may_act_for_an_agent(cast: Cast) -> None:
    """The agent, its owner and whom it allows; of that room alone."""
    agent = cast.handles["agent"]
    for target, body in (("await", {"timeout_s": 0}), ("presence", {"state": "idle"})):
        answered = {
            caller: cast.api(caller).post(cast.room.at(target), {**body, "handle": agent}).status for caller in INSIDE
        }
        assert answered == {"member": 403, "owner": 204, "agent": 204, "friend": 204}, target
        cast.api("stranger").post(cast.room.at(target), {**body, "handle": agent}).refused(404, "room.not_found")
    elsewhere = uuid4().hex
    member = cast.api("member")
    member.post(path("rooms"), {"name": elsewhere, "private": True}).ok(201)
    for caller in ("owner", "friend"):
        body = {"handle": cast.handles[caller], "kind": "user"}
        member.post(path("rooms", elsewhere, "members"), body).ok(201)
    member.post(path("rooms", elsewhere, "members"), {"handle": agent, "kind": "agent"}).ok(201)
    for caller in ("owner", "friend"):
        wanted = {"timeout_s": 0, "handle": agent}
        cast.api(caller).post(path("rooms", elsewhere, "await"), wanted).refused(403, "acting.forbidden")


@requirement("access:keeper")
def test_whose_record_it_is(cast: Cast) -> None:
    """An agent's record is changed by itself and its owner, a person's by that person."""
    agent, member = cast.handles["agent"], cast.handles["member"]
    target = cast.room.at("members", agent)
    change = {"description": "another"}
    answered = {caller: cast.api(caller).patch(target, change).status for caller in INSIDE}
    assert answered == {"member": 403, "owner": 200, "agent": 200, "friend": 403}
    grab = {"handle": agent, "kind": "agent", "owner": member, "allow_from": [member]}
    cast.api("member").post(cast.room.at("members"), grab).refused(403, "record.foreign")
    cast.api("member").delete(target).refused(403, "record.foreign")
    cast.api("friend").put(path("users", member), {"name": "Somebody Else"}).refused(403, "record.foreign")
    cast.api("member").put(path("users", member), {"name": f"Name of {member}"}).ok(200)
    cast.api("member").post(cast.room.at("await"), {"timeout_s": 0, "handle": agent}).refused(403, "acting.forbidden")


@requirement("access:operator")
def test_an_operator_changes_others_records(cast: Cast, idp: OidcServer, unique: Unique) -> None:
    """In a room that they see, and people's; not what others have said, nor the room."""
    agent, ops = cast.handles["agent"], Api(cast.url, idp.user_token(OPERATOR))
    target = cast.room.at("members", agent)
    ops.put(path("users", OPERATOR), {})
    ops.patch(target, {"notes": "x"}).refused(404, "room.not_found")
    cast.room.api.post(cast.room.at("members"), {"handle": OPERATOR, "kind": "user"}).ok(201)
    assert ops.patch(target, {"owner": cast.handles["member"]}).ok(200).json["owner"] == cast.handles["member"]
    ops.post(cast.room.at("members"), {"handle": agent, "owner": cast.handles["owner"]}).ok(200)
    ops.put(path("users", cast.handles["member"]), {"name": unique("Renamed")}).ok(200)
    ops.patch(cast.room.at("messages", cast.message), {"content": "x"}).refused(403, "message.not_yours")
    ops.post(cast.room.at("messages"), {"content": "x", "sender_handle": agent}).refused(403, "handle.forbidden")
    ops.delete(cast.room.at()).refused(403, "record.foreign")
    ops.delete(target).ok(204)


@requirement("access:author")
def test_whose_message_it_is(cast: Cast) -> None:
    """Its sender changes it, whoever else may act for the sender."""
    target = cast.room.at("messages", cast.message)
    answered = {caller: cast.api(caller).patch(target, {"content": "another"}).status for caller in INSIDE}
    assert answered == {"member": 200, "owner": 403, "agent": 403, "friend": 403}
