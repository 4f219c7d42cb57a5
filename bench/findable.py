"""Rows about the way from a text to where it is found: a write until a search has it, and 500 files put into a folder.

A search says how many documents of its room wait for their vectors; it is asked again and again, with a question whose
own vector is known since the first time.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import tempfile
import urllib.parse
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from bench import servers
from bench.harness import Contender, Row, now_ms
from bench.vectors import TEXTS
from bench.wire import Wire
from mycelium_memory import models
from mycelium_memory.embedding import Embedder

HANDLE = {"mycelium-handle": "bench"}
FILES = 500
LOOK_S = 0.002
QUESTION = "how does the deployment wait for the migration"
MODEL = "minilm"  # comes with the program


class Place:
    """A room of a hub, as one client uses it."""

    def __init__(self, hub: servers.RunningHub, name: str) -> None:
        self.folder, self._wire = hub.home / "rooms" / name, Wire(hub.port)
        self._name, self._path = name, f"/api/rooms/{name}"

    async def create(self) -> None:
        """With its folder, and a search that has been asked once."""
        await self._wire.request("POST", "/api/rooms", json.dumps({"name": self._name}).encode(), HANDLE)
        while not (self.folder / ".room").exists():
            await asyncio.sleep(LOOK_S)
        await self.search(QUESTION)

    async def put(self, key: str, text: str) -> None:
        """Write a memory."""
        body = json.dumps({"value": text}).encode()
        await self._wire.request("PUT", f"{self._path}/memory/{key}", body, HANDLE)

    async def search(self, asked: str) -> Any:
        """The answer to a question."""
        query = urllib.parse.urlencode({"q": asked})
        return await self._wire.request("GET", f"{self._path}/search?{query}", headers=HANDLE)

    async def count(self) -> int:
        """How many memories there are."""
        found = await self._wire.request("GET", f"{self._path}/memory?brief=true&limit=1000", headers=HANDLE)
        return len(found["items"])

    async def until_meant(self) -> None:
        """Return when a search by meaning has all that was written."""
        while True:
            state = (await self.search(QUESTION))["meaning"]
            if state["model"] and not state["why_not"] and not state["waiting"]:
                return
            await asyncio.sleep(LOOK_S)


@contextlib.asynccontextmanager
async def written() -> AsyncIterator[Row]:
    """A write until it is found, beside the embedding that is a part of it."""
    numbers = itertools.count(1)
    with tempfile.TemporaryDirectory(prefix="mycelium-models-") as folder:
        embedder = Embedder(await asyncio.to_thread(models.choose, MODEL, Path(folder), {}))
        await embedder.embed(["ready"])
        async with servers.hub(MYCELIUM_MEMORY_EMBEDDING_MODEL=MODEL) as hub:
            place = Place(hub, "bench")
            await place.create()

            async def measure_embedding(count: int) -> list[float]:
                return [await _took_embedding(embedder, next(numbers)) for _ in range(count)]

            async def measure_meaning(count: int) -> list[float]:
                return [await _took_meaning(place, next(numbers)) for _ in range(count)]

            async def measure_words(count: int) -> list[float]:
                return [await _took_words(place, next(numbers)) for _ in range(count)]

            yield Row(
                "A memory is written → it is found",
                "by meaning: the embedding and 5 ms",
                [
                    Contender("the embedding of its text alone", "computed", measure_embedding),
                    Contender("set → found by meaning", "on disk (sync always)", measure_meaning),
                    Contender("set → found by its words", "on disk (sync always)", measure_words),
                ],
            )
        await embedder.stop()


def _text(number: int) -> str:
    return f"mark{number} {TEXTS['a line']}"


async def _took_embedding(embedder: Embedder, number: int) -> float:
    began = now_ms()
    await embedder.embed([_text(number)])
    return now_ms() - began


async def _took_meaning(place: Place, number: int) -> float:
    began = now_ms()
    await place.put(f"notes/n{number}", _text(number))
    await place.until_meant()
    return now_ms() - began


async def _took_words(place: Place, number: int) -> float:
    began = now_ms()
    await place.put(f"notes/n{number}", _text(number))
    found = await place.search(f"mark{number}")
    took = now_ms() - began
    assert found["items"][0]["key"] == f"notes/n{number}", found
    await place.until_meant()  # so that it is not in the way of the next
    return took


@contextlib.asynccontextmanager
async def by_hand() -> AsyncIterator[Row]:
    """Files put into a room's folder by somebody else, all at once."""
    numbers = itertools.count(1)
    async with servers.hub(MYCELIUM_MEMORY_EMBEDDING_MODEL=MODEL) as hub:

        async def measure_taken(count: int) -> list[float]:
            return [await _took_files(Place(hub, f"bench-{next(numbers)}"), is_meant=False) for _ in range(count)]

        async def measure_meant(count: int) -> list[float]:
            return [await _took_files(Place(hub, f"bench-{next(numbers)}"), is_meant=True) for _ in range(count)]

        yield Row(
            f"{FILES} files are put into a room's folder → all are found",
            "not set; each is a version on disk and a vector",
            [
                Contender("all are memories, found by words", "on disk (sync always)", measure_taken),
                Contender("all are found by meaning", "on disk (sync always)", measure_meant),
            ],
        )


async def _took_files(place: Place, *, is_meant: bool) -> float:
    await place.create()
    (place.folder / "notes").mkdir()
    began = now_ms()
    for number in range(FILES):
        (place.folder / f"notes/n{number}.md").write_text(_text(number), encoding="utf-8")
    while await place.count() < FILES:
        await asyncio.sleep(10 * LOOK_S)
    if is_meant:
        await place.until_meant()
    took = now_ms() - began
    await place.until_meant()
    return took
