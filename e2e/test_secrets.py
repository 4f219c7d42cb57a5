"""Secrets planted wherever a hub with sign-in has any, and searched for in everything that comes out of it.

Each may be in its own file, for its user alone, and nowhere else: not in what commands print, in answers, logs,
traces, streams, tables, bundles, `run`, nor on a command line.
"""

import contextlib
import gzip
import json
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest

from e2e.guarding import guarded
from e2e.harness import Hub, Machine
from e2e.oidc_server import AUDIENCE, OidcServer
from e2e.processes import Result
from e2e.requirements import requirement
from e2e.room import Room
from e2e.searching import contents
from e2e.serving import Quiet, Served
from e2e.signing_in import by_code, code_of
from e2e.standin import StandIn
from e2e.waiting import until
from e2e.web import Api, path

SESSION, KEY, CLIENT = (
    "planted-session-secret-0123456789-abcdef",
    "sk-planted-model-key-0123456789",
    "planted-client-0123",
)
FORGED = "planted-token-that-nobody-gave-0123456789"
AVERY, BUILDER, SCOUT = "planting-avery", "planting-builder", "planting-scout"
# Kinds that are searched for besides the planted ones: any JWT, any token of the hub's own.
KINDS = re.compile(rb"eyJ[\w-]{10,}\.eyJ[\w-]{10,}|myc_[\w-]{43}")
OWN = {"token.json", "agent-credentials.json", "member.json", "auth_session_secret", "llm_api_key"}
OWN |= {"login_client_secret", f"{BUILDER}.json"}


class Collector:
    """Takes whatever traces are sent, as a collector over OTLP does."""

    def __init__(self) -> None:
        self.took: list[bytes] = []
        took = self.took

        class Handler(Quiet):
            def do_POST(self) -> None:  # noqa: N802 - the library's name
                body = self.rfile.read(int(self.headers["Content-Length"]))
                took.append(gzip.decompress(body) if self.headers.get("Content-Encoding") == "gzip" else body)
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

        self._served = Served(Handler)
        self.url = f"{self._served.url}/v1/traces"

    def close(self) -> None:
        """Take no more."""
        self._served.close()


class Found(NamedTuple):
    """Where a secret was, and which."""

    where: str
    what: str


