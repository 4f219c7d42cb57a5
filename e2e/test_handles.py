"""Handles and names that can't be had, since they are the hub's or pass for another's; and whose records are.

On a hub where a handle is a claim, and on one where a token proves it.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest

from e2e.harness import Hub, Machine
from e2e.oidc_server import OidcServer
from e2e.requirements import requirement
from e2e.room import Room, states
from e2e.web import Api, Reply, path

Unique = Callable[[str], str]
# Cyrillic, full width, the Kelvin sign, of no width, turned round, dotless.
OTHER_LETTERS = ("аvery", "ａvery", "\u212aim", "ki\u200bm", "\u202ekim", "kim\u200f", "kım")


@requirement("handles:letters")
@pytest.mark.parametrize("handle", OTHER_LETTERS, ids=ascii)
def test_letters_of_other_alphabets_are_refused_wherever_a_handle_is_taken(room: Room, handle: str) -> None:
    """As a member, a person, an engine; as owner and among who may act; in a body, in an address, in the header."""
    at, api = room.at, room.api
    for reply in (
        api.post(at("members"), {"handle": handle}, handle="avery"),
        api.post(at("members"), {"handle": "bot", "owner": handle}, handle="avery"),
        api.post(at("members"), {"handle": "bot", "allow_from": [handle]}, handle="avery"),
        api.post(at("engines"), {"handle": handle, "kind": "hello"}, handle="avery"),
        api.post(path("users"), {"handle": handle}, handle="avery"),
        api.put(path("users", handle), {}, handle="avery"),
        api.get(at("members", handle), handle="avery"),
        api.delete(at("members", handle), handle="avery"),
        api.post(at("messages"), {"content": "hello", "sender_handle": handle}),
        api.put(at("memory", "work", "x"), {"value": "x", "handle": handle}),
        api.get(at("messages"), headers={"Mycelium-Handle": handle.encode().decode("latin-1")}),
    ):
        reply.refused(422, "handle.invalid")
    assert api.get(at("members"), handle="avery").ok(200).json["items"] == []
    assert room.contents() == []


@requirement("handles:reserved")
@pytest.mark.parametrize(
    "handle", ["system", "Hub", "all", "everyone", "here", "board", "aligner", "worker", "a11", "b0ard", "operator"]
)
def test_names_of_the_hub_are_nobodys(machine: Machine, room: Room, handle: str) -> None:
    """Neither an agent's nor a person's; an engine is called like an engine."""
    room.api.post(room.at("members"), {"handle": handle}, handle="avery").refused(422, "handle.invalid")
    room.api.put(path("users", handle), {}, handle="avery").refused(422, "handle.invalid")
    if handle == "aligner":
        room.api.post(room.at("engines"), {"handle": handle, "kind": "hello"}, handle="avery").ok(201)
        said = machine.run("agent", "create", handle, room=room.name)
        assert (said.status, "another handle" in said.err) == (2, True), said
        room.api.put(path("users", handle), {}, handle="avery").refused(422, "handle.invalid")


@requirement("handles:reserved")
@pytest.mark.parametrize("handle", ["system", "hub", "all"])
def test_nobody_speaks_as_the_hub(room: Room, handle: str) -> None:
    """Although whoever is not registered may post and write."""
    room.try_post("hello", sender=handle).refused(422, "handle.invalid")
    room.api.post(room.at("messages"), {"content": "hello", "sender_handle": handle}).refused(422, "handle.invalid")
    room.api.put(room.at("memory", "work", "x"), {"value": "x"}, handle=handle).refused(422, "handle.invalid")
    room.api.post(room.at("tasks"), {"title": "x"}, handle=handle).refused(422, "handle.invalid")
    assert room.contents() == []


@requirement("handles:alike")
def test_a_handle_that_passes_for_another_is_taken(machine: Machine, room: Room) -> None:
    """In its room; the refusal says whose it is, and who is there comes back under its own name."""
    room.join("engineer")
    for handle in ("eng1neer", "engin-eer", "e.n.g.i.n.e.e.r", "Engineer_", "englneer"):
        problem = room.api.post(room.at("members"), {"handle": handle}, handle="kim").refused(409, "handle.taken")
        assert (problem["near"], "@engineer" in problem["detail"]) == (["engineer"], True)
    said = machine.run("agent", "create", "eng1neer", room=room.name)
    assert (said.status, "can be taken for @engineer" in said.err) == (1, True), said
    machine.run("agent", "rm", "engineer", room=room.name).ok()
    room.api.post(room.at("members"), {"handle": "eng1neer"}, handle="kim").refused(409, "handle.taken")
    room.join("engineer")
    room.join("engineer-2")


@requirement("handles:at-once")
def test_of_several_that_look_alike_and_come_at_once_one_is_let_in(room: Room, unique: Unique) -> None:
    """As agents of one room and as people; the others are told that it is taken, whoever came first."""
    name = unique("m")
    looks = [f"{name}-scout", f"{name}-sc0ut", f"{name}scout", f"{name}sc0ut"]
    with ThreadPoolExecutor(8) as many:
        agents = [many.submit(room.api.post, room.at("members"), {"handle": one}, handle="kim") for one in looks]
        people = [many.submit(room.api.post, path("users"), {"handle": one}) for one in looks]
        replies = [asked.result() for asked in (*agents, *people)]
    assert sorted(reply.status for reply in replies) == [201] + [409] * 7
    assert {reply.json["slug"] for reply in replies if reply.status == 409} == {"handle.taken"}


@requirement("handles:person")
def test_a_persons_name_is_nobody_elses_handle(hub: Hub, machine: Machine, room: Room, unique: Unique) -> None:
    """In any room, as an agent, an engine or a person; until they are called something else."""
    person, first = unique("person"), unique("zora").replace("-", "")
    machine.run("user", "create", person, "--name", f"{first.title()} Quinn").ok()
    for handle in (f"{first}-quinn", f"{first}quinn", f"{first}.quinn", f"{first}_qu1nn"):
        told = room.api.post(room.at("members"), {"handle": handle}, handle="avery").refused(409, "handle.taken")
        assert f"@{person}" in told["detail"]
        room.api.put(path("users", handle), {}, handle="avery").refused(409, "handle.taken")
        room.api.post(room.at("engines"), {"handle": handle, "kind": "hello"}, handle="avery").refused(
            409, "handle.taken"
        )
    hub.api.put(path("users", person), {"name": f"Name of {person}"}, handle=person).ok(200)
    room.join(f"{first}-quinn")


@requirement("handles:names")
def test_a_name_that_passes_for_anothers_is_refused(hub: Hub, machine: Machine, unique: Unique) -> None:
    """Or hides something, or mixes alphabets; two people may share a name."""
    first = unique("vera").replace("-", "").title()
    one, two = unique("person"), unique("person")
    hub.api.put(path("users", one), {"name": f"{first} Quinn"}, handle=one).ok(201)
    for name in (f"{first}  Qu1nn", f"{first}Quinn", f"{first}.Quinn", one):
        told = hub.api.put(path("users", two), {"name": name}, handle=two).refused(409, "name.taken")
        assert f"@{one}" in told["detail"]
    for name in (f"{first} Quіnn", f"{first}\u200bQuinn", f"\u202e{first}", f"{first} (@{one})", "\x1b[31mRed"):
        hub.api.put(path("users", two), {"name": name}, handle=two).refused(422, "request.invalid")
    for name in ("System", "hub", "A11"):
        hub.api.put(path("users", two), {"name": name}, handle=two).refused(409, "name.taken")
    said = machine.run("iam", two, "--name", f"{first} Qu1nn")
    assert "can be taken for" in said.err, said
    hub.api.put(path("users", two), {"name": f"{first.upper()} Quinn"}, handle=two).ok(201)


@requirement("handles:private")
def test_a_likeness_tells_nothing_of_a_private_room(hub: Hub, machine: Machine, unique: Unique) -> None:
    """Only who sees the agent is told of it."""
    room = Room(hub.api, machine, unique("secret"), "owner").create(private=True)
    agent = unique("spymaster").replace("-", "-x")
    room.join(agent)
    like = agent.replace("-x", "x-")
    told = hub.api.put(path("users", like), {}, handle="owner").refused(409, "handle.taken")
    assert f"@{agent}" in told["detail"]
    hub.api.put(path("users", like), {}, handle="stranger").ok(201)


@requirement("handles:capitals")
def test_an_agent_registered_with_capitals_is_one_with_its_small_letters(machine: Machine, room: Room) -> None:
    """Mentioned, waited for, assigned, as an author, as a holder, as a sender, however it is written."""
    machine.run("agent", "create", "Release-Agent", room=room.name).ok()
    waiting = room.wait("RELEASE-agent", "--json", "--timeout", "20")
    assert states(room.post("@release-AGENT please")) == {"release-agent": "woken"}
    assert waiting.ended().json["message"]["content"] == "@release-AGENT please"
    for handle in ("Release-Agent", "release-agent"):
        machine.run("respond", "on it", handle=handle, room=room.name).ok()
    senders = {message["sender_handle"] for message in room.page()["items"] if message["content"] == "on it"}
    assert senders == {"release-agent"}
    room.api.post(room.at("tasks"), {"title": "Ship it", "assign": "RELEASE-AGENT"}, handle="avery").ok(201)
    turn = room.take("Release-Agent", session="s2", timeout_s=30)
    while turn is not None and turn["reason"] != "assigned":
        turn = room.take("Release-Agent", session="s2", timeout_s=30)
    assert turn is not None
    claim = room.api.post(room.at("tasks", "ship-it", "claim"), {"handle": "Release-AGENT"}).ok(200).json
    assert claim["holder"] == "release-agent"
    room.api.put(room.at("memory", "work", "notes"), {"value": "x", "handle": "RELEASE-agent"}).ok(201)
    found = room.api.get(room.at("memory", "work", "notes"), handle="avery").ok(200).json
    assert (found["created_by"], found["updated_by"]) == ("release-agent", "release-agent")
    assert [row["handle"] for row in room.api.get(room.at("members"), handle="avery").json["items"]] == [
        "release-agent"
    ]


@requirement("handles:added")
def test_creating_an_agent_again_adds_who_may_act_for_it(machine: Machine, room: Room) -> None:
    """And its owner, and the rest stays; a change of the record can take away."""
    machine.run("agent", "create", "bot", "--description", "a bot", room=room.name).ok()
    machine.run("agent", "create", "bot", "--owner", "alice", room=room.name).ok()
    for one in ("ops-lead", "kim"):
        machine.run("agent", "create", "bot", "--allow-from", one, room=room.name).ok()
    record = room.member("bot")
    assert (record["description"], record["owner"]) == ("a bot", "alice")
    assert record["allow_from"] == ["ops-lead", "kim"]
    room.api.patch(room.at("members", "bot"), {"allow_from": ["kim"], "owner": ""}, handle="avery").ok(200)
    record = room.member("bot")
    assert (record["owner"], record["allow_from"]) == ("", ["kim"])


@dataclass(frozen=True)
class Signed:
    """A room of a hub where everybody signs in, and how each of its people speaks to the hub."""

    room: Room
    url: str
    idp: OidcServer

    def ask(self, handle: str, method: str, target: str, body: object = None) -> Reply:
        """As somebody who has signed in."""
        is_agent = handle.startswith(("bot", "stray"))
        token = self.idp.agent_token(handle, mycelium_role="agent") if is_agent else self.idp.user_token(handle)
        return Api(self.url, token).ask(method, target, body)

    def member(self, handle: str) -> str:
        """Address of a member."""
        return self.room.at("members", handle)


@pytest.fixture
def signed(guarded_hub: Hub, idp: OidcServer, unique: Unique) -> Iterator[Signed]:
    """A new room of avery's."""
    machine = Machine(guarded_hub.home.parent / unique("client"), guarded_hub.url)
    room = Room(Api(guarded_hub.url, idp.user_token("avery")), machine, unique("signed"), "").create()
    yield Signed(room, guarded_hub.url, idp)
    machine.close()


