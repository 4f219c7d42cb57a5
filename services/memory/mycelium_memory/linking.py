"""Where links lead, and the text of documents with what they embed. Pure: what there is, a function tells.

The rules are the documentation's: only documents marked as expandable can be embedded, one level deep; what can't be
expanded stays as it is written and is reported; links work within a room.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from mycelium_kernel.errors import Refusal
from mycelium_memory import keys, links, sections
from mycelium_memory.links import Link

EXPANDED_CHARACTERS = 2 * 1024 * 1024  # of all embedded texts

State = Literal["ok", "broken", "no_section", "not_expandable", "other_room", "too_large"]


@dataclass(frozen=True)
class Target:
    """A document that can be linked to."""

    body: str
    expandable: bool = False


Lookup = Callable[[str], Target | None]


@dataclass(frozen=True)
class Resolved:
    """A link and what it leads to. `key` is the stored form of what is written, empty where that can't be a key."""

    link: Link
    key: str
    state: State


@dataclass(frozen=True)
class Expanded:
    """A text with other texts in it, and the embeds that were left as they are written."""

    text: str
    problems: tuple[Resolved, ...]


def resolve(found: Iterable[Link], lookup: Lookup, own: str = "") -> list[Resolved]:
    """What each link leads to. `lookup` is asked for stored keys; `own` is the key of the document itself."""
    return [_resolve(link, lookup, own)[0] for link in found]


def expand(body: str, lookup: Lookup, own: str = "") -> Expanded:
    """A text with the texts that it embeds in place of `![[…]]`; what those embed stays as it is written."""
    parts: list[str] = []
    problems: list[Resolved] = []
    position, added = 0, 0
    for link in links.extract(body, {}):
        if link.kind != "embed":
            continue
        resolved, text = _resolve(link, lookup, own)
        if resolved.state == "ok" and added + len(text) > EXPANDED_CHARACTERS:
            resolved = Resolved(link, resolved.key, "too_large")
        if resolved.state != "ok":
            problems.append(resolved)
            continue
        parts += [body[position : link.start], text]
        position, added = link.end, added + len(text)
    return Expanded("".join([*parts, body[position:]]), tuple(problems))


def _resolve(link: Link, lookup: Lookup, own: str) -> tuple[Resolved, str]:
    """What a link leads to, and the text there."""
    if link.room:
        return Resolved(link, _key(link.target), "other_room"), ""
    key, section = _key(link.target or own), link.section
    target = lookup(key) if key else None
    if target is None and section:  # a key may have the sign itself
        whole = _key(f"{link.target}#{section}")
        target = lookup(whole) if whole else None
        key, section = (whole, "") if target else (key, section)
    if target is None:
        return Resolved(link, key, "broken"), ""
    text = target.body
    if section:
        part = sections.find(text, section)
        if part is None:
            return Resolved(link, key, "no_section"), ""
        text = text[part.start : part.whole_end]
    if link.kind == "embed" and not target.expandable:
        return Resolved(link, key, "not_expandable"), ""
    return Resolved(link, key, "ok"), text.strip("\r\n")


def _key(written: str) -> str:
    try:
        return keys.check(written)
    except Refusal:
        return ""
