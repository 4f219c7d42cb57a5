"""Who wrote it, with sign-in on: by the token alone, on every way that something is written."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from e2e.guarding import NO_LEEWAY, guarded
from e2e.harness import Hub, Machine
from e2e.oidc_server import AUDIENCE, OidcServer
from e2e.requirements import requirement
from e2e.room import Room
from e2e.waiting import until
from e2e.web import Api, Reply, Stream, path

Unique = Callable[[str], str]
FORBIDDEN = 4
FORWARDING = ("Forwarded", "Via", "X-Forwarded-For", "X-Forwarded-Proto", "X-Real-IP", "CF-Connecting-IP")


class Team:
    """A room of alice's at a guarded hub, with bob; each with a token, and a machine that they share."""

    def __init__(self, hub: Hub, idp: OidcServer, unique: Unique) -> None:
        self.hub = hub
        self.alice, self.bob = unique("alice"), unique("bob")
        self.tokens = {handle: idp.user_token(handle) for handle in (self.alice, self.bob)}
        self.machine = Machine(hub.home.parent / unique("client"), hub.url)
        self.room = Room(self.api(self.alice), self.machine, unique("room"), self.alice).create()
        for handle in (self.alice, self.bob):
            self.api(handle).put(path("users", handle), {}).ok(201)

    def api(self, handle: str) -> Api:
        """The hub, as one of them speaks to it."""
        return Api(self.hub.url, self.tokens[handle])

    def ask(self, method: str, *parts: str, body: Any = None, **said: Any) -> Reply:
        """Something of alice's, in the room."""
        return self.api(self.alice).ask(method, self.room.at(*parts), body, **said)

    def posted(self) -> list[tuple[str, str]]:
        """Who has written what into the channel."""
        return [(one["sender_handle"], one["content"]) for one in self.room.page()["items"]]


@pytest.fixture
def team(guarded_hub: Hub, idp: OidcServer, unique: Unique) -> Iterator[Team]:
    """Two people of one room."""
    made = Team(guarded_hub, idp, unique)
    yield made
    made.machine.close()


@requirement("identity:written")
def test_what_is_written_is_by_the_token(team: Team) -> None:
    """Messages, events, memory, tasks, claims, reservations: left out, in another case, or as a session."""
    alice = team.alice
    for named in ({}, {"handle": alice}, {"handle": f"@{alice.upper()}"}, {"handle": f"{alice}#a8f3"}):
        sender = {"sender_handle": named["handle"]} if named else {}
        post = {"content": "hello", **sender}
        assert team.ask("POST", "messages", body=post).ok(201).json["sender_handle"] == alice
        event = {"content": "hello", "message_type": "event", "metadata": {"kind": "concern"}, **sender}
        assert team.ask("POST", "messages", body=event).ok(201).json["sender_handle"] == alice
        assert team.ask("POST", "respond", body={"content": "hello", **named}).ok(201).json["sender_handle"] == alice
        memory = team.ask("PUT", "memory", "notes/one", body={"value": f"of {named}", **named}).json
        assert (memory["created_by"], memory["updated_by"]) == (alice, alice)
        task = team.ask("POST", "tasks", body={"title": "a task", **named}).ok(201).json
        assert team.ask("POST", "tasks", task["key"], "claim", body=named).ok(200).json["holder"] == alice
        assert team.ask("POST", "tasks", task["key"], "resolve", body=named).status == 200
        held = {"patterns": [f"src/{len(named)}"], **named}
        assert team.ask("POST", "reservations", body=held).ok(201).json["items"][0]["holder"] == alice
    by_header = team.ask("POST", "messages", body={"content": "x"}, handle=f"@{alice.upper()}")
    assert by_header.ok(201).json["sender_handle"] == alice
    log = team.ask("GET", "board", "log").ok(200).json
    assert {item["by"] for item in log["items"] if item.get("by")} <= {alice}


