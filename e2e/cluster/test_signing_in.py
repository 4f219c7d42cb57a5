"""A hub on the cluster where everybody signs in, at an issuer in the cluster."""

import pytest

from e2e.cluster.issuer import PORT, Guarded
from e2e.cluster.test_install import REACH
from e2e.cluster.test_room_objects import Rooms
from e2e.harness import Machine
from e2e.requirements import requirement
from e2e.waiting import until
from e2e.web import Api, path

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]
FORGED = (
    {"X-Forwarded-For": "127.0.0.1"},
    {"Forwarded": "for=127.0.0.1;host=localhost;proto=https", "X-Real-IP": "::1"},
    {"X-Forwarded-User": "asker", "X-Remote-User": "asker", "Mycelium-Handle": "asker", "Myc-Proven": "agent"},
)
# Run in a pod of the gateway, which is what a port-forward comes from too.
ON_ITS_OWN_MACHINE = """
import urllib.error, urllib.request
for host in ("127.0.0.1", "localhost"):
    request = urllib.request.Request(f"http://{host}:8000/api/rooms", headers={"Mycelium-Handle": "asker"})
    try:
        print(urllib.request.urlopen(request).status)
    except urllib.error.HTTPError as error:
        print(error.code)
"""


@requirement("cluster:sign-in:said")
def test_that_everybody_signs_in_is_said_wherever_one_looks(guarded: Guarded) -> None:
    """The notes of the release, `/health`, and the chart's own test, whose posts are refused."""
    assert "Everybody has to sign in" in guarded.release.notes
    assert guarded.issuer.url in guarded.release.notes
    assert "auth.insecure" not in guarded.release.notes
    health = guarded.api.get("/health").ok(200).json
    assert health["status"] == "ok", health
    said = health["auth"]
    assert (said["enabled"], said["issuers"], said["localhost_bypass"]) == (True, [guarded.issuer.url], False)
    guarded.release.helm("test", guarded.release.name, "--timeout=3m")


@requirement("cluster:sign-in:converse")
def test_two_agents_with_credentials_converse_through_the_service(guarded: Guarded) -> None:
    """Each on its own machine, with its own secret; whatever they write is theirs, by whichever replica."""
    with guarded.machine("asker") as asker, guarded.machine("answerer") as answerer:
        asker.run("room", "create", "plans", handle="asker").ok()
        asker.run("agent", "create", "answerer", "--room", "plans", handle="asker").ok()
        asker.run("agent", "create", "asker", "--room", "plans", handle="asker").ok()
        waiting = answerer.start("await", handle="answerer", room="plans")
        asker.run("room", "send", "--room", "plans", "@answerer who are you?", handle="asker").ok()
        assert "who are you?" in waiting.ended().ok().out
        answerer.run("respond", "@asker who my secret says", handle="answerer", room="plans").ok()
        assert "who my secret says" in asker.run("await", handle="asker", room="plans").ok().out
        items = asker.run("room", "messages", "--room", "plans", "--json", handle="asker").json["items"]
        assert {item["sender_handle"] for item in items} >= {"asker", "answerer"}
        refused = answerer.run("room", "send", "--room", "plans", "as you", "--handle", "asker", "--json")
        assert refused.status != 0, refused


@requirement("cluster:sign-in:refused")
def test_whoever_has_no_token_gets_nothing(guarded: Guarded, stranger: Machine) -> None:
    """Neither by saying who they are, nor by headers of a proxy, nor on the gateway's own machine."""
    for headers in ({}, *FORGED):
        for method, target, body in (("GET", path("rooms"), None), ("POST", path("rooms"), {"name": "x"})):
            reply = guarded.api.ask(method, target, body, headers=dict(headers))
            reply.refused(401, "token.missing")
            assert reply.headers["www-authenticate"].startswith("Bearer"), reply.headers
    Api(guarded.url, "x" * 64).get(path("rooms")).refused(401, "token.refused")
    said = stranger.run("room", "create", "mine", handle="asker")
    assert said.status != 0, said
    assert "token" in said.err or "login" in said.err, said
    assert guarded.release.python("gateway", ON_ITS_OWN_MACHINE).split() == ["401", "401"]


@requirement("cluster:sign-in:operator")
def test_the_operator_makes_rooms_with_a_token_that_nobody_else_has(guarded: Guarded) -> None:
    """Made at the first install; who is called operator at the issuer is nobody here."""
    asker = Api(guarded.url, guarded.issuer.token("asker"))
    rooms = Rooms(guarded.release.namespace, guarded.api)
    rooms.apply("signed", title="First", private=True, members=[{"handle": "asker", "kind": "agent"}])
    assert rooms.ready("signed")["reason"] == "AsWanted"
    shown = asker.get(path("rooms", "signed")).ok(200).json
    assert (shown["title"], shown["created_by"]) == ("First", "operator")
    Api(guarded.url, guarded.issuer.token("operator")).get(path("rooms")).refused(401, "token.refused")
    rooms.namespace.delete("room", "signed")
    rooms.gone("signed")
    until(lambda: asker.get(path("rooms", "signed")).status == 404, "the room is gone")


@pytest.mark.parametrize(
    ("part", "said"), [("gateway", "reached"), ("rooms", "refused"), ("operator", "refused")], ids=str
)
@requirement("cluster:sign-in:network")
def test_only_the_gateway_reaches_the_issuer(guarded: Guarded, part: str, said: str) -> None:
    """And nothing but it: not the API server, although sign-in is on."""
    assert guarded.release.python(part, REACH.format(host="oidc", port=PORT)).split()[0] == said
    if part == "gateway":
        refused = guarded.release.python(part, REACH.format(host="kubernetes.default", port=443))
        assert refused.split()[0] == "refused"


@requirement("cluster:sign-in:web")
def test_people_are_sent_to_the_issuer_s_outer_address(guarded: Guarded) -> None:
    """The gateway itself looks it up at the inner one."""
    reply = guarded.api.get("/api/auth/login").ok(303)
    assert reply.headers["location"].startswith(f"{guarded.issuer.url}/"), reply.headers["location"]


@requirement("cluster:sign-in:kept")
def test_secrets_of_signing_in_are_kept_by_an_upgrade(guarded: Guarded) -> None:
    """The operator's token, and what the web app's cookies are sealed with; the issuer's settings stay on."""
    names = ("mycelium-operator", "mycelium-web")
    before = [(guarded.release.namespace.find("secret", name) or {})["data"] for name in names]
    assert all(value for data in before for value in data.values())
    guarded.release.install(allowedHosts=["hub.example.com"])
    assert [(guarded.release.namespace.find("secret", name) or {})["data"] for name in names] == before
    guarded.api.get(path("rooms")).refused(401, "token.missing")
