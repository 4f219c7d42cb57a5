"""Somebody else at the hub, in a process of its own: posts every ten milliseconds and watches until it is told to end.

`python -m bench.other PORT ROOM`, ended by the end of its input; then prints a JSON list of [moment, milliseconds
until its own watcher had the post], moments on the machine's monotonic clock.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
import uuid

import uvloop

from bench.wire import Wire

PAUSE_S = 0.01
BOUND_S = 20.0
HANDLE = {"mycelium-handle": "other"}


async def main(port: int, room: str) -> None:
    """Post until the input ends."""
    ended = asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    poster, watcher = Wire(port), Wire(port)
    await watcher.open_stream(f"/api/rooms/{room}/stream")
    print("ready", flush=True)
    samples = []
    while not ended.done():
        mark = uuid.uuid4().hex
        began = time.monotonic()
        body = json.dumps({"content": mark}).encode()
        answer = asyncio.create_task(poster.request("POST", f"/api/rooms/{room}/messages", body, HANDLE))
        async with asyncio.timeout(BOUND_S):
            await watcher.event(mark.encode())
            samples.append((began, (time.monotonic() - began) * 1000))
            await answer
        await asyncio.sleep(PAUSE_S)
    print(json.dumps(samples))


if __name__ == "__main__":
    uvloop.run(main(int(sys.argv[1]), sys.argv[2]))
