"""What a task's document says of other tasks: which it waits for, which it is a part of. Kept as it is written.

What a name means is found out when it is asked, so a task that is made or removed later changes every answer alike.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from mycelium_kernel import names
from mycelium_kernel.tables import Tables

DEPENDS_ON, PART_OF = "depends-on", "part-of"
FIELDS = (DEPENDS_ON, PART_OF)
MOST = 1_000  # names in one document
ONE = re.compile(r"\[\[([^\[\]]*)\]\]|([^,\n\[\]]+)")  # a link, or a word between commas
SCHEME = "myc://"


def written(fields: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Pairs of a field and a name in it, folded, each once, in order. A task is a part of one other at most."""
    found: dict[tuple[str, str], None] = {}
    for field in FIELDS:
        targets = dict.fromkeys(target for text in _texts(fields.get(field)) for target in _targets(text))
        for target in list(targets)[: 1 if field == PART_OF else MOST]:
            found[field, target] = None
    return list(found)


def keep(tables: Tables, room_id: str, document_id: str, fields: Mapping[str, Any], sequence: int) -> None:
    """Write down what a version of a document says; what the one before said too stands since then."""
    sql = "SELECT field, target, since FROM edge WHERE room_id = ? AND document_id = ?"
    before = {(field, target): since for field, target, since in tables.all(sql, room_id, document_id)}
    now = written(fields)
    if list(before) == now:
        return
    forget(tables, room_id, document_id)
    for number, (field, target) in enumerate(now):
        since = before.get((field, target), sequence)
        tables.execute("INSERT INTO edge VALUES (?, ?, ?, ?, ?, ?)", room_id, document_id, number, field, target, since)


def forget(tables: Tables, room_id: str, document_id: str) -> None:
    """The document is gone."""
    tables.execute("DELETE FROM edge WHERE room_id = ? AND document_id = ?", room_id, document_id)


def _texts(value: object) -> Iterator[str]:
    """The texts in a field. `[[key]]` without quotes is a list in a list to YAML."""
    waiting = [value]
    while waiting:
        one = waiting.pop(0)
        if isinstance(one, list):
            waiting = [*one, *waiting]
        elif isinstance(one, str) or (isinstance(one, int) and not isinstance(one, bool)):
            yield str(one)  # the digits of a short id may be a number to YAML


def _targets(text: str) -> Iterator[str]:
    """The names in one text: `[[key#section|shown]]`, or names between commas."""
    for link, plain in ONE.findall(text):
        inner = (link or plain).partition("|")[0].partition("#")[0].strip()
        if inner.lower().startswith(SCHEME):
            inner = inner[len(SCHEME) :].strip("/")
        if inner and inner != "!":
            yield names.fold_key(inner)
