"""The port of probes: who looks and goes is no fault."""

from __future__ import annotations

import asyncio
import socket
import struct
import threading

import pytest

from mycelium_kernel.probes import Probes


async def test_a_look_that_is_given_up_says_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    """The reader has left before there is an answer; the next one is answered."""
    probes = Probes("127.0.0.1", 0)
    probes.start()
    try:
        place = ("127.0.0.1", int(probes._server.server_address[1]))
        for _look in range(3):
            line = socket.create_connection(place)
            line.sendall(b"GET /health HTTP/1.1\r\n\r\n")
            line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            line.close()  # the loop has not turned, so nothing is answered yet
        probes.ready(lambda: {"status": "ok"})
        reader, writer = await asyncio.open_connection(*place)
        writer.write(b"GET /healthz HTTP/1.0\r\n\r\n")
        assert (await reader.read()).endswith(b"ok")
        writer.close()
        for thread in threading.enumerate():
            if "process_request_thread" in thread.name:
                await asyncio.to_thread(thread.join, 10)
    finally:
        probes.stop()
    assert capfd.readouterr().err == ""
