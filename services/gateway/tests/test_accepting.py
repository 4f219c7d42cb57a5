"""How connections are let in: one a turn of the loop, whatever else goes wrong with some of them."""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import socket
import struct
from collections.abc import Callable, Iterator

import pytest

from mycelium_gateway import accepting
from mycelium_gateway.accepting import Accepting

MANY = 40
Client = Callable[[], socket.socket]
AT_ONCE_CLOSED = struct.pack("ii", 1, 0)  # SO_LINGER: a reset instead of an orderly end


class Greeter(asyncio.Protocol):
    """Says hello to whoever is let in."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.WriteTransport)
        transport.write(b"hello")
        transport.close()


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0), backlog=MANY) as made:
        yield made


@pytest.fixture
def client(listener: socket.socket) -> Iterator[Client]:
    """Makes clients that wait to be let in."""
    with contextlib.ExitStack() as stack:

        def make() -> socket.socket:
            made = stack.enter_context(socket.create_connection(listener.getsockname()))
            made.setblocking(False)
            return made

        yield make


async def greeted(one: socket.socket) -> bytes:
    async with asyncio.timeout(60):
        return await asyncio.get_running_loop().sock_recv(one, 5)


async def test_a_rush_leaves_the_loop_a_turn_between_two_connections(listener: socket.socket, client: Client) -> None:
    """Who is served already is served on."""
    waiting = [client() for _ in range(MANY)]
    turn, made_in = 0, list[int]()

    def make() -> asyncio.Protocol:
        made_in.append(turn)
        return Greeter()

    async def count() -> None:
        nonlocal turn
        while True:
            turn += 1
            await asyncio.sleep(0)

    counting = asyncio.create_task(count())
    accepting = Accepting(listener, make, MANY)
    assert [await greeted(one) for one in waiting] == [b"hello"] * MANY
    assert len(set(made_in)) == MANY
    accepting.close()
    counting.cancel()


async def test_one_that_left_while_it_waited_keeps_nobody_out(listener: socket.socket, client: Client) -> None:
    """Not even when all before it did."""
    for _ in range(3):
        gone = client()
        gone.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, AT_ONCE_CLOSED)
        gone.close()
    accepting = Accepting(listener, Greeter, MANY)
    assert await greeted(client()) == b"hello"
    accepting.close()


async def test_too_many_open_files_are_waited_out(
    listener: socket.socket, client: Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It is said, and whoever waits is let in once there is room."""
    monkeypatch.setattr(accepting, "PAUSE_S", 0.01)
    one, usual = client(), resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest = os.dup(0)  # every number below is taken
    os.close(lowest)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest, usual[1]))
    try:
        accepts = Accepting(listener, Greeter, MANY)
        async with asyncio.timeout(60):
            while "no connection can be taken" not in caplog.text:  # noqa: ASYNC110 - a log tells nobody
                await asyncio.sleep(0.01)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, usual)
    assert await greeted(one) == b"hello"
    accepts.close()


async def test_nobody_is_let_in_after_it_was_closed(listener: socket.socket, client: Client) -> None:
    """Another process that listens on the same socket may take them."""
    accepting = Accepting(listener, Greeter, MANY)
    accepting.close()
    await accepting.wait_closed()
    left = client()
    with pytest.raises(BlockingIOError):
        left.recv(5)
    taken, _ = listener.accept()
    taken.close()
