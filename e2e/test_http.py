"""The surface over HTTP: problems, refused origins, probes, the OpenAPI document."""

import pytest

from e2e.harness import Hub
from e2e.requirements import requirement
from e2e.room import Room
from e2e.web import path


@requirement("http:problems")
def test_every_kind_of_error_is_a_problem_document(hub: Hub, room: Room) -> None:
    """Also what the framework refuses: addresses, methods, bodies."""
    api = hub.api
    api.get("/nowhere").refused(404, "route.not_found")
    api.get(path("rooms", room.name, "nowhere")).refused(404, "route.not_found")
    reply = api.delete(path("rooms"))
    reply.refused(405, "method.not_allowed")
    assert set(reply.headers["allow"].replace(" ", "").split(",")) >= {"GET", "POST"}
    api.post(path("rooms"), b"{not json").refused(422, "request.invalid")
    api.post(path("rooms"), b'"text"').refused(422, "request.invalid")
    api.post(path("rooms"), {"title": "no name"}).refused(422, "request.invalid")
    api.post(path("rooms"), {"name": "x", "colour": "red"}).refused(422, "request.invalid")
    api.post(room.at("messages"), {"content": 7}, handle="avery").refused(422, "request.invalid")
    api.post(room.at("messages"), {"content": "hi"}, handle="not a handle").refused(422, "handle.invalid")
    api.post(room.at("await"), {"timeout_s": 3601}, handle="sec").refused(422, "request.invalid")
    api.get(room.at("messages", before="yesterdayish")).refused(422, "request.invalid")
    api.get(path("users", "nobody-here")).refused(404, "user.not_found")
    api.get(room.at("members", "nobody-here")).refused(404, "member.not_found")
    api.get(path("rooms", "no such room")).refused(404, "room.not_found")


@requirement("http:problems")
def test_a_problem_says_what_to_type_next(room: Room) -> None:
    """Where there is a next command."""
    missing = room.api.get(path("rooms", "Ω 4 ξξ 7")).refused(404, "room.not_found")
    assert missing["next"] == "mycelium room create 'Ω 4 ξξ 7'"
    unregistered = room.api.post(room.at("respond"), {"content": "hi"}, handle="ci").refused(403, "handle.unregistered")
    assert "ci" in unregistered["next"]


@requirement("http:origin")
@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "localhost.evil.example"]
)
def test_a_foreign_host_is_refused(hub: Hub, host: str) -> None:
    """A name that somebody let point here (DNS rebinding)."""
    hub.api.get(path("rooms"), headers={"Host": host}).refused(403, "host.refused")
    hub.api.get("/health", headers={"Host": host}).refused(403, "host.refused")


@requirement("http:origin")
@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://localhost:1", "http://127.0.0.1"])
def test_a_page_from_elsewhere_is_refused(hub: Hub, room: Room, origin: str) -> None:
    """Reading, writing and asking first; nothing is stored."""
    body = {"content": "forged"}
    room.api.post(room.at("messages"), body, handle="avery", headers={"Origin": origin}).refused(403, "origin.refused")
    hub.api.get(path("rooms"), headers={"Origin": origin}).refused(403, "origin.refused")
    preflight = hub.api.ask(
        "OPTIONS", path("rooms"), headers={"Origin": origin, "Access-Control-Request-Method": "POST"}
    )
    assert preflight.status in {403, 405}
    assert not [name for name in preflight.headers if name.startswith("access-control")]
    assert room.contents() == []


@requirement("http:origin")
def test_the_hubs_own_names_and_pages_are_let_in(hub: Hub) -> None:
    """Loopback by name and by address, and a page of its own."""
    for host in (f"localhost:{hub.api.port}", f"127.0.0.1:{hub.api.port}", "[::1]"):
        hub.api.get(path("rooms"), headers={"Host": host}).ok(200)
    hub.api.get(path("rooms"), headers={"Origin": hub.url}).ok(200)


@requirement("http:openapi")
def test_the_openapi_document_holds_every_address(hub: Hub) -> None:
    """Those of this step, with their methods; /docs shows it."""
    document = hub.api.get("/openapi.json").ok(200).json
    assert document["openapi"].startswith("3.")
    found = {
        where: set(methods) & {"get", "post", "patch", "put", "delete"} for where, methods in document["paths"].items()
    }
    room = "/api/rooms/{room}"
    expected = {
        "/api/rooms": {"get", "post"},
        room: {"get", "patch", "delete"},
        f"{room}/messages": {"get", "post"},
        f"{room}/stream": {"get"},
        "/api/stream": {"get"},
        f"{room}/await": {"post"},
        f"{room}/ack": {"post"},
        f"{room}/respond": {"post"},
        f"{room}/members": {"get", "post"},
        f"{room}/members/{{handle}}": {"get", "patch", "delete"},
        "/api/users": {"get", "post"},
        "/api/users/{handle}": {"get", "put"},
        "/api/whoami": {"get"},
        "/health": {"get"},
    }
    assert {where: found.get(where) for where in expected} == expected
    messages = [methods for where, methods in found.items() if where.startswith(f"{room}/messages/{{")]
    assert {"get", "patch"} in messages
    assert "text/html" in hub.api.get("/docs").ok(200).headers["content-type"]


@requirement("http:probes")
def test_probes_answer(hub: Hub) -> None:
    """One word for a probe, all for a person, numbers for Prometheus."""
    assert hub.api.get("/healthz").ok(200).body.strip() == b"ok"
    assert hub.api.get("/healthz", headers={"Host": "10.1.2.3:8000"}).status == 200
    health = hub.api.get("/health").ok(200).json
    assert health["status"] == "ok"
    assert health["auth"] == {"enabled": False}
    assert health["services"]["rooms"]["status"] == "ok"
    metrics = hub.api.get("/metrics").ok(200)
    assert metrics.headers["content-type"].startswith("text/plain")
    assert b"# TYPE" in metrics.body
