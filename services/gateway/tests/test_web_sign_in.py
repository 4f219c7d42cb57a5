"""Signing in to the web app: the way to a real issuer and back, the cookie, its renewal, its end.

No service runs: `/metrics` asks for a session like any other address, and answers by itself.
"""

from __future__ import annotations

import asyncio
import dataclasses
import html
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from urllib.parse import parse_qs, quote, urlsplit

import httpx2
import pytest

from e2e import oidc_server
from mycelium_gateway import web_cookies
from mycelium_gateway.settings import GatewaySettings
from mycelium_gateway.web_cookies import Sealer
from mycelium_gateway.web_settings import WebSettings
from mycelium_kernel import testing
from services.gateway.tests import signed
from services.gateway.tests.browser import SECRET, Browser, web
from services.gateway.tests.conftest import opened
from services.gateway.tests.door import Door
from services.gateway.tests.signed import bearer

PAGE = {"Accept": "text/html,application/xhtml+xml"}
WRITE = "/api/rooms/demo/messages"


def settings(idp: oidc_server.OidcServer, **changes: str) -> GatewaySettings:
    return dataclasses.replace(signed.settings(idp), web=web(idp, **changes))


@pytest.fixture
async def app(nats_server: testing.NatsServer, idp: oidc_server.OidcServer) -> AsyncIterator[Door]:
    """A gateway at which people sign in by their browsers."""
    async with opened(nats_server, settings(idp)) as door:
        yield door


@pytest.fixture
def browser(app: Door, idp: oidc_server.OidcServer) -> Browser:
    return Browser(app, idp)


@pytest.fixture
def own_idp(tmp_path: Path) -> Iterator[oidc_server.OidcServer]:
    """An issuer of one test, which may go away or have short lives."""
    with oidc_server.started(tmp_path) as server:
        yield server


def told(response: httpx2.Response) -> tuple[int, str]:
    return response.status_code, response.json().get("slug", "")


async def test_a_browser_signs_in_and_is_somebody(browser: Browser) -> None:
    """Out, back, and to the page that was wanted; scripts can't read what is kept, and no other site has it sent."""
    assert (await browser.ask("GET", "/metrics")).status_code == 401
    done = await browser.sign_in("alice", quote("/rooms/demo?x=1&y=2"))
    assert (done.status_code, done.headers["location"]) == (303, "/rooms/demo?x=1&y=2")
    assert done.headers["cache-control"] == "no-store"
    kept = {name for name in browser.cookies if "mycelium_session" in name}
    assert kept == set(browser.cookies), "the step to the issuer is over"
    for name in kept:
        said = browser.attributes[name]
        assert {"Path=/", "HttpOnly", "SameSite=Strict"} <= set(said.split("; "))
        assert "Domain" not in said
        assert "Secure" not in said
    assert (await browser.ask("GET", "/metrics")).status_code == 200
    assert (await browser.door.http.get("/health")).json()["auth"]["web"] is True


async def test_the_way_out_asks_as_openid_connect_says(browser: Browser) -> None:
    """Code flow, PKCE by S256, state and nonce anew each time; of the verifier nothing is seen outside."""
    asked = [parse_qs(urlsplit(await browser.begin()).query) for _ in range(2)]
    for one in asked:
        assert one["response_type"] == ["code"]
        assert one["code_challenge_method"] == ["S256"]
        assert one["client_id"] == ["mycelium-web"]
        assert one["redirect_uri"] == [f"{browser.origin}/api/auth/callback"]
        assert "openid" in one["scope"][0].split()
    for name in ("state", "nonce", "code_challenge"):
        assert asked[0][name] != asked[1][name]
    assert len(browser.cookies) == 2, "two tabs sign in side by side"
    assert all("SameSite=Lax" in said and "HttpOnly" in said for said in browser.attributes.values())


async def test_two_tabs_sign_in_side_by_side_and_many_are_not_kept(browser: Browser) -> None:
    """Each comes back by its own cookie; beyond a few, those that were left are forgotten."""
    first, second = await browser.begin("/one"), await browser.begin("/two")
    for there, page in ((second, "/two"), (first, "/one")):
        done = await browser.ask("GET", await browser.back(there, "alice"))
        assert (done.status_code, done.headers["location"]) == (303, page)
    for _ in range(3 * web_cookies.STEPS):
        await browser.begin()
    assert sum("sign_in" in name for name in browser.cookies) <= web_cookies.STEPS


