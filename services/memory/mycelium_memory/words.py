"""The words of documents, section by section, as SQLite's full-text index holds them.

A word is a run of letters and digits, whatever its case and accents, singular or plural; of Chinese and Japanese each
character is one. In the index every word begins with a number of its room, so that a search walks lists of that room
only, and neither its order nor its time tells of another. The index holds no texts; `passage` has the words again,
since SQLite forgets an entry only when it is told what was in it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from mycelium_kernel import full_text
from mycelium_kernel.tables import Tables
from mycelium_memory.sections import Section

NUMBERS = 4096  # sections that a document has at most, rounded up
CHARACTERS = 64  # of a word; what is longer is no word
IDEOGRAPH = re.compile(
    "[\u2e80-\u2fdf\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)
ACCENT = re.compile("[\u0300-\u036f]")
WORD = re.compile(r"[^\W_]+")


def words(text: str) -> list[str]:
    """The words of a text in order, as they are compared."""
    if not text.isascii():
        text = unicodedata.normalize("NFC", ACCENT.sub("", unicodedata.normalize("NFKD", text)))
        text = IDEOGRAPH.sub(r" \g<0> ", text)
    return [_stem(word[:CHARACTERS]) for word in WORD.findall(text.casefold())]


def _stem(word: str) -> str:
    """English plurals as singulars, by the three rules of Harman (1991); meaning is for the rest."""
    if len(word) < 4 or word[-1] != "s" or not word.isascii():  # `gas` and `bus` are none
        return word
    if word.endswith("ies") and word[-4] not in "ae":
        return f"{word[:-3]}y"
    if word.endswith("es") and word[-3] not in "aeo":
        return word[:-1]
    return word if word[-2] in "us" else word[:-1]


def about(key: str, sections: Sequence[Section], number: int) -> str:
    """What a section is about, beside what it says: the document's key, and the headings that it stands under."""
    above: list[str] = []
    level = sections[number].level
    for section in reversed(sections[:number]):
        if 0 < section.level < level:
            above.append(section.title)
            level = section.level
    return " > ".join([key, *reversed(above)])


def put(
    tables: Tables, room_id: str, document_id: str, sequence: int, named: str, text: str, sections: Sequence[Section]
) -> None:
    """Have this version of a document found, and nothing else of it. By `named`, its key and tags, all of it is."""
    drop(tables, room_id, document_id, sequence)
    (mark,) = tables.one("SELECT mark FROM shelf WHERE room_id = ?", room_id) or (0,)
    count = 0
    sections = sections or [Section("", "", 0, 0, 0, 0)]
    for number, section in enumerate(sections):
        said = words(f"{about(named, sections, number)}\n{text[section.start : section.end]}")
        count += len(said)
        tables.execute(
            "INSERT INTO passage VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            sequence * NUMBERS + number, room_id, document_id, section.slug, section.title, section.start, section.end,
            len(said), " ".join(marked(mark, said)),
        )  # fmt: skip
    sql = "UPDATE shelf SET passages = passages + ?, words = words + ? WHERE room_id = ?"
    tables.execute(sql, len(sections), count, room_id)


def drop(tables: Tables, room_id: str, document_id: str, sequence: int) -> None:
    """Have nothing of a document found any more. The room's shelf is made when it is first touched."""
    tables.execute("INSERT OR IGNORE INTO shelf VALUES (?, ?, 0, 0, 0)", room_id, sequence)
    there = "FROM passage INDEXED BY passage_document WHERE room_id = ? AND document_id = ?"
    row = tables.one(f"SELECT count(*), total(words) {there}", room_id, document_id)
    passages, count = row or (0, 0)
    if passages:
        tables.execute(f"DELETE {there}", room_id, document_id)
    tables.execute(
        "UPDATE shelf SET passages = passages - ?, words = words - ?, sequence = ? WHERE room_id = ?",
        passages, int(count), sequence, room_id,
    )  # fmt: skip


def marked(mark: int, said: Sequence[str]) -> list[str]:
    """Words as the index has them: no two rooms share one."""
    return [f"{mark}x{word}" for word in said]


def merge(tables: Tables, first: bool) -> bool:
    """Have the index hold no more of deleted documents; False when none of it is left."""
    return full_text.merge(tables, "passage_words", first=first)
