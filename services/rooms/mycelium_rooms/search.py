"""How texts are searched: what counts as a word, and the question that SQLite's full-text index is asked.

Words are runs of letters and digits, whatever their case and accents. Chinese and Japanese set no spaces between
words, so there each character is one, and a run of them a phrase.
"""

from __future__ import annotations

import re

from mycelium_kernel import full_text
from mycelium_kernel.errors import Refusal
from mycelium_kernel.tables import Tables

IDEOGRAPH = re.compile(
    "[\u2e80-\u2fdf\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)
PHRASE = re.compile(r'"([^"]*)"|([^\s"]+)')
QUERY_CHARACTERS = 500
QUERY_WORDS = 20


def words(text: str) -> str:
    """The text as it goes into the index where it needs spaces; empty when it can go as it is."""
    spaced = IDEOGRAPH.sub(r" \g<0> ", text)
    return "" if spaced == text else spaced


def phrases(query: str) -> list[str]:
    """The words and quoted phrases of a query. Refused when there is nothing to look for, or too much."""
    found = [words(quoted or word) or quoted or word for quoted, word in PHRASE.findall(query.replace("\0", " "))]
    found = [phrase for phrase in found if any(character.isalnum() for character in phrase)]
    if not found:
        raise Refusal("request.invalid", f'q is {query[:40]!r}: search for words, or a "phrase in quotes"')
    if len(query) > QUERY_CHARACTERS or len(found) > QUERY_WORDS:
        limits = f"{QUERY_CHARACTERS} characters and {QUERY_WORDS} words"
        raise Refusal("request.invalid", f"q has {len(query):,} characters and {len(found)} words, at most {limits}")
    return found


def question(places: list[str], wanted: list[str]) -> str:
    """What the index is asked: the places and the phrases, all of them."""
    parts = [f'place : "{place}"' for place in places] + [f'content : "{phrase}"' for phrase in wanted]
    return " AND ".join(parts)


def of_room(room_id: str) -> str:
    """The token of all messages of a room."""
    return f"r{_hex(room_id)}"


def of_thread(room_id: str, thread: str) -> str:
    """The token of a thread's messages; of the channel's for an empty thread."""
    return f"t{_hex(room_id)}{_hex(thread)}"


def of_sender(room_id: str, handle: str) -> str:
    """The token of a sender's messages."""
    return f"s{_hex(room_id)}{handle.encode().hex()}"


def of_kind(room_id: str, kind: str) -> str:
    """The token of the events of a kind."""
    return f"k{_hex(room_id)}{kind.encode().hex()}"


def _hex(identifier: str) -> str:
    return identifier.replace("-", "")


def merge_words(tables: Tables, first: bool) -> bool:
    """Have the index hold no more of deleted messages; False when none of it is left."""
    return full_text.merge(tables, "message_words", first=first)
