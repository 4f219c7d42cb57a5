"""Conditions on stored passages in words that both kinds of Qdrant understand, built once for each of them.

`qdrant_edge` and `qdrant_client.models` name the same things alike, with one difference in how a range is written.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mycelium_memory.vectors import Within


class Conditions:
    """Filters made of the classes of `words`, one of the two modules."""

    def __init__(self, words: Any) -> None:
        self._words = words
        self._range = getattr(words, "RangeFloat", None) or words.Range

    def within(self, within: Within) -> Any:
        """Of these rooms, and narrowed as asked."""
        words = self._words
        one = within.rooms[0] if len(within.rooms) == 1 else ""  # a third quicker than as any of one
        must = [self._is("room", one) if one else self._field("room", words.MatchAny(any=list(within.rooms)))]
        if within.prefix:
            must.append(self._field("document", words.MatchPrefix(prefix=within.prefix)))
        must += [self._is("tags", tag) for tag in within.tags]
        if within.author:
            must.append(self._is("author", within.author))
        if within.since_ms is not None or within.until_ms is not None:
            span = self._range(gte=within.since_ms, lt=within.until_ms)
            must.append(words.FieldCondition(key="time", range=span))
        return words.Filter(must=must)

    def room(self, room_id: str) -> Any:
        """Everything of a room."""
        return self._words.Filter(must=[self._is("room", room_id)])

    def rooms(self, rooms: Sequence[str]) -> Any:
        """Everything of some rooms."""
        return self._words.Filter(must=[self._field("room", self._words.MatchAny(any=list(rooms)))])

    def document(self, room_id: str, document: str, up_to: int | None = None, but: Sequence[str] = ()) -> Any:
        """What there is of a document, up to a version, without some points."""
        must = [self._is("room", room_id), self._is("document", document)]
        if up_to is not None:
            must.append(self._words.FieldCondition(key="sequence", range=self._range(lte=up_to)))
        return self._words.Filter(must=must, must_not=[self._points(but)] if but else None)

    def _points(self, points: Sequence[str]) -> Any:
        named = self._words.HasIdCondition
        return named(point_ids=set(points)) if hasattr(self._words, "EdgeShard") else named(has_id=list(points))

    def _is(self, field: str, value: str) -> Any:
        return self._field(field, self._words.MatchValue(value=value))

    def _field(self, field: str, match: Any) -> Any:
        return self._words.FieldCondition(key=field, match=match)