async def test_behind_tls_the_cookies_are_bound_to_the_host(
    nats_server: testing.NatsServer, idp: oidc_server.OidcServer
) -> None:
    """As a trusted proxy says; the word of any other counts for nothing."""
    said = {"X-Forwarded-Proto": "https"}
    for trusted, is_tls in (("", True), ("10.1.1.1", False)):
        async with opened(nats_server, dataclasses.replace(settings(idp), trusted_proxies=trusted)) as door:
            browser = Browser(door, idp, headers=said)
            there = await browser.begin()
            scheme = urlsplit(parse_qs(urlsplit(there).query)["redirect_uri"][0]).scheme
            ((name, attributes),) = browser.attributes.items()
            assert (scheme == "https", "; Secure" in attributes, name.startswith("__Host-")) == (is_tls,) * 3


async def test_another_browser_can_not_come_back_with_the_state(app: Door, idp: oidc_server.OidcServer) -> None:
    """Nor can one that begun another sign-in: nobody is signed in as somebody else by a link."""
    mallory, victim = Browser(app, idp), Browser(app, idp)
    way_back = await mallory.back(await mallory.begin(), "mallory")
    await victim.begin()
    for path in (way_back, "/api/auth/callback", "/api/auth/callback?state=x&code=y", f"{way_back}&state=again"):
        assert told(await victim.ask("GET", path)) == (403, "sign_in.failed"), path
    assert not any("session" in name for name in victim.cookies)


async def test_a_state_and_a_code_are_good_once(browser: Browser) -> None:
    """The cookie of the step is gone after it, and with a copy of it the issuer still refuses the code."""
    there = await browser.begin()
    step = dict(browser.cookies)
    way_back = await browser.back(there, "alice")
    assert (await browser.ask("GET", way_back)).status_code == 303
    assert told(await browser.ask("GET", way_back)) == (403, "sign_in.failed")
    thief = Browser(browser.door, browser.idp, cookies=step)
    answer = await thief.ask("GET", way_back)
    assert told(answer) == (403, "sign_in.failed")
    assert "invalid_grant" in answer.json()["detail"]
    assert not thief.cookies, "what was refused can't be tried again"


async def test_a_code_is_worthless_without_its_verifier_and_its_nonce(browser: Browser) -> None:
    """The issuer checks the first, the gateway the second: codes of one sign-in do not serve another."""
    for field, why in (("verifier", "invalid_grant"), ("nonce", "not of this sign-in")):
        there = await browser.begin()
        ((name, sealed),) = ((name, one) for name, one in browser.cookies.items() if "sign_in" in name)
        step = Sealer(SECRET).unseal(web_cookies.STEP, sealed)
        assert step
        browser.cookies[name] = Sealer(SECRET).seal(web_cookies.STEP, {**step, field: "A" * 43})
        answer = await browser.ask("GET", await browser.back(there, "alice"))
        assert told(answer) == (403, "sign_in.failed"), field
        assert why in answer.json()["detail"]


async def test_a_step_is_good_for_ten_minutes(browser: Browser) -> None:
    """By what is sealed in it, whatever the browser keeps."""
    way_back = await browser.back(await browser.begin(), "alice")
    ((name, sealed),) = browser.cookies.items()
    step = Sealer(SECRET).unseal(web_cookies.STEP, sealed)
    assert step
    browser.cookies[name] = Sealer(SECRET).seal(web_cookies.STEP, {**step, "until": step["until"] - 600.0})
    assert told(await browser.ask("GET", way_back)) == (403, "sign_in.failed")


@pytest.mark.parametrize(
    "page",
    [
        "//evil.example", "/\\evil.example", "\\\\evil.example", "https://evil.example", "https:evil.example",
        "javascript:alert(1)", "evil.example", "/a\r\nSet-Cookie: x=y", "/\t/evil.example", "/a\x00", "/ä", " /a", "",
        "///evil.example", "/" + "a" * 2_000,
    ],
)  # fmt: skip
async def test_nobody_is_sent_elsewhere_after_signing_in(browser: Browser, page: str) -> None:
    """What is no path of the app itself is its start."""
    done = await browser.sign_in("alice", quote(page, safe=""))
    assert (done.status_code, done.headers["location"]) == (303, "/")


