"""The sections of a text: what stands under each heading, and pieces of it that are small enough to be embedded.

A search answers with the section that matched; `[[key#slug]]` names one. Slugs are made as GitHub makes them, so a link
that works there works here. Headings inside lists and quotes begin no section. What stands before the first heading is
a section without a title and with an empty slug. A text that is too much to be parsed is one section, as is the rest
of one with more than `SECTIONS`.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from markdown_it import MarkdownIt
from markdown_it.token import Token

from mycelium_memory import markdown

SECTIONS = 2_000
TITLE_CHARACTERS = 300
PIECE_CHARACTERS = 1_000  # about 256 tokens of English, which the smaller of the models reads at once
MARKUP = re.compile(r"[\\`*_\[\]<&!]")
WORD = re.compile(r"\S")


@dataclass(frozen=True)
class Heading:
    """What begins a section: its title without markup, its level, and where it begins in the text."""

    title: str
    level: int
    start: int


@dataclass(frozen=True)
class Section:
    """One section. All positions are in characters of the text; a heading belongs to what it heads."""

    slug: str
    title: str
    level: int  # 1 to 6; 0 before the first heading
    start: int
    end: int  # where the next heading begins
    whole_end: int  # where the sections under it end too


@dataclass(frozen=True)
class Piece:
    """A part of a section: what is embedded at once."""

    section: Section
    start: int
    end: int
    text: str


def split(body: str) -> list[Section]:
    """The sections in order; together they are the whole text, but for empty lines before the first heading."""
    return parted(body, list(headings(body)))


def parted(body: str, headings: Sequence[Heading]) -> list[Section]:
    """The sections of a text whose headings are known: takes no time, however long it is."""
    first = headings[0].start if headings else len(body)
    found = [Section("", "", 0, 0, first, first)] if body[:first].strip() else []
    ends = [*(each.start for each in headings[1:]), len(body)][: len(headings)]
    wholes = _wholes([each.level for each in headings], ends)
    slugs = _Slugs()
    for heading, end, whole_end in zip(headings, ends, wholes, strict=True):
        slug = slugs.unique(slug_of(heading.title))
        found.append(Section(slug, heading.title, heading.level, heading.start, end, whole_end))
    return found


def find(body: str, name: str) -> Section | None:
    """The section that a link names: by its slug, or by its title as it is written."""
    return named(by_slug(split(body)), name)


def by_slug(found: Iterable[Section]) -> dict[str, Section]:
    """The sections that a link can name."""
    return {section.slug: section for section in found if section.slug}


def named(found: Mapping[str, Section], name: str) -> Section | None:
    """The one of `by_slug` that a link names."""
    wanted = name.strip()
    return found.get(wanted) or found.get(slug_of(wanted))


def slug_of(title: str) -> str:
    """A title as GitHub has it in an address, before it is made unique."""
    kept = (character for character in title.strip().lower() if _is_kept(character))
    return "".join("-" if character == " " else character for character in kept)


def pieces(body: str, most: int = PIECE_CHARACTERS) -> list[Piece]:
    """The text in parts of at most so many characters, each within one section, cut between paragraphs if possible.

    They don't overlap, and nothing but white space lies between them.
    """
    return [piece for section in split(body) for piece in _pieces(body, section, most)]


class _Slugs:
    """Slugs that were given out."""

    def __init__(self) -> None:
        self.seen: dict[str, int] = {}

    def unique(self, slug: str) -> str:
        """The slug, with a number when it is taken."""
        base = slug or "section"  # the empty one is what stands before the first heading
        result = base
        while result in self.seen:
            self.seen[base] += 1
            result = f"{base}-{self.seen[base]}"
        self.seen[result] = 0
        return result


def headings(body: str) -> Iterator[Heading]:
    """The headings of a text that begin a section, in order."""
    if markdown.too_much(body):
        return
    blocks = markdown.blocks(body)
    count = 0
    for token, inside in zip(blocks.tokens, blocks.tokens[1:], strict=False):
        if token.type == "heading_open" and token.level == 0 and token.map:
            yield Heading(_title(inside), int(token.tag[1:]), blocks.start_of(token.map[0]))
            count += 1
            if count == SECTIONS:
                return


def _title(token: Token) -> str:
    """A heading as it is read: without its markup, on one line."""
    text = " ".join(token.content[:TITLE_CHARACTERS].split())
    if not MARKUP.search(text):
        return text
    parser = _inline_parser()
    tokens: list[Token] = []
    parser.inline.parse(text, parser, {}, tokens)
    return "".join(_words(tokens)).strip()


def _words(tokens: list[Token]) -> Iterator[str]:
    for token in tokens:
        if token.type == "image":
            yield from _words(token.children or [])
        elif token.type != "html_inline":
            yield token.content


@functools.cache
def _inline_parser() -> MarkdownIt:
    return MarkdownIt("commonmark")


def _wholes(levels: list[int], ends: list[int]) -> list[int]:
    """For each heading, where the next of its level or above begins."""
    found = [0] * len(levels)
    below: list[int] = []  # headings whose end is not known, each deeper than the one before
    for number, level in enumerate(levels):
        while below and levels[below[-1]] >= level:
            found[below.pop()] = ends[number - 1]
        below.append(number)
    for number in below:
        found[number] = ends[-1]
    return found


def _is_kept(character: str) -> bool:
    category = unicodedata.category(character)
    return character in " -" or character.isalnum() or category[0] == "M" or category == "Pc"


def _pieces(body: str, section: Section, most: int) -> Iterator[Piece]:
    start = section.start
    while first := WORD.search(body, start, section.end):
        start, end = first.start(), _border(body, first.start(), section.end, most)
        text = body[start:end].rstrip()
        yield Piece(section, start, start + len(text), text)
        start = end


def _border(body: str, start: int, end: int, most: int) -> int:
    """Where the piece that begins at `start` ends: after a paragraph, else a line, else a word, else anywhere.

    A border in its first quarter is none: a heading stays with the beginning of what it heads.
    """
    if end - start <= most:
        return end
    limit = start + most
    for border in ("\n\n", "\n", " "):
        found = body.rfind(border, start, limit)
        if found > start + most // 4:
            return found + len(border)
    return limit
