"""Join codes: an agent that was started anywhere becomes a member of a room, in the folder where it says so."""

import json
import os
import re
import signal
import socket
import stat
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from pathlib import Path
from uuid import uuid4

import pytest

from e2e.bundle import lines
from e2e.harness import MYCELIUM, Hub, Machine
from e2e.oidc_server import OidcServer
from e2e.requirements import requirement
from e2e.room import Document, Room
from e2e.searching import contents
from e2e.waiting import until
from e2e.web import Api, Reply, path

Unique = Callable[[str], str]
CODE = re.compile(r"[0-9a-z]{4}-[0-9a-z]{4}-[0-9a-z]{4}")


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[Machine]:
    """The computer of an agent: nobody has set it up, and no variable says anything."""
    found = Machine(tmp_path / "elsewhere" / "home")
    found.home.parent.mkdir()
    yield found
    found.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the agent works."""
    found = tmp_path / "work"
    found.mkdir()
    return found


def code_of(room: Room, handle: str) -> str:
    """A new code, by command."""
    made = json.loads(room.machine.run("agent", "code", handle, "-r", room.name, "--json", handle="avery").ok().out)
    assert CODE.fullmatch(made["code"])
    return str(made["code"])


def file_of(folder: Path) -> Path:
    return folder / ".mycelium" / "member.json"


def use(api: Api, code: str, **more: str) -> Reply:
    return api.post(path("join"), {"code": code, **more})


@requirement("join:folder", "join:file")
def test_an_agent_joins_and_works_from_below_its_folder(
    room: Room, hub: Hub, elsewhere: Machine, folder: Path, unique: Unique
) -> None:
    """Code, join, send, await; git sees nothing of it; leave, and nobody acts there any more."""
    subprocess.run(["git", "init", "-q", folder], check=True)
    scout = unique("scout")
    shown = room.machine.run("agent", "code", scout, "-r", room.name, handle="avery").ok().out
    command = shown.splitlines()[-1].split()
    assert command[:2] == ["mycelium", "join"]
    assert command[3:] == ["--hub", hub.url]
    assert elsewhere.run(*command[1:], cwd=folder).ok().out.startswith(f"joined {room.name} as @{scout}\n")
    assert stat.S_IMODE(file_of(folder).stat().st_mode) == 0o600
    status = ["git", "-C", str(folder), "status", "--porcelain", "-uall", "--ignored=no"]
    assert subprocess.run(status, check=True, capture_output=True).stdout == b""
    below = folder / "src" / "deep"
    below.mkdir(parents=True)
    elsewhere.run("room", "send", "here I am", cwd=below).ok()
    assert room.api.get(room.at("messages")).json["items"][0]["sender_handle"] == scout
    room.post(f"@{scout} hello", sender="avery")
    assert "hello" in elsewhere.run("await", "--timeout", "10", cwd=below).ok().out
    assert not (elsewhere.home / "config.toml").exists()
    elsewhere.run("leave", cwd=below).ok()
    assert not (folder / ".mycelium").exists()
    assert elsewhere.run("room", "send", "still here", cwd=below, env={"MYCELIUM_API_URL": hub.url}).status == 2


@requirement("join:once", "join:ten-minutes")
def test_a_code_is_worthless_after_use_and_in_another_hub(
    room: Room, hub: Hub, guarded_hub: Hub, unique: Unique
) -> None:
    """And so is any other: each is refused to the letter like one that nobody made."""
    answer = room.api.post(room.at("join-codes"), {"handle": unique("scout")}, handle="avery").ok(201)
    code, until = answer.json["code"], datetime.fromisoformat(answer.json["expires_at"])
    made = parsedate_to_datetime(answer.headers["date"]) if "date" in answer.headers else datetime.now(UTC)
    assert timedelta(minutes=9, seconds=50) < until - made < timedelta(minutes=10, seconds=10)
    foreign = use(guarded_hub.api, code)
    use(hub.api, code).ok(200)
    used, wrong = use(hub.api, code), use(hub.api, "abcd-efgh-jkmn")
    used.refused(403, "join.refused")
    assert used.body == wrong.body == foreign.body
    replaced = code_of(room, "scout")
    code_of(room, "scout")
    assert use(hub.api, replaced).body == wrong.body


@requirement("join:once")
def test_of_twenty_that_join_at_once_one_does(room: Room, hub: Hub, unique: Unique) -> None:
    """Through whichever process of the hub each comes."""
    code = code_of(room, unique("scout"))
    with ThreadPoolExecutor(20) as many:
        answers = list(many.map(lambda _: use(hub.api, code), range(20)))
    assert sorted(answer.status for answer in answers) == [200] + [403] * 19
    assert len({answer.body for answer in answers if answer.status == 403}) == 1


@requirement("join:folder")
def test_a_folder_holds_one_member(room: Room, elsewhere: Machine, folder: Path, unique: Unique) -> None:
    """Another is refused and its code not spent; the same may join again; `--replace` takes the folder over."""
    scout, sec = unique("scout"), unique("sec")

    def join(code: str, *more: str) -> int:
        return elsewhere.run("join", code, "--hub", room.machine.url, *more, cwd=folder).status

    assert join(code_of(room, scout)) == 0
    assert join(code_of(room, scout)) == 0
    before = file_of(folder).read_bytes()
    second = code_of(room, sec)
    assert join(second) == 1
    assert file_of(folder).read_bytes() == before
    assert join(second, "--replace") == 0
    assert json.loads(file_of(folder).read_text())["handle"] == sec
    below = folder / "below"
    below.mkdir()
    elsewhere.run("join", code_of(room, scout), cwd=below).ok()
    assert json.loads(elsewhere.run("whoami", "--json", cwd=below).ok().out)["handle"] == scout
    assert json.loads(elsewhere.run("whoami", "--json", cwd=folder).ok().out)["handle"] == sec


@requirement("join:sources")
def test_whoami_tells_which_source_won(room: Room, hub: Hub, elsewhere: Machine, folder: Path, unique: Unique) -> None:
    """Machine, folder, environment, each over the one before; and a file that others could have written is refused."""
    elsewhere.run("config", "set", "server.api_url", hub.url).ok()
    elsewhere.run("config", "set", "identity.name", "casey").ok()

    def sources(handle: str = "") -> Document:
        told = json.loads(elsewhere.run("whoami", "--sources", "--json", cwd=folder, handle=handle).ok().out)
        return {"handle": told["handle"], "room": told["room"], **told["sources"]}

    config = str(elsewhere.home / "config.toml")
    assert sources()["handle"] == config
    scout = unique("scout")
    elsewhere.run("join", code_of(room, scout), cwd=folder).ok()
    told = json.loads(elsewhere.run("whoami", "--sources", "--json", cwd=folder).ok().out)
    assert (told["handle"], told["room"], told["hub"]) == (scout, room.name, hub.url)
    assert {told["sources"][name] for name in ("handle", "room", "hub")} == {str(file_of(folder))}
    assert sources(handle="ops")["handle"] == "MYCELIUM_AGENT_HANDLE"
    file_of(folder).chmod(0o666)
    refused = elsewhere.run("whoami", cwd=folder)
    assert (refused.status, refused.err.count("\n")) == (2, 1)
    assert "can be written by others" in refused.err


class Slow:
    """Stands between a client and the hub, and holds each answer back until it is let go."""

    def __init__(self, hub: Hub) -> None:
        self.there = ("127.0.0.1", int(hub.url.rpartition(":")[2]))
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.settimeout(20)
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"

    def answer(self, meanwhile: Callable[[], None]) -> None:
        """One request: asked of the hub, and answered once `meanwhile` is done."""
        with self.listener:
            near, _ = self.listener.accept()
        with near, socket.create_connection(self.there, 20) as far:
            request = near.recv(65536)
            while b"}" not in request.partition(b"\r\n\r\n")[2]:
                request += near.recv(65536)
            far.sendall(request)
            answer = far.recv(65536)
            while b"}" not in answer.partition(b"\r\n\r\n")[2]:
                answer += far.recv(65536)
            meanwhile()
            near.sendall(answer)


@requirement("join:ctrl-c")
def test_ctrl_c_while_the_code_is_spent_leaves_a_membership(
    room: Room, hub: Hub, elsewhere: Machine, folder: Path, unique: Unique
) -> None:
    """The hub has let it in: the file is written, and then the program ends."""
    slow, code = Slow(hub), code_of(room, unique("scout"))
    words = [str(MYCELIUM), "join", code, "--hub", slow.url]
    with subprocess.Popen(words, cwd=folder, env=elsewhere.environment(), stderr=subprocess.PIPE) as joins:
        slow.answer(lambda: joins.send_signal(signal.SIGINT))
        said = joins.communicate(timeout=90)[1]
    assert (joins.returncode, said) == (130, b"")
    assert sorted(os.listdir(folder / ".mycelium")) == [".gitignore", "member.json"]
    elsewhere.run("leave", cwd=folder).ok()
    assert os.listdir(folder) == []


class Guarded:
    """A room of a hub where everybody signs in, its owner, and an agent of theirs."""

    def __init__(self, hub: Hub, idp: OidcServer, unique: Unique) -> None:
        self.hub, self.idp = hub, idp
        self.owner, self.agent, self.name = unique("owner"), unique("agent"), uuid4().hex
        self.api = Api(hub.url, idp.user_token(self.owner))
        self.api.post(path("rooms"), {"name": self.name, "private": True}).ok(201)
        self.add()

    def add(self, **more: object) -> None:
        """The agent is a member."""
        record = {"handle": self.agent, "kind": "agent", "owner": self.owner, **more}
        self.api.post(path("rooms", self.name, "members"), record).ok(201)

    def code(self) -> str:
        """A new code for the agent, by its owner."""
        made = self.api.post(path("rooms", self.name, "join-codes"), {"handle": self.agent}).ok(201)
        return str(made.json["code"])


@pytest.fixture
def guarded(guarded_hub: Hub, idp: OidcServer, unique: Unique) -> Guarded:
    return Guarded(guarded_hub, idp, unique)


@requirement("join:token")
def test_with_sign_in_on_joining_gives_the_agent_its_own_token(
    guarded: Guarded, elsewhere: Machine, folder: Path, unique: Unique
) -> None:
    """It writes and waits as itself in that room; other rooms are not there; nobody else's name is taken."""
    joins = elsewhere.run("join", guarded.code(), "--hub", guarded.hub.url, cwd=folder).ok()
    token = json.loads(file_of(folder).read_text())["token"]
    assert re.fullmatch(r"myc_[A-Za-z0-9_-]{43}", token)
    assert token not in joins.out + joins.err
    elsewhere.run("room", "send", "signed in", cwd=folder).ok()
    messages = guarded.api.get(path("rooms", guarded.name, "messages")).json["items"]
    assert messages[0]["sender_handle"] == guarded.agent
    assert elsewhere.run("await", "--timeout", "1", cwd=folder).status == 6
    own = Api(guarded.hub.url, token)
    other = unique("other")
    guarded.api.post(path("rooms"), {"name": other}).ok(201)
    guarded.api.post(path("rooms", other, "members"), {"handle": guarded.agent}).ok(201)
    assert [room["name"] for room in own.get(path("rooms")).ok(200).json["items"]] == [guarded.name]
    there, nowhere = own.get(path("rooms", other)), own.get(path("rooms", "n" + other[1:]))
    there.refused(404, "room.not_found")
    assert there.body.replace(other.encode(), b"") == nowhere.body.replace(b"n" + other[1:].encode(), b"")
    own.post(path("rooms", guarded.name, "messages"), {"content": "x"}, handle=guarded.owner).refused(
        403, "handle.forbidden"
    )