@requirement("identity:shared")
def test_a_shared_credential_is_nobody_but_itself(team: Team) -> None:
    """On the command line and over HTTP: send, respond, amend, claim, set memory. Nothing of it is written.

    1. alice's token, under bob's name: every command is refused with one line that says whose token it is
    2. the same over HTTP, by body and by header, however the name is written
    3. bob's message and task are as before, and nothing new is there
    """
    mine = team.api(team.bob).post(team.room.at("messages"), {"content": "bob's own"}).ok(201).json
    task = team.api(team.bob).post(team.room.at("tasks"), {"title": "bob's task"}).ok(201).json["key"]
    env = {"MYCELIUM_AGENT_AUTH_TOKEN": team.tokens[team.alice]}
    for words in (
        ("room", "send", "forged"),
        ("respond", "forged"),
        ("room", "amend", mine["id"], "forged"),
        ("board", "claim", task),
        ("memory", "set", "notes/forged", "forged"),
    ):
        ran = team.machine.run(*words, handle=team.bob, room=team.room.name, env=env).failed(FORBIDDEN)
        assert f"@{team.alice}" in ran.err, ran.err
        assert ran.err.count("\n") == 1, ran.err
    for named in (team.bob, f"@{team.bob.upper()}", f"{team.bob}#1"):
        calls: list[tuple[str, tuple[str, ...], dict[str, Any], str]] = [
            ("POST", ("messages",), {"content": "forged"}, "sender_handle"),
            ("POST", ("respond",), {"content": "forged"}, "handle"),
            ("PATCH", ("messages", mine["id"]), {"content": "forged"}, "sender_handle"),
            ("POST", ("tasks", task, "claim"), {}, "handle"),
            ("PUT", ("memory", "notes/forged"), {"value": "forged"}, "handle"),
        ]
        for method, parts, body, field in calls:
            team.ask(method, *parts, body={**body, field: named}).refused(403, "handle.forbidden")
            team.ask(method, *parts, body=body, handle=named).refused(403, "handle.forbidden")
    team.ask("PATCH", "messages", mine["id"], body={"content": "forged"}).refused(403, "message.not_yours")
    assert not [text for _sender, text in team.posted() if "forged" in text]
    assert (team.bob, "bob's own") in team.posted()
    team.ask("GET", "memory", "notes/forged").refused(404, "memory.not_found")
    assert team.api(team.bob).post(team.room.at("tasks", task, "claim"), {}).ok(200).json["holder"] == team.bob


def read_on(stream: Stream) -> None:
    """Read until the stream ends."""
    while stream.next():
        pass


@requirement("identity:lasting")
def test_what_lasts_ends_with_its_token(own_guarded: Hub, idp: OidcServer, unique: Unique) -> None:
    """A wait is answered as if nothing had come, a stream ends; what comes then is had with the next token."""
    team = Team(own_guarded, idp, unique)
    idp.tokens_live(5)
    try:
        short = Api(own_guarded.url, idp.user_token(team.bob))
    finally:
        idp.tokens_live(3600)
    waited: list[int] = []
    wait = {"timeout_s": 600, "confirm": True}
    waiting = threading.Thread(target=lambda: waited.append(short.post(team.room.at("await"), wait).status))
    waiting.start()
    with short.stream(team.room.at("stream"), within_s=30) as stream, pytest.raises(EOFError):
        read_on(stream)
    waiting.join(30)
    assert waited == [204]
    short.get(team.room.at("messages")).refused(401, "token.refused")
    team.ask("POST", "messages", body={"content": f"@{team.bob} still there?"}).ok(201)
    got = team.api(team.bob).post(team.room.at("await"), wait).ok(200).json
    assert got["message"]["content"] == f"@{team.bob} still there?"


@pytest.fixture
def own_guarded(idp: OidcServer, tmp_path: Path) -> Iterator[Hub]:
    """A hub of the test's own, without leeway."""
    found = Hub(tmp_path / "own", env=guarded(idp) | NO_LEEWAY).start()
    yield found
    assert not found.errors()
    found.close()


