"""What a connection may send and how long it may take, over real sockets."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from mycelium_gateway.protocol import HEAD_BYTES
from mycelium_gateway.settings import GatewaySettings
from mycelium_kernel.testing import NatsServer
from services.gateway.tests.conftest import opened
from services.gateway.tests.door import BOUND_S, Door

START = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
BODY = b"POST /api/rooms HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 50\r\n\r\n"


@contextlib.asynccontextmanager
async def connected(door: Door) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection("127.0.0.1", door.port)
    try:
        async with asyncio.timeout(BOUND_S):
            yield reader, writer
    finally:
        writer.transport.abort()


async def exchange(door: Door, *parts: bytes) -> bytes:
    """All that comes until the gateway closes, while the parts are sent one after another."""
    async with connected(door) as (reader, writer):
        reading = asyncio.create_task(reader.read())
        for part in parts:
            with contextlib.suppress(ConnectionError):
                writer.write(part)
                await writer.drain()
        return await reading


def problem(answer: bytes) -> tuple[int, dict[str, Any]]:
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"content-type: application/problem+json" in head
    assert b"connection: close" in head
    return int(head.split(b" ")[1]), json.loads(body)


@pytest.mark.parametrize(
    "parts",
    [
        (START + b"A: " + b"x" * HEAD_BYTES + b"\r\n\r\n",),
        (START, b"A: ", *[b"x" * 1000] * 400),
        (START, *[b"A: b\r\n"] * 12_000),
        (b"GET /" + b"x" * HEAD_BYTES + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",),
        (b"GET /", *[b"x" * 1000] * 5_000),
        (b"\r\n" * HEAD_BYTES,),
    ],
    ids=["one header", "a header in pieces", "many headers", "an address", "an endless address", "empty lines"],
)
async def test_a_head_that_is_too_large_is_refused_and_the_connection_closed(
    door: Door, parts: tuple[bytes, ...]
) -> None:
    """Nobody makes the hub keep what is no request, and the client gets to read why."""
    status, body = problem(await exchange(door, *parts))

    assert (status, body["slug"]) == (431, "request.head_too_large")


async def test_heads_are_measured_one_by_one(door: Door) -> None:
    """Many requests over one connection, sent at once, and a large body, are no large head."""
    one = START + b"A: " + b"x" * 30_000 + b"\r\n"
    last = START + b"Connection: close\r\n\r\n"
    upload = BODY.replace(b"50", b"200000") + b"x" * 200_000
    answer = await exchange(door, *[one + b"\r\n"] * 4, upload, last)

    assert answer.count(b"HTTP/1.1 200 OK") == 5
    assert answer.count(b"HTTP/1.1 422 ") == 1


async def test_trailers_are_bounded_too(door: Door) -> None:
    """What follows a body in chunks can't grow for ever."""
    head = BODY.replace(b"Content-Length: 50", b"Transfer-Encoding: chunked")
    answer = await exchange(door, head, b"1\r\n{\r\n0\r\n", *[b"A: b\r\n"] * 20_000)

    assert problem(answer)[1]["slug"] == "request.head_too_large"


@pytest.fixture
async def hasty(nats_server: NatsServer) -> AsyncIterator[Door]:
    """A gateway that waits for nobody long."""
    async with opened(nats_server, GatewaySettings(port=0, services={}, head_s=0.3, body_s=0.2)) as door:
        yield door


async def test_a_connection_that_says_nothing_is_closed(hasty: Door) -> None:
    """Without an answer: nothing was asked."""
    assert await exchange(hasty) == b""


@pytest.mark.parametrize("parts", [(b"GET",), (START,), (b"\r\n",), (START + b"\r\n" + START,)])
async def test_a_head_that_does_not_end_is_told_so(hasty: Door, parts: tuple[bytes, ...]) -> None:
    """Also when it is the connection's second."""
    answer = await exchange(hasty, *parts)

    status, body = problem(answer[answer.rindex(b"HTTP/1.1") :])
    assert (status, body["slug"]) == (408, "request.timed_out")


@pytest.mark.parametrize("parts", [(BODY,), (BODY, b'{"name')])
async def test_a_body_that_stalls_is_told_so(
    hasty: Door, parts: tuple[bytes, ...], caplog: pytest.LogCaptureFixture
) -> None:
    """It is no fault of the hub."""
    status, body = problem(await exchange(hasty, *parts))

    assert (status, body["slug"]) == (408, "request.timed_out")
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []


async def test_a_head_that_trickles_is_not_waited_for(hasty: Door) -> None:
    """Each byte in time does not make the whole in time."""
    async with connected(hasty) as (reader, writer):
        reading = asyncio.create_task(reader.read())
        writer.write(START)
        while not reading.done():
            writer.write(b"A")
            await asyncio.wait({reading}, timeout=0.02)
        assert problem(await reading)[0] == 408


async def test_a_connection_between_two_requests_is_kept(hasty: Door) -> None:
    """An idle one is worth keeping longer than one that never said anything."""
    async with connected(hasty) as (reader, writer):
        writer.write(START + b"\r\n")
        assert (await reader.readuntil(b"ok")).startswith(b"HTTP/1.1 200")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.6):
                await reader.read()
        writer.write(START + b"\r\n")
        assert (await reader.readuntil(b"ok")).startswith(b"HTTP/1.1 200")


async def test_a_whole_target_is_judged_by_its_own_host(door: Door) -> None:
    """Whatever `Host` says."""
    for target, host, status in (
        (b"http://evil.example/api/whoami", b"127.0.0.1", b"403"),
        (b"http://me@127.0.0.1/api/whoami", b"127.0.0.1", b"403"),
        (b"http://127.0.0.1/api/whoami", b"evil.example", b"200"),
    ):
        answer = await door.raw(b"GET " + target + b" HTTP/1.1\r\nHost: " + host + b"\r\n\r\n")
        assert answer.split(b" ")[1] == status, target
