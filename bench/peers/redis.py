"""Redis Streams with `appendfsync always`: no product for agents, but what many would build one on."""

from __future__ import annotations

import asyncio
import shutil
from typing import Any, ClassVar

from bench.peers.face import PEERS, Peer, answers
from mycelium_kernel import testing

UNPACKED = PEERS / "redis" / "usr"
STREAM = "bench"


def _program(name: str) -> str:
    return shutil.which(name) or str(UNPACKED / "bin" / name)


class Redis(Peer):
    """One stream; a blocked `XREAD` receives."""

    name = "Redis 7 Streams"
    durability = "append-only file, `appendfsync always`"
    cannot: ClassVar = {}
    port = 0

    @classmethod
    def missing(cls) -> str:
        have = shutil.which("redis-server") or (UNPACKED / "bin" / "redis-server").exists()
        return "" if have else "no redis-server: make bench-peers"

    async def start(self) -> None:
        self.port = testing.free_port()
        self.environment["LD_LIBRARY_PATH"] = str(UNPACKED / "lib" / "x86_64-linux-gnu")
        settings = {"port": self.port, "bind": "127.0.0.1", "dir": self.folder, "save": ""}
        settings |= {"appendonly": "yes", "appendfsync": "always"}
        self.spawn(_program("redis-server"), *(word for k, v in settings.items() for word in (f"--{k}", str(v))))
        await answers(self._assert)

    async def _assert(self) -> None:
        wire = RedisWire(self.port)
        try:
            said = (await wire.ask("INFO")).decode()
            if "loading:1" in said:
                raise OSError("still loading")
            assert "redis_version:7." in said, said[:200]
            assert await wire.ask("CONFIG", "GET", "appendfsync") == [b"appendfsync", b"always"]
            assert await wire.ask("CONFIG", "GET", "appendonly") == [b"appendonly", b"yes"]
        finally:
            await wire.close()

    async def sender(self, number: int = 0) -> RedisWire:
        return RedisWire(self.port)

    async def receiver(self) -> RedisWire:
        return RedisWire(self.port)

    async def send_cold(self, text: str) -> None:
        await self.run(_program("redis-cli"), "-p", str(self.port), "XADD", STREAM, "*", "t", text)

    def waiting_command(self) -> tuple[list[str], dict[str, str]]:
        command = [_program("redis-cli"), "-p", str(self.port), "XREAD", "BLOCK", "0", "STREAMS", STREAM, "$"]
        return command, self.environment

    async def is_waiting(self) -> bool:
        wire = RedisWire(self.port)
        try:
            return b"blocked_clients:1" in await wire.ask("INFO", "clients")
        finally:
            await wire.close()

    async def stored(self) -> str:
        wire = RedisWire(self.port)
        try:
            return "\n".join(fields[1].decode() for _, fields in await wire.ask("XRANGE", STREAM, "-", "+"))
        finally:
            await wire.close()


class RedisWire:
    """The least client: a command after the other on a raw socket."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._last = b"0"
        self._pipes: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, *words: str | bytes) -> Any:
        """The answer to a command. Raises `OSError` for an error that it answers with."""
        if not self._pipes:
            self._pipes = await asyncio.open_connection("127.0.0.1", self._port, limit=2**24)
        parts = [word.encode() if isinstance(word, str) else word for word in words]
        line = b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts)
        self._pipes[1].write(b"*%d\r\n%s" % (len(parts), line))
        await self._pipes[1].drain()
        return await self._answer(self._pipes[0])

    async def _answer(self, reader: asyncio.StreamReader) -> Any:
        line = (await reader.readuntil(b"\r\n"))[:-2]
        kind, rest = line[:1], line[1:]
        if kind == b"-":
            raise OSError(rest.decode())
        if kind == b"$":
            return None if rest == b"-1" else (await reader.readexactly(int(rest) + 2))[:-2]
        if kind == b"*":
            return [await self._answer(reader) for _ in range(int(rest))]
        return rest

    async def send(self, text: str) -> None:
        await self.ask("XADD", STREAM, "*", "t", text)

    async def until(self, mark: str) -> None:
        while True:
            for _, entries in await self.ask("XREAD", "BLOCK", "0", "STREAMS", STREAM, self._last):
                for self._last, fields in entries:
                    if mark.encode() in fields[1]:
                        return

    async def close(self) -> None:
        if self._pipes:
            self._pipes[1].close()
