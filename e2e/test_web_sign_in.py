"""Signing in to the web app, over HTTP as a browser speaks it, against a real issuer.

Every request opens a line of its own, so that with several gateways each of them gets some.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest

from e2e import oidc_server
from e2e.guarding import guarded
from e2e.harness import Hub
from e2e.oidc_server import OidcServer
from e2e.requirements import requirement
from e2e.searching import contents

Unique = Callable[[str], str]
SECRET = "only-for-tests-0123456789abcdef-WXYZ"
TIMES = 12  # more than enough for two gateways to get some each


def environment(idp: OidcServer) -> dict[str, str]:
    """A hub at which people sign in by a browser; without the session secret they can't yet."""
    return guarded(idp) | {
        "MYCELIUM_OIDC_ISSUER": idp.issuer,
        "MYCELIUM_OIDC_AUDIENCE": oidc_server.AUDIENCE,
    }


@pytest.fixture(scope="module")
def web_idp(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OidcServer]:
    """An issuer whose tokens live as long as a test says."""
    with oidc_server.started(tmp_path_factory.mktemp("idp")) as server:
        yield server


@pytest.fixture(scope="module")
def app(web_idp: OidcServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    """A hub with sign-in for the web app."""
    env = environment(web_idp) | {"AUTH_SESSION_SECRET": SECRET}
    found = Hub(tmp_path_factory.mktemp("app") / "hub", env=env).start()
    try:
        yield found
        assert not found.errors()
    finally:
        found.close()


class Person:
    """A person's browser: its cookies at the hub, and those at the issuer."""

    def __init__(self, hub: Hub, idp: OidcServer, handle: str) -> None:
        self.hub = hub
        self.idp = idp
        self.handle = handle
        self.cookies = httpx2.Cookies()
        self.issuers = httpx2.Cookies()

    def ask(self, method: str, where: str, *, origin: str | None = "", **said: object) -> httpx2.Response:
        """A request on a line of its own, by a page of the hub; `origin` None: a browser that says none."""
        headers = {} if origin is None else {"Origin": origin or self.hub.url}
        with httpx2.Client(base_url=self.hub.url, cookies=self.cookies, timeout=30) as line:
            answer = line.request(method, where, headers=headers, **said)  # type: ignore[arg-type]
            self.cookies = httpx2.Cookies(line.cookies)
        return answer

    def way_back(self, following: str = "/") -> str:
        """Begin, and sign in at the issuer: the address that the issuer sends back to."""
        out = self.ask("GET", f"/api/auth/login?next={following}", origin=None)
        assert out.status_code == 303, out.text
        return self.idp.sign_in(out.headers["location"], self.handle, self.issuers)

    def sign_in(self, following: str = "/") -> httpx2.Response:
        """All of it."""
        back = urlsplit(self.way_back(following))
        return self.ask("GET", f"{back.path}?{back.query}", origin=None)

    def who(self) -> str:
        """Whom the hub takes this browser for."""
        answer = self.ask("GET", "/api/whoami")
        return str(answer.json()["handle"]) if answer.status_code == 200 else str(answer.json()["slug"])


@pytest.fixture
def person(app: Hub, web_idp: OidcServer, unique: Unique) -> Person:
    web_idp.tokens_live(3600)
    return Person(app, web_idp, unique("alice"))


@requirement("web:sign-in")
def test_a_person_signs_in_and_writes_under_their_name(person: Person, unique: Unique) -> None:
    """The page that was wanted, the person at every gateway, their writes theirs; until they sign out."""
    assert person.who() == "token.missing"
    done = person.sign_in("/rooms/demo")
    assert (done.status_code, done.headers["location"]) == (303, "/rooms/demo")
    for line in done.headers.get_list("set-cookie"):
        assert "; HttpOnly" in line
        assert "; SameSite=" in line
    assert {person.who() for _ in range(TIMES)} == {person.handle}
    room = unique("room")
    assert person.ask("POST", "/api/rooms", json={"name": room}).status_code == 201
    posted = person.ask("POST", f"/api/rooms/{room}/messages", json={"content": "hello"})
    assert (posted.status_code, posted.json()["sender_handle"]) == (201, person.handle)
    other = person.ask("POST", f"/api/rooms/{room}/messages", json={"content": "hello", "sender_handle": "bob"})
    assert (other.status_code, other.json()["slug"]) == (403, "handle.forbidden")
    ended = person.ask("POST", "/api/auth/logout")
    assert (ended.status_code, urlsplit(ended.json()["next"]).port) == (200, person.idp.port)
    assert person.who() == "token.missing"


@requirement("web:this-browser")
def test_nobody_is_signed_in_as_another_by_a_link(person: Person, app: Hub, web_idp: OidcServer) -> None:
    """Another browser's way back, one that was used, and pages of other sites after it."""
    back = urlsplit(person.way_back("//evil.example"))
    where = f"{back.path}?{back.query}"
    victim = Person(app, web_idp, "victim")
    assert victim.ask("GET", where, origin=None).json()["slug"] == "sign_in.failed"
    assert victim.who() == "token.missing"
    done = person.ask("GET", where, origin=None)
    assert (done.status_code, done.headers["location"]) == (303, "/")
    again = person.ask("GET", where, origin=None)
    assert (again.status_code, again.json()["slug"]) == (403, "sign_in.failed")
    code = parse_qs(back.query)["code"][0]
    assert code not in again.text + str(again.headers)


@requirement("web:foreign-pages")
def test_a_page_of_another_site_does_nothing_by_the_cookie(person: Person, unique: Unique) -> None:
    """Whether it says where it is from or not; the same words of the hub's own page are taken."""
    person.sign_in()
    body = {"name": unique("room")}
    for origin in (None, "http://evil.example", "null"):
        for where in ("/api/rooms", "/api/auth/logout"):
            refused = person.ask("POST", where, origin=origin, json=body)
            assert (refused.status_code, refused.json()["slug"]) == (403, "origin.refused"), (origin, where)
    assert person.who() == person.handle
    assert person.ask("POST", "/api/rooms", json=body).status_code == 201


@requirement("web:renewed")
def test_a_page_that_asks_for_much_at_once_renews_once(person: Person, web_idp: OidcServer) -> None:
    """The issuer takes the second use of a refresh token for a theft; when it ends the session, that is the end."""
    web_idp.tokens_live(10)
    person.sign_in()
    web_idp.tokens_live(3600)
    asked, sealed = web_idp.requests["/token"], dict(person.cookies)

    def ask(_number: int) -> tuple[int, httpx2.Cookies]:
        page = Person(person.hub, web_idp, person.handle)
        page.cookies = httpx2.Cookies(person.cookies)
        return page.ask("GET", "/api/whoami").status_code, page.cookies

    with ThreadPoolExecutor(TIMES) as pool:
        answers = list(pool.map(ask, range(2 * TIMES)))
    assert Counter(status for status, _cookies in answers) == {200: 2 * TIMES}
    assert web_idp.requests["/token"] == asked + 1
    assert all(dict(cookies) != sealed for _status, cookies in answers)
    person.cookies = answers[-1][1]
    assert person.who() == person.handle
    web_idp.tokens_live(10)
    ended = Person(person.hub, web_idp, person.handle)
    ended.sign_in()
    web_idp.answer_instead("/token", 400, {"error": "invalid_grant"})
    assert ended.who() == "token.refused"
    assert not ended.cookies


@requirement("web:secrets", "web:off")
def test_the_secret_is_set_unseen_and_stands_in_its_file_alone(web_idp: OidcServer, tmp_path: Path) -> None:
    """Half of it is no sign-in, and is told; with the other half it begins. Nothing else holds secret or token."""
    web_idp.tokens_live(3600)
    hub = Hub(tmp_path / "hub", env=environment(web_idp)).start()
    try:
        health = hub.api.get("/health").ok(200).json
        assert health["auth"]["web"] is False
        assert any("auth.session_secret is not" in line for line in health["warnings"])
        hub.api.get("/api/auth/login").refused(404, "sign_in.off")
        said = [
            hub.machine.run("config", "set", "auth.session_secret", stdin=f"{SECRET}\n".encode()).ok(),
            hub.machine.run("config", "apply", env=environment(web_idp), within_s=90).ok(),
            hub.machine.run("config", "show", "--json").ok(),
            hub.machine.run("config", "get", "auth.session_secret").ok(),
        ]
        assert "auth.session_secret: - → …WXYZ (secrets/auth_session_secret)" in said[1].out
        assert hub.api.get("/health").ok(200).json["auth"]["web"] is True
        person = Person(hub, web_idp, "alice")
        person.sign_in()
        assert person.who() == "alice"
        again = hub.machine.run("config", "apply", env=environment(web_idp), within_s=90).ok()
        commands = "".join(Path(f"/proc/{pid}/cmdline").read_text() for pid in (hub.pid, *hub.processes().values()))
        texts = "".join(one.out + one.err for one in (*said, again)) + commands
        assert SECRET not in texts
        (kept,) = (file for file, held in contents(hub.home) if SECRET.encode() in held)
        assert (kept.name, kept.stat().st_mode & 0o777) == ("auth_session_secret", 0o600)
        assert not [path for path in hub.home.rglob("*.log") if "eyJ" in path.read_text(errors="replace")]
        assert not hub.errors()
    finally:
        hub.close()
