"""Mycelium on the jobs of its peers: the hub with its defaults, asked over HTTP and by its own command line."""

from __future__ import annotations

import json
from typing import Any

from bench import servers
from bench.peers.face import RECEIVER, Peer, answers
from bench.wire import Wire

ROOM = "/api/rooms/bench"
MYCELIUM = str(servers.BIN / "mycelium")


class Mycelium(Peer):
    """The receiver waits in `await`: three facts a message, each on disk: posted, offered, received."""

    name = "Mycelium"
    durability = "JetStream, `sync_interval: always`"
    port = 0

    @classmethod
    def missing(cls) -> str:
        return ""

    async def start(self) -> None:
        home = self.folder / "home"
        new = not home.exists()
        said = home / "run" / "hub.json"
        said.unlink(missing_ok=True)
        self.environment |= {
            "PATH": f"{servers.BIN}:{self.environment['PATH']}",
            "MYCELIUM_HOME": str(home),
            "MYCELIUM_ACTIVE_ROOM": "bench",
        }
        self.spawn(servers.BIN / "mycelium-hub", "up", "--port", "0")

        async def ask() -> None:
            self.port = int(json.loads(said.read_text(encoding="utf-8"))["url"].rsplit(":", 1)[1])
            health = await self._ask("GET", "/health")
            if health["services"]["rooms"]["status"] != "ok":  # the one service that these jobs need
                raise OSError(str(health))

        await answers(ask)
        if new:
            await self._ask("POST", "/api/rooms", {"name": "bench"})
            await self._ask("POST", f"{ROOM}/members", {"handle": RECEIVER, "kind": "agent"})

    async def _ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        wire = Wire(self.port)
        try:
            return await wire.request(method, path, json.dumps(body).encode() if body else b"")
        finally:
            wire.close()

    async def sender(self, number: int = 0) -> MyceliumSender:
        return MyceliumSender(Wire(self.port), f"avery-{number}")

    async def receiver(self) -> MyceliumReceiver | MyceliumWatcher:
        return MyceliumReceiver(Wire(self.port))

    async def send_cold(self, text: str) -> None:
        await self.run(MYCELIUM, "room", "send", f"@{RECEIVER} {text}", MYCELIUM_AGENT_HANDLE="avery")

    def waiting_command(self) -> tuple[list[str], dict[str, str]]:
        return [MYCELIUM, "await", "--handle", RECEIVER], {**self.environment, "MYCELIUM_SESSION": "bench"}

    async def is_waiting(self) -> bool:
        return bool((await self._ask("GET", f"{ROOM}/members/{RECEIVER}"))["waiting"])

    async def stored(self) -> str:
        texts: list[str] = []
        before = ""
        while True:
            page = await self._ask("GET", f"{ROOM}/messages?limit=500{before}")
            texts += [message["content"] for message in page["items"]]
            if not page["next"]:
                return "\n".join(texts)
            before = f"&before={page['next']}"


class Stream(Mycelium):
    """The receiver watches the room's events."""

    name = "Mycelium, event stream"

    async def receiver(self) -> MyceliumWatcher:
        wire = Wire(self.port)
        await wire.open_stream(f"{ROOM}/stream")
        return MyceliumWatcher(wire)


class MyceliumSender:
    """A user who mentions the receiver."""

    def __init__(self, wire: Wire, handle: str) -> None:
        self._wire, self._handle = wire, handle

    async def send(self, text: str) -> None:
        body = json.dumps({"content": f"@{RECEIVER} {text}"}).encode()
        await self._wire.request("POST", f"{ROOM}/messages", body, {"mycelium-handle": self._handle})

    async def close(self) -> None:
        self._wire.close()


class MyceliumReceiver:
    """A long poll after the other, of one session: each acknowledges what came before."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    async def until(self, mark: str) -> None:
        who = {"mycelium-handle": RECEIVER, "mycelium-session": "bench"}
        while mark not in json.dumps(await self._wire.request("POST", f"{ROOM}/await", b'{"timeout_s": 25}', who)):
            pass

    async def close(self) -> None:
        self._wire.close()


class MyceliumWatcher:
    """An open stream."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    async def until(self, mark: str) -> None:
        await self._wire.event(mark.encode())

    async def close(self) -> None:
        self._wire.close()
