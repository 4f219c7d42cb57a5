"""Where links lead, and the text of documents with what they embed. Pure: what there is, a function tells.

The rules are the documentation's: only documents marked as expandable can be embedded, one level deep; what can't be
expanded stays as it is written and is reported; links work within a room.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal, Protocol

from mycelium_kernel.errors import Refusal
from mycelium_memory import keys, sections
from mycelium_memory.links import Link
from mycelium_memory.sections import Section

EXPANDED_BYTES = 2 * 1024 * 1024  # of all embedded texts

State = Literal["ok", "broken", "no_section", "not_expandable", "other_room", "too_large"]


class Linkable(Protocol):
    """A document that can be linked to."""

    @property
    def body(self) -> str:
        """Its text."""

    @property
    def expandable(self) -> bool:
        """Whether others may embed it."""

    def section(self, name: str) -> Section | None:
        """The section of that name."""


@dataclass(frozen=True)
class Target:
    """A document whose text is at hand."""

    body: str
    expandable: bool = False

    @functools.cached_property
    def _sections(self) -> dict[str, Section]:
        return sections.by_slug(sections.split(self.body))

    def section(self, name: str) -> Section | None:
        """The section of that name."""
        return sections.named(self._sections, name)


Lookup = Callable[[str], Linkable | None]


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


def candidates(link: Link, own: str = "") -> tuple[str, str]:
    """The keys that a link may lead to from the document `own`, in their stored form; empty for what can't be a key.

    It leads to the first that is there; the second is for keys that have the sign of a section in them.
    """
    return ("", "") if link.room else (_key(link.target or own), _whole(link))


def resolve(found: Iterable[Link], lookup: Lookup, own: str = "") -> list[Resolved]:
    """What each link leads to. `lookup` is asked for stored keys; `own` is the key of the document itself."""
    return [_resolve(link, lookup, own)[0] for link in found]


def expand(body: str, found: Iterable[Link], lookup: Lookup, own: str = "") -> Expanded:
    """A text with the texts that it embeds in place of `![[…]]`; what those embed stays as it is written.

    `found` are the links of the text. Once there is no room for one, nothing more is put in.
    """
    parts: list[str] = []
    problems: list[Resolved] = []
    position, added = 0, 0
    for link in found:
        if link.kind != "embed":
            continue
        resolved, read = _resolve(link, lookup, own)
        if resolved.state == "ok":
            text = read() if added <= EXPANDED_BYTES else ""
            added += len(text.encode())
            if added <= EXPANDED_BYTES:
                parts += [body[position : link.start], text]
                position = link.end
                continue
            resolved = Resolved(link, resolved.key, "too_large")
        problems.append(resolved)
    return Expanded("".join([*parts, body[position:]]), tuple(problems))


def _resolve(link: Link, lookup: Lookup, own: str) -> tuple[Resolved, Callable[[], str]]:
    """What a link leads to, and how to read the text there."""
    if link.room:
        return Resolved(link, _key(link.target), "other_room"), str
    key, section = _key(link.target or own), link.section
    target = lookup(key) if key else None
    whole = _whole(link) if target is None else ""
    if whole:
        target = lookup(whole)
        key, section = (whole, "") if target else (key, section)
    if target is None:
        return Resolved(link, key, "broken"), str
    part = target.section(section) if section else None
    if section and part is None:
        return Resolved(link, key, "no_section"), str
    if link.kind == "embed" and not target.expandable:
        return Resolved(link, key, "not_expandable"), str
    return Resolved(link, key, "ok"), lambda: _text(target, part)


def _text(target: Linkable, part: Section | None) -> str:
    text = target.body[part.start : part.whole_end] if part else target.body
    return text.strip("\r\n")


def _whole(link: Link) -> str:
    return _key(f"{link.target}#{link.section}") if link.section else ""


@functools.lru_cache(4_096)
def _key(written: str) -> str:
    try:
        return keys.check(written)
    except Refusal:
        return ""
