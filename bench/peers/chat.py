"""agent-chat-mcp: each agent runs an MCP server of its own, and all of them write the same files."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from typing import ClassVar

from bench.peers.face import BIN, RECEIVER, Peer
from bench.peers.mcp import McpSession

VERSION = "2.0.0"


class Chat(Peer):
    """Its server is as many processes as there are agents."""

    name = f"agent-chat-mcp {VERSION}"
    durability = "its whole file is cut to nothing, written anew and synced"
    cannot: ClassVar = {"wake": "nothing in it waits"}

    sessions: list[McpSession]

    async def start(self) -> None:
        self.sessions = []
        self.environment["AGENT_CHAT_DIR"] = str(self.folder / "rooms")
        await (await self.open("reader")).close()

    async def open(self, agent: str) -> McpSession:
        """A session of an agent that has joined, as its manual says that agents do."""
        session = await McpSession.open([str(BIN / "agent-chat-mcp")], self.environment, self.folder)
        assert session.server["name"] == "agent-chat", session.server
        assert session.server["version"] == VERSION, session.server
        self.sessions.append(session)
        await session.call("join_room", agent_name=agent)
        return session

    async def sender(self, number: int = 0) -> ChatSender:
        return ChatSender(await self.open(f"avery-{number}"), f"avery-{number}")

    async def receiver(self) -> ChatReceiver:
        return ChatReceiver(await self.open(RECEIVER))

    async def send_cold(self, text: str) -> None:
        session = await McpSession.open([str(BIN / "agent-chat-mcp")], self.environment, self.folder)
        await ChatSender(session, "avery-0").send(text)
        await session.close()

    async def stored(self) -> str:
        session = await self.open("reader")
        messages = (await session.call("read_all_messages", limit=0))["messages"]
        return "\n".join(message["content"] for message in messages)

    def pids(self) -> list[int]:
        return [pid for session in self.sessions for pid in session.pids()]

    async def kill(self) -> None:
        for pid in self.pids():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    async def stop(self) -> None:
        await asyncio.gather(*(session.close() for session in self.sessions))


class ChatSender:
    """An agent that sends to the receiver."""

    def __init__(self, session: McpSession, agent: str) -> None:
        self._session, self._agent = session, agent

    async def send(self, text: str) -> None:
        await self._session.call("send_message", from_agent=self._agent, content=text, to_agent=RECEIVER)

    async def close(self) -> None:
        await self._session.close()


class ChatReceiver:
    """It has no call that waits: it is asked again and again, without a pause."""

    def __init__(self, session: McpSession) -> None:
        self._session = session
        self._last = 0

    async def until(self, mark: str) -> None:
        while True:
            batch = await self._session.call("read_messages", agent_name=RECEIVER, since_id=self._last, limit=0)
            for message in batch["messages"]:
                self._last = message["id"]
                if mark in message["content"]:
                    return

    async def close(self) -> None:
        await self._session.close()
