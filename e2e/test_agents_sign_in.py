"""Agents with credentials of their own, at a hub where everybody signs in: people at one issuer, agents at another."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from e2e import guarding, oidc_server
from e2e.harness import Hub, Machine
from e2e.oidc_server import OidcServer
from e2e.processes import Background
from e2e.requirements import requirement
from e2e.room import Room
from e2e.searching import contents
from e2e.waiting import until
from e2e.web import Api, path

Unique = Callable[[str], str]
FORBIDDEN, REFUSED = 4, 401


@pytest.fixture(scope="module")
def agents(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OidcServer]:
    """The issuer of the agents; its tokens last as long as a test says."""
    with oidc_server.started(tmp_path_factory.mktemp("agents"), realm="agents") as server:
        yield server


@pytest.fixture(scope="module")
def guarded(idp: OidcServer, agents: OidcServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    """A hub where nobody is anybody without a token, not on this machine either."""
    env = guarding.guarded(idp, {"issuer": agents.issuer, "role": "agent"}) | guarding.NO_LEEWAY
    found = Hub(tmp_path_factory.mktemp("guarded") / "hub", env=env).start()
    yield found
    assert not found.errors()
    found.close()


class Team:
    """A room of avery's with one agent, and a machine where that agent has a credential."""

    def __init__(self, idp: OidcServer, agents: OidcServer, room: Room, agent: str) -> None:
        self.idp = idp
        self.agents = agents
        self.room = room
        self.agent = agent
        self.machine = room.machine
        self.secret = ""

    def give_credential(self, client_id: str = "") -> None:
        """The agent's client at its issuer, its secret on the machine."""
        self.secret = self.agents.add_agent(client_id or self.agent)
        words = ["agent", "credential", "set", self.agent, "--secret-stdin"]
        words += ["--client-id", client_id] if client_id else []
        self.machine.run(*words, stdin=self.secret.encode()).ok()

    def loop(self, *words: str) -> Background:
        """`await --loop` as the agent, once the hub sees it waiting."""
        return self.room.wait(self.agent, "--loop", *words)

    def person(self, handle: str) -> dict[str, str]:
        """The environment of a shell that has this person's token."""
        return {"MYCELIUM_AGENT_AUTH_TOKEN": self.idp.user_token(handle)}


@pytest.fixture
def team(guarded: Hub, idp: OidcServer, agents: OidcServer, unique: Unique, tmp_path: Path) -> Iterator[Team]:
    """A new room, a new agent, a new machine."""
    machine = Machine(tmp_path / "client", guarded.url)
    owner, agent = unique("avery"), unique("agent")
    api = Api(guarded.url, idp.user_token(owner))
    api.put(path("users", owner), {}).ok(201)
    room = Room(api, machine, unique("room"), owner).create()
    room.join(agent, owner=owner)
    for key, value in {"issuer": agents.issuer, "audience": "mycelium"}.items():
        machine.run("config", "set", f"agent_auth.{key}", value).ok()
    found = Team(idp, agents, room, agent)
    yield found
    agents.tokens_live(3600)
    machine.close()


def post(team: Team, content: str) -> dict[str, object]:
    """A message of the room's owner."""
    message: dict[str, object] = team.room.api.post(team.room.at("messages"), {"content": content}).ok(201).json
    return message


@requirement("agents:sign-in:own-token")
def test_an_agent_writes_as_itself_from_a_shell_where_a_person_is_signed_in(team: Team) -> None:
    """It waits and answers with its own token; the person's commands in the same shell are the person's."""
    team.give_credential()
    team.machine.run("config", "set", "login.audience", "mycelium").ok()
    login = team.machine.start("login", "--device", "--issuer", team.idp.issuer)

    def code() -> str | None:
        found = re.search(r"enter the code (\S+)", "".join(login.err))
        return found[1] if found else None

    team.idp.enter_code(until(code, "a code"), team.room.owner)
    assert login.ended().status == 0
    post(team, f"@{team.agent} hello")
    words = ["--handle", team.agent, "--room", team.room.name]
    got = team.machine.run("await", *words, "--timeout", "10", "--json", session="s1").json
    assert got["message"]["content"] == f"@{team.agent} hello"
    answer = team.machine.run("respond", *words, "on it", "--json", session="s1").json
    assert answer["sender_handle"] == team.agent
    own = team.machine.run("room", "send", "--room", team.room.name, "mine", "--json").json
    assert own["sender_handle"] == team.room.owner


