"""What a document may hold: texts, values, fields, tags and their limits; and how a write changes what there was."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterable
from typing import Any

from mycelium.memory.v1 import service_pb2, views_pb2
from mycelium_kernel import limits
from mycelium_kernel.errors import Refusal
from mycelium_memory import fields, frontmatter, links, sections

BODY_BYTES = 512 * 1024
FIELD_CHARACTERS = 100
TAGS, TAG_CHARACTERS = 100, 100
SUMMARY_CHARACTERS = 200
DEEPEST = 50  # lists and objects within each other that a value may have
CATEGORY = "Cc", "Cs", "Zl", "Zp"
KINDS = {
    "wiki": views_pb2.LINK_KIND_WIKI,
    "url": views_pb2.LINK_KIND_URL,
    "embed": views_pb2.LINK_KIND_EMBED,
    "field": views_pb2.LINK_KIND_FIELD,
}


def merged(before: views_pb2.Content | None, request: service_pb2.WriteDocumentRequest) -> views_pb2.Content:
    """The content after a write. What the request does not say stays. Refused where it can't be kept as it is."""
    content = views_pb2.Content()
    if before:
        content.CopyFrom(before)
    _text(content, request)
    if request.fields_json:
        _fields(content, request.fields_json)
    if request.HasField("tags"):
        content.tags[:] = tags(request.tags.tags)
    if request.HasField("expandable"):
        content.expandable = request.expandable
    if request.HasField("unsearched"):
        content.unsearched = request.unsearched
    _read(content)
    return content


def checked(content: views_pb2.Content) -> views_pb2.Content:
    """Content that somebody else has put together, as it would be here. Refused where it could not be."""
    kept = views_pb2.Content(expandable=content.expandable, unsearched=content.unsearched)
    if content.body and content.value_json:
        raise Refusal("content.invalid", "it has a text and a value")
    kept.body = check_body(content.body)
    if content.value_json:
        kept.value_json = check_body(to_json(read_json("value", content.value_json)))
    kept.tags[:] = tags(content.tags)
    if content.fields_yaml:
        values = fields.read(content.fields_yaml)
        for name in values:
            check_field(name)
            if name in fields.MANAGED:
                raise Refusal("memory.field_managed", f"the field {name!r} is written by the hub")
        kept.fields_yaml, kept.fields_json = fields.change(content.fields_yaml, {}), to_json(values)
    _read(kept)
    return kept


def of_file(file: str) -> views_pb2.Content:
    """The content that a file says. Refused when it is no document as it stands, with every reason."""
    parsed = frontmatter.parse(file)
    if parsed.problems:
        raise Refusal("memory.file_invalid", "; ".join(parsed.problems))
    content = views_pb2.Content(
        body=check_body(parsed.body), expandable=parsed.expandable, unsearched=parsed.unsearched
    )
    content.tags[:] = tags(parsed.tags or ())
    if parsed.managed.get("value") is not None:
        content.value_json = check_body(to_json(read_json("value", to_json(parsed.managed["value"]))))
    for name in parsed.meta:
        check_field(name)
    if parsed.meta:
        content.fields_yaml, content.fields_json = parsed.fields, to_json(parsed.meta)
    _read(content)
    return content


def _read(content: views_pb2.Content) -> None:
    """Links and headings are found once, when the content is decided, so that tables need not read markdown."""
    del content.headings[:]
    for heading in sections.headings(content.body):
        content.headings.add(title=heading.title, level=heading.level, start=heading.start)
    values = json.loads(content.fields_json) if content.fields_json else {}
    del content.links[:]
    for link in links.extract(content.body, values):
        content.links.add(
            target=link.target, section=link.section, text=link.text, kind=KINDS[link.kind], type=link.type,
            room=link.room, start=link.start, end=link.end,
        )  # fmt: skip


