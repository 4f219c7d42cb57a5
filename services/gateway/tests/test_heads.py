"""Requests as programs send them that are not our own: HEAD, headers that come twice."""

from __future__ import annotations

import httpx2
import pytest

from services.gateway.tests.door import Door
from services.gateway.tests.waiting import AVERY, DEMO, make_room


@pytest.mark.parametrize("path", ["/health", "/healthz", "/metrics", "/docs", "/openapi.json"])
async def test_head_is_answered_where_get_is(http: httpx2.AsyncClient, path: str) -> None:
    """With the headers of the answer and nothing after them."""
    got, asked = await http.get(path), await http.head(path)

    assert (asked.status_code, asked.content) == (200, b"")
    assert asked.headers["content-type"] == got.headers["content-type"]
    assert int(asked.headers["content-length"]) > 0


async def test_head_tells_whether_something_is_there(hub: Door) -> None:
    """As the hub's probes and proxies ask."""
    await make_room(hub)
    paths = (DEMO, f"{DEMO}/messages", "/api/rooms", "/api/users", f"{DEMO}/messages/nothing", "/api/nothing")
    answers = [await hub.http.head(path, headers=AVERY) for path in paths]

    assert [answer.status_code for answer in answers] == [200, 200, 200, 200, 404, 404]
    assert {answer.content for answer in answers} == {b""}
    text = (await hub.http.get("/metrics")).text
    assert 'mycelium_http_requests_total{method="HEAD",route="/api/rooms/{room}",status="200"}' in text


@pytest.mark.parametrize("path", ["/api/stream?room=demo", f"{DEMO}/stream", f"{DEMO}/await"])
async def test_head_of_what_lasts_is_refused(http: httpx2.AsyncClient, path: str) -> None:
    """A stream without its body would be one for nobody."""
    response = await http.head(path)

    assert response.status_code == 405
    assert "HEAD" not in response.headers["allow"]


@pytest.mark.parametrize("header", ["Mycelium-Handle", "Mycelium-Session", "Idempotency-Key"])
async def test_a_header_that_comes_twice_must_say_the_same(hub: Door, header: str) -> None:
    """Who calls, and under which key, is not for the hub to choose."""
    await make_room(hub)
    handle = [] if header == "Mycelium-Handle" else [("Mycelium-Handle", "avery")]
    body = {"content": "hi"}
    two = await hub.http.post(f"{DEMO}/messages", json=body, headers=[*handle, (header, "avery"), (header, "bob")])
    same = await hub.http.post(f"{DEMO}/messages", json=body, headers=[*handle, (header, "avery"), (header, "avery")])

    assert (two.status_code, two.json()["slug"]) == (422, "request.invalid")
    assert two.json()["detail"] == f"header {header} came twice, with different values"
    assert same.status_code == 201
