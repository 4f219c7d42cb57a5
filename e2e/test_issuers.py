"""Issuers as a hub lives with them: several at once, keys that change, outages, and tokens that none of them gave."""

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from e2e import oidc_server
from e2e.guarding import guarded
from e2e.harness import SPLIT, Hub
from e2e.oidc_server import OidcServer
from e2e.requirements import requirement
from e2e.standin import StandIn
from e2e.waiting import until
from e2e.web import Api, path
from services.gateway.tests import forging
from services.gateway.tests.forging import ALGORITHMS, FORGERIES, SECRET

Unique = Callable[[str], str]
GATEWAYS = 2 if SPLIT else 1
ROOMS = path("rooms")
COOLDOWN_S = 2.0


class Trust(NamedTuple):
    """A hub and whom it trusts: people, agents, one who was away when it began, and keys to forge beside."""

    hub: Hub
    people: OidcServer
    agents: OidcServer
    late: OidcServer

    def api(self, token: str) -> Api:
        """The hub, as whoever holds this token speaks to it."""
        return Api(self.hub.url, token)

    def status(self, token: str) -> int:
        """What a plain request with this token gets."""
        return self.api(token).get(ROOMS).status


@pytest.fixture(scope="module")
def trust(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trust]:
    folder: Path = tmp_path_factory.mktemp("trust")
    with (
        oidc_server.started(folder, "people") as people,
        oidc_server.started(folder, "agents", alg="ES256", audience="robots") as agents,
        oidc_server.started(folder, "late", alg="PS256") as late,
        StandIn(200, forging.published()) as published,
        StandIn(200, forging.published(forging.OTHER_ISSUER)) as others,
    ):
        env = guarded(
            people,
            {"issuer": agents.issuer, "jwks_url": agents.jwks_url, "audience": "robots", "role": "agent"},
            late,
            {"issuer": forging.ISSUER, "jwks_url": published.url, "role": "user", "names_of": people.issuer},
            {"issuer": forging.OTHER_ISSUER, "jwks_url": others.url, "role": "agent"},
        )
        late.stop()
        hub = Hub(folder / "hub", env=env).start()
        try:
            yield Trust(hub, people, agents, late)
            assert not hub.errors()
        finally:
            hub.close()


@requirement("issuers:down-at-start")
def test_an_issuer_that_is_down_at_start_keeps_nobody_else_out(trust: Trust) -> None:
    """The hub is up without it; its people get 503 and a time to come back, until it is there, with no restart."""
    late = trust.api(trust.late.user_token("lara"))
    refused = late.get(ROOMS)
    refused.refused(503, "auth.unavailable")
    assert refused.headers["retry-after"]
    assert trust.status(trust.people.user_token("alice")) == 200
    trust.late.start()
    until(lambda: late.get(ROOMS).status == 200, "the issuer's keys are had")


@requirement("issuers:several")
def test_each_issuer_speaks_for_its_own(trust: Trust, unique: Unique) -> None:
    """People and agents come from different issuers, with their own audience; neither passes for the other's."""
    room, alice = unique("room"), trust.people.user_token("Alice")
    trust.api(alice).post(ROOMS, {"name": room}).ok(201)
    event = {"content": "done", "message_type": "event", "metadata": {"kind": "action"}}
    for token, sender in ((alice, "alice"), (trust.agents.agent_token("release-agent", "robots"), "release-agent")):
        assert trust.api(token).post(path("rooms", room, "messages"), event).ok(201).json["sender_handle"] == sender
    for other in (
        trust.agents.agent_token("release-agent", "mycelium"),
        trust.people.user_token("alice", "robots"),
        forging.token(owner=forging.OTHER_ISSUER),
        forging.token("RS256", head={"kid": "people-RS256-1"}, iss=trust.people.issuer),
    ):
        trust.api(other).get(ROOMS).refused(401, "token.refused")