def _text(content: views_pb2.Content, request: service_pb2.WriteDocumentRequest) -> None:
    if request.HasField("body") and request.HasField("value_json"):
        raise Refusal("request.invalid", "a document holds a text or a value, not both")
    if request.HasField("body"):
        content.body, content.value_json = check_body(request.body), ""
    elif request.HasField("value_json"):
        value = read_json("value", request.value_json)
        content.body, content.value_json = "", check_body(to_json(value))


def check_body(text: str) -> str:
    """A text as it came. Refused when it is broken or too large."""
    return limits.text(text, BODY_BYTES)


def _fields(content: views_pb2.Content, changes_json: str) -> None:
    if len(changes_json) > fields.CHANGES_CHARACTERS:  # it would take seconds to find out what is wrong with them
        size = f"{len(changes_json):,} characters, at most {fields.CHANGES_CHARACTERS:,} can be changed at once"
        raise Refusal("memory.field_invalid", f"the fields can't be kept: they have {size}")
    changes = read_json("meta", changes_json)
    if not isinstance(changes, dict):
        raise Refusal("request.invalid", "meta is not a JSON object")
    for name in changes:
        check_field(name)
    content.fields_yaml = fields.change(content.fields_yaml, changes)
    values = fields.read(content.fields_yaml)
    content.fields_json = to_json(values) if values else ""


def check_field(name: str) -> None:
    """Refused for a name that would be no line, or is far too long."""
    bad = any(unicodedata.category(character) in CATEGORY for character in name)
    if not name.strip() or len(name) > FIELD_CHARACTERS or bad:
        detail = f"{name[:40]!r} can't be a field: use 1 to {FIELD_CHARACTERS} characters on one line"
        raise Refusal("memory.field_invalid", detail)


def tags(given: Iterable[str]) -> list[str]:
    """Tags, trimmed, each once. Refused when there are too many, or one is none."""
    found: dict[str, str] = {}
    for tag in given:
        trimmed = tag.strip()
        bad = any(unicodedata.category(character) in CATEGORY for character in trimmed)
        if not trimmed or len(trimmed) > TAG_CHARACTERS or "," in trimmed or bad:
            detail = f"{tag[:40]!r} can't be a tag: use 1 to {TAG_CHARACTERS} characters on one line, without commas"
            raise Refusal("memory.tag_invalid", detail)
        found.setdefault(trimmed.casefold(), trimmed)
    if len(found) > TAGS:
        raise Refusal("memory.tag_invalid", f"{len(found)} tags are given, at most {TAGS} are allowed")
    return list(found.values())


def read_json(what: str, text: str) -> Any:
    """A JSON text as it is. Refused when it is none, or nests too deeply to be shown again."""
    try:
        value = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise Refusal("request.invalid", f"{what} is not JSON") from None
    if _depth(value) > DEEPEST:
        raise Refusal("request.invalid", f"{what} has more than {DEEPEST} lists and objects within each other")
    return value


def _no_constant(name: str) -> None:
    raise ValueError(name)


def _depth(value: object) -> int:
    """How many lists and objects lie within each other, one more than allowed at most."""
    level, depth = [value], 0
    while level and depth <= DEEPEST:
        level = [inner for outer in level for inner in _inner(outer)]
        depth += 1
    return depth


def _inner(value: object) -> list[object]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def to_json(value: object) -> str:
    """JSON as it is kept: compact, its fields in the order given."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def text_of(content: views_pb2.Content) -> str:
    """The text of a document, or its value as JSON."""
    return content.body or content.value_json


def summary_of(content: views_pb2.Content) -> str:
    """The beginning of the text, as one line; of a document without text, such as a task, its title."""
    start = text_of(content)[: SUMMARY_CHARACTERS * 4]
    line = " ".join(start.split()) or _title_of(content)
    return line if len(line) <= SUMMARY_CHARACTERS else line[: SUMMARY_CHARACTERS - 1] + "…"


def _title_of(content: views_pb2.Content) -> str:
    title = json.loads(content.fields_json).get("title") if content.fields_json else None
    return "" if title is None else " ".join(str(title)[: SUMMARY_CHARACTERS * 4].split())
