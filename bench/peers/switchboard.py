"""agent-switchboard: a hub over HTTP whose `inbox?wait=` is a long poll and whose `listen` exits with a message."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from bench.peers.face import BIN, RECEIVER, Peer, answers
from bench.wire import Wire
from mycelium_kernel import testing

VERSION = "2.6.0"
ROOM = "bench"


class Switchboard(Peer):
    """It runs without a key: its messages are then plain, as everybody's here."""

    name = f"agent-switchboard {VERSION}"
    durability = "SQLite; a message is gone after an hour"
    port = 0

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.signing: set[str] = set()

    async def start(self) -> None:
        self.port = testing.free_port()
        self.environment |= {"SWITCHBOARD_URL": f"http://127.0.0.1:{self.port}", "SWITCHBOARD_WORKSPACE": ROOM}
        self.spawn(BIN / "switchboard", "serve", "--port", str(self.port), "--db", self.folder / "hub.db")

        async def ask() -> None:
            health = await self._ask("GET", "/health")
            assert health == {"ok": True, "version": VERSION, "auth": False}, health

        await answers(ask)
        await self._ask("POST", "/agents/register", {"workspace": ROOM, "agent_id": RECEIVER, "name": RECEIVER})

    async def _ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        wire = Wire(self.port)
        try:
            return await wire.request(method, path, json.dumps(body).encode() if body else b"")
        finally:
            wire.close()

    async def sender(self, number: int = 0) -> SwitchboardSender:
        return SwitchboardSender(Wire(self.port), f"avery-{number}")

    async def receiver(self) -> SwitchboardReceiver:
        return SwitchboardReceiver(Wire(self.port))

    async def send_cold(self, text: str) -> None:
        await self.run(BIN / "switchboard", "dm", RECEIVER, text, SWITCHBOARD_AGENT_ID="avery-0")
        self.signing.add("avery-0")

    def waiting_command(self) -> tuple[list[str], dict[str, str]]:
        self.signing.add(RECEIVER)
        return [str(BIN / "switchboard"), "listen"], {**self.environment, "SWITCHBOARD_AGENT_ID": RECEIVER}

    async def is_waiting(self) -> bool:
        return bool((await self._ask("GET", "/stats"))["waiting_readers"])

    async def taken(self) -> None:
        # `listen` only peeks: without this the next one would exit at once with the same message.
        await self._ask("GET", f"/inbox?workspace={ROOM}&agent_id={RECEIVER}")

    async def stop(self) -> None:
        # A command leaves a process behind that keeps its key for a day.
        for agent in self.signing:
            await self.run(BIN / "switchboard", "signer", "--stop", SWITCHBOARD_AGENT_ID=agent)
        await super().stop()

    async def stored(self) -> str:
        texts: list[str] = []
        since = 0
        while True:
            path = f"/inbox?workspace={ROOM}&channel=@{RECEIVER}&since={since}&limit=1000&peek=true"
            messages = (await self._ask("GET", path))["messages"]
            if not messages:
                return "\n".join(texts)
            texts += [message["body"] for message in messages]
            since = messages[-1]["seq"]


class SwitchboardSender:
    """An agent that sends to the receiver."""

    def __init__(self, wire: Wire, agent: str) -> None:
        self._wire, self._agent = wire, agent

    async def send(self, text: str) -> None:
        body = {"workspace": ROOM, "channel": f"@{RECEIVER}", "agent_id": self._agent, "body": text}
        await self._wire.request("POST", "/messages", json.dumps(body).encode())

    async def close(self) -> None:
        self._wire.close()


class SwitchboardReceiver:
    """A long poll after the other."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    async def until(self, mark: str) -> None:
        path = f"/inbox?workspace={ROOM}&agent_id={RECEIVER}&wait=25&limit=100"
        while mark not in json.dumps(await self._wire.request("GET", path)):
            pass

    async def close(self) -> None:
        self._wire.close()