@requirement("issuers:namesakes")
def test_a_handle_is_of_the_issuer_that_proved_it_first(trust: Trust, unique: Unique) -> None:
    """Whichever process is asked; the other's token for it is refused, and what is wrong can be read."""
    handle = unique("sam")
    ones, others = trust.people.user_token(handle), trust.agents.agent_token(handle, "robots")
    assert trust.status(ones) == 200
    for _ in range(4):
        problem = trust.api(others).get(ROOMS).refused(401, "token.refused")
        assert f"@{handle} is of {trust.people.issuer}" in problem["detail"]
    assert trust.status(ones) == 200
    told = [line for _ in range(4) for line in trust.hub.api.get("/health").json["auth"]["warnings"]]
    assert any(f"handles that {trust.agents.issuer} gives out are of {trust.people.issuer}" in line for line in told)
    assert not any(handle in line for line in told)


@requirement("issuers:keys-change")
def test_keys_change_while_requests_run(trust: Trust) -> None:
    """Nobody with a token by the new key is turned away, however many come at once; the old key's are, soon."""
    old = trust.people.user_token("alice")
    assert trust.status(old) == 200
    trust.people.rotate()
    new = [trust.people.user_token(f"user-{number}") for number in range(6)]
    found: list[int] = []

    def use(token: str) -> None:
        found.extend(trust.status(token) for _ in range(10))

    users = [threading.Thread(target=use, args=(token,)) for token in new]
    for user in users:
        user.start()
    for user in users:
        user.join()
    assert found == [200] * 60
    trust.api(old).get(ROOMS).refused(401, "token.refused")


@requirement("issuers:outage")
def test_an_outage_of_the_issuer_is_not_noticed(trust: Trust) -> None:
    """Who has a token goes on, also one that the hub has not seen; who has none of the issuer's does not."""
    held = [trust.agents.agent_token("bot", "robots") for _ in range(3)]
    for _ in range(10 * GATEWAYS):  # every gateway has met the issuer
        assert trust.status(held[0]) == 200
    trust.agents.stop()
    try:
        assert [trust.status(token) for token in held] == [200] * 3
        forged = forging.token("ES256", iss=trust.agents.issuer, aud="robots")
        trust.api(forged).get(ROOMS).refused(401, "token.refused")
    finally:
        trust.agents.start()


@requirement("issuers:flood")
def test_a_flood_of_unknown_keys_is_one_question_to_the_issuer(trust: Trust) -> None:
    """Whoever makes up names of keys can't make the hub ask again and again, nor forget a key that it has."""
    good = trust.agents.agent_token("bot", "robots")
    assert trust.status(good) == 200
    before, began = trust.agents.requests["/jwks"], time.monotonic()
    for number in range(100):
        flood = forging.token("ES256", "forger", {"kid": f"k{number}"}, iss=trust.agents.issuer, aud="robots")
        assert trust.status(flood) == 401
    cooldowns = 1 + int((time.monotonic() - began) / COOLDOWN_S)
    assert trust.agents.requests["/jwks"] - before <= cooldowns * GATEWAYS
    assert trust.status(good) == 200


@requirement("issuers:forged")
def test_no_forged_token_opens_the_hub(trust: Trust) -> None:
    """Every kind of the table of forgeries, by one algorithm after the other; nothing of them is in the hub's logs."""
    for algorithm in ALGORITHMS:
        assert trust.status(forging.token(algorithm)) == 200
    for number, forgery in enumerate(forgery for forgery in FORGERIES if "line break" not in forgery.name):
        token = forgery.make(ALGORITHMS[number % len(ALGORITHMS)])
        answer = trust.api("").get(ROOMS, headers={"Authorization": f"Bearer {token}".encode().decode("latin-1")})
        assert answer.status in {401, 431} if forgery.name == "oversize" else answer.status == 401, forgery.name
        assert SECRET.encode() not in answer.body, forgery.name
    logs = [file.read_text(encoding="utf-8") for file in (trust.hub.home / "logs").glob("*.log")]
    assert logs
    assert not [line for log in logs for line in log.splitlines() if SECRET in line or "eyJ" in line]
