"""Rows about vectors: a search in one room among few and many, with what it misses, and how long a text takes to embed.

Synthetic vectors of 384 numbers in clusters, as texts are; one room in ten is asked. The floor is an exact search by
numpy over the room's vectors in this process. Others run in processes of their own (`bench/peers/vectors.py`).
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path

from bench.harness import Contender, Row, now_ms
from bench.peers import vectors as others
from mycelium_memory import models
from mycelium_memory.embedding import Embedder
from mycelium_memory.vectors import Entry, Passage, Within
from mycelium_memory.vectors_edge import EdgeStore, EdgeVectors

SIZES = (1_000, 10_000, 100_000)
TOP = 10
CHUNK = 500
ROOM = others.room(0)
TEXTS = {
    "a line": "We keep every fact in one log and read it back. ",
    "a page": "The storage was decided last week. " * 25,
}


@contextlib.asynccontextmanager
async def rooms() -> AsyncIterator[list[Row]]:
    """A search among the vectors of all rooms, narrowed to one room, and to a room that has them all."""
    with tempfile.TemporaryDirectory(prefix="mycelium-vectors-") as folder:
        filled = [await _Filled.make(Path(folder) / str(size), size, spread=10) for size in SIZES]
        whole = [await _Filled.make(Path(folder) / f"{size}-whole", size, spread=1) for size in SIZES]
        goal = "p50 ratio under 1.5 from 1,000 to 100,000; recall@10 at least 0.99"
        yield [
            Row("The nearest ten of one room in ten", goal, [one.contender() for one in filled]),
            Row("The nearest ten of a room that has all vectors", goal, [one.contender() for one in whole]),
        ]
        for one in (*filled, *whole):
            await one.vectors.close()


@contextlib.asynccontextmanager
async def peers() -> AsyncIterator[Row]:
    """The same search at 100,000 vectors by other products and by numpy."""
    size = SIZES[-1]
    with tempfile.TemporaryDirectory(prefix="mycelium-vectors-") as folder:
        ours = await _Filled.make(Path(folder) / "ours", size, spread=10)
        programs = [await others.start(name, size, Path(folder) / name) for name in others.found()]
        contenders = [ours.contender("Mycelium, through its keeper's process")]
        for program in programs:
            contenders.append(Contender(program.name, program.kind, program.measure, [program.note]))
        yield Row(f"The nearest ten of one room in ten, of {size:,} vectors", "among the first", contenders)
        await ours.vectors.close()
        for program in programs:
            await program.stop()


@contextlib.asynccontextmanager
async def embedding() -> AsyncIterator[Row]:
    """A text to its vector, by the model that comes with the program, and a question while a long batch is done."""
    with tempfile.TemporaryDirectory(prefix="mycelium-models-") as folder:
        embedder = Embedder(await asyncio.to_thread(models.choose, "minilm", Path(folder), {}))
        await embedder.embed(["ready"])

        def contender(name: str, text: str) -> Contender:
            async def measure(count: int) -> list[float]:
                return [await _took(embedder, f"{number} {text}") for number in range(count)]

            return Contender(f"a question of {name} ({len(text)} characters)", "computed", measure)

        async def measure_beside(count: int) -> list[float]:
            batch = asyncio.create_task(embedder.embed([TEXTS["a page"]] * 10_000))
            samples = [await _took(embedder, f"{number} {TEXTS['a line']}") for number in range(count)]
            batch.cancel()
            return samples

        async def measure_batch(count: int) -> list[float]:
            began = now_ms()
            await embedder.embed([f"{number} {TEXTS['a page']}" for number in range(count)])
            return [(now_ms() - began) / count] * count

        yield Row(
            f"A text to its vector ({embedder.model.name}), in a process of its own",
            "a question does not wait for a batch",
            [
                *itertools.starmap(contender, TEXTS.items()),
                Contender("a question of a line, beside a long batch", "computed", measure_beside),
                Contender("a page, in a batch", "computed", measure_batch),
            ],
        )
        await embedder.stop()


async def _took(embedder: Embedder, text: str) -> float:
    began = now_ms()
    await embedder.embed_query(text, patience_s=60)
    return now_ms() - began


class _Filled:
    """A store with that many vectors, the truth beside it, and what was seen at filling."""

    def __init__(self, vectors: EdgeVectors, size: int, spread: int) -> None:
        self.vectors, self.size, self.spread = vectors, size, spread
        self.table = others.table(size)
        self.asked = others.questions(size)
        self.hit = self.wanted = 0
        self.insert_s = self.index_s = 0.0

    @classmethod
    async def make(cls, folder: Path, size: int, spread: int) -> _Filled:
        vectors = EdgeStore(folder).vectors("bench", others.NUMBERS)
        made = cls(vectors, size, spread)
        await vectors.open()
        began = time.monotonic()
        for first in range(0, size, CHUNK):
            await vectors.put([made.entry(number) for number in range(first, min(first + CHUNK, size))])
        made.insert_s = time.monotonic() - began
        while (await vectors.state()).is_building:
            await asyncio.sleep(0.5)
        made.index_s = time.monotonic() - began - made.insert_s
        return made

    def entry(self, number: int) -> Entry:
        passage = Passage("", self.table[number].tobytes())
        return Entry(others.room(number % self.spread), f"work/{number}", 1, (passage,))

    def contender(self, name: str = "") -> Contender:
        return Contender(name or f"{self.size:,} vectors", "rebuildable", self.measure, [self.note])

    def note(self) -> str:
        return f"recall {self.hit / self.wanted:.4f}, filled in {self.insert_s:.1f} s, index {self.index_s:.1f} s more"

    async def measure(self, count: int) -> list[float]:
        samples = []
        for _ in range(count):
            asked = next(self.asked)
            began = now_ms()
            near = await self.vectors.search(asked.tobytes(), Within((ROOM,)), TOP)
            samples.append(now_ms() - began)
            truth = others.exact(self.table, asked, self.spread)
            found = {int(one.document.rpartition("/")[2]) for one in near}
            self.hit += len(found & set(truth))
            self.wanted += len(truth)
        return samples
