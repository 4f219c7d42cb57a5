"""What the gateway answers by itself, before anybody is asked: over a real socket."""

from __future__ import annotations

import json
from typing import Any

import httpx2
import pytest

from mycelium_gateway import limits
from mycelium_gateway.settings import GatewaySettings
from mycelium_kernel.testing import NatsServer
from services.gateway.tests.conftest import opened
from services.gateway.tests.door import Door

ROOMS = "/api/rooms"


def problem(response: httpx2.Response) -> dict[str, Any]:
    assert response.headers["content-type"] == "application/problem+json"
    found: dict[str, Any] = response.json()
    return found


def raw_problem(answer: bytes) -> tuple[int, dict[str, Any]]:
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split(b" ")[1]), json.loads(body)


async def test_the_gateway_answers_a_probe(http: httpx2.AsyncClient) -> None:
    """By one word, without asking anybody."""
    response = await http.get("/healthz")
    assert (response.status_code, response.text) == (200, "ok")


async def test_health_says_which_service_is_away(http: httpx2.AsyncClient) -> None:
    """A hub without its rooms is degraded, and says so within a second and a half."""
    response = await http.get("/health")
    body = response.json()

    assert response.elapsed.total_seconds() < 1.5
    assert (body["status"], body["services"]["rooms"]["status"]) == ("degraded", "down")
    assert body["warnings"] == ["rooms is down: no answer"]
    assert body["nats"]["connected"] is True


async def test_a_service_that_starts_after_the_hub_is_no_fault_until_its_time_is_over(nats_server: NatsServer) -> None:
    """`up` and then `status` is well; a service that never comes is told."""
    seen = []
    for late_s in (60.0, 0.0):
        settings = GatewaySettings(port=0, services={"engine": 1}, late=frozenset({"engine"}), late_s=late_s)
        async with opened(nats_server, settings) as door:
            body = (await door.http.get("/health")).json()
            seen.append((body["status"], body["services"]["engine"]["status"]))
    assert seen == [("ok", "starting"), ("degraded", "down")]


async def test_health_repeats_that_other_machines_reach_a_hub_without_sign_in(nats_server: NatsServer) -> None:
    """Its owner said so once, and may have forgotten."""
    settings = GatewaySettings(host="0.0.0.0", port=0, services={})
    async with opened(nats_server, settings) as door:
        body = (await door.http.get("/health")).json()

    assert body["status"] == "ok"
    assert body["warnings"] == ["nobody has to sign in, and other machines reach 0.0.0.0 (auth.insecure)"]


async def test_metrics_count_requests_by_route(http: httpx2.AsyncClient) -> None:
    """Never by path: a room's name would be a label."""
    await http.get("/healthz")
    await http.get("/nowhere")
    text = (await http.get("/metrics")).text

    assert 'mycelium_http_requests_total{method="GET",route="/healthz",status="200"}' in text
    assert 'mycelium_http_requests_total{method="GET",route="none",status="404"}' in text
    assert "/nowhere" not in text


async def test_a_foreign_name_and_a_foreign_page_are_refused(http: httpx2.AsyncClient) -> None:
    """Before anything else is looked at."""
    foreign_name = await http.get(ROOMS, headers={"Host": "evil.example"})
    foreign_page = await http.get(ROOMS, headers={"Origin": "http://evil.example"})

    assert (foreign_name.status_code, problem(foreign_name)["slug"]) == (403, "host.refused")
    assert (foreign_page.status_code, problem(foreign_page)["slug"]) == (403, "origin.refused")
    assert "access-control-allow-origin" not in foreign_page.headers


@pytest.mark.parametrize("head", [b"", b"Host: localhost\r\nHost: evil.example\r\n"])
async def test_no_name_or_two_names_are_refused(door: Door, head: bytes) -> None:
    """A request has one host."""
    status, body = raw_problem(await door.raw(b"GET /api/rooms HTTP/1.1\r\n" + head + b"\r\n"))
    assert (status, body["slug"]) == (403, "host.refused")


async def test_a_probe_may_use_any_name(http: httpx2.AsyncClient) -> None:
    """Kubernetes calls a pod by its address."""
    assert (await http.get("/healthz", headers={"Host": "10.1.2.3:8000"})).status_code == 200


async def test_an_unknown_address_says_so(http: httpx2.AsyncClient) -> None:
    """As a problem, like everything that fails."""
    body = problem(await http.get("/api/romos"))
    assert (body["status"], body["slug"]) == (404, "route.not_found")
    assert "/api/romos" in body["detail"]


async def test_a_method_that_an_address_does_not_take_is_told_with_those_that_it_takes(
    http: httpx2.AsyncClient,
) -> None:
    """In the header and in words."""
    response = await http.put("/api/rooms/demo", json={})

    assert problem(response)["slug"] == "method.not_allowed"
    assert response.headers["allow"] == "DELETE, GET, HEAD, PATCH"
    assert "DELETE, GET, HEAD, PATCH" in problem(response)["detail"]


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        (b'{"name": ', "body: not JSON: EOF while parsing a value at line 1 column 9"),
        (b'{"name": "\xff"}', "body: not JSON: invalid unicode code point at line 1 column 11"),
        (b"[" * 100_000, "body: not JSON: recursion limit exceeded at line 1 column 202"),
        (b'"demo"', "body: send a JSON object, with Content-Type: application/json"),
        (b"{}", "body.name: is missing"),
        (b'{"name": 7}', "body.name: should be a text"),
        (b'{"name": "\\ud800"}', "body: not JSON: unexpected end of hex escape at line 1 column 17"),
    ],
)
async def test_a_body_that_can_not_be_read_is_told_where(http: httpx2.AsyncClient, body: bytes, detail: str) -> None:
    """One sentence with the place."""
    response = await http.post(ROOMS, content=body, headers={"Content-Type": "application/json"})

    assert (response.status_code, problem(response)["slug"]) == (422, "request.invalid")
    assert problem(response)["detail"] == detail


