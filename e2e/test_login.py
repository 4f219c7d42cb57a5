"""`mycelium login`: a person signs in at a certified OIDC server, with a browser or by a code, for a real hub."""

import json
import re
import stat
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from e2e import oidc_server
from e2e.guarding import guarded
from e2e.harness import Hub, Machine, free_port
from e2e.oidc_server import OidcServer
from e2e.requirements import requirement
from e2e.searching import contents
from e2e.signing_in import Browser, Terminal, by_browser, by_code, code_of, kept
from e2e.web import Api

Unique = Callable[[str], str]
REFUSED, USAGE, FORBIDDEN, UNREACHABLE, INTERRUPTED = 1, 2, 4, 5, 130


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OidcServer]:
    """Another issuer, which a test may stop."""
    with oidc_server.started(tmp_path_factory.mktemp("elsewhere"), realm="elsewhere") as server:
        yield server


@pytest.fixture(scope="module")
def other_hub(idp: OidcServer, elsewhere: OidcServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    """A hub that trusts two issuers."""
    found = Hub(tmp_path_factory.mktemp("other") / "hub", env=guarded(idp, elsewhere)).start()
    yield found
    assert not found.errors()
    found.close()


@pytest.fixture
def person(guarded_hub: Hub, tmp_path: Path) -> Iterator[Machine]:
    """Somebody's machine, on which nobody has signed in."""
    found = Machine(tmp_path / "client", guarded_hub.url)
    yield found
    found.close()


@pytest.fixture
def browser(tmp_path: Path) -> Browser:
    return Browser(tmp_path)


@pytest.fixture
def terminal(person: Machine) -> Iterator[Callable[..., Terminal]]:
    """Opens a terminal of the person's machine."""
    opened: list[Terminal] = []

    def made(*words: str, **env: str) -> Terminal:
        opened.append(Terminal(person, *words, env=env))
        return opened[-1]

    yield made
    for one in opened:
        one.close()


def make_due(machine: Machine, access: str = "") -> None:
    """Have every token of a machine be over by its clock."""
    place = machine.home / "token.json"
    rows = json.loads(place.read_text())
    for row in rows["hubs"].values():
        row["expires_at"] = 1.0
        row["access_token"] = access or row["access_token"]
    place.write_text(json.dumps(rows))


def only(machine: Machine) -> dict[str, Any]:
    """The one sign-in of a machine."""
    (row,) = kept(machine).values()
    return dict(row)


@requirement("login:browser", "login:who", "login:file")
def test_a_person_signs_in_with_a_browser_and_is_known_by_the_token(
    person: Machine, browser: Browser, idp: OidcServer, guarded_hub: Hub, unique: Unique
) -> None:
    """1 the browser is opened at the issuer 2 it comes back once 3 every command then sends the token, kept for one."""
    avery = unique("avery")
    login = person.start("login", env=browser.environment)
    asked = browser.opened()
    assert asked.startswith(
        f"{idp.issuer}/auth?response_type=code&client_id=mycelium-cli&redirect_uri=http%3A%2F%2F127.0.0.1%3A"
    )
    assert {"code_challenge_method=S256", "scope=openid+profile+email+offline_access"} <= set(asked.split("&"))
    page = browser.sign_in(idp, avery)
    assert (page.status_code, "You can close this window." in page.text) == (200, True)
    done = login.ended().ok()
    assert done.out == f"signed in as @{avery} ({idp.issuer})\n"
    assert stat.S_IMODE((person.home / "token.json").stat().st_mode) == 0o600
    assert person.run("config", "get", "identity.name").out == f"{avery}\n"
    assert person.run("config", "get", "login.issuer").out == f"{idp.issuer}\n"
    assert person.run("user", "show", avery, "--json").json["handle"] == avery
    for words in (("whoami",), ("iam",)):
        first, second, *_ = person.run(*words).ok().out.splitlines()
        assert re.fullmatch(rf"acting as @{avery}  \({avery}#[0-9a-f]{{4}}\)", first)
        assert re.fullmatch(rf"  signed in \({re.escape(idp.issuer)}, expires in (59|60) min\)", second)
    room = unique("room")
    person.run("room", "create", room).ok()
    assert person.run("room", "send", "--room", room, "hello", "--json").json["sender_handle"] == avery
    assert Api(guarded_hub.url).get("/api/rooms").status == 401


@requirement("login:device")
def test_without_a_browser_a_person_signs_in_by_a_code_at_a_terminal(
    terminal: Callable[..., Terminal], idp: OidcServer, person: Machine, unique: Unique
) -> None:
    """The terminal shows where to go and what to enter there, waits, and says who one is."""
    avery = unique("avery")
    login = terminal("login")
    login.until("no browser is found here, so you get a code")
    assert login.until(r"open (\S+) in a browser on any machine") == f"{idp.issuer}/device"
    code = login.until(r"enter the code ([A-Z]{4}-[A-Z]{4})")
    login.until(re.escape(f"or open {idp.issuer}/device?user_code={code}, where it is filled in"))
    login.until("the code is good for 10 minutes; waiting, Ctrl-C to give up")
    idp.enter_code(code, avery)
    login.until(rf"signed in as \S*@{avery}")
    assert login.ended() == 0
    assert person.run("whoami", "--json").json["signed_in"]["issuer"] == idp.issuer


@requirement("login:device")
def test_a_code_that_is_denied_or_expires_signs_nobody_in(person: Machine, idp: OidcServer, unique: Unique) -> None:
    """Each ends with its reason, what to do, and nothing kept."""
    denied = person.start("login", "--device")
    idp.enter_code(code_of(denied), unique("avery"), deny=True)
    ended = denied.ended().failed(FORBIDDEN)
    assert ended.err.endswith("error: not signed in: it was denied (access_denied). Next: mycelium login\n")
    expired = person.start("login", "--device")
    code_of(expired)
    idp.answer_instead("/token", 400, {"error": "expired_token"})
    ended = expired.ended().failed(REFUSED)
    said = "error: not signed in: the code expired before somebody entered it (expired_token)."
    assert ended.err.endswith(f"{said} Next: mycelium login --device, for a new one\n")
    assert not person.home.exists()


@requirement("login:device")
def test_a_lost_network_does_not_end_a_sign_in(
    other_hub: Hub, elsewhere: OidcServer, tmp_path: Path, unique: Unique
) -> None:
    """The issuer goes away while the code is being entered, and comes back."""
    machine = Machine(tmp_path / "client", other_hub.url)
    avery = unique("avery")
    with closing(Terminal(machine, "login", "--device", "--issuer", elsewhere.issuer)) as login:
        code = login.until(r"enter the code ([A-Z]{4}-[A-Z]{4})")
        elsewhere.stop()
        try:
            login.until("can't be reached")
        finally:
            elsewhere.start()
        elsewhere.enter_code(code, avery)
        login.until("the issuer answers again|signed in as")
        login.until(rf"signed in as \S*@{avery}")
        assert login.ended() == 0


@requirement("login:issuer")
def test_where_the_hub_trusts_several_issuers_a_person_says_which(
    other_hub: Hub, elsewhere: OidcServer, idp: OidcServer, tmp_path: Path, unique: Unique
) -> None:
    """They are listed; the flag decides, and its issuer must be one of them."""
    machine = Machine(tmp_path / "client", other_hub.url)
    several = machine.run("login").failed(USAGE)
    assert several.err == (
        f"error: the hub trusts more than one issuer: {idp.issuer}, {elsewhere.issuer}."
        " Next: mycelium login --issuer <one of them>\n"
    )
    foreign = machine.run("login", "--issuer", "https://id.example").failed(USAGE)
    assert "does not trust the issuer https://id.example (--issuer); it trusts" in foreign.err
    avery = unique("avery")
    assert (
        by_code(machine, elsewhere, avery, "--issuer", elsewhere.issuer).ok().out.startswith(f"signed in as @{avery}")
    )


@requirement("login:issuer")
def test_a_hub_that_is_down_or_asks_for_no_token_is_told(
    hub: Hub, person: Machine, tmp_path: Path, idp: OidcServer, unique: Unique
) -> None:
    """One line each, with what to do; who names an issuer signs in there all the same."""
    off = Machine(tmp_path / "off", hub.url).run("login").failed(REFUSED)
    said = f"error: there is nothing to sign in to: the hub at {hub.url} has sign-in off (auth.enabled)."
    assert off.err == f"{said} Next: mycelium iam <handle>\n"
    url = f"http://127.0.0.1:{free_port()}"
    down = person.run("login", env={"MYCELIUM_API_URL": url}).failed(UNREACHABLE)
    said = f"error: the hub at {url} can't be reached, so it can't say whom to sign in with."
    assert down.err == f"{said} Next: mycelium config set login.issuer <url>, or --issuer <url>\n"
    for address, why in ((url, "so who you are there is not known"), (hub.url, "it looks at no token")):
        named = by_code(person, idp, unique("avery"), "--issuer", idp.issuer, MYCELIUM_API_URL=address).ok()
        assert named.out == f"signed in ({idp.issuer})\n"
        assert why in named.err.splitlines()[-1]
        assert ("can't be reached, which may not be its address: mycelium status" in named.err) == (address == url)
    assert person.run("config", "get", "identity.name").out == "\n"


@requirement("login:hubs")
def test_hubs_side_by_side_each_get_their_own_token(
    person: Machine, other_hub: Hub, idp: OidcServer, elsewhere: OidcServer, browser: Browser, unique: Unique
) -> None:
    """Two people of two issuers on one machine; signing out of one leaves the other."""
    avery, casey = unique("avery"), unique("casey")
    there = {"MYCELIUM_API_URL": other_hub.url}
    by_browser(person, browser, idp, avery).ok()
    stranger = person.run("room", "ls", env=there).failed(FORBIDDEN)
    assert "mycelium login" in stranger.err
    by_browser(person, browser, elsewhere, casey, "--issuer", elsewhere.issuer, **there).ok()
    assert person.run("whoami", "--json").json["handle"] == avery
    assert person.run("whoami", "--json", env=there).json["handle"] == casey
    assert len(kept(person)) == 2
    assert person.run("logout", env=there).ok().err == ""
    assert person.run("whoami", "--json").json["signed_in"]["handle"] == avery
    person.run("room", "ls", env=there).failed(FORBIDDEN)


@requirement("login:hubs", "login:out")
def test_a_sign_in_at_another_hub_outlives_one_of_the_same_browser(
    person: Machine, other_hub: Hub, idp: OidcServer, browser: Browser, unique: Unique
) -> None:
    """To the issuer both may be one grant: what takes back the one would take back the other."""
    avery = unique("avery")
    there = {"MYCELIUM_API_URL": other_hub.url}
    by_browser(person, browser, idp, avery).ok()
    by_browser(person, browser, idp, avery, "--issuer", idp.issuer, **there).ok()
    out = person.run("logout").ok()
    named = other_hub.url.replace("127.0.0.1", "localhost")
    assert out.err == f"{idp.issuer} was not told, since it keeps you signed in at {named} too\n"
    make_due(person)
    told = person.run("whoami", "--json", env=there).ok()
    assert (told.json["signed_in"]["handle"], told.err) == (avery, "")


@requirement("login:renewed")
def test_twenty_processes_at_once_renew_a_sign_in_once(
    other_hub: Hub, elsewhere: OidcServer, tmp_path: Path, unique: Unique
) -> None:
    """The issuer takes each refresh token once: a second use would end the sign-in for all."""
    machine = Machine(tmp_path / "client", other_hub.url)
    avery = unique("avery")
    by_code(machine, elsewhere, avery, "--issuer", elsewhere.issuer).ok()
    for _ in range(2):
        before = only(machine)
        make_due(machine)
        asked = elsewhere.requests["/token"]
        running = [machine.start("whoami", "--json") for _ in range(20)]
        for one in running:
            told = one.ended(60).ok()
            assert (told.json["signed_in"]["handle"], told.json["registered"], told.err) == (avery, True, "")
        assert elsewhere.requests["/token"] == asked + 1
        after = only(machine)
        assert after["refresh_token"] != before["refresh_token"]
        assert after["access_token"] != before["access_token"]
    assert not [path.name for path in machine.home.iterdir() if path.name.endswith(".new")]


@requirement("login:renewed")
def test_a_wait_of_hours_goes_on_with_a_new_token(
    other_hub: Hub, elsewhere: OidcServer, tmp_path: Path, unique: Unique
) -> None:
    """A token that the hub no longer takes is replaced in the middle of a command, without a word."""
    machine = Machine(tmp_path / "client", other_hub.url)
    avery = unique("avery")
    by_code(machine, elsewhere, avery, "--issuer", elsewhere.issuer).ok()
    room = unique("room")
    machine.run("room", "create", room).ok()
    place = machine.home / "token.json"
    rows = json.loads(place.read_text())
    (row,) = rows["hubs"].values()
    row["access_token"] = f"{row['access_token'][:-8]}AAAAAAAA"
    place.write_text(json.dumps(rows))
    sent = machine.run("room", "send", "--room", room, "hello").ok()
    assert sent.err == ""
    assert only(machine)["access_token"] != row["access_token"]


@requirement("login:ended")
def test_a_sign_in_that_the_issuer_has_ended_is_told_with_what_to_do(
    other_hub: Hub, elsewhere: OidcServer, tmp_path: Path, unique: Unique
) -> None:
    """No token is sent any more; an issuer that is only away ends nothing."""
    machine = Machine(tmp_path / "client", other_hub.url)
    by_code(machine, elsewhere, unique("avery"), "--issuer", elsewhere.issuer).ok()
    make_due(machine)
    elsewhere.stop()
    try:
        away = machine.run("room", "ls").failed(FORBIDDEN)
    finally:
        elsewhere.start()
    assert f"the sign-in was not renewed: the issuer at {elsewhere.issuer} can't be reached" in away.err
    rows = json.loads((machine.home / "token.json").read_text())
    (row,) = rows["hubs"].values()
    row["failed_at"] += 600
    (machine.home / "token.json").write_text(json.dumps(rows))
    still = machine.run("room", "ls").failed(FORBIDDEN)
    assert f"{elsewhere.issuer} did not answer just now; it is asked again in 10 s" in still.err
    row |= {"refresh_token": "one-that-nobody-gave", "failed_at": 0.0}
    (machine.home / "token.json").write_text(json.dumps(rows))
    ended = machine.run("room", "ls").failed(FORBIDDEN)
    warning = f"warning: your sign-in at {elsewhere.issuer} has ended (invalid_grant), so no token is sent."
    assert ended.err.startswith(f"{warning} Next: mycelium login\n")
    assert only(machine)["access_token"] == ""


@requirement("login:out")
def test_logout_forgets_the_token_and_has_the_issuer_forget_it(
    person: Machine, browser: Browser, idp: OidcServer, unique: Unique
) -> None:
    """Who had copied it can't renew it; the machine sends nothing any more."""
    by_browser(person, browser, idp, unique("avery")).ok()
    copied = (person.home / "token.json").read_text()
    assert person.run("logout").ok().out == f"signed out of {person.url}\n"
    assert not (person.home / "token.json").exists()
    person.run("room", "ls").failed(FORBIDDEN)
    (person.home / "token.json").write_text(copied)
    make_due(person)
    assert "has ended (invalid_grant)" in person.run("room", "ls").failed(FORBIDDEN).err
    assert person.run("logout", "--json").json["signed_out"] is True
    assert person.run("logout").ok().out == f"nobody was signed in at {person.url}\n"


@requirement("login:out")
def test_logout_while_the_issuer_is_away_signs_out_here(
    other_hub: Hub, elsewhere: OidcServer, tmp_path: Path, unique: Unique
) -> None:
    """And says what was not done."""
    machine = Machine(tmp_path / "client", other_hub.url)
    by_code(machine, elsewhere, unique("avery"), "--issuer", elsewhere.issuer).ok()
    elsewhere.stop()
    try:
        out = machine.run("logout").ok()
    finally:
        elsewhere.start()
    assert "it was not told, so the token is good until it expires" in out.err
    assert kept(machine) == {}


@requirement("login:who")
def test_iam_with_another_handle_than_the_tokens_warns(
    person: Machine, browser: Browser, idp: OidcServer, unique: Unique
) -> None:
    """What one writes stays the token's."""
    avery, room = unique("avery"), unique("room")
    by_browser(person, browser, idp, avery).ok()
    warned = person.run("iam", "casey").ok()
    assert warned.out == f"kept for later: @casey; commands here still act as @{avery}\n"
    said = f"warning: you are signed in as @{avery}, and so is what you write: as @casey it is refused."
    assert warned.err == f"{said} Next: mycelium logout, or mycelium iam {avery}\n"
    person.run("room", "create", room).ok()
    assert person.run("room", "send", "--room", room, "hello", "--json").json["sender_handle"] == avery
    person.run("room", "send", "--room", room, "--handle", "casey", "hello").failed(FORBIDDEN)
    assert person.run("iam", avery, "--name", f"Avery {avery}").ok().err == ""


@requirement("login:who")
def test_a_token_that_the_hub_does_not_take_is_not_kept(
    person: Machine, browser: Browser, idp: OidcServer, unique: Unique
) -> None:
    """Another audience, or a name that is no handle: what is wrong is said, with what to run."""
    audience = by_browser(person, browser, idp, unique("avery"), MYCELIUM_LOGIN_AUDIENCE="another").failed(FORBIDDEN)
    assert f"error: the hub at {person.url} does not take a token of {idp.issuer}: " in audience.err
    assert audience.err.endswith("Next: mycelium config set login.audience mycelium, then mycelium login\n")
    browser.cookies.clear()
    nobody = by_browser(person, browser, idp, "not a handle!").failed(FORBIDDEN)
    assert nobody.err.endswith("Next: whoever runs the hub sets auth.handle_claim to a claim that holds a handle\n")
    assert not person.home.exists()


@requirement("login:browser")
def test_a_fixed_port_is_the_one_that_the_browser_comes_back_to(
    person: Machine, browser: Browser, idp: OidcServer, unique: Unique
) -> None:
    """For issuers that want an exact address; where it is taken, that is said with what to do."""
    port = str(free_port())
    first = person.start("login", env=browser.environment | {"MYCELIUM_LOGIN_REDIRECT_PORT": port})
    assert f"redirect_uri=http%3A%2F%2F127.0.0.1%3A{port}%2Fcallback" in browser.opened()
    second = person.run("login", env={"BROWSER": "true", "MYCELIUM_LOGIN_REDIRECT_PORT": port}).failed(REFUSED)
    assert f"error: port {port} of this machine (login.redirect_port) is in use (Address already in use)." in second.err
    assert "Next: mycelium login --device, or mycelium config set login.redirect_port 0 for any free port" in second.err
    browser.sign_in(idp, unique("avery"))
    first.ended().ok()


@requirement("login:interrupted")
@pytest.mark.parametrize("way", ["browser", "device"])
def test_ctrl_c_while_a_person_is_waited_for_leaves_nothing(
    way: str, terminal: Callable[..., Terminal], person: Machine, browser: Browser
) -> None:
    """Typed at the terminal: status 130, no traceback, nothing on the disk."""
    login = terminal("login", *(["--device"] if way == "device" else []), **browser.environment)
    login.until("code_challenge_method=S256" if way == "browser" else "Ctrl-C to give up")
    login.type("\x03")
    assert login.ended() == INTERRUPTED
    assert "Traceback" not in login.shown
    assert not person.home.exists()


@requirement("login:secrets")
def test_tokens_are_in_their_file_and_nowhere_else(
    person: Machine, browser: Browser, idp: OidcServer, guarded_hub: Hub, unique: Unique
) -> None:
    """Not in what commands print, in other files, in the hub's logs, nor in what processes are started with."""
    login = person.start("login", "--verbose", env=browser.environment)
    browser.sign_in(idp, unique("avery"))
    said = [*login.ended().ok()]
    first = only(person)
    make_due(person)
    for words in (("whoami", "--verbose", "--sources"), ("room", "ls", "--verbose"), ("config", "show", "--json")):
        said += [*person.run(*words).ok()]
    second = only(person)
    make_due(person, "x" * 40)
    said += [*person.run("room", "ls", "--verbose").ok(), *person.run("logout", "--verbose").ok()]
    secrets = {row[name] for row in (first, second) for name in ("access_token", "refresh_token")}
    assert len(secrets) == 4
    files = [held.decode(errors="replace") for _, held in contents(person.home, guarded_hub.home / "logs")]
    texts = [*map(str, said), *files]
    assert not [text for text in texts for secret in secrets if secret in text]