@requirement("handles:owned")
def test_an_agents_record_is_changed_by_itself_its_owner_or_who_added_it(signed: Signed) -> None:
    """A token proves who asks; to others the record is somebody else's."""
    add = signed.room.at("members")
    signed.ask("lee", "POST", add, {"handle": "stray"}).ok(201)
    signed.ask("lee", "POST", add, {"handle": "bot", "owner": "kim", "allow_from": ["eve"]}).ok(201)
    for handle, allowed in (("stray", ["stray", "lee"]), ("bot", ["bot", "kim"])):
        for caller in allowed:
            signed.ask(caller, "PATCH", signed.member(handle), {"notes": caller}).ok(200)
            signed.ask(caller, "POST", add, {"handle": handle, "notes": "again"}).ok(200)
        for caller in {"avery", "eve", "lee", "kim"} - set(allowed):
            for body in ({"notes": "x"}, {"owner": caller}, {"allow_from": [caller]}, {"paused": True}):
                signed.ask(caller, "PATCH", signed.member(handle), body).refused(403, "record.foreign")
                signed.ask(caller, "POST", add, {"handle": handle, **body}).refused(403, "record.foreign")
    signed.ask("eve", "DELETE", signed.member("bot")).refused(403, "record.foreign")
    signed.ask("lee", "DELETE", signed.member("bot")).refused(403, "record.foreign")
    signed.ask("kim", "DELETE", signed.member("bot")).ok(204)
    signed.ask("eve", "POST", add, {"handle": "bot", "owner": "eve"}).refused(403, "record.foreign")
    signed.ask("avery", "DELETE", signed.member("stray")).ok(204)