@requirement("agents:sign-in:own-token")
def test_each_agent_of_a_machine_has_its_own_token(team: Team, unique: Unique) -> None:
    """And one without a credential sends none: that of another never stands in for it."""
    team.give_credential()
    other = unique("other")
    team.room.join(other, owner=team.room.owner)
    for handle, name in ((team.agent, team.agent), (f"@{team.agent.upper()}", team.agent)):
        told = team.machine.run("whoami", "--json", handle=handle).json
        assert (told["handle"], told["registered"], told["kind"]) == (name, True, "agent")
    refused = team.machine.run("respond", "--room", team.room.name, "hello", handle=other).failed(FORBIDDEN)
    assert refused.err == (
        f"error: the hub at {team.machine.url} wants to know who you are, and no token was sent. Next: mycelium login"
        f" (or, for an agent of this machine: mycelium agent credential set {other})\n"
    )


@requirement("agents:sign-in:environment")
def test_a_container_that_runs_one_agent_needs_no_file(team: Team, guarded: Hub, tmp_path: Path) -> None:
    """Everything stands in its environment; nothing is set on the machine."""
    client = f"client-of-{team.agent}"
    team.agents.says_of(client, sub=team.agent)
    env = {
        "MYCELIUM_AGENT_AUTH_ISSUER": team.agents.issuer,
        "MYCELIUM_AGENT_AUTH_CLIENT_ID": team.agent,
        "MYCELIUM_AGENT_AUTH_CLIENT_SECRET": team.agents.add_agent(team.agent),
        "MYCELIUM_AGENT_AUTH_AUDIENCE": "mycelium",
        "MYCELIUM_HOME": "/dev/null/nowhere",
    }
    container = Machine(tmp_path / "container", guarded.url)
    post(team, f"@{team.agent} hello")
    done = container.run(
        "await",
        "--exec",
        'mycelium respond "on it"',
        "--timeout",
        "10",
        handle=team.agent,
        room=team.room.name,
        env=env,
    )
    assert done.status == 0, done
    reply = team.room.page()["items"][0]
    assert (reply["content"], reply["sender_handle"]) == ("on it", team.agent)


@requirement("agents:sign-in:as-it-is")
def test_a_token_from_somewhere_else_is_sent_as_it_is(team: Team) -> None:
    """One of a CI job, say; when the hub refuses it, the line says where it stands."""
    env = {"MYCELIUM_AGENT_AUTH_TOKEN": team.agents.agent_token(team.agent)}
    told = team.machine.run("whoami", "--json", handle=team.agent, env=env).json
    assert (told["handle"], told["registered"]) == (team.agent, True)
    env = {"MYCELIUM_AGENT_AUTH_TOKEN": team.agents.agent_token(team.agent, audience="another program")}
    ran = team.machine.run("room", "ls", handle=team.agent, env=env).failed(FORBIDDEN)
    assert ran.err.startswith("error: token rejected: ")
    assert ran.err.endswith(". Next: set MYCELIUM_AGENT_AUTH_TOKEN to a new one\n")
    assert env["MYCELIUM_AGENT_AUTH_TOKEN"] not in ran.err


@requirement("agents:sign-in:renewed")
def test_an_expired_token_is_renewed_between_waits_without_a_word(team: Team) -> None:
    """A loop outlives many tokens, and what comes meanwhile is handed out once."""
    team.agents.tokens_live(2)
    team.give_credential()
    before = team.agents.requests.get("/token", 0)
    looping = team.loop("--json")
    until(lambda: team.agents.requests["/token"] >= before + 3, "the third token")
    post(team, f"@{team.agent} still there?")
    until(lambda: len(looping.out) == 1, "the message")
    assert json.loads(looping.out[0])["message"]["content"] == f"@{team.agent} still there?"
    assert looping.alive
    assert looping.err == []


