"""Whom a text names: `@handle` wakes, `@~handle` is silent, `@handle#seat` goes to the seat's own queue.

The text is CommonMark, parsed by a library; only what a reader sees as plain words is searched. So code, block quotes,
link targets and escapes name nobody. What is left is flattened and scanned once. Who a handle is, is not known here.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from markdown_it import MarkdownIt
from markdown_it.token import Token

from mycelium_kernel import names
from mycelium_kernel.errors import Refusal

# The parser takes up to 80 µs a line, 35 µs a list or quote that a line opens, 10 µs a sign and 50 µs an open bracket,
# and the service does nothing else meanwhile. So a text that names somebody may have so much of each: more than people
# write, about 0.4 s at worst.
LINES = 6_000
OPENED = 8_000
SIGNS = 20_000
OPEN_BRACKETS = 1_000
NAMED = 100  # distinct handles that one text may name
NESTING = 40

AT = re.compile(r"[@＠](?P<silent>~?)(?P<handle>[A-Za-z0-9][A-Za-z0-9._-]*)(?:#(?P<seat>[A-Za-z0-9]+))?")
BREAK = re.compile(r"[^!-~]|[<>\"`]")  # ends a run of characters that could be a URL
SIGN = re.compile(r"[`\[\]<\\&_*!]")  # what inline Markdown begins with
OPENS = re.compile(r"^[ \t]*(?:(?:>|[-+*](?=[ \t])|\d{1,9}[.)](?=[ \t]))[ \t]*)+", re.MULTILINE)  # at a line's start
BRACKET = re.compile(r"[\[\]]")
MARKUP = re.compile(r"[`\[<\\&_*]")  # the part of it that can hide, break or join what is written
GAP = "\0"  # stands for what is no plain text; a message never has one
ESCAPED = "\ufdd0"  # stands for an escaped sign; no character
KEPT_WHEN_ESCAPED = frozenset("._-")


@dataclass(frozen=True)
class Name:
    """One handle that a text names, in the form in which it does."""

    handle: str
    seat: str
    silent: bool


def parse(text: str) -> tuple[Name, ...]:
    """The handles that `text` names, in order, each once: its first form, but a waking form beats a silent one.

    Refused when the text has too much markup to be read safely, or names too many.
    """
    if not may_name(text):
        return ()
    found: dict[tuple[str, str], Name] = {}
    for flat in _plain_texts(text):
        for name in scan(flat):
            known = found.get((name.handle, name.seat))
            if known is None or (known.silent and not name.silent):
                found[name.handle, name.seat] = name
            if len(found) > NAMED:
                raise Refusal("content.invalid", f"the text names more than {NAMED} handles")
    return tuple(found.values())


def may_name(raw: str) -> bool:
    """Whether a text with its markup still in it may name somebody. Quick; only ever wrong by saying yes."""
    return any(not _joins(raw[match.start() - 1]) if match.start() else True for match in AT.finditer(raw))


def scan(flat: str) -> Iterator[Name]:
    """The names in a plain text, repeats included."""
    position, run, in_url = 0, 0, False
    for match in AT.finditer(flat):
        start = match.start()
        for gap in BREAK.finditer(flat, position, start):
            run, in_url = gap.end(), False
        in_url = in_url or "://" in flat[max(run, position - 2) : start]
        position = start
        if not in_url and _stands_free(flat, match, run):
            name = _name(match, flat)
            if name:
                yield name


def _stands_free(flat: str, match: re.Match[str], run: int) -> bool:
    """Whether the sign begins a word, and is not part of an address, a path of a URL, or escaped."""
    start = match.start()
    before = flat[start - 1] if start else " "
    if _joins(before) or before in f"@＠{ESCAPED}" or (before == "\\" and flat[start] == "＠"):
        return False
    if before in "_%+" and re.search(r"[A-Za-z0-9]", flat[max(run, start - 64) : start]):
        return False  # jane_@acme.com
    if before == "/":
        first = flat[run : min(start, run + names.ROOM_NAME_BYTES)].partition("/")[0]
        return "." not in first  # example.org/@jane
    return True


def _name(match: re.Match[str], flat: str) -> Name | None:
    """The name that a match gives; None when what follows shows that it is something else."""
    handle = match["handle"].rstrip(".").lower()
    seat = (match["seat"] or "").lower()
    if match["handle"].endswith(".") or not names.SEAT.fullmatch(seat):
        seat = ""
    end = match.end("seat") if seat else match.end("handle")
    after = flat[end : end + 1]
    if not names.HANDLE.fullmatch(handle) or _joins(after) or after in {"@", "＠"}:
        return None
    return Name(handle, seat, bool(match["silent"]))


def _joins(character: str) -> bool:
    """Whether a character makes one word with a handle beside it: letters of alphabets that set spaces between words.

    Chinese, Japanese, Thai and others don't, so there a handle may touch the words around it.
    """
    if not character or ord(character) >= 0x2000 or 0x0E00 <= ord(character) < 0x1100:
        return False
    return character.isalnum() or unicodedata.combining(character) != 0


def _plain_texts(text: str) -> Iterator[str]:
    """The plain words of each paragraph, heading and list item of `text` that may name somebody."""
    lines = text.count("\n")
    if lines > LINES:
        raise _too_much(f"{lines:,} lines", f"{LINES:,}")
    opened = sum(len(match[0].split()) + match[0].count(">") for match in OPENS.finditer(text))
    if opened > OPENED:
        raise _too_much(f"{opened:,} lists and quotes", f"{OPENED:,}")
    ats = text.count("@") + text.count("＠")
    if ats > SIGNS:
        raise _too_much(f"{ats:,} signs @", f"{SIGNS:,}")
    references: dict[str, object] = {}
    blocks = list(_paragraphs(text, references))
    marked = [block for block in blocks if MARKUP.search(block)]
    signs = sum(1 for block in marked for _ in SIGN.finditer(block))
    if signs > SIGNS:
        raise _too_much(f"{signs:,} signs of markup", f"{SIGNS:,}")
    brackets = sum(_open_brackets(block) for block in marked)
    if brackets > OPEN_BRACKETS:
        raise _too_much(f"{brackets:,} brackets that are not closed", f"{OPEN_BRACKETS:,}")
    for block in blocks:
        yield "".join(_flatten(_inline(block, references))) if MARKUP.search(block) else block


def _paragraphs(text: str, references: dict[str, object]) -> Iterator[str]:
    """The blocks outside quotes and code whose raw text seems to name somebody. Fills in the references for links."""
    quotes = 0
    for block in _block_parser().parse(text, references):
        quotes += (block.type == "blockquote_open") - (block.type == "blockquote_close")
        if block.type == "inline" and not quotes and may_name(block.content):
            yield block.content


def _too_much(has: str, limit: str) -> Refusal:
    return Refusal("content.too_large", f"the text has {has}; one that names somebody may have {limit}: split it")


def _open_brackets(text: str) -> int:
    """How many `[` no `]` closes."""
    depth = 0
    for match in BRACKET.finditer(text):
        depth = depth + 1 if match[0] == "[" else max(0, depth - 1)
    return depth


@functools.cache
def _block_parser() -> MarkdownIt:
    """Finds the blocks only. Without HTML: `<b>` is text, as readers see it."""
    return MarkdownIt("commonmark", {"html": False, "maxNesting": NESTING}).disable("inline")


@functools.cache
def _inline_parser() -> MarkdownIt:
    return MarkdownIt("commonmark", {"html": False})


def _inline(text: str, references: dict[str, object]) -> list[Token]:
    """What a block's text consists of. Escapes stay tokens of their own, since nothing joins them to the text."""
    parser = _inline_parser()
    tokens: list[Token] = []
    parser.inline.parse(text, parser, references, tokens)
    return tokens


def _flatten(tokens: Iterable[Token]) -> Iterator[str]:
    autolink = 0
    for token in tokens:
        if token.markup == "autolink":
            autolink += token.nesting
            yield GAP
        elif autolink:
            continue
        elif token.type == "text" or (token.info == "escape" and token.content in KEPT_WHEN_ESCAPED):
            yield token.content
        elif token.type in {"softbreak", "hardbreak"}:
            yield "\n"
        else:
            yield ESCAPED if token.markup == r"\@" else GAP
