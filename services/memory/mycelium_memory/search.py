"""What a question asks for, and which sections of a room have its words, the best first.

Ranked by BM25 as it is reckoned within the room alone: how rare a word is, how often a section has it, how long the
section is. Words that nearly every question has do not count beside others, nor do the commonest of a large room.
"""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mycelium_kernel.errors import Refusal
from mycelium_kernel.tables import Tables
from mycelium_memory import words
from mycelium_memory.vectors import Within

PHRASE = re.compile(r'"([^"]*)"')
CHARACTERS, WORDS = 2_000, 100
LAST = "\U0010ffff"  # no key goes on with it: it is no character
ENTRIES = 1_000  # of the index that are looked at for a question, in 2 ms at most
NARROWED = 10_000  # when a search is narrowed, and many of them are not of the right kind
LARGE = 3_000  # sections of a room whose narrowed searches, and those for phrases, are done beside the event loop
OFTEN, LENGTH = 1.2, 0.75  # of BM25, as everybody has them
COMMON = """
a about an and any are as at be been by can could did do does for from had has have how i if in into is it its
me my no not of on or our should so than that the their them then there these they this to was we were what
when where which who why will with would you your
"""
PLACES = """wanted (term, weight) AS (VALUES {terms}),
entry (passage, weight, times) AS (
  SELECT doc, weight, count(*) FROM wanted CROSS JOIN passage_place ON passage_place.term = wanted.term
  GROUP BY doc, wanted.term)"""
# Of a word that stands in too many sections, the newest of them; how often it does, the index would say oldest first.
NEWEST = """entry (passage, weight, times) AS (
  SELECT rowid, ?, 1 FROM passage_words WHERE passage_words MATCH ? ORDER BY rowid DESC LIMIT ?)"""
SCORE = f"sum(weight * times * {OFTEN + 1} / (times + {OFTEN} * ({1 - LENGTH} + {LENGTH} * passage.words / ?)))"
# What a search is narrowed by is in the documents; without that, only those of the best sections are looked at.
RANKED = f"""
WITH {{entries}},
best (passage, score) AS (
  SELECT passage, {SCORE} AS score FROM entry CROSS JOIN passage INDEXED BY passage_length USING (passage)
  GROUP BY passage ORDER BY score DESC, passage DESC LIMIT ?)
SELECT document.folded, passage.slug
FROM best CROSS JOIN passage USING (passage)
CROSS JOIN document ON document.room_id = passage.room_id AND document.document_id = passage.document_id
WHERE passage.room_id = ? ORDER BY best.score DESC, best.passage DESC"""  # noqa: S608 - fixed text
NARROWLY = f"""
WITH {{entries}}
SELECT document.folded, passage.slug
FROM entry CROSS JOIN passage USING (passage)
CROSS JOIN document ON document.room_id = passage.room_id AND document.document_id = passage.document_id
WHERE passage.room_id = ? {{narrowed}}
GROUP BY passage.passage ORDER BY {SCORE} DESC, passage.passage DESC LIMIT ?"""  # noqa: S608 - fixed text
STANDING = "SELECT rowid FROM passage_words WHERE passage_words MATCH ?"
PHRASED = f"""SELECT 1 FROM document INDEXED BY document_folded
  CROSS JOIN passage INDEXED BY passage_document USING (room_id, document_id)
  WHERE room_id = ? AND folded = ? AND slug = ? AND passage IN ({STANDING})"""  # noqa: S608 - fixed text
Place = tuple[str, str]  # a document's folded key, and a section of it


@dataclass(frozen=True)
class Question:
    """What is looked for: the words that count, each once, and what has to be there as it is."""

    text: str
    words: tuple[str, ...]
    phrases: tuple[tuple[str, ...], ...] = ()


def question(text: str) -> Question:
    """What a text asks for. Refused when there is nothing to look for, or too much."""
    cleaned = text.replace("\0", " ").strip()
    found = words.words(cleaned[: CHARACTERS + 1])
    if not found:
        raise Refusal("request.invalid", f'q is {text[:40]!r}: ask in words, or for a "phrase in quotes"')
    if len(cleaned) > CHARACTERS or len(found) > WORDS:
        limits = f"{CHARACTERS:,} characters and {WORDS} words"
        raise Refusal("request.invalid", f"q has {len(text):,} characters and {len(found)} words, at most {limits}")
    quoted = [tuple(words.words(phrase)) for phrase in PHRASE.findall(cleaned)]
    common = set(COMMON.split())
    telling = [word for word in found if word not in common] or found
    return Question(cleaned, tuple(dict.fromkeys(telling)), tuple(phrase for phrase in quoted if phrase))


