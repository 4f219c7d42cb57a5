"""A hub whose embedding takes no time, for rows that leave it out: `python -m bench.drawn serve --home HOME --port=0`.

A text is given the vector whose number it names, so that whoever measures knows which texts are the nearest ones.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mycelium_hub.main import run
from mycelium_memory import index
from mycelium_memory.embedding import Vector
from mycelium_memory.models import Model

NUMBERS, CLUSTERS = 384, 200
NAMED = re.compile(r"\b([sq])(\d+)\b")
CENTERS = np.random.default_rng(1).standard_normal((CLUSTERS, NUMBERS))
Floats = NDArray[np.float32]


def vector(text: str) -> Floats:
    """Of section `s7` a vector in a cluster, of question `q7` one that is near to that and equal to none."""
    named = NAMED.search(text)
    kind, number = (named[1], int(named[2])) if named else ("s", 0)
    drawn = np.random.default_rng(number)
    row = CENTERS[drawn.integers(CLUSTERS)] + 0.7 * drawn.standard_normal(NUMBERS)
    if kind == "q":
        row = row / np.linalg.norm(row) + 0.5 * drawn.standard_normal(NUMBERS) / np.sqrt(NUMBERS)
    found: Floats = (row / np.linalg.norm(row)).astype("<f4")
    return found


class Drawn:
    """`Embedding` that looks at the number alone."""

    def __init__(self, model: Model, _threads: int) -> None:
        self.model = model
        self.is_ready, self.why_not = True, ""

    def wake(self) -> None:
        """It is."""

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """As if computed."""
        return [vector(text).tobytes() for text in texts]

    async def embed_query(self, text: str, patience_s: float = 0.0) -> Vector:
        """As if computed, without a wait."""
        assert patience_s >= 0
        return vector(text).tobytes()

    async def stop(self) -> None:
        """Nothing is open."""


if __name__ == "__main__":
    setattr(index, "Embedder", Drawn)  # noqa: B010 - its type says that it never changes
    run()
