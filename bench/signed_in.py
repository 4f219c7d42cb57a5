"""What a token costs: the same read of the same room, from a hub that asks nobody and from one that asks everybody."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from bench import servers
from bench.harness import Contender, Measure, Row, now_ms
from bench.wire import Wire
from e2e import oidc_server
from e2e.guarding import guarded

ROOM = "/api/rooms/bench"


def _reads(port: int, tokens: Callable[[int], list[str]]) -> Measure:
    """Reads of the room, one after the other on one connection, each with its token."""

    async def measure(count: int) -> list[float]:
        wire = Wire(port)
        sent = [{"authorization": f"Bearer {token}"} if token else {} for token in tokens(count)]
        await wire.request("GET", ROOM, b"", sent[0])
        samples = []
        for headers in sent[1:]:
            began = now_ms()
            await wire.request("GET", ROOM, b"", headers)
            samples.append(now_ms() - began)
        wire.close()
        return samples

    return measure


@contextlib.asynccontextmanager
async def reads() -> AsyncIterator[Row]:
    """A read without sign-in, with a token that the hub has seen, and with one that it has not."""
    with tempfile.TemporaryDirectory(prefix="mycelium-issuer-") as folder, oidc_server.started(Path(folder)) as issuer:
        kept = issuer.user_token("bench")
        async with servers.hub() as asks_nobody, servers.hub(**guarded(issuer)) as asks_all:
            for port, token in ((asks_nobody.port, ""), (asks_all.port, kept)):
                wire = Wire(port)
                who = {"authorization": f"Bearer {token}"} if token else {"mycelium-handle": "bench"}
                await wire.request("POST", "/api/rooms", b'{"name": "bench"}', who)
                wire.close()
            yield Row(
                "A read of a room, signed in (a token is 500 bytes, RS256)",
                "p50 + 0.3 ms over the same without sign-in",
                [
                    Contender("sign-in off", "", _reads(asks_nobody.port, lambda count: [""] * (count + 1))),
                    Contender("with one token", "", _reads(asks_all.port, lambda count: [kept] * (count + 1))),
                    Contender(
                        "each with a token never seen",
                        "",
                        _reads(asks_all.port, lambda count: [issuer.user_token("bench") for _ in range(count + 1)]),
                    ),
                ],
            )
