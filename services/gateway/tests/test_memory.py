"""Memory over HTTP: values as they came, ETags, expectations by header and body, the views of a document."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest

from mycelium_gateway.settings import GatewaySettings
from mycelium_kernel import run, testing
from mycelium_memory.service import service as memory_service
from mycelium_rooms.service import service as rooms_service
from services.gateway.tests.conftest import opened

MEMORY = "/api/rooms/demo/memory"
AVERY = {"Mycelium-Handle": "avery"}


@pytest.fixture
async def hub(nats_server: testing.NatsServer, tmp_path: Path) -> AsyncIterator[httpx2.AsyncClient]:
    """A gateway, rooms and memory behind it, and the room `demo`."""
    rooms = await run.start(rooms_service(), nats_server.settings("rooms"), tmp_path / "tables")
    memory = await run.start(memory_service(), nats_server.settings("memory"), tmp_path / "tables")
    try:
        async with opened(nats_server, GatewaySettings(port=0)) as door:
            await door.http.post("/api/rooms", json={"name": "demo"}, headers=AVERY)
            yield door.http
    finally:
        await memory.stop()
        await rooms.stop()


async def put(http: httpx2.AsyncClient, key: str, body: dict[str, object], **headers: str) -> httpx2.Response:
    return await http.put(f"{MEMORY}/{key}", json=body, headers={**AVERY, **headers})


async def test_a_document_s_way(hub: httpx2.AsyncClient) -> None:
    """Made, changed, read as it was, listed, removed; slashes of a key plain or encoded."""
    made = await put(hub, "work%2Fapi", {"value": "# API", "meta": {"owner": "@julia"}, "tags": ["x"]})
    assert (made.status_code, made.headers["etag"], made.json()["replaced"]) == (201, '"1"', None)
    changed = await hub.patch(f"{MEMORY}/work/api", json={"meta": {"status": "open"}}, headers=AVERY)
    assert (changed.status_code, changed.json()["replaced"]["version"]) == (200, 1)

    shown = await hub.get(f"{MEMORY}/work%2Fapi")
    assert shown.json() == {key: value for key, value in changed.json().items() if key != "replaced"}
    assert (shown.json()["value"], shown.json()["meta"]) == ("# API", {"owner": "@julia", "status": "open"})
    was = await hub.get(f"{MEMORY}/work%2Fapi", params={"version": 1})
    assert (was.json()["meta"], was.headers["etag"]) == ({"owner": "@julia"}, '"1"')
    versions = (await hub.get(f"{MEMORY}/work%2Fapi", params={"view": "versions"})).json()
    assert [one["version"] for one in versions["items"]] == [2, 1]
    assert (versions["key"], versions["thread"]) == ("work/api", shown.json()["thread"])
    raw = await hub.get(f"{MEMORY}/work%2Fapi", params={"view": "raw"})
    assert (raw.headers["content-type"], raw.headers["etag"]) == ("text/markdown; charset=utf-8", '"2"')
    assert raw.text.startswith("---\nkey: work/api\nversion: 2\n")
    assert raw.text.endswith('owner: "@julia"\nstatus: open\n---\n\n# API\n')
    listed = (await hub.get(MEMORY, params={"prefix": "work/"})).json()
    assert listed["items"] == [{**shown.json(), "summary": "# API"}]
    assert (await hub.delete(f"{MEMORY}/work/api", headers=AVERY)).status_code == 204
    assert (await hub.get(MEMORY)).json()["items"] == []
    assert (await hub.get(f"{MEMORY}/work%2Fapi")).json()["slug"] == "memory.not_found"


@pytest.mark.parametrize(
    "value",
    ["", "text\r\n\ttab", "null", {"choice": "REST", "n": [1, 2.5, None, True, "é"]}, [], 0, False, None, "[1]"],
)
async def test_a_value_comes_back_as_it_was(hub: httpx2.AsyncClient, value: object) -> None:
    """Texts and every other kind of JSON."""
    assert (await put(hub, "a", {"value": value})).json()["value"] == value
    assert (await hub.get(f"{MEMORY}/a")).json()["value"] == value


async def test_an_expectation_may_be_a_header(hub: httpx2.AsyncClient) -> None:
    """`If-Match` and `If-None-Match` as HTTP has them; a stale write says what is there now."""
    none = {"If-None-Match": "*"}
    assert (await put(hub, "a", {"value": 1}, **none)).status_code == 201
    assert (await put(hub, "a", {"value": 2}, **none)).status_code == 412
    assert (await put(hub, "a", {"value": 2}, **{"If-Match": '"1"'})).status_code == 200
    stale = await hub.delete(f"{MEMORY}/a", headers={**AVERY, "If-Match": '"1"'})
    assert (stale.status_code, stale.json()["version"], stale.json()["updated_by"]) == (412, 2, "avery")
    assert (await hub.delete(f"{MEMORY}/a", params={"expect": 2}, headers=AVERY)).status_code == 204


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        ({"meta": {"a": 1}}, {}),
        ({"value": 1, "expect": -1}, {}),
        ({"value": 1, "expect": 1}, {"If-Match": '"2"'}),
        ({"value": 1}, {"If-Match": "2"}),
        ({"value": 1}, {"If-Match": 'W/"2"'}),
        ({"value": 1}, {"If-None-Match": '"2"'}),
        ({"value": 1, "thread": "x"}, {}),
        ({"value": 1, "tags": "x"}, {}),
        (json.loads('{"value": 1e999}'), {}),
    ],
)  # fmt: skip
async def test_what_can_t_be_meant_is_refused(
    hub: httpx2.AsyncClient, body: dict[str, object], headers: dict[str, str]
) -> None:
    """And nothing is written."""
    text = json.dumps(body).encode()
    refused = await hub.put(
        f"{MEMORY}/a", content=text, headers={**AVERY, **headers, "Content-Type": "application/json"}
    )
    assert (refused.status_code, refused.json()["slug"]) == (422, "request.invalid")
    assert (await hub.get(MEMORY)).json()["items"] == []


async def test_a_text_as_large_as_allowed_passes_however_it_is_escaped(hub: httpx2.AsyncClient) -> None:
    """512 KiB of text are more in JSON; one byte over is refused by the rule, not by the line."""
    largest = "\x01" * (512 * 1024)
    assert (await put(hub, "a", {"value": largest})).status_code == 201
    assert (await hub.get(f"{MEMORY}/a")).json()["value"] == largest
    over = await put(hub, "a", {"value": largest + "x"})
    assert (over.status_code, over.json()["slug"]) == (413, "content.too_large")
    assert "524,288" in over.json()["detail"]
