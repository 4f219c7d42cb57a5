"""Requests as programs send them that are not our own: HEAD, headers that come twice, addresses that name nothing."""

from __future__ import annotations

from urllib.parse import quote

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


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("PUT", f"{DEMO}/memory/%FF"),
        ("PUT", f"{DEMO}/memory/a%C3"),
        ("GET", f"{DEMO}/memory/%ED%A0%80"),
        ("GET", "/api/rooms/%FF"),
        ("DELETE", "/api/rooms/%FE/members/a"),
        ("GET", f"{DEMO}/memory?prefix=%FF"),
        ("GET", f"{DEMO}/search?q=%FF"),
    ],
)
async def test_an_address_that_is_not_utf8_is_refused(http: httpx2.AsyncClient, method: str, path: str) -> None:
    """Else all that are broken alike would name one document, and overwrite each other's."""
    response = await http.request(method, path, headers=AVERY, json={"value": "a"} if method == "PUT" else None)

    assert (response.status_code, response.json()["slug"]) == (422, "request.invalid")
    assert response.json()["detail"].startswith("the address is not UTF-8: it has the byte 0x")


async def test_an_address_with_a_line_break_is_refused(http: httpx2.AsyncClient) -> None:
    """With the reason, and not as one that is not served."""
    response = await http.get(f"{DEMO}/memory/a%0Ab", headers=AVERY)

    assert (response.status_code, response.json()["detail"]) == (422, "the address has a line break in its path")


@pytest.mark.parametrize("text", ["caf\u00e9", "\U0001f600", "100%", "a b", "\ufffd"])
async def test_any_text_may_stand_in_an_address(http: httpx2.AsyncClient, text: str) -> None:
    """It comes as far as the routes, of which none takes this method."""
    response = await http.put(f"/api/rooms/{quote(text)}", params={"tz": text}, headers=AVERY)

    assert response.json()["slug"] == "method.not_allowed"
