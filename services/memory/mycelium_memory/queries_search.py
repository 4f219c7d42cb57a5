"""Search: sections of a room by words and by meaning together, as they are now."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mycelium.memory.v1 import search_pb2
from mycelium_kernel import limits, names, rooms_seen, times
from mycelium_kernel.callers import RoomRow
from mycelium_kernel.service import Context
from mycelium_kernel.tables import LAST_SEQUENCE, Tables
from mycelium_memory import keys, pieces, search, views, words
from mycelium_memory.fusion import Fused, fuse
from mycelium_memory.nearest import Nearest, within_of
from mycelium_memory.repeats import Repeats

if TYPE_CHECKING:
    from mycelium_kernel.run import Runtime

LIMIT, LIMIT_MOST = 10, 50
DEEP = 50  # places of each ranking that are looked at
KEPT = 200  # answers of up to 100 KB
TEXT_CHARACTERS = 2_000  # of a section that are shown
# In this order: from the room's end it would look at every section that the room has.
SECTION = f"""SELECT passage.slug, passage.title, substr(text, passage.start + 1, passage.end - passage.start), found.*
  FROM ({views.BRIEF} INDEXED BY document_folded WHERE room_id = ?1 AND folded = ?2 AND removed = 0) AS found
  CROSS JOIN passage INDEXED BY passage_document
    ON passage.room_id = ?1 AND passage.document_id = found.document_id AND passage.slug = ?3
  CROSS JOIN document ON document.room_id = ?1 AND document.document_id = found.document_id"""  # noqa: S608 - fixed text
Answer = search_pb2.SearchDocumentsResponse


@dataclass(frozen=True)
class Asked:
    """A question with all that belongs to it."""

    room: RoomRow
    question: search.Question
    near: search_pb2.FindNearRequest
    limit: int
    sequence: int  # of the last change of a document of the room


class Search:
    """Answers searches of one process, and the same ones again from memory while nothing has changed."""

    def __init__(self, nearest: Nearest) -> None:
        self._nearest = nearest
        self._answers: Repeats[Answer] = Repeats(KEPT)

    async def run(
        self, runtime: Runtime, request: search_pb2.SearchDocumentsRequest, context: Context
    ) -> tuple[Answer, int]:
        """The best sections, of the documents as they are now: what was replaced meanwhile is dropped."""
        projector = runtime.projector
        assert projector is not None, "a search reads tables"
        await projector.catch_up()
        tables = projector.tables
        asked = _asked(tables, request, context)
        model = self._nearest.version()
        again = (asked.near.SerializeToString(deterministic=True), asked.limit, asked.sequence, model)
        kept = self._answers.find(again, (asked.room.id,))
        if kept is not None:
            return kept, 0
        by_words, found = await asyncio.gather(
            search.ranked(tables, asked.question, within_of(asked.near), DEEP), self._nearest.find(runtime, asked.near)
        )
        by_meaning = [(one.document, one.section) for one in found.near if _is_current(tables, asked.room, one)]
        if asked.question.phrases:
            standing = (asked.question.phrases, asked.room.id)
            by_meaning = [place for place in by_meaning if search.with_phrases(tables, *standing, place)]
        answer = Answer(meaning=found.meaning)
        for fused in fuse([by_words, by_meaning]):
            if len(answer.sections) == asked.limit:
                break
            _add(tables, asked, fused, answer)
        if model and not found.meaning.why_not and not found.meaning.waiting:
            self._answers.keep(again, (asked.room.id,), self._answers.mark((asked.room.id,)), answer)
        return answer, 0


def _asked(tables: Tables, request: search_pb2.SearchDocumentsRequest, context: Context) -> Asked:
    """The question, or why it is none. A room that the caller may not see is one that there is not."""
    room = rooms_seen.find_room(tables, request.room, context)
    question = search.question(request.query)
    limit = limits.rows(request.limit, LIMIT, LIMIT_MOST)
    near = search_pb2.FindNearRequest(
        room_id=room.id,
        query=question.text,
        prefix=keys.fold(request.prefix.strip()),
        tags=sorted({tag.strip().casefold() for tag in request.tags if tag.strip()}),
        author=names.handle(request.author) if request.author.strip() else "",
        most=DEEP,
    )
    for name in ("since", "until"):
        text = getattr(request, name)
        if text.strip():
            moment = times.asked(name, text, context.now, times.zone(request.zone))
            setattr(near, f"{name}_ms", min(max(moment, 0), LAST_SEQUENCE))
    row = tables.one("SELECT sequence FROM shelf WHERE room_id = ?", room.id)
    return Asked(room, question, near, limit, row[0] if row else 0)


def _is_current(tables: Tables, room: RoomRow, near: search_pb2.NearSection) -> bool:
    """Whether it is of the version that is there now: text that was replaced is never found."""
    sql = "SELECT sequence FROM document INDEXED BY document_folded WHERE room_id = ? AND folded = ? AND removed = 0"
    return tables.one(sql, room.id, near.document) == (near.sequence,)


def _add(tables: Tables, asked: Asked, fused: Fused[search.Place], answer: Answer) -> None:
    """A section with its text. One that has gone while the answer was made is left out."""
    row = tables.one(SECTION, asked.room.id, *fused.what)
    if row is None:
        return
    slug, title, text, *rest = row
    shown = _shown(text, asked.question.words)
    answer.sections.add(
        document=views.document(tuple(rest), asked.room),
        section=slug,
        title=title,
        text=shown,
        cut=shown != text.strip("\n"),
        by_words=fused.places[0],
        by_meaning=fused.places[1],
        score=fused.score,
    )


def _shown(text: str, wanted: tuple[str, ...]) -> str:
    """The text of a section; of a long one the part that has most of the words."""
    if len(text) <= TEXT_CHARACTERS:
        return text.strip("\n")
    looked = set(wanted)
    return max(pieces.pieces("", text), key=lambda piece: len(looked.intersection(words.words(piece))))
