"""Texts to vectors. `Embedding` is all that the rest of the service knows of it; `Embedder` does it in a process aside.

A vector is the bytes of its numbers (32-bit floats, little-endian), of length one: neither the service nor the hub
around it loads a numeric library. The model's process takes questions before texts that are to be indexed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Protocol

from mycelium_memory.child import Away, Child, Failed
from mycelium_memory.models import Model

Vector = bytes
MOST_CHARACTERS = 4_000  # of a text; no model here reads more than 512 tokens, about half of that
PIECE = 8  # texts sent at a time, so that a batch is bounded
PIECE_S = 120.0  # 8 long texts take 0.5 s, on a machine that does ten other things ten times that
QUESTION_S = 15.0

__all__ = ["Away", "Embedder", "Embedding", "Failed", "Vector"]


class Embedding(Protocol):
    """What makes vectors of texts. Raises `Away` while it can't, `Failed` for a text that it can't do."""

    @property
    def model(self) -> Model:
        """The model that it uses."""
        ...

    @property
    def is_ready(self) -> bool:
        """Whether a question would be answered at once."""
        ...

    @property
    def why_not(self) -> str:
        """Why it is not ready, in words; empty when it is."""
        ...

    def wake(self) -> None:
        """Get ready, in the background."""
        ...

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """A vector for each text, waiting until the model is loaded. Only the first 4,000 characters of each count."""
        ...

    async def embed_query(self, text: str, patience_s: float = 0.0) -> Vector:
        """The vector of a question, before all texts that wait; `patience_s` for a model that is being loaded."""
        ...

    async def stop(self) -> None:
        """End it for good."""
        ...


class Embedder:
    """`Embedding` by a process of its own, started when it is first needed."""

    def __init__(self, model: Model, threads: int = 2) -> None:
        self._model = model
        arguments = (model.name, str(model.folder), str(threads))
        self._child = Child("the embedder", "mycelium_memory.embedder", arguments)
        self._one_batch = asyncio.Lock()

    @property
    def model(self) -> Model:
        return self._model

    @property
    def is_ready(self) -> bool:
        return self._child.is_up

    @property
    def why_not(self) -> str:
        return self._child.why_away

    @property
    def pid(self) -> int | None:
        """The process, for whoever looks at it from outside."""
        return self._child.pid

    def wake(self) -> None:
        self._child.wake()

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        vectors: list[Vector] = []
        for start in range(0, len(texts), PIECE):
            piece = texts[start : start + PIECE]
            async with self._one_batch:  # of several callers, each gets a turn; the deadline is that of one piece
                vectors += await self._ask(piece, urgent=False, within_s=PIECE_S, patience_s=PIECE_S)
        return vectors

    async def embed_query(self, text: str, patience_s: float = 0.0) -> Vector:
        return (await self._ask([text], urgent=True, within_s=QUESTION_S, patience_s=patience_s))[0]

    async def stop(self) -> None:
        await self._child.stop()

    async def _ask(self, texts: Sequence[str], *, urgent: bool, within_s: float, patience_s: float) -> list[Vector]:
        body = {"urgent": urgent, "texts": [_clean(text) for text in texts]}
        answer = await self._child.ask(body, within_s=within_s, patience_s=patience_s)
        size = 4 * self._model.dimensions
        if len(answer.blob) != size * len(texts):
            raise Failed(f"{self._model.name} gave {len(answer.blob)} bytes for {len(texts)} texts, not {size} each")
        return [answer.blob[start : start + size] for start in range(0, len(answer.blob), size)]


def _clean(text: str) -> str:
    """Half of a surrogate pair is no text, and a tokenizer refuses it."""
    return text[:MOST_CHARACTERS].encode("utf-8", "replace").decode("utf-8")
