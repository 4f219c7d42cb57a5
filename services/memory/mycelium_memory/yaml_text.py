"""Reads YAML 1.2 as a mapping whose items know their lines, so that fields can be changed and the rest stays.

The library gives events; values are made here, because they have to be JSON, bounded, and lose nothing: a number is
one if it would be written back the same (`0123`, `1.10` and `1e3` are texts), dates are texts, `yes` is a text. Where
people write what YAML does not allow but everyone reads the same (`title: Re: plan`, `owner: @julia`, tabs between
words), the text is mended, and `Mapping.text` is the mended one. Whatever else is wrong is a `Fault` with its line.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError
from ruamel.yaml.events import (
    AliasEvent,
    DocumentEndEvent,
    DocumentStartEvent,
    Event,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
)

from mycelium_memory import yaml_mending

Json = Any

# The reader takes about 60 µs a value; the service does nothing else meanwhile.
TEXT_BYTES = 32 * 1024
VALUES = 2_000  # aliases count as what they stand for
CHARACTERS = 256 * 1024  # of all values
NESTING = 50
OPENED = 100  # brackets that one line leaves open: the reader takes the square of them
MENDED = 16  # places that are mended

BREAKS = {"\r": "a carriage return", "\x85": "U+0085", "\u2028": "U+2028", "\u2029": "U+2029", "\0": "a null byte"}
NULLS = frozenset({"", "~", "null", "Null", "NULL"})
BOOLEANS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
CORE = "tag:yaml.org,2002:"
RESOLVED_TAGS = frozenset(CORE + name for name in ("int", "float", "bool", "null"))


class Fault(Exception):
    """The text can't be kept as YAML. `line` counts from 1; 0 for the whole."""

    def __init__(self, detail: str, line: int = 0) -> None:
        super().__init__(f"line {line}: {detail}" if line else detail)
        self.detail = detail
        self.line = line


@dataclass
class Item:
    """One field: its value, the lines that it takes, from `first` to `last`, and the comments in the text there.

    With `keeps`, empty lines after it are part of its value (`|+`).
    """

    name: str
    value: Json
    first: int
    last: int
    keeps: bool = False
    comments: list[str] = field(default_factory=list)


@dataclass
class Mapping:
    """The fields of a text. `lost` says what a text in other words would not have; empty when nothing."""

    text: str
    items: list[Item] = field(default_factory=list)
    comments: list[str] = field(default_factory=list)
    column: int = 0
    in_braces: bool = False
    lost: str = ""

    @property
    def values(self) -> dict[str, Json]:
        """The fields as a JSON object."""
        return {item.name: item.value for item in self.items}


def read(text: str) -> Mapping | None:
    """The fields that a text has; None when it is legal YAML but no mapping. Raises `Fault`."""
    _check_characters(text)
    for _ in range(MENDED):
        try:
            return _Reader(text).read()
        except MarkedYAMLError as error:
            mended = yaml_mending.mended(text, error)
            if mended is None:
                raise _fault(error) from None
            text = mended
        except Fault:
            raise
        except RecursionError:  # the library's own, by marks that open one thing in another without end
            raise Fault(f"more than {NESTING} lists and mappings lie within each other") from None
        except Exception as error:  # the library has more kinds of errors than its own, for escapes and tags
            raise Fault(f"not legal YAML: {' '.join(str(error).split())}"[:200]) from None
    raise Fault(f"more than {MENDED} places have to be put in quotes")


def _check_characters(text: str) -> None:
    size = len(text.encode("utf-8", "surrogatepass"))
    if size > TEXT_BYTES:
        raise Fault(f"the fields have {size:,} bytes, at most {TEXT_BYTES:,} are allowed")
    for number, line in enumerate(text.split("\n"), 1):
        if line.count("[") + line.count("{") - line.count("]") - line.count("}") > OPENED:
            raise Fault(f"more than {OPENED} brackets are not closed", number)
        for character, name in BREAKS.items():
            if character in line:
                raise Fault(f"{name} can't be kept there", number)


