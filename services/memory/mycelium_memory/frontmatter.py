"""A document as a file: fields between two lines of `---`, an empty line, the text, and the end of its last line.

    ---
    key: work/api-server
    version: 3
    tags: ["api"]
    status: open   # the user's own, to the letter
    ---

    The text.

`parse` sets the hub's fields (`MANAGED`) apart from the user's, which stay as YAML text; their JSON is `meta`.
`render` writes the hub's first, a line each. So `parse(render(m, f, b))` gives m, f and b for every text b, and what a
person wrote comes back to the letter but for this: the hub's fields move to the front, a comment beside one gets a line
of its own, fields set in or in braces get a line each, and a file with CRLF or a byte order mark has neither
afterwards. A file without fields is all text; so is one whose first lines only look like fields (`---`, words, `---`).

A document that holds JSON has it as `value`, on one line, and no text. What `key`, `version` and the like say in a
file that was edited by hand is told in `managed`, and is for the caller to believe or not.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from mycelium_memory import fields
from mycelium_memory.fields import MANAGED
from mycelium_memory.yaml_text import Fault, Json

__all__ = ["MANAGED", "Parsed", "parse", "render"]

FENCE = "---"


@dataclass(frozen=True)
class Parsed:
    """What a file holds. With `problems` it is no document as it stands, and nothing else here counts."""

    managed: dict[str, Json] = field(default_factory=dict)
    fields: str = ""  # the user's, as YAML
    meta: dict[str, Json] = field(default_factory=dict)  # the same as JSON
    body: str = ""
    problems: tuple[str, ...] = ()

    @property
    def tags(self) -> tuple[str, ...] | None:
        """The tags; None when the file does not say."""
        return None if "tags" not in self.managed else tuple(_tags(self.managed["tags"]) or ())

    @property
    def expandable(self) -> bool:
        """Whether other documents may embed it."""
        return self.managed.get("expandable") is True

    @property
    def unsearched(self) -> bool:
        """Whether it is left out of the search by meaning."""
        return self.managed.get("unsearched") is True


def parse(text: str) -> Parsed:
    """What a file's text holds."""
    text = text.removeprefix("\ufeff")
    if "\r\n" in text and text.count("\n") == text.count("\r\n"):
        text = text.replace("\r\n", "\n")
    parts = _split(text)
    if parts is None:
        return Parsed(body=text.removesuffix("\n"))
    lines, body = parts
    managed, start = _leading(lines)
    try:
        rest = fields.cut("".join(line + "\n" for line in lines[start:]))
    except Fault as fault:
        where = f"line {start + 1 + fault.line}: " if fault.line else ""
        return Parsed(body=body, problems=(f"{where}{fault.detail}",))
    if rest is None and start:
        return Parsed(body=body, problems=(f"line {start + 2}: no field begins here",))
    if rest is None or (lines and not (start or rest[0] or rest[1])):
        return Parsed(body=text.removesuffix("\n"))
    found, own = rest
    doubled = [f"the field {name!r} is there twice" for name in found if name in managed]
    managed = {**managed, **found}
    problems = doubled + _problems(managed, body)
    return Parsed(managed, own, {} if problems else fields.read(own), body, tuple(problems))


def render(managed: Mapping[str, Json], own: str, body: str) -> str:
    """The text of a file; `own` is the user's fields as YAML that `parse`, `fields.write` or `fields.change` gave."""
    if own and not own.endswith("\n"):
        own += "\n"
    head = "".join(fields.managed_line(name, value) + "\n" for name, value in managed.items())
    return f"{FENCE}\n{head}{own}{FENCE}\n" + (f"\n{body}\n" if body else "")


def _split(text: str) -> tuple[list[str], str] | None:
    """The lines of fields and the text after them; None when there are none."""
    first, found, rest = text.partition("\n")
    if first.rstrip(" \t\r") != FENCE or not found:
        return None
    lines = rest.split("\n")
    for number, line in enumerate(lines):
        if line.rstrip(" \t\r") == FENCE:
            body = "\n".join(lines[number + 1 :])
            head = [line.removesuffix("\r") for line in lines[:number]]
            return head, body.removeprefix("\n").removesuffix("\n")
    return None


def _leading(lines: list[str]) -> tuple[dict[str, Json], int]:
    """The hub's own fields that stand first, as `render` writes them, and how many lines they take.

    They are not read as YAML, which would take seconds for a large value.
    """
    managed: dict[str, Json] = {}
    for number, line in enumerate(lines):
        name, found, value = line.partition(": ")
        after = lines[number + 1] if number + 1 < len(lines) else ""
        if not found or name not in MANAGED or name in managed or after.startswith((" ", "\t")):
            return managed, number
        try:
            managed[name] = value if fields.is_plain(value) or fields.is_time(value) else _json(value)
        except (ValueError, RecursionError):
            return managed, number
    return managed, len(lines)


def _json(text: str) -> Json:
    """A JSON value that can be kept. Raises `ValueError` or `RecursionError` on anything else."""
    value = json.loads(text, object_pairs_hook=_once, parse_constant=_no_constant, parse_float=_finite)
    json.dumps(value, ensure_ascii=False).encode()
    return value


def _once(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name is there twice")
    return found


def _no_constant(name: str) -> Json:
    raise ValueError(name)


def _finite(text: str) -> float:
    number = float(text)
    if number in {float("inf"), float("-inf")}:
        raise ValueError(text)
    return number


def _problems(managed: Mapping[str, Json], body: str) -> list[str]:
    """What is wrong with the hub's fields."""
    problems = []
    if "tags" in managed and _tags(managed["tags"]) is None:
        problems.append("tags is neither a list of words nor words with commas between them")
    problems.extend(
        f"{name} is neither true nor false"
        for name in ("expandable", "unsearched")
        if not isinstance(managed.get(name, False), bool)
    )
    if managed.get("value") is not None and body:
        problems.append("it has a value and a text, and a document holds one of them")
    return problems


def _tags(value: Json) -> list[str] | None:
    """Tags as a list; None when they are none."""
    if value is None:
        return []
    if isinstance(value, str):
        return [tag.strip() for tag in value.split(",") if tag.strip()]
    if isinstance(value, list) and all(isinstance(tag, str | int | float) for tag in value):
        return [tag if isinstance(tag, str) else json.dumps(tag) for tag in value]
    return None