async def ranked(tables: Tables, asked: Question, within: Within, most: int) -> list[Place]:
    """The sections of one room that have the words, the best first. A large room does not hold up the event loop."""
    (room_id,) = within.rooms
    row = tables.one("SELECT passages FROM shelf WHERE room_id = ?", room_id)
    if row is None:
        return []
    if row[0] <= LARGE or not (asked.phrases or _is_narrowed(within)):
        return rank(tables, asked, within, most)
    return await asyncio.to_thread(_beside, tables, asked, within, most)


def _beside(tables: Tables, asked: Question, within: Within, most: int) -> list[Place]:
    with tables.beside() as other:
        return rank(other, asked, within, most)


def rank(tables: Tables, asked: Question, within: Within, most: int) -> list[Place]:
    """The same, at once."""
    (room_id,) = within.rooms
    shelf = tables.one("SELECT mark, passages, words FROM shelf WHERE room_id = ?", room_id)
    entries, values = _entries(tables, asked, within, shelf) if shelf else ("", [])
    if shelf is None or not entries:
        return []
    length = max(1.0, shelf[2] / shelf[1])
    if not asked.phrases and not _is_narrowed(within):
        rows = tables.all(RANKED.format(entries=entries), *values, length, most, room_id)
        return [(folded, slug) for folded, slug in rows]
    narrowed, conditions = _narrowed(within, room_id)
    if asked.phrases:
        narrowed += f" AND passage.passage IN ({STANDING})"
        conditions.append(match(asked.phrases, shelf[0]))
    sql = NARROWLY.format(entries=entries, narrowed=narrowed)
    return [(folded, slug) for folded, slug in tables.all(sql, *values, room_id, *conditions, length, most)]


def _entries(tables: Tables, asked: Question, within: Within, shelf: tuple[Any, ...]) -> tuple[str, list[Any]]:
    """Which of the index are looked at, in SQL with its values; empty when it has none of the words."""
    limit = NARROWED if asked.phrases or _is_narrowed(within) else ENTRIES
    weighed, first = _weighed(tables, asked.words, shelf[0], shelf[1], limit)
    if not weighed:
        return "", []
    if first > limit:
        return NEWEST, [weighed[0][1], f'"{weighed[0][0]}"', limit]
    return PLACES.format(terms=", ".join(["(?, ?)"] * len(weighed))), [value for term in weighed for value in term]


def with_phrases(tables: Tables, phrases: Sequence[tuple[str, ...]], room_id: str, place: Place) -> bool:
    """Whether a section has every phrase as it is."""
    row = tables.one("SELECT mark FROM shelf WHERE room_id = ?", room_id)
    return row is not None and tables.one(PHRASED, room_id, *place, match(phrases, row[0])) is not None


def match(phrases: Sequence[tuple[str, ...]], mark: int) -> str:
    """What the index is asked for phrases: all of them."""
    return " AND ".join(f'"{" ".join(words.marked(mark, phrase))}"' for phrase in phrases)


def _weighed(
    tables: Tables, wanted: Sequence[str], mark: int, passages: int, most: int
) -> tuple[list[tuple[str, float]], int]:
    """The words that are there, the rarest first, as many as are looked at, each with how telling it is.

    With them, how often the rarest stands in the index.
    """
    sql = "SELECT doc, cnt FROM passage_count WHERE term = ?"
    found = sorted((*row, term) for term in words.marked(mark, wanted) if (row := tables.one(sql, term)))
    weighed: list[tuple[str, float]] = []
    entries = 0
    for sections, times, term in found:
        entries += times
        if weighed and entries > most:
            break
        weighed.append((term, math.log(1 + (passages - sections + 0.5) / (sections + 0.5))))
    return weighed, found[0][1] if found else 0


def _is_narrowed(within: Within) -> bool:
    return within != Within(within.rooms)


def _narrowed(within: Within, room_id: str) -> tuple[str, list[Any]]:
    """The conditions of a search and their values."""
    parts: list[tuple[str, tuple[Any, ...]]] = []
    if within.prefix:
        parts.append(("document.folded >= ? AND document.folded < ?", (within.prefix, within.prefix + LAST)))
    exists = "EXISTS (SELECT 1 FROM tag WHERE tag.room_id = ? AND tag.tag = ? AND tag.folded = document.folded)"
    parts += [(exists, (room_id, tag)) for tag in within.tags]
    if within.author:
        parts.append(("document.updated_by = ?", (within.author,)))
    if within.since_ms is not None:
        parts.append(("document.updated_at >= ?", (within.since_ms,)))
    if within.until_ms is not None:
        parts.append(("document.updated_at < ?", (within.until_ms,)))
    return "".join(f" AND {condition}" for condition, _values in parts), [value for _c, vs in parts for value in vs]
