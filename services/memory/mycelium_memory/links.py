"""The links of a document: `[[key#section|text]]`, `![[key]]`, `myc://key` in its text, and fields that are links.

The text is Markdown, parsed by a library whose rules for what a text consists of are replaced by the few that matter
here: so code, comments and escaped brackets link to nothing. `extract` says what is written; `resolve` what it leads
to; `expand` puts the text of other documents where they are embedded, one level deep. What other documents there are
is not known here: the callers give a function that looks one up.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import unquote

from markdown_it import MarkdownIt
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

from mycelium_kernel.errors import Refusal
from mycelium_memory import markdown

LINKS = 1_000
LINK_CHARACTERS = 1_000  # between its brackets
MARKS = 50_000  # places of a text where a rule has something to do: about 15 µs each
TYPES = ("supersedes", "superseded-by", "depends-on", "part-of", "relates-to")

Kind = Literal["wiki", "url", "embed", "field"]

SCHEME = "myc://"
OTHER_ROOM = "rooms/"
STOP = re.compile(r"\\|`|<!--|!?\[\[(?!\[)|myc://", re.IGNORECASE)  # the only places where a rule has something to do
URL = re.compile(r"myc://[^\s<>\"`|\[\]{}\\^]+", re.IGNORECASE)
AFTER = ".,;:!?*~'"  # ends a sentence or an emphasis, not an address


@dataclass(frozen=True)
class Link:
    """One place in a document that names another, as it is written there."""

    target: str  # the key that is written; empty for the document itself
    kind: Kind
    section: str = ""
    text: str = ""  # shown in its place
    type: str = ""  # of a field: what it means, such as `supersedes`; empty for a field without such a meaning
    room: str = ""  # `myc://rooms/{room}/{key}`: understood, and leads nowhere
    start: int = 0  # in characters of the text; 0 for a field
    end: int = 0


def extract(body: str, meta: Mapping[str, Any]) -> list[Link]:
    """The links of a document in order, those of its fields first. Refused: more than 1,000, or too much markup."""
    found: list[Link] = []
    for link in [*_of_fields(meta), *_of_text(body)]:
        found.append(link)
        if len(found) > LINKS:
            raise Refusal("memory.links_too_many", f"the document has more than {LINKS:,} links; split it")
    return found


def may_link(body: str) -> bool:
    """Whether a text may have links. Quick; only ever wrong by saying yes."""
    return "[[" in body or SCHEME in body.lower()


def _of_fields(meta: Mapping[str, Any]) -> Iterator[Link]:
    for name, value in meta.items():
        for text in _strings(value):
            written = text.strip()
            if name in TYPES and written:
                link = _field(written)
                if link:
                    yield Link(link.target, "field", link.section, link.text, name, link.room)
            else:
                for word in written.split():
                    link = _address(word.rstrip(AFTER)) if word.lower().startswith(SCHEME) else None
                    if link:
                        yield Link(link.target, "field", link.section, room=link.room)


def _strings(value: object) -> Iterator[str]:
    """The texts in a field. `[[key]]` without quotes is a list in a list to YAML."""
    waiting = [value]
    while waiting:
        one = waiting.pop(0)
        if isinstance(one, str):
            yield one
        elif isinstance(one, list):
            waiting = [*one, *waiting]
        elif isinstance(one, dict):
            waiting = [*one.values(), *waiting]


def _field(written: str) -> Link | None:
    inner = written.removeprefix("!").removeprefix("[[")
    return _wiki(inner.removesuffix("]]") if inner.endswith("]]") else inner)


def _of_text(body: str) -> Iterator[Link]:
    if not may_link(body):
        return
    fault = markdown.too_much(body) or _too_many_marks(body)
    if fault:
        raise Refusal("content.too_large", f"the text has links and {fault}; split it")
    blocks = markdown.blocks(body)
    for token in blocks.tokens:
        if token.type == "inline" and token.map and may_link(token.content):
            yield from _of_block(token, blocks)


def _too_many_marks(body: str) -> str:
    marks = sum(1 for _ in STOP.finditer(body))
    return f"{marks:,} brackets, backticks and the like, where {MARKS:,} can be read" if marks > MARKS else ""


def _of_block(token: Token, blocks: markdown.Blocks) -> Iterator[Link]:
    """The links of one paragraph or heading."""
    parser = _inline_parser()
    found: list[Token] = []
    parser.inline.parse(token.content, parser, {}, found)
    places = _Places(token, blocks)
    for each in found:
        if each.type not in {"wiki", "embed", "url"}:
            continue
        link = _address(each.content) if each.type == "url" else _wiki(each.content)
        if link is None:
            continue
        start = places.of(each.meta["start"])
        kind: Kind = "url" if each.type == "url" else "embed" if each.type == "embed" else "wiki"
        end = start + each.meta["end"] - each.meta["start"]
        yield Link(link.target, kind, link.section, link.text, "", link.room, start, end)


class _Places:
    """Where positions of a block's content are in the text: there, marks of lists and quotes stand before each line.

    Asked in order, so that each line is looked at once, however many links it has.
    """

    def __init__(self, token: Token, blocks: markdown.Blocks) -> None:
        assert token.map
        self._content, self._blocks = token.content, blocks
        self._enter(token.map[0], 0)

    def of(self, position: int) -> int:
        while position > self._end:
            self._enter(self._line + 1, self._end + 1)
        return position + self._shift

    def _enter(self, line: int, begin: int) -> None:
        end = self._content.find("\n", begin)
        self._line, self._end = line, end if end >= 0 else len(self._content)
        here = self._content[begin : self._end]
        before = len(here) - len(here.lstrip())
        column = self._blocks.lines[line].rfind(here.strip())
        self._shift = self._blocks.starts[line] + column - begin - before


def _wiki(inner: str) -> Link | None:
    """What stands between double brackets; None when it names nothing."""
    written, _, text = inner.replace("\\|", "|").partition("|")
    if written.strip().lower().startswith(SCHEME):
        link = _address(written.strip())
        return link and Link(link.target, "wiki", link.section, text.strip(), room=link.room)
    target, _, section = written.partition("#")
    target, section = target.strip(), section.strip()
    return Link(target, "wiki", section, text.strip()) if target or section else None


def _address(url: str) -> Link | None:
    """What an address `myc://…` names; None when it names no document."""
    path, _, section = url[len(SCHEME) :].partition("#")
    path = path.partition("?")[0].strip("/")
    room = ""
    if path.startswith(OTHER_ROOM):
        room, _, path = path.removeprefix(OTHER_ROOM).partition("/")
    if not path:
        return None
    return Link(unquote(path), "url", unquote(section), room=unquote(room))


@functools.cache
def _inline_parser() -> MarkdownIt:
    """Code, escapes, comments and links, and nothing else: no rule takes long however the text is made."""
    parser = MarkdownIt("commonmark")
    parser.inline.ruler.before("text", "skip", _skip)
    parser.inline.ruler.push("comment", _comment)
    parser.inline.ruler.push("wiki", _wiki_rule)
    parser.inline.ruler.push("url", _url_rule)
    parser.inline.ruler.enableOnly(["skip", "escape", "backticks", "comment", "wiki", "url"])
    parser.inline.ruler2.enableOnly([])
    return parser


def _skip(state: StateInline, silent: bool) -> bool:
    """Goes to the next place where something may be. The words between are not needed."""
    del silent
    state.pending = ""
    match = STOP.search(state.src, state.pos, state.posMax)
    next_stop = match.start() if match else state.posMax
    moved = next_stop > state.pos
    state.pos = next_stop
    return moved


def _comment(state: StateInline, silent: bool) -> bool:
    """`<!-- … -->`; one that never ends is text, and so are those after it."""
    del silent
    if not state.src.startswith("<!--", state.pos):
        return False
    end = -1 if state.env.get("no comment ends") else state.src.find("-->", state.pos + 4, state.posMax)
    state.env["no comment ends"] = end < 0
    state.pos = state.pos + 4 if end < 0 else end + 3
    return True


def _wiki_rule(state: StateInline, silent: bool) -> bool:
    """`[[…]]` and `![[…]]`, on one line and with no bracket inside."""
    embed = state.src.startswith("![[", state.pos)
    if not embed and not state.src.startswith("[[", state.pos):
        return False
    start = state.pos + 2 + embed
    end = state.src.find("]]", start, start + LINK_CHARACTERS)
    inner = state.src[start:end] if end >= 0 else "["
    if "[" in inner or "\n" in inner:
        state.pos += 1
        return True
    _push(state, "embed" if embed else "wiki", inner, end + 2, silent)
    return True


def _url_rule(state: StateInline, silent: bool) -> bool:
    """`myc://…` wherever it stands as a word: alone, in angle brackets, as the address of a link."""
    match = URL.match(state.src, state.pos, state.posMax)
    before = state.src[state.pos - 1] if state.pos else " "
    if not match or before.isalnum() or len(match[0]) > LINK_CHARACTERS:
        state.pos = match.end() if match else state.pos + 1
        return True
    url = _trimmed(match[0], before)
    _push(state, "url", url, state.pos + len(url), silent)
    return True


def _trimmed(url: str, before: str) -> str:
    """An address without what belongs to the sentence around it."""
    unopened = url.count(")") - url.count("(")
    while True:
        shorter = url.rstrip(AFTER)
        if shorter.endswith(")") and unopened > 0:
            shorter, unopened = shorter[:-1], unopened - 1
        if before == "_" and shorter.endswith("_"):
            shorter, before = shorter[:-1], ""
        if shorter == url:
            return url
        url = shorter


def _push(state: StateInline, kind: str, content: str, end: int, silent: bool) -> None:
    if not silent:
        token = state.push(kind, "", 0)
        token.content = content
        token.meta = {"start": state.pos, "end": end}
    state.pos = end
