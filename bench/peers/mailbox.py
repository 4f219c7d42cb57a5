"""agent-mailbox: a workbench that holds the store, and an MCP server beside each agent that asks it over HTTP."""

from __future__ import annotations

import json
import sqlite3
import uuid
from typing import Any, ClassVar

from bench.peers.face import BIN, RECEIVER, Peer, answers
from bench.peers.mcp import McpSession
from bench.wire import Wire
from mycelium_kernel import testing

VERSION = "0.8.2"
SENDERS = 16
# What the human does in the workbench: a project, its members, a connection file for each.
SET_UP = f"""
import json, sys
from pathlib import Path
from agent_mailbox.workbench_store import WorkbenchStore
from agent_mailbox.workbench_mail_sessions import create_session
folder = Path(sys.argv[1])
store = WorkbenchStore(folder / "home")
(folder / "project").mkdir()
project = store.create_project("bench", folder / "project")["id"]
for name in ["{RECEIVER}", *(f"avery-{{n}}" for n in range({SENDERS}))]:
    employee = store.create_employee(name, "codex", project)["id"]
    session = create_session(store, employee, project, name)
    path = folder / f"{{name}}.json"
    path.touch(mode=0o600)
    path.write_text(json.dumps({{"home": str(store.root), "session_id": session["id"], "employee_id": employee,
                                 "project_id": project, "token": session["token"]}}))
"""


class Mailbox(Peer):
    """Every message carries a request id: without one it drops what follows the tenth."""

    name = f"agent-mailbox {VERSION}"
    durability = "SQLite"
    cannot: ClassVar = {"wake": "nothing in it waits; its own loop looks every few seconds"}

    async def start(self) -> None:
        if not (self.folder / "home").exists():
            await self.run(BIN / "python", "-c", SET_UP, self.folder)
            said = await self.run(BIN / "agent-mailbox", "--version")
            assert VERSION in said, said
        port = testing.free_port()
        self.spawn(BIN / "agent-mailbox", "--home", self.folder / "home", "--port", str(port), "--no-browser")

        async def ask() -> None:
            session = json.loads((self.folder / f"{RECEIVER}.json").read_text(encoding="utf-8"))
            body = json.dumps({"tool": "context", "args": {}}).encode()
            wire = Wire(port)
            try:
                path, bearer = "/api/workbench/mailbox/tools", {"authorization": f"Bearer {session['token']}"}
                assert session["project_id"] in json.dumps(await wire.request("POST", path, body, bearer))
            finally:
                wire.close()

        await answers(ask)

    def _session(self, name: str) -> dict[str, Any]:
        session: dict[str, Any] = json.loads((self.folder / f"{name}.json").read_text(encoding="utf-8"))
        return session

    async def _open(self, name: str) -> McpSession:
        command = [str(BIN / "agent-mailbox"), "mailbox-mcp", "--session-file", str(self.folder / f"{name}.json")]
        session = await McpSession.open(command, self.environment, self.folder)
        assert session.server["name"] == "agent-mailbox-project", session.server
        return session

    async def sender(self, number: int = 0) -> MailboxSender:
        return MailboxSender(await self._open(f"avery-{number}"), self._session(RECEIVER)["employee_id"])

    async def receiver(self) -> MailboxReceiver:
        return MailboxReceiver(await self._open(RECEIVER))

    async def send_cold(self, text: str) -> None:
        sender = await self.sender()
        await sender.send(text)
        await sender.close()

    async def stored(self) -> str:
        # Its tools give the newest hundred at most.
        database = sqlite3.connect((self.folder / "home" / "workbench" / "state.db").as_uri() + "?mode=ro", uri=True)
        try:
            return "\n".join(body for (body,) in database.execute("SELECT body FROM messages"))
        finally:
            database.close()


class MailboxSender:
    """A member that sends to the receiver."""

    def __init__(self, session: McpSession, recipient: str) -> None:
        self._session, self._recipient = session, recipient

    async def send(self, text: str) -> None:
        await self._session.call(
            "project_message", title="bench", body=text, recipient_id=self._recipient, request_id=uuid.uuid4().hex
        )

    async def close(self) -> None:
        await self._session.close()


class MailboxReceiver:
    """It has no call that waits: it is asked again and again, without a pause."""

    def __init__(self, session: McpSession) -> None:
        self._session = session

    async def until(self, mark: str) -> None:
        while mark not in json.dumps(await self._session.call("project_messages", limit=3)):
            pass

    async def close(self) -> None:
        await self._session.close()
