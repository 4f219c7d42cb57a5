"""Answers kept for who asks the same again. Whatever is written to a room makes every answer about it worthless.

Pure bookkeeping: it holds a bounded number of answers, the longest unused leaves first, and knows no time.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterable
from typing import Generic, TypeVar

A = TypeVar("A")
MOST = 1_000


class Repeats(Generic[A]):
    """Answers by question and by the rooms that were looked at.

    Take a `mark` before reading what the answer is made from and give it to `keep`: an answer into which a write came
    meanwhile is never found.
    """

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._answers: OrderedDict[Hashable, tuple[tuple[int, ...], A]] = OrderedDict()
        self._written: dict[str, int] = {}
        self._all = 0

    def mark(self, rooms: Iterable[str]) -> tuple[int, ...]:
        """How far these rooms, in this order, have been written to."""
        return (self._all, *(self._written.get(room_id, 0) for room_id in rooms))

    def find(self, question: Hashable, rooms: Iterable[str]) -> A | None:
        """The answer kept, if nothing was written since. `rooms` belong to the question."""
        key = (question, tuple(rooms))
        kept = self._answers.get(key)
        if kept is None:
            return None
        if kept[0] != self.mark(key[1]):
            del self._answers[key]
            return None
        self._answers.move_to_end(key)
        return kept[1]

    def keep(self, question: Hashable, rooms: Iterable[str], mark: tuple[int, ...], answer: A) -> None:
        """Keep an answer that was made from what was there at `mark`."""
        key = (question, tuple(rooms))
        self._answers[key] = (mark, answer)
        self._answers.move_to_end(key)
        while len(self._answers) > self._most:
            self._answers.popitem(last=False)

    def wrote(self, room_id: str) -> None:
        """Something of that room has changed: documents, vectors, or who may see it."""
        self._written[room_id] = self._written.get(room_id, 0) + 1

    def forget(self) -> None:
        """Nothing that is kept holds any more, of no room."""
        self._all += 1
        self._answers.clear()
