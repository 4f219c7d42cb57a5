"""How each fact of documents changes the tables. Only they are looked at, so a rebuild gives the same rows."""

from __future__ import annotations

from collections.abc import Iterable

from mycelium.memory.v1 import events_pb2, views_pb2
from mycelium_kernel import clock, subjects
from mycelium_kernel.service import Stored
from mycelium_kernel.tables import Tables
from mycelium_memory import keys, linking, sections, views, words
from mycelium_memory.commands_content import summary_of, text_of


def document_written(tables: Tables, event: events_pb2.DocumentWritten, stored: Stored) -> None:
    document_id, folded = subjects.identifier_of(stored.subject), keys.fold(event.key)
    text, summary, at = text_of(event.content), summary_of(event.content), clock.to_millis(event.updated_at)
    rest = views_pb2.Content()
    rest.CopyFrom(event.content)
    rest.ClearField("body")
    rest.ClearField("value_json")
    tables.execute(
        "INSERT OR REPLACE INTO document VALUES (?, ?, ?, ?, 0, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        event.room_id, document_id, event.key, folded, text, rest.SerializeToString(deterministic=True),
        bool(event.content.value_json), event.version, stored.sequence, event.thread, event.created_by,
        clock.to_millis(event.created_at), event.updated_by, at, summary,
    )  # fmt: skip
    tables.execute(
        "INSERT INTO version VALUES (?, ?, ?, ?, ?, ?, 0, ?, ?, ?, ?, ?)",
        event.room_id, document_id, event.version, stored.sequence, at, event.updated_by, summary,
        len(text.encode()), event.origin, event.moved_from, event.conflicted,
    )  # fmt: skip
    _tag(tables, event.room_id, document_id, folded, list(event.content.tags))
    named = " ".join([event.key, *event.content.tags])
    parts = sections.parted(text, views.headings(event.content))
    words.put(tables, event.room_id, document_id, stored.sequence, named, text, parts)
    _link(tables, event.room_id, event.key, event.content.links)


def document_removed(tables: Tables, event: events_pb2.DocumentRemoved, stored: Stored) -> None:
    document_id, at = subjects.identifier_of(stored.subject), clock.to_millis(event.removed_at)
    tables.execute(
        """UPDATE document SET removed = 1, text = '', content = x'', is_value = 0, summary = '', version = ?,
           sequence = ?, updated_by = ?, updated_at = ? WHERE room_id = ? AND document_id = ?""",
        event.version, stored.sequence, event.removed_by, at, event.room_id, document_id,
    )  # fmt: skip
    tables.execute(
        "INSERT INTO version VALUES (?, ?, ?, ?, ?, ?, 1, '', 0, ?, '', 0)",
        event.room_id, document_id, event.version, stored.sequence, at, event.removed_by, event.origin,
    )  # fmt: skip
    _tag(tables, event.room_id, document_id, "", [])
    words.drop(tables, event.room_id, document_id, stored.sequence)
    _link(tables, event.room_id, event.key, [])


def _tag(tables: Tables, room_id: str, document_id: str, folded: str, tags: list[str]) -> None:
    tables.execute("DELETE FROM tag WHERE room_id = ? AND document_id = ?", room_id, document_id)
    for tag in tags:
        tables.execute("INSERT INTO tag VALUES (?, ?, ?, ?)", room_id, tag.casefold(), folded, document_id)


def _link(tables: Tables, room_id: str, key: str, links: Iterable[views_pb2.Link]) -> None:
    """A row for each key that a link may lead to. Those of a document to itself are not looked for."""
    source = keys.fold(key)
    tables.execute("DELETE FROM link WHERE room_id = ? AND source = ?", room_id, source)
    for number, written in enumerate(links):
        target, whole = map(keys.fold, linking.candidates(views.link(written), key))
        for one, rather in ((target, ""), (whole, target)):
            if one not in ("", source):
                tables.execute("INSERT INTO link VALUES (?, ?, ?, ?, ?)", room_id, one, source, number, rather)
