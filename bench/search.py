"""Rows about search through HTTP, without the embedding: among few and many sections, again, after a write, by words.

A hub a size (`bench.drawn`), its sections in documents of fifty, each of common and rarer words as texts have them; a
room has all of them or one in ten. What is nearest is known exactly, so that what a search misses is counted.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import random
import sys
import tempfile
import time
import urllib.parse
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from bench import drawn, servers
from bench.harness import Contender, Row, now_ms
from bench.wire import Wire
from mycelium_memory.shard import UNINDEXED

SIZES = (1_000, 10_000, 100_000)
ROOMS = {"tenth": 10, "whole": 1}  # how many rooms share the sections
EACH = 50  # sections of a document
WORDS = [f"word{number}" for number in range(20_000)]
WEIGHTS = list(itertools.accumulate(1 / (number + 10) for number in range(len(WORDS))))  # as often as in any language
TOP = 10
CLIENTS = 4
HANDLE = {"mycelium-handle": "bench"}
FILLED_S = 3_000.0
READ = "read"


class Filled:
    """A hub with so many sections in rooms of its own, and what was missed."""

    def __init__(self, hub: servers.RunningHub, size: int, rooms: int) -> None:
        port = hub.port
        self.wire, self._home = Wire(port), hub.home
        self.size, self.rooms, self._port = size, rooms, port
        self.numbers = range(0, size, rooms)  # of the sections in room 0
        self.filled_s = 0.0
        self.hit = self.wanted = self._written = 0
        self._table = np.stack([drawn.vector(f"s{number}") for number in self.numbers])
        self._asked = random.Random(size)

    async def fill(self) -> None:
        """Write the documents and wait until they have an index."""
        began = time.monotonic()
        for number in range(self.rooms):
            await self.wire.request("POST", "/api/rooms", json.dumps({"name": f"room-{number}"}).encode(), HANDLE)
        documents = iter(
            [(room, first) for first in range(0, self.size // self.rooms, EACH) for room in range(self.rooms)]
        )

        async def client() -> None:
            wire = Wire(self._port)
            for room, first in documents:
                numbers = range(first, min(first + EACH, self.size // self.rooms))
                await self.put(wire, room, f"work/{first}", [number * self.rooms + room for number in numbers])
            wire.close()

        async with asyncio.timeout(FILLED_S):
            await asyncio.gather(*(client() for _ in range(CLIENTS)))
            await self.connect()
            while (await self.search("q0 word0"))["meaning"] != {"model": drawn_model(), "why_not": None, "waiting": 0}:
                await asyncio.sleep(0.5)
            while not self._is_indexed():
                await asyncio.sleep(0.5)
                await self.connect()
        self.filled_s = time.monotonic() - began

    async def connect(self) -> None:
        """Anew, before each round: the hub ends lines on which nothing comes, while the others are measured."""
        self.wire.close()
        self.wire = Wire(self._port)
        await self.wire.request("GET", "/api/rooms", headers=HANDLE)

    def _is_indexed(self) -> bool:
        """Whether the index of vectors was built, which is done in a copy; few have none."""
        shards = [int(folder.name.partition("-")[2]) for folder in self._home.glob("index/vectors/*/shard-*")]
        return self.size < UNINDEXED or (len(shards) == 1 and shards[0] > 1)

    async def put(self, wire: Wire, room: int, key: str, numbers: list[int]) -> None:
        """Write a document with these sections."""
        value = "\n".join(f"## s{number}\n\n{said(number)} [[work/0]]" for number in numbers)
        await wire.request("PUT", f"/api/rooms/room-{room}/memory/{key}", json.dumps({"value": value}).encode(), HANDLE)

    async def search(self, question: str, limit: int = TOP) -> Any:
        """Ask in room 0."""
        query = urllib.parse.urlencode({"q": question, "limit": limit})
        return await self.wire.request("GET", f"/api/rooms/room-0/search?{query}", headers=HANDLE)

    async def measure_meaning(self, count: int) -> list[float]:
        """Questions that no section has a word of."""
        await self.connect()
        samples = []
        for number in self._numbers(count):
            began = now_ms()
            found = await self.search(f"q{number}")
            samples.append(now_ms() - began)
            nearest = np.argsort(-(self._table @ drawn.vector(f"q{number}")))[:TOP]
            truth = {f"s{self.numbers[place]}" for place in nearest}
            self.hit += len(truth & {one["title"] for one in found["items"]})
            self.wanted += len(truth)
        return samples

    async def measure_both(self, count: int) -> list[float]:
        """Questions with a common word and two rarer ones."""
        await self.connect()
        return [await self._timed(f"q{number} {asked()}") for number in self._numbers(count)]

    async def measure_again(self, count: int) -> list[float]:
        """One question again and again."""
        await self.connect()
        await self.search("q1 word1")
        return [await self._timed("q1 word1") for _ in range(count)]

    async def measure_write(self, count: int) -> list[float]:
        """From the answer to a write until a search has answered that finds it by meaning."""
        await self.connect()
        samples = []
        for _ in range(count):
            self._written += 1
            number = self.size + self._written
            await self.put(self.wire, 0, "work/last", [number])
            began = now_ms()
            while not (await self._has(number)):
                pass
            samples.append(now_ms() - began)
        return samples

    async def measure_graph(self, count: int) -> list[float]:
        """All documents of room 0 and the links between them."""
        await self.connect()
        samples = []
        for _ in range(count):
            began = now_ms()
            await self.wire.request("GET", "/api/rooms/room-0/graph", headers=HANDLE)
            samples.append(now_ms() - began)
        return samples

    async def _has(self, number: int) -> bool:
        found = await self.search(f"q{number}")
        return f"s{number}" in {one["title"] for one in found["items"]}

    def note(self) -> str:
        """What was seen beside the times."""
        return f"recall {self.hit / self.wanted:.4f}, filled and indexed in {self.filled_s:.0f} s"

    async def _timed(self, question: str) -> float:
        began = now_ms()
        found = await self.search(question)
        took = now_ms() - began
        assert len(found["items"]) == TOP
        return took

    def _numbers(self, count: int) -> Iterator[int]:
        return (self._asked.choice(self.numbers) for _ in range(count))


def drawn_model() -> str:
    """Whose files the hub has, though it asks nothing of them."""
    return "sentence-transformers/all-MiniLM-L6-v2"


def said(number: int) -> str:
    """The text of a section."""
    return " ".join(random.Random(number).choices(WORDS, cum_weights=WEIGHTS, k=40))


def asked() -> str:
    """Words of a question."""
    return " ".join(random.choices(WORDS, cum_weights=WEIGHTS, k=3))


@contextlib.asynccontextmanager
async def filled(sizes: tuple[int, ...], rooms: str) -> AsyncIterator[list[Filled]]:
    """A hub for each size."""
    async with contextlib.AsyncExitStack() as stack:
        found = []
        for size in sizes:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="mycelium-search-")))
            command = (sys.executable, "-m", "bench.drawn", "serve", "--home", str(folder / "home"), "--port=0")
            hub = await stack.enter_async_context(servers.hub_at(folder / "home", command))
            found.append(Filled(hub, size, ROOMS[rooms]))
            await found[-1].fill()
        yield found


@contextlib.asynccontextmanager
async def tenth() -> AsyncIterator[list[Row]]:
    """Searches in one room in ten."""
    async with filled(SIZES, "tenth") as made:
        yield _rows(made, "one room in ten")


@contextlib.asynccontextmanager
async def whole() -> AsyncIterator[list[Row]]:
    """Searches in a room that has everything."""
    async with filled(SIZES, "whole") as made:
        yield _rows(made, "a room that has all")


def _rows(made: list[Filled], where: str) -> list[Row]:
    goal = "p50 2.5 ms at 100,000 and ratio under 1.5 from 1,000; recall@10 at least 0.99"
    return [
        Row(
            f"A search by meaning over HTTP, without the embedding, in {where}",
            goal,
            [Contender(_name(one), READ, one.measure_meaning, [one.note]) for one in made],
        ),
        Row(
            f"A search by meaning and by words, in {where}",
            goal,
            [Contender(_name(one), READ, one.measure_both) for one in made],
        ),
        Row(
            f"The same question again, in {where}",
            "0.5 ms",
            [Contender(_name(one), READ, one.measure_again) for one in made],
        ),
        Row(
            f"A write was answered → a search finds it by meaning, in {where}",
            "5 ms and the embedding, which is left out here",
            [Contender(_name(one), READ, one.measure_write) for one in made],
        ),
        Row(
            f"The graph of {where}, with a link a section",
            "none yet",
            [Contender(_name(one), READ, one.measure_graph) for one in made],
        ),
    ]


def _name(one: Filled) -> str:
    return f"{one.size:,} sections"
