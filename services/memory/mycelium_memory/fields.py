"""The fields of a document as YAML text: made from JSON, changed one by one, and freed of those that the hub keeps.

A field that is not touched stays to the letter, comments and all. Every text that is made here is read again before it
is given out: what could not be kept is a `Fault` (in a file) or a refusal (in a request), never something dropped.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping

from mycelium_kernel.errors import Refusal
from mycelium_memory import yaml_text
from mycelium_memory.yaml_text import Fault, Item, Json

# What the hub keeps in the frontmatter of a file; every other name is the user's.
MANAGED = (
    *("key", "version", "created_by", "created_at", "updated_by", "updated_at", "timestamp", "thread", "moved_from"),
    *("tags", "expandable", "unsearched", "value"),
)

CHANGES_CHARACTERS = 4 * yaml_text.TEXT_BYTES  # of changes as JSON, some of which may remove fields
PLAIN = re.compile(r"[^\W\d_](?:[\w ./@+-]*[\w/+-])?")  # begins with a letter, so it is no number and no date
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z")
# What some reader of YAML, if not this one, takes for something else than a text.
WORDS = frozenset({"null", "true", "false", "yes", "no", "on", "off", "y", "n", "inf", "nan"})
UNSAFE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")


def read(text: str) -> dict[str, Json]:
    """The fields as a JSON object. Refuses a text that has none."""
    return _read(text).values


def change(text: str, changes: Mapping[str, Json]) -> str:
    """The text with some fields set, or removed where the value is None; the others as they were.

    Refused: names of the hub's own fields, and what YAML or JSON can't keep.
    """
    for name in changes:
        if name in MANAGED:
            detail = f"the field {name!r} is written by the hub; choose another name for yours"
            raise Refusal("memory.field_managed", detail)
    before = _read(text)
    try:
        after = _replaced(before, changes)
        _check(after, before, changes)
    except Fault as fault:
        raise _refusal(fault) from None
    return after


def write(values: Mapping[str, Json]) -> str:
    """A text that has these fields."""
    return change("", values)


def cut(text: str, names: Collection[str] = MANAGED) -> tuple[dict[str, Json], str] | None:
    """The fields of these names, and the text of all others in its normal form: one field at each line's beginning.

    None when the text is no mapping. Raises `Fault` when something could not be kept.
    """
    found = yaml_text.read(text)
    if found is None:
        return None
    normal = _normal(found)
    taken = {name: value for name, value in normal.values.items() if name in names}
    if not taken:
        return taken, _ended(normal.text)
    removals = dict.fromkeys(taken, None)
    after = _replaced(normal, removals)
    _check(after, normal, removals)
    return taken, after


def line_of(name: str, value: Json) -> str:
    """One field on one line."""
    return f"{scalar(name)}: {scalar(value)}"


def managed_line(name: str, value: Json) -> str:
    """One of the hub's own fields on one line: as another field, but for times, which every reader may know as such."""
    return f"{name}: {value}" if is_time(value) else line_of(name, value)


def is_time(value: Json) -> bool:
    """Whether a value is a time as the hub writes it."""
    return isinstance(value, str) and TIME.fullmatch(value) is not None


def scalar(value: Json) -> str:
    """A value on one line: as plain words where nothing can misread them, else as JSON, which YAML contains."""
    return value if isinstance(value, str) and is_plain(value) else json_text(value)


def is_plain(text: str) -> bool:
    """Whether a text needs no quotes."""
    return PLAIN.fullmatch(text) is not None and text.casefold() not in WORDS and not UNSAFE.search(text)


def json_text(value: Json) -> str:
    """A value as JSON on one line, without characters that YAML would not take as they are. Raises `Fault`."""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
        text.encode()
    except (ValueError, RecursionError, TypeError):
        raise Fault("it has a value that JSON can't hold") from None
    return UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _lines(name: str, value: Json) -> list[str]:
    """A field, with the first level of a list or mapping a line each."""
    if isinstance(value, dict) and value:
        return [f"{scalar(name)}:", *(f"  {line_of(inner, each)}" for inner, each in value.items())]
    if isinstance(value, list) and value:
        return [f"{scalar(name)}:", *(f"  - {scalar(each)}" for each in value)]
    return [line_of(name, value)]


def _read(text: str) -> yaml_text.Mapping:
    try:
        found = yaml_text.read(text)
        normal = None if found is None else _normal(found)
    except Fault as fault:
        raise _refusal(fault) from None
    if normal is None:
        raise _refusal(Fault("the text is no list of fields"))
    return normal


def _refusal(fault: Fault) -> Refusal:
    return Refusal("memory.field_invalid", f"the fields can't be kept: {fault}")


def _normal(found: yaml_text.Mapping) -> yaml_text.Mapping:
    """The same fields, each at the beginning of a line."""
    if found.in_braces:
        if found.lost or found.comments:
            raise Fault(
                f"{found.lost or 'comments'} within braces can't be kept: write each field on a line of its own"
            )
        text = "\n".join(line for name, value in found.values.items() for line in _lines(name, value))
    elif found.column:
        indent = " " * found.column
        text = "\n".join(line.removeprefix(indent) if line.strip() else line for line in found.text.split("\n"))
    else:
        return found
    again = yaml_text.read(text)
    if again is None or again.values != found.values or again.comments != found.comments:
        raise Fault("the fields can't be kept as they are set in: begin each at the beginning of its line")
    return again


def _replaced(found: yaml_text.Mapping, changes: Mapping[str, Json]) -> str:
    """The text with its fields changed, not checked."""
    lines = found.text.removesuffix("\n").split("\n") if found.text.strip() else []
    there = {item.name for item in found.items}
    for before, item in reversed(list(zip([None, *found.items], found.items, strict=False))):
        if item.name in changes:
            end = item.last + 1
            while (
                before and before.keeps and changes[item.name] is None and end < len(lines) and not lines[end].strip()
            ):
                end += 1  # else they would become part of the field before
            lines[item.first : end] = _in_place(item, changes[item.name])
    for name, value in changes.items():
        if name not in there and value is not None:
            lines.extend(_lines(name, value))
    return _ended("".join(line + "\n" for line in lines))


def _in_place(item: Item, value: Json) -> list[str]:
    """The lines that stand where a field stood, with the comments that stood among its own."""
    if value is None:
        return list(item.comments)
    lines = _lines(item.name, value)
    if len(lines) == 1 and len(item.comments) == 1:
        return [f"{lines[0]}  {item.comments[0]}"]
    return [*item.comments, *lines]


def _ended(text: str) -> str:
    """A text whose last line has an end; empty lines may belong to the last field. One of nothing but such is empty."""
    return text + "\n" * (not text.endswith("\n")) if text.strip() else ""


def _check(text: str, before: yaml_text.Mapping, changes: Mapping[str, Json]) -> None:
    """Raises `Fault` when a text is not what was there before, changed."""
    for name, value in changes.items():
        if not name.strip():
            raise Fault("a field has to have a name")
        json_text(value)
    values = {name: value for name, value in before.values.items() if name not in changes}
    values |= {name: value for name, value in changes.items() if value is not None}
    again = yaml_text.read(text)
    lost = [name for name in changes if again and again.values.get(name) != values.get(name)]
    if lost:
        raise Fault(f"{lost[0]!r} could not be read back as it is; make its numbers shorter, or texts")
    if again is None or again.values != values:
        raise Fault(f"one of {', '.join(map(repr, changes))} does not stand by itself: others refer to it")
    if sorted(again.comments) != sorted(before.comments):
        raise Fault("a comment would be lost; move it to a line of its own")