class _Reader:
    """One pass over the events of a text."""

    def __init__(self, text: str) -> None:
        self.events: Iterator[Event] = iter(YAML(typ="safe", pure=True).parse(text))
        self.result = Mapping(text)
        self.anchors: dict[str, tuple[Json, int, int]] = {}
        self.values = 0
        self.characters = 0
        self.last = 0
        self.keeps = False
        self.written: list[tuple[int, int]] = []  # where the text is values and names

    def read(self) -> Mapping | None:
        """The whole text."""
        if self.fields() is None:
            return None
        comments = list(_comments(self.result.text, self.written))
        self.result.comments = [comment for _, comment in comments]
        for item in self.result.items:
            item.comments = [comment for line, comment in comments if item.first <= line <= item.last]
        return self.result

    def fields(self) -> Mapping | None:
        """Its fields."""
        self.next()  # the stream begins
        event = self.next()
        if isinstance(event, StreamEndEvent):
            return self.result
        if isinstance(event, DocumentStartEvent) and (event.explicit or event.version or event.tags):
            raise Fault("directives and marks of documents can't be kept", event.start_mark.line + 1)
        root = self.next()
        if not isinstance(root, MappingStartEvent):
            self.value(root, 1)
            self.end()
            return None
        self.result.column, self.result.in_braces = root.start_mark.column, bool(root.flow_style)
        if root.anchor or root.tag:
            raise Fault("a name or a tag of all fields together can't be kept", root.start_mark.line + 1)
        while not isinstance(key := self.next(), MappingEndEvent):
            self.item(key)
        self.end()
        return self.result

    def item(self, key: Event) -> None:
        """One field."""
        first = key.start_mark.line
        name, self.last = self.key(key), key.end_mark.line
        if any(name == item.name for item in self.result.items):
            raise Fault(f"the field {name[:40]!r} is there twice", first + 1)
        value = self.value(self.next(), 1)
        self.result.items.append(Item(name, value, first, self.last, self.keeps))

    def next(self) -> Event:
        """The next event; remembers the last line that has something of a value on it."""
        event = next(self.events)
        if isinstance(event, ScalarEvent):
            start, end = event.start_mark.index, event.end_mark.index
            if event.style in {"|", ">"}:  # what stands beside the sign may be a comment
                header = self.result.text.find("\n", start, end)
                self.keeps = "+" in self.result.text[start:header].split("#")[0]
                start = end if header < 0 else header
            else:
                self.keeps = False
            self.written.append((start, end))
        ends = isinstance(event, ScalarEvent | AliasEvent | SequenceEndEvent | MappingEndEvent)
        if ends and event.end_mark.index > event.start_mark.index:
            self.last = max(self.last, event.end_mark.line - (event.end_mark.column == 0))
        return event

    def end(self) -> None:
        """Nothing may follow."""
        event = self.next()
        if not isinstance(event, DocumentEndEvent) or event.explicit or not isinstance(self.next(), StreamEndEvent):
            raise Fault("the fields end before their text does", event.start_mark.line + 1)

    def key(self, event: Event) -> str:
        """The name that a key is."""
        value = self.value(event, 1)
        if isinstance(value, dict | list):
            raise Fault("the name of a field has to be a text", event.start_mark.line + 1)
        return str(event.value) if isinstance(event, ScalarEvent) else str(value)

    def value(self, event: Event, depth: int) -> Json:
        """The value that begins with an event."""
        line = event.start_mark.line + 1
        if isinstance(event, AliasEvent):
            return self.alias(event, line)
        values, characters = self.values, self.characters
        self.count(1, len(event.value) if isinstance(event, ScalarEvent) else 0, line)
        if depth > NESTING:
            raise Fault(f"more than {NESTING} lists and mappings lie within each other", line)
        value: Json = []
        if isinstance(event, ScalarEvent):
            if any("\ud800" <= character <= "\udfff" for character in event.value):
                raise Fault("half a character can't be kept", line)
            value = _scalar(event)
        elif isinstance(event, SequenceStartEvent):
            while not isinstance(inner := self.next(), SequenceEndEvent):
                value.append(self.value(inner, depth + 1))
        else:
            value = self.mapping(depth)
        anchor = getattr(event, "anchor", None)
        if anchor or getattr(event, "tag", None):
            self.result.lost = "names and tags of values"
        if anchor:
            self.anchors[anchor] = value, self.values - values, self.characters - characters
        return value

    def mapping(self, depth: int) -> dict[str, Json]:
        """A mapping within a field."""
        found: dict[str, Json] = {}
        while not isinstance(key := self.next(), MappingEndEvent):
            name = self.key(key)
            if name in found:
                raise Fault(f"{name[:40]!r} is there twice", key.start_mark.line + 1)
            found[name] = self.value(self.next(), depth + 1)
        return found

    def alias(self, event: AliasEvent, line: int) -> Json:
        """What an alias stands for, which counts again."""
        if event.anchor not in self.anchors:
            raise Fault(f"*{event.anchor} stands for nothing before it", line)
        self.result.lost = "names and tags of values"
        value, values, characters = self.anchors[event.anchor]
        self.count(values, characters, line)
        return value

    def count(self, values: int, characters: int, line: int) -> None:
        """Refuses more than can be kept."""
        self.values += values
        self.characters += characters
        if self.values > VALUES or self.characters > CHARACTERS:
            raise Fault(f"there are more than {VALUES:,} values, or {CHARACTERS:,} characters in them", line)


def _comments(text: str, written: list[tuple[int, int]]) -> Iterator[tuple[int, str]]:
    """The line and text of each comment: what a `#` begins that is in no value and has a space or nothing before it."""
    spans = iter([*written, (len(text), len(text))])
    start, end = next(spans)
    position = text.find("#")
    while position >= 0:
        while end <= position:
            start, end = next(spans)
        after = position + 1
        if position >= start:
            after = end
        elif position == 0 or text[position - 1] in " \t\n":
            after = (text + "\n").find("\n", position)
            yield text.count("\n", 0, position), text[position:after].rstrip()
        position = text.find("#", after)


def _scalar(event: ScalarEvent) -> Json:
    tag = str(event.tag) if event.tag else ""
    if (tag and tag not in RESOLVED_TAGS) or (not tag and not event.implicit[0]):
        return event.value
    return resolve(event.value)


def resolve(text: str) -> Json:
    """What an unquoted text is: null, a boolean, a number that would be written the same, or the text."""
    if text in NULLS:
        return None
    if text in BOOLEANS:
        return BOOLEANS[text]
    if not text.isascii() or len(text) > 400 or text[0] not in "-0123456789":
        return text
    for kind in (int, float):
        try:
            number = kind(text)
        except ValueError:
            continue
        if repr(number) == text:
            return number
    return text


def _fault(error: MarkedYAMLError) -> Fault:
    mark = error.problem_mark or error.context_mark
    detail = " ".join(f"{error.problem or error.context or 'not legal YAML'}".split())
    return Fault(detail.replace("'\\t'", "a tab")[:200], mark.line + 1 if mark else 0)
