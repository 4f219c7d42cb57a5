"""The least MCP client that measures: JSON-RPC by lines over the pipes of a server of its own."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.peers.face import BOUND_S, Refused, tree


class McpSession:
    """A running MCP server and the session with it; `server` is who it says it is."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._numbers = itertools.count(1)
        self.server: dict[str, str] = {}

    @classmethod
    async def open(cls, command: list[str], environment: Mapping[str, str], folder: Path) -> McpSession:
        """Start the server and shake hands."""
        with (folder / "mcp.log").open("ab") as log:
            process = await asyncio.create_subprocess_exec(
                *command,
                env=dict(environment),
                cwd=folder,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                limit=2**26,
            )
        self = cls(process)
        hello = {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "bench", "version": "1"},
        }
        self.server = (await self._ask("initialize", hello))["serverInfo"]
        await self._say({"method": "notifications/initialized"})
        return self

    async def call(self, tool: str, **arguments: object) -> Any:
        """What the tool gives, as JSON. Raises `Refused` with its text."""
        result = await self._ask("tools/call", {"name": tool, "arguments": arguments})
        if result.get("isError"):
            raise Refused(str(result["content"])[:300])
        return result.get("structuredContent") or json.loads(result["content"][0]["text"])

    async def _say(self, message: dict[str, Any]) -> None:
        assert self._process.stdin
        self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        await self._process.stdin.drain()

    async def _ask(self, method: str, params: dict[str, Any]) -> Any:
        number = next(self._numbers)
        await self._say({"id": number, "method": method, "params": params})
        assert self._process.stdout
        while True:
            line = await self._process.stdout.readline()
            if not line:
                raise EOFError("the MCP server is gone")
            answer = json.loads(line)
            if answer.get("id") == number:
                if "error" in answer:
                    raise Refused(str(answer["error"])[:300])
                return answer["result"]

    def pids(self) -> list[int]:
        """The server's processes."""
        return tree(self._process.pid) if self._process.returncode is None else []

    async def close(self) -> None:
        """Close its input, upon which it ends."""
        assert self._process.stdin
        self._process.stdin.close()
        try:
            await asyncio.wait_for(self._process.wait(), BOUND_S)
        except TimeoutError:
            self._process.kill()
            await self._process.wait()
