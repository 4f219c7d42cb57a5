"""The barest FastAPI and NATS code that takes a post and shows it to watchers: what the gateway is compared with.

It keeps no promise but the one that costs: a post is answered when JetStream has it on disk. Run as a program:
`python -m bench.floor NATS_URL PORT`.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import nats
import uvicorn
from fastapi import FastAPI, Request
from nats.aio.msg import Msg
from nats.js.api import StreamConfig

from mycelium_kernel.testing import PASSWORD


def build(nats_url: str) -> FastAPI:
    """The app: `POST /post`, `GET /stream`, `GET /who`."""
    watchers: set[asyncio.Queue[bytes]] = set()
    held: dict[str, Any] = {}

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        client = await nats.connect(nats_url, user="test", password=PASSWORD)
        held["js"] = client.jetstream()
        await held["js"].add_stream(StreamConfig(name="FLOOR", subjects=["floor"]))

        async def on_message(message: Msg) -> None:
            for watcher in watchers:
                watcher.put_nowait(b"data: " + message.data + b"\n\n")

        await held["js"].subscribe("floor", cb=on_message, ordered_consumer=True)
        yield
        await client.close()

    app = FastAPI(lifespan=lifespan)

    @app.get("/who")
    async def who() -> dict[str, str]:
        return {"who": "floor"}

    @app.post("/post")
    async def post(request: Request) -> dict[str, int]:
        ack = await held["js"].publish("floor", await request.body())
        return {"seq": ack.seq}

    app.mount("/stream", _stream(watchers))
    return app


def _stream(watchers: set[asyncio.Queue[bytes]]) -> Any:
    async def stream(_scope: Any, _receive: Any, send: Any) -> None:
        queue: asyncio.Queue[bytes] = asyncio.Queue()
        watchers.add(queue)
        headers = [(b"content-type", b"text/event-stream")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b": connected\n\n", "more_body": True})
        try:
            while True:  # until the server is ended
                await send({"type": "http.response.body", "body": await queue.get(), "more_body": True})
        except asyncio.CancelledError:
            return
        finally:
            watchers.discard(queue)

    return stream


if __name__ == "__main__":
    uvicorn.run(
        build(sys.argv[1]), host="127.0.0.1", port=int(sys.argv[2]), log_level="critical", timeout_graceful_shutdown=1
    )