@requirement("join:token")
def test_the_token_ends_with_the_next_join_and_with_the_membership(guarded: Guarded) -> None:
    """At once, in one way, whichever process of the hub is asked."""

    def join() -> Api:
        return Api(guarded.hub.url, str(use(guarded.hub.api, guarded.code()).ok(200).json["token"]))

    def ended(agent: Api) -> bytes:
        replies = [agent.get(path("rooms", guarded.name)) for _ in range(4)]
        assert {reply.refused(401, "token.refused")["slug"] for reply in replies}
        return replies[0].body

    first = join()
    first.get(path("rooms", guarded.name)).ok(200)
    second = join()
    assert ended(first) == ended(Api(guarded.hub.url, "myc_" + "x" * 43))
    guarded.api.delete(path("rooms", guarded.name, "members", guarded.agent)).ok(204)
    ended(second)
    guarded.add()
    ended(second)
    third = join()
    guarded.api.delete(path("rooms", guarded.name)).ok(204)
    ended(third)


@requirement("join:right")
def test_the_token_ends_with_the_right_of_who_made_its_code(
    guarded: Guarded, elsewhere: Machine, folder: Path, unique: Unique
) -> None:
    """Whichever process of the hub is asked; who waits by it stops. Given back, the right brings no token back."""
    friend = unique("friend")
    as_friend = Api(guarded.hub.url, guarded.idp.user_token(friend))
    as_friend.put(path("users", friend), {})
    members = path("rooms", guarded.name, "members")
    guarded.api.post(members, {"handle": friend, "kind": "user"}).ok(201)
    agent = f"{members}/{guarded.agent}"
    guarded.api.patch(agent, {"allow_from": [friend]}).ok(200)
    made = as_friend.post(path("rooms", guarded.name, "join-codes"), {"handle": guarded.agent}).ok(201)
    elsewhere.run("join", str(made.json["code"]), "--hub", guarded.hub.url, cwd=folder).ok()
    token = json.loads(file_of(folder).read_text())["token"]
    words: list[str | Path] = ["sh", "-c", 'cd "$1" && exec "$2" await --loop', "sh", folder, MYCELIUM]
    waits = elsewhere.start_program(words, elsewhere.environment())
    until(lambda: guarded.api.get(agent).json["presence"] == "idle", "it waits")
    guarded.api.patch(agent, {"allow_from": []}).ok(200)
    waits.ended().failed(4)
    guarded.api.patch(agent, {"allow_from": [friend]}).ok(200)
    for _ in range(4):
        Api(guarded.hub.url, token).get(path("rooms", guarded.name)).refused(401, "token.refused")