async def test_what_was_altered_or_sealed_by_another_secret_is_no_cookie(browser: Browser) -> None:
    """Each part of it, each bit of its end; and one kind of cookie is not another."""
    await browser.sign_in("alice")
    good = dict(browser.cookies)
    ((name, sealed),) = good.items() if len(good) == 1 else (next(iter(good.items())),)
    parts = sealed.split(".")
    altered = [".".join([*parts[:n], "A" + part[1:] + "A", *parts[n + 1 :]]) for n, part in enumerate(parts)]
    content = Sealer(SECRET).unseal(web_cookies.SESSION, "".join(good.values()))
    assert content
    forged = [
        Sealer("another-secret-0123456789abcdef-01234").seal(web_cookies.SESSION, content),
        Sealer(SECRET).seal(web_cookies.STEP, content),
        *altered,
        "",
        "a.b.c.d.e",
        "ä" * 20,
        ".".join(parts[:4]),
    ]
    for one in forged:
        answer = await browser.door.http.get(
            "/metrics", headers=[(b"Cookie", f"{name}={one}".encode("latin-1", "replace"))]
        )
        assert told(answer) == (401, "token.missing"), one
    assert (await browser.ask("GET", "/metrics")).status_code == 200


async def test_by_cookie_something_is_done_for_pages_of_the_hub_alone(browser: Browser) -> None:
    """A browser says with each such request which page asks; without that nothing is done. A token needs no page."""
    await browser.sign_in("alice")
    for also in ({}, {"Sec_Fetch_Site": "cross-site"}, {"Sec_Fetch_Site": "same-site"}, {"Origin": "null"}):
        assert told(await browser.ask("POST", WRITE, **also)) == (403, "origin.refused"), also
    for foreign in ("http://evil.example", "http://127.0.0.1:1", "https://localhost"):
        assert told(await browser.ask("POST", WRITE, Origin=foreign)) == (403, "origin.refused"), foreign
        assert told(await browser.ask("GET", "/api/rooms", Origin=foreign)) == (403, "origin.refused")
    for own in ({"Origin": browser.origin}, {"Sec_Fetch_Site": "same-origin"}):
        assert (await browser.ask("POST", WRITE, **own)).status_code == 422, own
    alone = bearer(browser.idp.user_token("alice"))
    assert (await browser.door.http.post(WRITE, headers=alone)).status_code == 422


async def test_a_token_that_is_sent_wins_over_the_cookie(browser: Browser) -> None:
    """Also a bad one: it does not become the cookie's person."""
    await browser.sign_in("alice")
    answer = await browser.ask("GET", "/metrics", Authorization="Bearer not.a.jwt")
    assert told(answer) == (401, "token.refused")
    assert browser.cookies


async def test_requests_side_by_side_renew_once_and_each_gets_the_new_cookie(
    nats_server: testing.NatsServer, own_idp: oidc_server.OidcServer
) -> None:
    """At two gateways at once: the issuer would end the session on the second use of the old token."""
    own_idp.tokens_live(10)  # soon enough to be renewed at once
    async with opened(nats_server, settings(own_idp)) as one, opened(nats_server, settings(own_idp)) as other:
        browser = Browser(one, own_idp)
        assert (await browser.sign_in("alice")).status_code == 303
        own_idp.tokens_live(3600)
        before, asked = browser.cookies, own_idp.requests["/token"]
        pages = [Browser(door, own_idp, cookies=shifted(before, one, door)) for door in (one, other) * 6]
        answers = await asyncio.gather(*(page.ask("GET", "/metrics") for page in pages))
        assert Counter(answer.status_code for answer in answers) == {200: 12}
        assert own_idp.requests["/token"] == asked + 1
        access = {kept(page)["access"] for page in pages}
        assert len(access) == 1
        assert access != {kept(browser)["access"]}
        for page in pages[:2]:  # with the new one, and a straggler with the old one
            assert (await page.ask("GET", "/metrics")).status_code == 200
        assert (await browser.ask("GET", "/metrics")).status_code == 200
        assert own_idp.requests["/token"] == asked + 1


def shifted(cookies: dict[str, str], one: Door, other: Door) -> dict[str, str]:
    """The cookies of one gateway as another one names them: two ports here, one address before them in a cluster."""
    return {name.replace(f"{one.port}_", f"{other.port}_"): value for name, value in cookies.items()}


def kept(browser: Browser) -> dict[str, str]:
    """What the session of a browser holds."""
    text = "".join(value for name, value in sorted(browser.cookies.items()) if "session" in name)
    found = Sealer(SECRET).unseal(web_cookies.SESSION, text)
    assert found
    return found