@requirement("identity:turned-on", "identity:localhost")
def test_sign_in_is_turned_on_at_a_hub_that_runs(own_hub: Hub, idp: OidcServer) -> None:
    """As the how-to says it, and off again. An issuer that can't be is told, and nothing is touched.

    1. enabled and audience by `config set`, issuers as tables of the file: `config apply` tells the hub
    2. /health says it; this machine needs no token, what came through a proxy does, and a wrong token is refused
    3. a table that can't be is refused in one line, and the hub goes on
    4. a trusted proxy: this machine needs a token too
    """
    run, api = own_hub.machine.run, own_hub.api
    api.post(path("rooms"), {"name": "before"}, handle="avery").ok(201)
    run("config", "set", "auth.enabled", "true").ok()
    run("config", "set", "auth.audience", AUDIENCE).ok()
    file = own_hub.home / "config.toml"
    file.write_text(file.read_text() + f'\n[[auth.issuers]]\nissuer = "{idp.issuer}"\nrole = "user"\n')
    run("config", "apply", within_s=60).ok()
    health = api.get("/health").ok(200).json
    assert health["auth"]["issuers"] == [idp.issuer]
    assert (health["auth"]["enabled"], health["auth"]["audience"]) == (True, AUDIENCE)
    assert health["auth"]["localhost_bypass"] is True
    assert [line for line in health["warnings"] if "sign" in line] == []
    api.get(path("rooms"), handle="avery").ok(200)
    for header in FORWARDING:
        api.get(path("rooms"), headers={header: "127.0.0.1"}).refused(401, "token.missing")
    Api(own_hub.url, "not.a.jwt").get(path("rooms")).refused(401, "token.refused")
    said = Api(own_hub.url, idp.user_token("alice")).get(path("whoami")).ok(200).json
    assert (said["handle"], said["proven"], said["role"], said["issuer"]) == ("alice", True, "user", idp.issuer)
    before = file.read_text()
    file.write_text(before.replace('role = "user"', 'role = "boss"'))
    refused = run("config", "apply", within_s=60)
    assert refused.status != 0
    assert "issuer 1: role is 'boss': use user or agent" in refused.err + refused.out
    file.write_text(before)
    run("config", "set", "runtime.trusted_proxies", "*").ok()
    run("config", "apply", within_s=60).ok()
    api.get(path("rooms"), handle="avery").refused(401, "token.missing")
    Api(own_hub.url, idp.user_token("alice")).get(path("rooms")).ok(200)


@requirement("identity:address")
def test_with_sign_in_any_address_will_do_and_what_is_missing_is_said(tmp_path: Path) -> None:
    """No issuer: it starts, lets nobody in, and says why; no audience is said in its log too."""
    env = {"MYCELIUM_BIND_ADDR": "0.0.0.0", "MYCELIUM_AUTH_ENABLED": "true", "MYCELIUM_AUTH_LOCALHOST_BYPASS": "false"}
    hub = Hub(tmp_path / "hub", env=env).start()
    try:
        problem = hub.api.get(path("rooms")).refused(503, "auth.unavailable")
        assert "no issuer is trusted" in problem["detail"]
        hub.api.get("/healthz").ok(200)
        warnings = hub.api.get("/health").ok(200).json["warnings"]
        assert any("no issuer is trusted" in line for line in warnings), warnings
        assert not any("auth.insecure" in line for line in warnings), warnings
        file = hub.home / "config.toml"
        file.write_text("[[auth.issuers]]\nissuer = 'https://sso.example.com'\n")
        hub.machine.run("config", "apply", within_s=60, env=env).ok()
        hub.api.get(path("rooms")).refused(401, "token.missing")
        warnings = hub.api.get("/health").ok(200).json["warnings"]
        assert any("auth.audience is not set" in line for line in warnings), warnings
        logs = list((hub.home / "logs").glob("*.log"))
        until(lambda: any("auth.audience is not set" in log.read_text() for log in logs), "the log says it too")
    finally:
        hub.close()