@requirement("join:who")
def test_with_sign_in_on_codes_are_made_by_those_who_may_act(guarded: Guarded, unique: Unique) -> None:
    """The owner, whom the record lets, the agent itself; other members not, and strangers see no room."""
    friend, member, stranger = (unique(word) for word in ("friend", "member", "stranger"))
    members = path("rooms", guarded.name, "members")
    for handle in (friend, member):
        Api(guarded.hub.url, guarded.idp.user_token(handle)).put(path("users", handle), {})
        guarded.api.post(members, {"handle": handle, "kind": "user"}).ok(201)
    guarded.api.patch(f"{members}/{guarded.agent}", {"allow_from": [friend]}).ok(200)
    said: dict[str, object] = {}
    for handle in (guarded.owner, friend, guarded.agent, member, stranger):
        role = "agent" if handle == guarded.agent else "user"
        api = Api(guarded.hub.url, guarded.idp.user_token(handle, mycelium_role=role))
        reply = api.post(path("rooms", guarded.name, "join-codes"), {"handle": guarded.agent})
        said[handle] = reply.json.get("slug", reply.status)
    assert list(said.values()) == [201, 201, 201, "acting.forbidden", "room.not_found"]
    reply = Api(guarded.hub.url).post(path("rooms", guarded.name, "join-codes"), {"handle": guarded.agent})
    reply.refused(401, "token.missing")


@requirement("join:nowhere-else")
def test_neither_code_nor_token_stands_anywhere_in_the_hub(guarded: Guarded) -> None:
    """Not in its log, its tables or its logs, nor in a bundle of the room: only digests are kept."""
    code = guarded.code()
    token = str(use(guarded.hub.api, code).ok(200).json["token"])
    Api(guarded.hub.url, token).get(path("rooms", guarded.name)).ok(200)
    unused = guarded.code()
    bundle = guarded.api.get(path("rooms", guarded.name, "export")).ok(200).body
    assert not [line for line in lines(bundle) if "Join" in str(line.get("type"))]
    words = [word.encode() for word in (code, code.replace("-", ""), token, unused, unused.replace("-", ""))]
    files = [held for _, held in contents(guarded.hub.home)]
    assert any(guarded.name.encode() in held for held in files), "these are the hub's files"
    for held in (json.dumps(lines(bundle)).encode(), *files):
        assert not [word for word in words if word in held]