async def test_a_body_without_a_type_is_told_the_type(http: httpx2.AsyncClient) -> None:
    """`curl -d` sends a form unless told otherwise."""
    body = problem(await http.post(ROOMS, content=b"{}", headers={"Content-Type": "application/x-www-form-urlencoded"}))
    assert body["detail"] == "body: send a JSON object, with Content-Type: application/json"


async def test_an_unknown_field_is_answered_with_the_nearest(http: httpx2.AsyncClient) -> None:
    """A misspelt field must not be dropped in silence."""
    body = problem(await http.post("/api/rooms/demo/messages", json={"content": "hi", "sender_handel": "avery"}))

    assert body["detail"] == "body.sender_handel: no such field, did you mean sender_handle?"
    assert body["near"] == ["sender_handle"]


async def test_an_unknown_parameter_of_a_list_is_answered_with_the_nearest(http: httpx2.AsyncClient) -> None:
    """The same for a query."""
    body = problem(await http.get("/api/rooms/demo/messages?limitt=5"))
    assert body["detail"] == "query.limitt: no such field, did you mean limit?"


async def test_every_error_of_a_body_is_listed(http: httpx2.AsyncClient) -> None:
    """The first in words, all in `errors`."""
    body = problem(await http.post("/api/rooms/demo/await", json={"timeout_s": 4000, "seat": 1}))

    assert [error["where"] for error in body["errors"]] == ["body.timeout_s", "body.seat"]
    assert body["detail"].endswith("(and 1 more)")


@pytest.mark.parametrize("value", ["NaN", "Infinity"])
async def test_metadata_that_is_no_json_for_others_is_refused(http: httpx2.AsyncClient, value: str) -> None:
    """Python reads it, a browser would not."""
    content = f'{{"content": "hi", "metadata": {{"a": {value}}}}}'
    headers = {"Content-Type": "application/json", "Mycelium-Handle": "avery"}
    body = problem(await http.post("/api/rooms/demo/messages", content=content, headers=headers))

    assert body["slug"] == "request.invalid"
    assert body["detail"].startswith("body.metadata: ")


async def test_a_large_body_is_refused_by_its_length(door: Door) -> None:
    """Before a byte of it has come."""
    head = f"POST /api/rooms HTTP/1.1\r\nHost: localhost\r\nContent-Length: {limits.BODY_BYTES + 1}\r\n\r\n"
    answer = await door.raw(head.encode())

    assert raw_problem(answer)[1]["slug"] == "content.too_large"
    assert answer.startswith(b"HTTP/1.1 413 ")


async def test_a_large_body_without_a_length_is_refused_while_it_comes(http: httpx2.AsyncClient) -> None:
    """It is never held whole."""

    async def body() -> Any:
        for _ in range(20):
            yield b" " * 65536

    response = await http.post(ROOMS, content=body(), headers={"Content-Type": "application/json"})
    assert (response.status_code, problem(response)["slug"]) == (413, "content.too_large")


@pytest.mark.parametrize(
    ("headers", "body", "slug"),
    [
        ({"Mycelium-Handle": "no good"}, {}, "handle.invalid"),
        ({"Mycelium-Session": "x" * 201}, {}, "request.invalid"),
        ({"Idempotency-Key": "x" * 201}, {}, "request.invalid"),
        ({"Mycelium-Session": "caf\xe9"}, {}, "request.invalid"),
        ({}, {}, "handle.missing"),
        ({"Mycelium-Handle": "avery"}, {"sender_handle": "bo"}, "handle.mismatch"),
        ({}, {"sender_handle": "no good"}, "handle.invalid"),
    ],
)
async def test_a_caller_that_is_not_clear_is_refused(
    http: httpx2.AsyncClient, headers: dict[str, str], body: dict[str, str], slug: str
) -> None:
    """No request is half one member's and half another's."""
    encoded = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
    response = await http.post("/api/rooms/demo/messages", json={"content": "hi", **body}, headers=encoded)
    assert problem(response)["slug"] == slug


async def test_a_stream_of_too_many_rooms_is_refused(http: httpx2.AsyncClient) -> None:
    """One connection has a bound."""
    response = await http.get("/api/stream", params=[("room", f"r{number}") for number in range(101)])
    assert problem(response)["detail"] == "query.room: at most 100 rooms over one stream"


async def test_the_page_of_the_documentation_loads_nothing_from_elsewhere(http: httpx2.AsyncClient) -> None:
    """A hub works offline, and no other site learns of it."""
    page = await http.get("/docs")
    assert (await http.get("/redoc")).text == page.text
    assert (await http.get("/")).headers["location"] == "/docs"
    policy = page.headers["content-security-policy"]

    assert policy.startswith("default-src 'none'")
    assert "http://" not in page.text
    assert "https://" not in page.text
    assert (await http.get("/openapi.json")).json()["openapi"].startswith("3.")