@requirement("handles:owned")
def test_a_person_is_made_by_anybody_and_changed_by_themselves(signed: Signed, unique: Unique) -> None:
    """Nobody renames another, and no agent makes itself a person."""
    one, other = unique("kim"), unique("eve")
    signed.ask(other, "POST", path("users"), {"handle": one}).ok(201)
    signed.ask(other, "PUT", path("users", one), {"name": "Not Kim"}).refused(403, "record.foreign")
    signed.ask(one, "PUT", path("users", one), {"name": f"Kim {one}"}).ok(200)
    robot = unique("bot")
    signed.ask(robot, "PUT", path("users", robot), {}).refused(403, "record.foreign")
    signed.ask(robot, "POST", signed.room.at("members"), {"handle": robot}).ok(201)
    signed.ask(robot, "PUT", path("users", robot), {}).refused(403, "record.foreign")
    signed.ask(one, "POST", signed.room.at("members"), {"handle": one, "kind": "agent"}).refused(409, "handle.taken")


@requirement("handles:owned")
def test_a_room_and_its_engines_are_their_makers(signed: Signed) -> None:
    """Deleted by who made it; an engine removed by who added it and by who made the room."""
    at = signed.room.at
    signed.ask("lee", "POST", at("engines"), {"handle": "greeter", "kind": "hello"}).ok(201)
    signed.ask("eve", "POST", at("engines"), {"handle": "greeter", "kind": "hello", "description": "x"}).refused(
        403, "record.foreign"
    )
    signed.ask("eve", "DELETE", at("engines", "greeter")).refused(403, "record.foreign")
    signed.ask("avery", "DELETE", at("engines", "greeter")).ok(204)
    signed.ask("eve", "DELETE", at()).refused(403, "record.foreign")
    signed.ask("avery", "DELETE", at()).ok(204)


@requirement("handles:reserved", "handles:alike")
def test_a_token_for_a_name_of_the_hub_is_refused_and_a_likeness_is_not(signed: Signed, unique: Unique) -> None:
    """The issuer says who somebody is; what only looks like them is kept from others."""
    signed.ask("hub", "GET", path("rooms")).refused(401, "token.refused")
    person = unique("mira")
    signed.ask(person, "PUT", path("users", person), {}).ok(201)
    like = person.replace("mira", "mlra")
    signed.ask("eve", "POST", path("users"), {"handle": like}).refused(409, "handle.taken")
    signed.ask("eve", "POST", signed.room.at("members"), {"handle": like}).refused(409, "handle.taken")
    signed.ask(like, "PUT", path("users", like), {}).ok(201)