class Planted:
    """A hub with sign-in, and everybody who holds a secret of it; `said` is all that came out."""

    def __init__(self, hub: Hub, idp: OidcServer, folder: Path) -> None:
        self.hub, self.idp = hub, idp
        self.person = Machine(folder / "person" / "home", hub.url)
        self.agent = Machine(folder / "agent" / "home", hub.url)
        self.joined = Machine(folder / "joined" / "home")
        self.work = folder / "work"
        for place in (self.person.home.parent, self.agent.home.parent, self.joined.home.parent, self.work):
            place.mkdir()
        self.secrets: dict[str, str] = {"session": SESSION, "key": KEY, "client": CLIENT, "forged": FORGED}
        self.said: dict[str, bytes] = {}
        self.cookies: dict[str, str] = {}

    @property
    def homes(self) -> list[Path]:
        """All that is kept on disk, by the hub and by those who use it."""
        return [self.hub.home, *(one.home for one in (self.person, self.agent, self.joined)), self.work]

    def note(self, what: str, result: Result) -> Result:
        """Keep what a command has printed."""
        self.said[f"{len(self.said)} {what} ({result.status})"] = (result.out + result.err).encode()
        return result

    def run(self, machine: Machine, line: str, **also: object) -> Result:
        """A command line, with all that it can tell: every second one as a document."""
        words = ["--verbose", *line.split(), *(["--json"] if len(self.said) % 2 else [])]
        return self.note(line, machine.run(*words, **also))  # type: ignore[arg-type]

    def ask(self, method: str, target: str, body: object = None, token: str = "", **headers: str) -> httpx2.Response:
        """A request; its answer is kept, without the cookies that it sets."""
        sent = headers | ({"Authorization": f"Bearer {token}"} if token else {})
        answer = httpx2.request(method, self.hub.url + target, json=body, headers=sent, cookies=self.cookies)
        shown = "\n".join(f"{name}: {value}" for name, value in answer.headers.items() if name != "set-cookie")
        body_shown = gzip.decompress(answer.content) if answer.content[:2] == b"\x1f\x8b" else answer.content
        self.said[f"{len(self.said)} {method} {target} ({answer.status_code})"] = shown.encode() + body_shown
        return answer

    # --- planting -------------------------------------------------------------------------------------------------

    def sign_in(self) -> None:
        """The person by a code, the agent by its credential, another by a join code; the person's browser."""
        by_code(self.person, self.idp, AVERY).ok()
        row = next(iter(json.loads((self.person.home / "token.json").read_text())["hubs"].values()))
        self.secrets |= {"access": row["access_token"], "refresh": row["refresh_token"]}
        self.person.run(
            "config", "set", "login.client_secret", stdin=CLIENT.encode(), env={"MYCELIUM_API_URL": ""}
        ).ok()
        Room(Api(self.hub.url, row["access_token"]), self.person, "planted", AVERY).create()
        self.secrets["agent's client"] = self.idp.add_agent(BUILDER)
        for line, stdin in (
            (f"agent create {BUILDER} --owner {AVERY} --room planted", ""),
            (f"agent create {SCOUT} --owner {AVERY} --room planted", ""),
        ):
            self.note(line, self.person.run(*line.split(), stdin=stdin.encode())).ok()
        self.agent.run("config", "set", "agent_auth.issuer", self.idp.issuer).ok()
        self.agent.run("config", "set", "agent_auth.audience", AUDIENCE).ok()
        line = f"agent credential set {BUILDER} --secret-stdin"
        self.note(line, self.agent.run(*line.split(), stdin=self.secrets["agent's client"].encode())).ok()
        self.note("send", self.agent.run("room", "send", "hello", handle=BUILDER, room="planted")).ok()
        kept = json.loads((self.agent.home / "agent-tokens" / f"{BUILDER}.json").read_text())
        self.secrets["agent's token"] = kept["token"]

    def join(self) -> None:
        """A code, which is told once and to who made it; then it is a token in a folder."""
        code = json.loads(self.person.run("agent", "code", SCOUT, "-r", "planted", "--json").ok().out)["code"]
        self.secrets["code"] = code
        self.note("join", self.joined.run("join", code, "--hub", self.hub.url, cwd=self.work)).ok()
        self.secrets["joined"] = json.loads((self.work / ".mycelium" / "member.json").read_text())["token"]

    def browse(self) -> None:
        """The person's browser signs in to the web app."""
        with httpx2.Client(base_url=self.hub.url) as browser:
            begun = browser.get("/api/auth/login?next=/")
            back = urlsplit(self.idp.sign_in(begun.headers["location"], AVERY))
            self.secrets["way back"] = parse_qs(back.query)["code"][0]
            browser.get(f"{back.path}?{back.query}")
            self.cookies = dict(browser.cookies)
        assert self.ask("GET", "/api/whoami").json()["handle"] == AVERY
        self.secrets |= {f"cookie {name}": value for name, value in self.cookies.items() if len(value) > 20}

    # --- searching ------------------------------------------------------------------------------------------------

    def search(self, where: str, content: bytes) -> Iterator[Found]:
        """Each secret that stands there."""
        for name, secret in self.secrets.items():
            if secret.encode() in content:
                yield Found(where, name)
        for found in KINDS.findall(content):
            yield Found(where, f"something like {found[:12]!r}...")

    def files(self) -> Iterator[tuple[Path, bytes]]:
        """Every file of everybody."""
        return contents(*self.homes)


@pytest.fixture(scope="module")
def collector() -> Iterator[Collector]:
    """Where the hub sends its traces."""
    made = Collector()
    yield made
    made.close()


@pytest.fixture(scope="module")
def planted(collector: Collector, idp: OidcServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Planted]:
    """Everybody is signed in, and the hub writes down all that it ever does."""
    folder = tmp_path_factory.mktemp("planted")
    env = guarded({"issuer": idp.issuer}) | {
        "MYCELIUM_OIDC_ISSUER": idp.issuer,
        "MYCELIUM_OIDC_AUDIENCE": AUDIENCE,
        "MYCELIUM_LOG_LEVEL": "debug",
        "MYCELIUM_TELEMETRY_TRACES_ENDPOINT": collector.url,
    }
    hub = Hub(folder / "hub", env=env)
    for key, value in (("auth.session_secret", SESSION), ("llm.api_key", KEY)):
        hub.machine.run("config", "set", key, stdin=value.encode()).ok()
    hub.start()
    made = Planted(hub, idp, folder)
    try:
        made.sign_in()
        made.join()
        made.browse()
        yield made
    finally:
        for machine in (made.person, made.agent, made.joined):
            machine.close()
        hub.close()


