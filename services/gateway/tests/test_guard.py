"""The outermost layer: faults that nobody else answers, and the caller's trace."""

from __future__ import annotations

import asyncio
import logging

import httpx2
import pytest
from starlette.responses import Response
from starlette.routing import Route

from mycelium_gateway import app
from mycelium_gateway.origin import Names
from mycelium_kernel import testing
from mycelium_kernel.connections import Connection
from services.gateway.tests.door import Door

TRACE = "0af7651916cd43dd8448eb211c80319c"


async def test_an_unexpected_fault_is_logged_once_and_answered_with_its_key(caplog: pytest.LogCaptureFixture) -> None:
    """The caller learns the key and nothing else."""

    async def broken(_request: object) -> Response:
        raise RuntimeError("the password is swordfish")

    made = app.create(Names("127.0.0.1", ()), "1")
    made.router.routes.append(Route("/broken", broken))
    transport = httpx2.ASGITransport(made)
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as http:
        with caplog.at_level(logging.ERROR):
            response = await http.get("/broken")
    body = response.json()

    assert (response.status_code, body["slug"]) == (500, "internal")
    assert "swordfish" not in response.text
    assert [body["key"] in record.getMessage() for record in caplog.records] == [True]
    assert "swordfish" in caplog.text


async def test_a_callers_trace_reaches_the_fact(hub: Door, nats_server: testing.NatsServer) -> None:
    """One trace from the command line to the log."""
    await hub.http.post("/api/rooms", json={"name": "demo"})
    headers = {"Mycelium-Handle": "avery", "traceparent": f"00-{TRACE}-b7ad6b7169203331-01"}
    posted = await hub.http.post("/api/rooms/demo/messages", json={"content": "hi"}, headers=headers)
    connection = await Connection.open(nats_server.settings("test"))
    try:
        stored = await connection.get(posted.json()["seq"])
    finally:
        await connection.close()

    assert stored is not None
    assert stored[0]["traceparent"].split("-")[1] == TRACE


@pytest.mark.parametrize("line", ["POST /api/rooms", "PUT /api/rooms/demo/memory/work/x"])
async def test_a_client_that_leaves_in_mid_body_is_no_fault(
    hub: Door, caplog: pytest.LogCaptureFixture, line: str
) -> None:
    """A cut upload is not answered, and not logged as a bug."""
    head = f"{line} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n"
    with caplog.at_level(logging.ERROR):
        reader, writer = await asyncio.open_connection("127.0.0.1", hub.port)
        writer.write(head.encode() + b'{"name')
        writer.write_eof()
        answered = await asyncio.wait_for(reader.read(), 60)
        writer.close()

    assert answered == b""
    assert caplog.records == []