@requirement("agents:sign-in:one-request")
def test_twenty_commands_at_once_ask_for_one_token(team: Team) -> None:
    """All are let in, with the token that one of them got."""
    team.give_credential()
    before = team.agents.requests.get("/token", 0)
    started = [team.machine.start("whoami", "--json", handle=team.agent) for _ in range(20)]
    ended = [one.ended(60) for one in started]
    assert {(one.status, one.err, one.json["kind"]) for one in ended} == {(0, "", "agent")}
    assert team.agents.requests["/token"] == before + 1


@requirement("agents:sign-in:revoked", "await:loop:refused")
def test_a_loop_ends_when_its_client_is_revoked_and_nothing_is_lost(team: Team, tmp_path: Path) -> None:
    """In the middle of a run; with --exec what came is not parked, and is there for the next who may."""
    team.agents.tokens_live(2)
    team.give_credential()
    program = f"cat >> {tmp_path}/got; false"
    looping = team.loop("--exec", program)
    team.agents.remove_agent(team.agent)
    ended = looping.ended(30)
    assert ended.status == FORBIDDEN
    warning, error = ended.err.splitlines()
    assert warning == (
        f"warning: @{team.agent} has no token: {team.agents.issuer} gives the client {team.agent} none"
        f" (invalid_client). Going on without. Next: mycelium agent credential show {team.agent}"
    )
    assert error.startswith("error: ")
    assert error.endswith(f". Next: mycelium agent credential show {team.agent}")
    message = post(team, f"@{team.agent} one")
    team.agents.tokens_live(3600)
    team.give_credential()
    got = team.machine.run("await", "--timeout", "10", "--json", handle=team.agent, room=team.room.name).json
    assert (got["message"]["id"], got["redelivered"]) == (message["id"], False)


@requirement("await:loop:refused")
def test_a_message_is_not_lost_when_the_identity_is_while_a_command_has_it(team: Team, tmp_path: Path) -> None:
    """The loop can't tell the hub that it is done, so the message comes again, to the next that may have it."""
    team.agents.tokens_live(2)
    team.give_credential()
    gate, taken = tmp_path / "gate", tmp_path / "taken"
    looping = team.loop("--exec", f"touch {taken}; while [ ! -e {gate} ]; do sleep 0.05; done")
    message = post(team, f"@{team.agent} one")
    until(taken.exists, "the command has it")
    team.agents.remove_agent(team.agent)
    kept = json.loads((team.machine.home / "agent-tokens" / f"{team.agent}.json").read_text())
    (team.machine.home / "agent-tokens" / f"{team.agent}.json").write_text(json.dumps(kept | {"token": "ey.no.good"}))
    gate.touch()
    assert looping.ended(30).status == FORBIDDEN
    team.agents.tokens_live(3600)
    team.give_credential()
    got = team.machine.run("await", "--timeout", "10", "--json", handle=team.agent, room=team.room.name).json
    assert (got["message"]["id"], got["redelivered"]) == (message["id"], True)


@requirement("await:loop:refused")
def test_a_loop_for_an_agent_of_somebody_else_ends_with_what_would_allow_it(team: Team, unique: Unique) -> None:
    """At once, with the command that grants it; once granted it goes, and when that is taken back it ends."""
    friend = unique("friend")
    env = team.person(friend)
    Api(team.machine.url, team.idp.user_token(friend)).put(path("users", friend), {}).ok(201)
    words = ["await", "--handle", team.agent, "--room", team.room.name, "--loop"]
    refused = team.machine.run(*words, env=env).failed(FORBIDDEN)
    assert refused.err.count("\n") == 1
    grants = f"mycelium agent create {team.agent} --room {team.room.name} --allow-from {friend}"
    assert refused.err.endswith(f"nor in its allow-from; its owner can change that. Next: {grants}\n")
    owner = team.person(team.room.owner)
    grant = ["agent", "create", team.agent, "--room", team.room.name, "--allow-from", friend]
    team.machine.run(*grant, env=owner).ok()
    looping = team.room.wait(team.agent, "--handle", team.agent, "--loop", env=env)
    agent = Api(team.machine.url, team.agents.agent_token(team.agent))
    agent.patch(team.room.at("members", team.agent), {"allow_from": []}).ok(200)
    message = post(team, f"@{team.agent} one")
    ended = looping.ended(30)
    assert (ended.status, ended.out) == (FORBIDDEN, "")
    got = agent.post(team.room.at("await"), {"timeout_s": 10}).ok(200).json
    assert (got["message"]["id"], got["redelivered"]) == (message["id"], False)