async def test_a_session_that_ended_at_the_issuer_is_over(
    nats_server: testing.NatsServer, own_idp: oidc_server.OidcServer
) -> None:
    """401, and the cookie is taken away; on the hub's own machine nobody is let in for it either."""
    own_idp.tokens_live(10)
    lax = dataclasses.replace(
        settings(own_idp), auth=dataclasses.replace(signed.settings(own_idp).auth, localhost_bypass=True)
    )
    async with opened(nats_server, lax) as door:
        browser = Browser(door, own_idp)
        await browser.sign_in("alice")
        own_idp.answer_instead("/token", 400, {"error": "invalid_grant", "error_description": "secret words"})
        answer = await browser.ask("GET", "/api/rooms")
        assert told(answer) == (401, "token.refused")
        assert "the session has ended" in answer.json()["detail"]
        assert "secret words" not in answer.text
        assert not browser.cookies


async def test_while_the_issuer_is_away_a_good_session_goes_on(
    nats_server: testing.NatsServer, own_idp: oidc_server.OidcServer
) -> None:
    """It is renewed when that can be done; until its token is over nobody notices."""
    own_idp.tokens_live(20)
    async with opened(nats_server, settings(own_idp)) as door:
        browser = Browser(door, own_idp)
        await browser.sign_in("alice")
        for status, body in (
            (503, {}),
            (429, {"error": "slow_down"}),
            (401, {"error": "invalid_client"}),
            (200, "html"),
            (200, "[" * 100_000),
            (200, {"access_token": "x", "padding": "x" * 300_000}),
        ):
            own_idp.answer_instead("/token", status, body)
            assert (await browser.ask("GET", "/metrics")).status_code == 200, status
        own_idp.stop()
        assert (await browser.ask("GET", "/metrics")).status_code == 200
        old = kept(browser)
        over = {**old, "expires_at": 0}
        browser.cookies = {f"{door.port}_mycelium_session_0": Sealer(SECRET).seal(web_cookies.SESSION, over)}
        assert told(await browser.ask("GET", "/metrics")) == (503, "auth.unavailable")
        own_idp.start()
        assert (await browser.ask("GET", "/metrics")).status_code == 200
        assert kept(browser)["access"] != old["access"]


async def test_signing_out_ends_the_session_here_and_at_the_issuer(browser: Browser) -> None:
    """The cookie goes, its refresh token is revoked, and `next` is the issuer's own page. Only for the hub's pages."""
    await browser.sign_in("alice")
    refresh, before = kept(browser)["refresh"], dict(browser.cookies)
    assert told(await browser.ask("POST", "/api/auth/logout")) == (403, "origin.refused")
    assert browser.cookies == before
    answer = await browser.ask("POST", "/api/auth/logout", Origin=browser.origin)
    assert answer.status_code == 200
    assert answer.json()["next"].startswith(f"{browser.idp.issuer}/session/end?client_id=mycelium-web")
    assert not browser.cookies
    form = {"grant_type": "refresh_token", "refresh_token": refresh, "client_id": "mycelium-web"}
    refused = await asyncio.to_thread(httpx2.post, browser.idp.token_url, data=form)
    assert refused.json()["error"] == "invalid_grant"
    assert (await browser.ask("POST", "/api/auth/logout", Origin=browser.origin)).status_code == 200


async def test_without_its_issuer_nobody_signs_in_and_everybody_can_sign_out(
    nats_server: testing.NatsServer, own_idp: oidc_server.OidcServer
) -> None:
    """A page says so to a person, a problem to a program; on the way back the step is kept for another try."""
    async with opened(nats_server, settings(own_idp)) as door:
        browser = Browser(door, own_idp)
        await browser.sign_in("alice")
        way_back = await browser.back(await browser.begin(), "alice")
        own_idp.stop()
        answer = await browser.ask("GET", way_back, **PAGE)
        assert answer.status_code == 503
        assert "retry-after" in answer.headers
        assert answer.headers["content-type"].startswith("text/html")
        assert any("sign_in" in name for name in browser.cookies)
        assert (await browser.ask("POST", "/api/auth/logout", Origin=browser.origin)).status_code == 200
        assert not any("session" in name for name in browser.cookies)
    async with opened(nats_server, settings(own_idp)) as door:
        fresh = Browser(door, own_idp)
        assert (await fresh.ask("GET", "/api/auth/login", **PAGE)).status_code == 503
        assert told(await fresh.ask("GET", "/api/auth/login")) == (503, "auth.unavailable")
        own_idp.start()


