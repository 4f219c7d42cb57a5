"""How tests call a gateway: a client that holds every answer to the contract, and raw bytes for what it never sends."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
from jsonschema import Draft202012Validator

from mycelium_gateway import problems, slugs

CONTRACT = Path(__file__).parents[3] / "contracts" / "openapi.json"
DOCUMENT: dict[str, Any] = json.loads(CONTRACT.read_text(encoding="utf-8"))
BOUND_S = 60.0
SOON_S = 20.0  # less than what is waited for without end would take by itself


@dataclass(frozen=True)
class Door:
    """A gateway that answers: its port, and a client of it."""

    port: int
    http: httpx2.AsyncClient
    stop: Callable[[], Awaitable[None]]

    async def raw(self, request: bytes) -> bytes:
        """All that comes back for some bytes, until the gateway closes or has answered with a length."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            async with asyncio.timeout(BOUND_S):
                with contextlib.suppress(ConnectionError):  # it may have closed before all was sent
                    writer.write(request)
                    await writer.drain()
                return await reader.read(65536)
        finally:
            writer.close()


@contextlib.asynccontextmanager
async def client(port: int) -> AsyncIterator[httpx2.AsyncClient]:
    """A client of the gateway on a port, that holds each answer to the OpenAPI document."""
    hooks: dict[str, list[Any]] = {"response": [check]}
    timeout = httpx2.Timeout(BOUND_S * 3)
    async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}", event_hooks=hooks, timeout=timeout) as http:
        yield http


async def metric(http: httpx2.AsyncClient, name: str, value: float) -> None:
    """Wait until a metric has a value."""

    async def is_so() -> bool:
        return f"\n{name} {value}\n" in (await http.get("/metrics")).text

    await until(is_so)


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    """Look again and again until something is so."""
    async with asyncio.timeout(BOUND_S * 2):
        while not await condition():  # noqa: ASYNC110 - only a look can tell
            await asyncio.sleep(0.02)


async def check(response: httpx2.Response) -> None:
    """Fail the test whose answer is not what the contract says."""
    media = response.headers.get("content-type", "")
    if response.request.method == "HEAD" or not media.startswith(("application/json", problems.MEDIA_TYPE)):
        return
    await response.aread()
    body = response.json()
    operation = find(response.request.method, response.request.url.raw_path.decode().partition("?")[0])
    if media == problems.MEDIA_TYPE:
        schema: dict[str, Any] = {"$ref": "#/components/schemas/Problem"}
        assert body["status"] == response.status_code
        assert slugs.SLUGS[body["slug"]].status == body["status"]
        if operation:
            declared = operation["responses"][str(response.status_code)]["description"]
            assert f"`{body['slug']}`" in declared, f"{body['slug']} is not declared for {operation['operationId']}"
    elif operation:
        schema = operation["responses"][str(response.status_code)]["content"]["application/json"]["schema"]
    else:
        return
    validator = Draft202012Validator({**schema, "components": DOCUMENT["components"]})
    assert [error.message for error in validator.iter_errors(body)] == []


def find(method: str, path: str) -> dict[str, Any] | None:
    """The operation of the document that a request calls."""
    for template, methods in DOCUMENT["paths"].items():
        if re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", template), path) and method.lower() in methods:
            found: dict[str, Any] = methods[method.lower()]
            return found
    return None
