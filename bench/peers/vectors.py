"""Other stores of vectors on the same job, each in a process of its own.

`python -m bench.peers.vectors NAME SIZE FOLDER`. `install.sh` puts them in `.peers/vectors`; the process reads a number
of searches a line, and answers with their times and how many of the true nearest ten were found. Also here is what all
contenders share: the vectors and the truth.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

NUMBERS = 384
CLUSTERS = 200
SPREAD = 10
TOP = 10
PYTHON = Path(".peers/vectors/bin/python")
KINDS = {
    "numpy": "in memory, exact",
    "usearch": "in memory, its room's vectors only by asking for more",
    "sqlite-vec": "SQLite file, exact",
    "chromadb": "SQLite and HNSW files",
}
Floats = NDArray[np.float32]
Ask = Callable[[Floats], list[int]]


def room(number: int) -> str:
    """The id of a room."""
    return f"00000000-0000-7000-8000-{number:012}"


def table(size: int) -> Floats:
    """Vectors of length one in clusters, the same for everybody; vector `n` is of room `n % spread`."""
    drawn = np.random.default_rng(1)
    centers = drawn.standard_normal((CLUSTERS, NUMBERS))
    rows = centers[drawn.integers(0, CLUSTERS, size)] + 0.7 * drawn.standard_normal((size, NUMBERS))
    found: Floats = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype("<f4")
    return found


def questions(size: int) -> Iterator[Floats]:
    """Questions without an end, near to some vector and equal to none."""
    drawn, rows = np.random.default_rng(2), table(size)
    while True:
        asked = rows[drawn.integers(0, size)] + 0.5 * drawn.standard_normal(NUMBERS) / np.sqrt(NUMBERS)
        yield (asked / np.linalg.norm(asked)).astype("<f4")


def exact(rows: Floats, asked: Floats, spread: int) -> list[int]:
    """The numbers of the nearest ten of room 0."""
    scores = rows[::spread] @ asked
    return [int(place) * spread for place in np.argsort(-scores)[:TOP]]


def found() -> list[str]:
    """Who can run here; who can't is told loudly."""
    able = list(KINDS)
    if not PYTHON.exists():
        print("*** LEFT OUT: other stores of vectors; fetch them with `make bench-peers`", file=sys.stderr, flush=True)
        return ["numpy"]
    if not hasattr(sqlite3.Connection, "enable_load_extension"):
        print("*** LEFT OUT: sqlite-vec; this Python's SQLite loads no extensions", file=sys.stderr, flush=True)
        able.remove("sqlite-vec")
    return able


class Program:
    """A contender in a process of its own."""

    def __init__(self, name: str, process: asyncio.subprocess.Process, filled_s: float) -> None:
        self.name, self.kind = name, KINDS[name]
        self._process, self._filled_s = process, filled_s
        self._hit = self._wanted = 0

    async def measure(self, count: int) -> list[float]:
        """Milliseconds of that many searches."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{count}\n".encode())
        said = json.loads(await self._process.stdout.readline())
        self._hit += said["hit"]
        self._wanted += said["wanted"]
        return [float(took) for took in said["times"]]

    def note(self) -> str:
        """What was seen beside the times."""
        return f"recall {self._hit / self._wanted:.4f}, filled in {self._filled_s:.1f} s, in its own process"

    async def stop(self) -> None:
        """End it."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        await self._process.wait()


async def start(name: str, size: int, folder: Path) -> Program:
    """Start and fill one."""
    python = str(PYTHON) if PYTHON.exists() else sys.executable
    process = await asyncio.create_subprocess_exec(
        python, "-m", "bench.peers.vectors", name, str(size), str(folder),
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, limit=2**24,
    )  # fmt: skip
    assert process.stdout is not None
    return Program(name, process, float(await process.stdout.readline()))


def _numpy(rows: Floats, _folder: Path) -> Ask:
    own = np.ascontiguousarray(rows[::SPREAD])

    def ask(asked: Floats) -> list[int]:
        scores = own @ asked
        nearest = np.argpartition(-scores, TOP)[:TOP]
        return [int(place) * SPREAD for place in nearest]

    return ask


def _usearch(rows: Floats, _folder: Path) -> Ask:
    from usearch.index import Index  # type: ignore[import-not-found, unused-ignore]

    index: Any = Index(ndim=NUMBERS, metric="cos", dtype="f32")
    index.add(np.arange(len(rows)), rows)

    def ask(asked: Floats) -> list[int]:
        keys = [int(key) for key in index.search(asked, TOP * SPREAD * 2).keys]
        return [key for key in keys if key % SPREAD == 0][:TOP]

    return ask


def _sqlite(rows: Floats, folder: Path) -> Ask:
    import sqlite_vec  # type: ignore[import-not-found, unused-ignore]

    folder.mkdir(parents=True, exist_ok=True)
    database = sqlite3.connect(folder / "vectors.db")
    database.enable_load_extension(True)
    sqlite_vec.load(database)
    database.execute(
        "CREATE VIRTUAL TABLE near USING vec0("
        f"room INTEGER PARTITION KEY, vector float[{NUMBERS}] distance_metric=cosine)"
    )
    values = ((number, number % SPREAD, row.tobytes()) for number, row in enumerate(rows))
    database.executemany("INSERT INTO near (rowid, room, vector) VALUES (?, ?, ?)", values)
    database.commit()
    sql = "SELECT rowid FROM near WHERE vector MATCH ? AND k = ? AND room = 0"
    return lambda asked: [int(row[0]) for row in database.execute(sql, (asked.tobytes(), TOP))]


def _chromadb(rows: Floats, folder: Path) -> Ask:
    import chromadb  # type: ignore[import-not-found, unused-ignore]

    client: Any = chromadb.PersistentClient(str(folder))
    kept = client.create_collection("near", metadata={"hnsw:space": "cosine"})
    for first in range(0, len(rows), 5_000):
        numbers = range(first, min(first + 5_000, len(rows)))
        metadatas = [{"room": number % SPREAD} for number in numbers]
        kept.add(ids=[str(number) for number in numbers], embeddings=rows[first : first + 5_000], metadatas=metadatas)

    def ask(asked: Floats) -> list[int]:
        answer = kept.query(query_embeddings=[asked], n_results=TOP, where={"room": 0}, include=[])
        return [int(one) for one in answer["ids"][0]]

    return ask


MAKE = {"numpy": _numpy, "usearch": _usearch, "sqlite-vec": _sqlite, "chromadb": _chromadb}


def main() -> None:
    """Fill, say how long that took, answer lines."""
    name, size = sys.argv[1], int(sys.argv[2])
    rows, asking = table(size), questions(size)
    began = time.monotonic()
    ask = MAKE[name](rows, Path(sys.argv[3]))
    print(time.monotonic() - began, flush=True)
    for line in sys.stdin:
        times, hit = [], 0
        for asked in itertools.islice(asking, int(line)):
            start_s = time.perf_counter()
            near = ask(asked)
            times.append((time.perf_counter() - start_s) * 1000)
            hit += len(set(near) & set(exact(rows, asked, SPREAD)))
        print(json.dumps({"times": times, "hit": hit, "wanted": int(line) * TOP}), flush=True)


if __name__ == "__main__":
    main()