@requirement("agents:sign-in:own-token")
def test_who_speaks_under_another_handle_is_told_who_they_are(team: Team) -> None:
    """A write is refused; the line names both, and the command that shows where the handle comes from."""
    env = team.person(team.room.owner)
    ran = team.machine.run("room", "send", "--room", team.room.name, "hello", handle=team.agent, env=env)
    ran.failed(FORBIDDEN)
    assert ran.err == (
        f"error: the token is @{team.room.owner}'s, and the request names @{team.agent}."
        f" Next: mycelium whoami --sources (MYCELIUM_AGENT_HANDLE says @{team.agent})\n"
    )


@requirement("handles:capitals")
def test_an_agent_registered_with_capitals_is_mentioned_assigned_and_waited_for(team: Team, unique: Unique) -> None:
    """However it is written, it is one agent: `Sec` and `sec`, also where its client's id has capitals."""
    name = unique("Sec")
    handle = name.lower()
    env = team.person(team.room.owner)
    room = ["--room", team.room.name]
    team.machine.run("agent", "create", name, *room, env=env).ok()
    team.agent = name
    team.give_credential(client_id=name)
    sent = team.machine.run("room", "send", *room, f"@{name} one", "--json", env=env).json
    assert [mention["handle"] for mention in sent["mentions"]] == [handle]
    team.machine.run("board", "new", "Pick", "--assign", f"@{name}", *room, env=env).ok()
    words = ["await", "--handle", f"@{name}", *room, "--timeout", "10", "--json"]
    assert team.machine.run(*words, session="s1").json["message"]["content"] == f"@{name} one"
    assert team.machine.run(*words, session="s1").json["reason"] == "assigned"
    task = team.room.api.get(team.room.at("board", filter="all")).ok(200).json["items"][0]
    assert task["assignee"] == handle
    assert team.machine.run("whoami", "--json", handle=name).json["handle"] == handle


@requirement("agents:sign-in:secrets")
def test_secrets_and_tokens_are_nowhere_but_in_their_files(team: Team, guarded: Hub) -> None:
    """Not in what any command says, not in a log or a table of the hub; and their files are the user's alone."""
    team.give_credential()
    post(team, f"@{team.agent} hello")
    lines = [
        "await --timeout 10 --json --verbose",
        "respond on-it --verbose",
        "respond @nobody-at-all --verbose",
        "whoami --sources --verbose",
        "doctor --verbose",
        "config show --json",
        f"agent credential show {team.agent} --json --verbose",
        "agent credential ls --verbose",
    ]
    said = [team.machine.run(*line.split(), room=team.room.name, handle=team.agent) for line in lines]
    kept = team.machine.home / "agent-tokens" / f"{team.agent}.json"
    signature = str(json.loads(kept.read_text())["token"]).rpartition(".")[2]
    assert len(signature) > 40
    own = {kept, team.machine.home / "agent-credentials.json"}
    assert {path.stat().st_mode & 0o777 for path in own} == {0o600}
    texts = [one.out + one.err for one in said]
    for secret in (team.secret, signature):
        assert not [text for text in texts if secret in text]
        for home in (guarded.home, team.machine.home):
            holding = {path for path, held in contents(home) if secret.encode() in held}
            assert holding <= own