async def test_a_refusal_is_a_page_and_repeats_nothing(browser: Browser) -> None:
    """Escaped, without scripts, without a token, a code or what somebody wrote into the address."""
    browser.idp.answer_instead("/token", 400, {"error": "<script>alert(1)</script>", "error_description": "<b>"})
    way_back = await browser.back(await browser.begin(), "alice")
    answer = await browser.ask("GET", way_back, **PAGE)
    assert answer.status_code == 403
    assert answer.headers["content-type"].startswith("text/html")
    assert "script-src" not in answer.headers["content-security-policy"]
    assert answer.headers["content-security-policy"].startswith("default-src 'none'")
    for piece in (
        "<script",
        "alert",
        "<b>",
        *(value for values in parse_qs(urlsplit(way_back).query).values() for value in values),
    ):
        assert piece not in answer.text, piece
    marked = quote("<img src=x>")
    answer = await browser.ask("GET", f"/api/auth/callback?state={marked}&code={marked}&error={marked}", **PAGE)
    assert "<img" not in answer.text
    assert html.escape("<img") not in answer.text
    assert told(await browser.ask("GET", "/api/auth/login?next=" + "x" * 5_000)) == (422, "request.invalid")


async def test_numbers_that_no_time_has_are_no_bug(browser: Browser) -> None:
    """An issuer may write more digits than a clock has."""
    for lasts in ("1" * 400, "-" + "1" * 400, "1e999", "NaN"):
        browser.idp.answer_instead("/token", 200, f'{{"access_token": "x", "id_token": "x", "expires_in": {lasts}}}')
        answer = await browser.ask("GET", await browser.back(await browser.begin(), "alice"))
        assert told(answer) in {(403, "sign_in.failed"), (401, "token.refused")}, lasts


async def test_a_person_who_says_no_is_not_signed_in(browser: Browser) -> None:
    """The issuer sends back an error in place of a code; one of another issuer is not listened to."""
    state = parse_qs(urlsplit(await browser.begin()).query)["state"][0]
    answer = await browser.ask("GET", f"/api/auth/callback?state={state}&error=access_denied")
    assert told(answer) == (403, "sign_in.failed")
    way_back = await browser.back(await browser.begin(), "alice")
    mixed = way_back.partition("&iss=")[0] + "&iss=" + quote("https://evil.example", safe="")
    assert told(await browser.ask("GET", mixed)) == (403, "sign_in.failed")


async def test_a_session_too_long_for_one_cookie_is_laid_into_several(browser: Browser) -> None:
    """And what a longer one left is taken away with it; beyond all bounds nobody is signed in."""
    browser.idp.says_of("wordy", groups=["a-group-of-the-company"] * 200)
    assert (await browser.sign_in("wordy")).status_code == 303
    assert len(browser.cookies) > 1
    assert all(len(name) + len(value) < 4_000 for name, value in browser.cookies.items())
    assert (await browser.ask("GET", "/metrics")).status_code == 200
    browser.issuers = httpx2.Cookies()  # another person at the same browser
    assert (await browser.sign_in("alice")).status_code == 303
    assert (await browser.ask("GET", "/metrics")).status_code == 200
    assert sum("session" in name for name in browser.cookies) == 1


@pytest.mark.parametrize("missing", ["issuer", "session_secret"])
async def test_half_of_it_is_none_and_is_told(
    nats_server: testing.NatsServer, idp: oidc_server.OidcServer, missing: str
) -> None:
    """Without the issuer or the secret the app has no sign-in, and /health says so."""
    async with opened(nats_server, settings(idp, **{missing: ""})) as door:
        for method, path in (("GET", "login"), ("GET", "callback"), ("POST", "logout")):
            assert told(await door.http.request(method, f"/api/auth/{path}")) == (404, "sign_in.off")
        page = await door.http.get("/api/auth/login", headers=PAGE)
        assert (page.status_code, "<a href" in page.text) == (404, False)
        health = (await door.http.get("/health")).json()
        assert health["auth"]["web"] is False
        warned = any("auth.session_secret is not" in line for line in health["warnings"])
        assert warned is (missing == "session_secret")


def test_what_does_not_go_together_is_told() -> None:
    """An issuer that nobody trusts, sign-in that is off, a way without TLS; the secret is never shown."""
    from mycelium_gateway.issuers import AuthSettings, Issuer

    trusted = AuthSettings(enabled=True, issuers=(Issuer("https://sso.example"),))
    good = WebSettings(issuer="https://sso.example", session_secret=SECRET)
    assert good.warnings(trusted) == []
    assert "auth.enabled is off" in good.warnings(AuthSettings())[0]
    other = dataclasses.replace(good, issuer="http://sso.example")
    assert ["does not trust" in other.warnings(trusted)[0], "without TLS" in other.warnings(trusted)[1]] == [True, True]
    assert SECRET not in repr(good) + repr(GatewaySettings(web=good))
