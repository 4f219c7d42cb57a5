"""The chart where everybody signs in, rendered: what it refuses, whom it tells what, and whom the gateway reaches."""

from __future__ import annotations

import base64

import pytest

from mycelium_gateway import operator_token
from mycelium_gateway.auth_settings import AUTH_SETTINGS, auth_settings
from mycelium_gateway.web_settings import SHORTEST_SECRET
from mycelium_kernel.settings import parse
from tests.rendering import ISSUER, SIGN_IN, WEB, Json, environment, notes, only, pods, rendered, values

INSECURE: Json = {"insecure": True}


def test_nobody_has_to_sign_in_only_where_somebody_says_so() -> None:
    """Nor everybody; the notes repeat what was said."""
    said = values()["auth"]
    assert (said["enabled"], said["insecure"]) == (False, False)
    assert "WARNING: auth.insecure is true" in notes()
    with_sign_in = notes({"auth": {**SIGN_IN, "insecure": True}})
    assert f"{ISSUER} (users)" in with_sign_in
    assert "auth.insecure" not in with_sign_in


@pytest.mark.parametrize(
    ("said", "what_to_set"),
    [
        ({}, "set auth.enabled=true and auth.issuers, or auth.insecure=true"),
        ({"enabled": True}, "auth.issuers is empty"),
        ({"enabled": True, "insecure": True}, "auth.issuers is empty"),
        ({"insecure": True, "web": {"issuer": ISSUER}}, "set auth.enabled=true and auth.issuers"),
        ({**SIGN_IN, "web": {"issuer": "https://else.example.com"}}, "add it to auth.issuers"),
    ],
    ids=str,
)
def test_sign_in_that_can_not_work_is_not_installed(said: Json, what_to_set: str) -> None:
    """One line says what to set instead."""
    with pytest.raises(Exception, match=what_to_set):
        rendered({"auth": said})


def test_the_gateway_is_told_how_everybody_signs_in() -> None:
    """By the settings of one machine; that its own machine needs no token is off, sign-in or not."""
    for auth in (SIGN_IN, INSECURE):
        said = environment(only("Deployment", "gateway", rendered({"auth": auth})))
        told = {one.key: said.get(one.environment[0], "") for one in AUTH_SETTINGS}
        read = {one.key: parse(one, told[one.key], "") if told[one.key] else one.default for one in AUTH_SETTINGS}
        settings = auth_settings(read)
        assert settings.enabled == auth.get("enabled", False)
        assert not settings.localhost_bypass
        assert [issuer.issuer for issuer in settings.issuers] == [one["issuer"] for one in auth.get("issuers", ())]
    others = {"trustedProxies": ["10.0.0.0/8", "::1"], "operators": ["avery", "kim"], "handleClaim": "name"}
    more = {"auth": {**SIGN_IN, **others}}
    said = environment(only("Deployment", "gateway", rendered(more)))
    assert said["MYCELIUM_RUNTIME_TRUSTED_PROXIES"] == "10.0.0.0/8,::1"
    assert said["MYCELIUM_AUTH_HANDLE_CLAIM"] == "name"
    assert said["MYCELIUM_AUTH_OPERATORS"] == "avery,kim"


def secrets_of(part: str, objects: list[Json]) -> set[str]:
    """The names of the secrets that a part's pod has, as files or in its environment."""
    (spec,) = (pod["spec"] for name, pod in pods(objects) if name == part)
    files = {volume["secret"]["secretName"] for volume in spec["volumes"] if "secret" in volume}
    told = [one["valueFrom"]["secretKeyRef"] for one in spec["containers"][0]["env"] if "valueFrom" in one]
    return files | {one["name"] for one in told}


def test_each_secret_of_signing_in_is_read_by_those_who_need_it() -> None:
    """The operator's token by it and the gateway; what cookies are sealed with by the gateway. Others' where named."""
    objects = rendered({"auth": WEB})
    readers = {part: secrets_of(part, objects) for part in values()["services"]}
    assert {part for part, names in readers.items() if "mycelium-operator" in names} == {"gateway", "operator"}
    assert {part for part, names in readers.items() if "mycelium-web" in names} == {"gateway"}
    token = base64.b64decode(only("Secret", "operator", objects)["data"]["token"]).decode()
    assert operator_token.FIT.fullmatch(token)
    assert len(base64.b64decode(only("Secret", "web", objects)["data"]["session-secret"])) >= SHORTEST_SECRET

    own = rendered({"auth": {**WEB, "operatorSecret": "op", "web": {"issuer": ISSUER, "existingSecret": "app"}}})
    assert secrets_of("gateway", own) == {"mycelium-nats", "op", "app"}
    assert secrets_of("operator", own) == {"op"}
    made = {one["metadata"]["name"] for one in own if one["kind"] == "Secret"}
    assert made == {"mycelium-nats", "mycelium-temporal"}
    assert secrets_of("gateway", rendered()) == {"mycelium-nats"}


def test_the_gateway_reaches_issuers_where_everybody_signs_in_and_nobody_else_does() -> None:
    """By the ports of their addresses, or those that are said; pods of the cluster by their labels."""

    def ways(auth: Json, network: Json, part: str = "gateway") -> list[Json]:
        found = only("NetworkPolicy", part, rendered({"auth": auth, "network": {"issuers": network}}))
        rules: list[Json] = found["spec"]["egress"]
        return [rule for rule in rules if rule.get("to") != values()["network"]["dns"]]

    def rule(*ports: int, **to: Json) -> Json:
        return {"to": [to], "ports": [{"protocol": "TCP", "port": port} for port in ports]}

    (log,) = ways(INSECURE, {})
    anywhere = {"cidr": "0.0.0.0/0"}
    assert ways(SIGN_IN, {}) == [log, rule(443, 5556, ipBlock=anywhere)]
    web = {"issuer": ISSUER, "internalIssuer": "http://keycloak.auth:8080/realms/team"}
    assert ways({**SIGN_IN, "web": web}, {}) == [log, rule(443, 5556, 8080, ipBlock=anywhere)]
    dex = {"matchLabels": {"app": "dex"}}
    assert ways(SIGN_IN, {"to": [{"podSelector": dex}], "ports": [9]}) == [log, rule(9, podSelector=dex)]
    for part in ("rooms", "operator"):
        assert ways(SIGN_IN, {}, part) == ways(INSECURE, {}, part)