def use_commands(planted: Planted) -> None:
    """What anybody types, where it works and where it fails."""
    run, person, agent, joined = planted.run, planted.person, planted.agent, planted.joined
    for line in ("whoami --sources", "config show", "status", "doctor", "room history -r planted"):
        run(person, line)
    for line in ("whoami --sources", "config show", f"agent credential show {BUILDER}", "doctor"):
        run(agent, line, handle=BUILDER)
    for line in ("whoami --sources", "room send hi", "status"):
        run(joined, line, cwd=planted.work)
    run(person, "config show", env={"MYCELIUM_HOME": str(planted.hub.home)})
    run(planted.hub.machine, "doctor", env=planted.hub.env)
    run(person, "room send forged -r planted", handle="somebody-else").failed(4)
    forged = {"MYCELIUM_AGENT_AUTH_TOKEN": FORGED}
    assert run(person, "room ls", env=forged).status != 0
    with StandIn(503, {"slug": "auth.unavailable", "detail": "later"}) as away:
        for machine, more in ((person, {}), (agent, {"handle": BUILDER})):
            run(machine, "room ls", env={"MYCELIUM_API_URL": away.url}, **more)
    completing = {"_MYCELIUM_COMPLETE": "bash_complete", "COMP_WORDS": "mycelium room use ", "COMP_CWORD": "3"}
    planted.note("completion", person.run(env=completing))


def ask_everything(planted: Planted) -> None:
    """Answers, errors, metrics, and a bundle."""
    token, room = planted.secrets["access"], ("rooms", "planted")
    for target in (
        "/health",
        "/metrics",
        "/openapi.json",
        path("whoami"),
        path(*room, "export"),
        path(*room, "members"),
    ):
        assert planted.ask("GET", target, token=token).status_code == 200, target
    cookies, planted.cookies = planted.cookies, {}
    for wrong in (
        FORGED,
        token[:-4] + "AAAA",
        planted.secrets["joined"][:-2] + "AA",
        planted.secrets["agent's client"],
    ):
        assert planted.ask("GET", path("rooms"), token=wrong).status_code == 401
    planted.ask("POST", path("join"), {"code": planted.secrets["code"]})
    planted.ask("POST", path("join"), {"code": 7, "token": token})
    planted.ask("GET", f"/api/nowhere?access_token={token}")
    planted.ask("GET", f"/api/auth/callback?state=x&code={planted.secrets['way back']}")
    planted.ask("POST", path(*room, "messages"), {"content": "x", "sender_handle": "other"}, token=token)
    planted.ask("GET", path("rooms"), Cookie="; ".join(f"{name}={value}x" for name, value in cookies.items()))
    planted.cookies = cookies


@requirement("secrets:nowhere", "secrets:own-file")
@pytest.mark.timeout(180)
def test_a_secret_is_in_its_own_file_and_nowhere_else(planted: Planted, collector: Collector) -> None:
    """1. everything is used and fails in every way; 2. what was printed, answered, kept and traced is searched."""
    use_commands(planted)
    ask_everything(planted)
    until(lambda: collector.took, "traces come", 30)
    found = [one for where, content in planted.said.items() for one in planted.search(where, content)]
    own = set()
    for place, held in planted.files():
        here = list(planted.search(str(place), held))
        if here and place.name in OWN:
            own.add(place.name)
            assert stat.S_IMODE(place.stat().st_mode) == 0o600, place
            assert not place.parent.stat().st_mode & 0o077, place.parent
        else:
            found += here
    found += [one for body in collector.took for one in planted.search("traces", body)]
    assert own == OWN  # so the search does find what is there
    assert not found, "\n".join(map(str, found))


@requirement("secrets:command-lines")
def test_no_secret_is_on_a_command_line(planted: Planted) -> None:
    """Of the hub's processes, of an agent that waits, of a sign-in that waits for its person."""
    waiting = Room(Api(planted.hub.url, planted.secrets["access"]), planted.agent, "planted", AVERY).wait(BUILDER)
    login = planted.agent.start("login", "--device")
    code_of(login)
    lines = command_lines()
    assert lines.keys() >= {waiting.pid, login.pid, planted.hub.pid, planted.hub.nats()}
    assert not [one for pid, line in lines.items() for one in planted.search(f"{pid}", line)]


def command_lines() -> dict[int, bytes]:
    """Of every process that is still there when it is looked at."""
    found = {}
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            found[int(place.parent.name)] = place.read_bytes()
    return found
