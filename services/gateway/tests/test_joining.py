"""Live streams begin in turn."""

from __future__ import annotations

import asyncio
import functools
import gc

import pytest
from starlette.types import Message, Receive, Scope, Send

from mycelium_gateway.joining import AT_ONCE, JoiningMiddleware, Leaving

MANY = 30
STREAM = "/api/rooms/demo/stream"


class App:
    """What is behind: each request waits for `go` before it is answered."""

    def __init__(self) -> None:
        self.inside = self.most = self.done = 0
        self.go = asyncio.Event()
        self.fault: Exception | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.inside += 1
        self.most = max(self.most, self.inside)
        try:
            if scope["path"] == STREAM:
                await self.go.wait()
            if self.fault:
                raise self.fault
        finally:
            self.inside -= 1
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"", "more_body": True})
        self.done += 1
        if scope["path"] == STREAM:
            await asyncio.Event().wait()  # a stream lasts


async def receive() -> Message:
    return {"type": "http.disconnect"}


async def send(_message: Message) -> None:
    await asyncio.sleep(0)


def ask(layer: JoiningMiddleware, path: str = STREAM, method: str = "GET") -> asyncio.Task[None]:
    async def request() -> None:
        await layer({"type": "http", "method": method, "path": path}, receive, send)

    return asyncio.create_task(request())


async def turns() -> None:
    for _ in range(20 * MANY):
        await asyncio.sleep(0)


async def test_few_streams_begin_at_a_time_and_all_do() -> None:
    """A turn ends when the answer begins, although the stream goes on; full passes of the collector wait till then."""
    app = App()
    layer, usual = JoiningMiddleware(app), gc.get_threshold()
    streams = [ask(layer) for _ in range(MANY)]
    await turns()
    assert (app.inside, app.done) == (AT_ONCE, 0)
    assert gc.get_threshold() != usual
    app.go.set()
    await turns()
    assert (app.most, app.done) == (AT_ONCE, MANY)
    assert gc.get_threshold() == usual
    for stream in streams:
        stream.cancel()


async def test_other_requests_pass_streams_that_wait() -> None:
    """They are why those wait."""
    app = App()
    layer = JoiningMiddleware(app)
    streams = [ask(layer) for _ in range(MANY)]
    await turns()
    await ask(layer, "/api/rooms/demo/messages")
    assert app.done == 1
    for stream in streams:
        stream.cancel()


async def test_who_writes_slowly_under_such_a_name_has_no_turn() -> None:
    """A document may be called `stream`: bodies of eight that never come to their end kept every watcher out."""
    app = App()
    layer = JoiningMiddleware(app)
    writers = [ask(layer, method="PUT") for _ in range(AT_ONCE)]
    await turns()
    streams = [ask(layer) for _ in range(AT_ONCE)]
    await turns()
    assert app.inside == 2 * AT_ONCE
    for one in [*writers, *streams]:
        one.cancel()


@pytest.mark.parametrize("fault", ["refused", "gone"])
async def test_who_fails_or_leaves_gives_up_its_turn(fault: str) -> None:
    """Before its answer began, while it waited or when it had its turn."""
    app = App()
    layer = JoiningMiddleware(app)
    streams = [ask(layer) for _ in range(MANY)]
    await turns()
    if fault == "refused":
        app.fault = RuntimeError("refused")
        app.go.set()
        assert all(isinstance(one, RuntimeError) for one in await asyncio.gather(*streams, return_exceptions=True))
        app.fault = None
    else:
        for stream in streams:
            stream.cancel()
        await asyncio.gather(*streams, return_exceptions=True)
        app.go.set()
    again = [ask(layer) for _ in range(MANY)]
    await turns()
    assert app.done == MANY
    for stream in again:
        stream.cancel()


async def test_those_who_leave_at_once_are_seen_off_a_few_each_turn() -> None:
    """In the order in which they left; later ones too."""
    ended, a_turn = list[int](), list[int]()
    leaving = Leaving()
    for number in range(MANY):
        leaving.add(functools.partial(ended.append, number))
    while len(ended) < MANY:
        before = len(ended)
        await asyncio.sleep(0)
        a_turn.append(len(ended) - before)
    assert ended == list(range(MANY))
    assert max(a_turn) <= AT_ONCE
    leaving.add(lambda: ended.append(MANY))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert ended[-1] == MANY
