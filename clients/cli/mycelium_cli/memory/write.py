"""`memory set` and `memory rm`: writing what the room knows."""

import json
import os
import time
from collections.abc import Iterator
from typing import Any

import click

from mycelium_cli.command import Whole, command, handle_option, room_option
from mycelium_cli.context import Here
from mycelium_cli.errors import usage
from mycelium_cli.memory.keys import checked, path_of
from mycelium_cli.output import Paint, age, at, clean_line, shell_word
from mycelium_cli.room.send import one_text, text_of
from mycelium_cli.wording import Document

_LARGEST_FILE = 8 * 1024 * 1024


def value_of(typed: str | None, file: str | None) -> object:
    """What is to be stored: a JSON object or list as such, anything else as the text that it is. None: nothing."""
    if typed is not None and file is not None:
        raise usage("a value and --file can't both be meant", "mycelium memory set KEY --file notes.md")
    if file is not None:
        typed = text_of("-") if file == "-" else _read(file)
    elif typed == "-":
        typed = text_of("-")
    if typed is None:
        return None
    if typed.lstrip()[:1] in {"{", "["}:
        try:
            found = json.loads(typed)
        except (ValueError, RecursionError):
            return typed
        if isinstance(found, dict | list):
            return found
    return typed


def _read(file: str) -> str:
    with open(file, "rb") as opened:
        content = opened.read(_LARGEST_FILE + 1)
    if len(content) > _LARGEST_FILE:
        raise usage(f"{file} is larger than {_LARGEST_FILE // 1024 // 1024} MB", "split it, and set each part")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise usage(f"{file} is not UTF-8 (byte {error.start})", f"mend {file}") from None


def fields_of(typed: tuple[str, ...]) -> dict[str, str | None]:
    """The fields of `--meta name=value`; an empty value removes one."""
    found: dict[str, str | None] = {}
    for pair in typed:
        name, equals, value = pair.partition("=")
        if not equals or not name.strip():
            raise usage(f'--meta is "{pair}": write name=value', "mycelium memory set KEY VALUE -m status=open")
        found[name.strip()] = value or None
    return found


def tags_of(typed: str | None) -> list[str] | None:
    """The tags of `--tags`, parted by commas."""
    return None if typed is None else [tag.strip() for tag in typed.split(",") if tag.strip()]


@command(
    "set",
    example='mycelium memory set decisions/storage "Rooms are folders" --tags storage -m owner=@julia\n'
    "mycelium memory set context/api-shape --file api.md\nmycelium memory set status/deploy -m status=resolved",
    writes=True,
)
@room_option
@handle_option
@click.option("--file", "-f", metavar="FILE", help="Read the value from a file; - for stdin.")
@click.option("--tags", "-t", metavar="A,B", help="Tags, all of them; an empty text takes them away.")
@click.option("--meta", "-m", metavar="NAME=VALUE", multiple=True, help="A field of your own; NAME= removes it.")
@click.option("--embed/--no-embed", default=None, help="Take it into the search by meaning, or leave it out.")
@click.option("--expandable/--no-expandable", default=None, help="Let other memories embed its text, or no more.")
@click.option("--expect", metavar="N", type=Whole(0), help="Only if it is at this version; 0: not there yet.")
@click.argument("memory", metavar="KEY")
@click.argument("value", nargs=-1, metavar="[VALUE|-]")
def set_(
    here: Here,
    *,
    room: str | None,
    handle: str | None,
    file: str | None,
    tags: str | None,
    meta: tuple[str, ...],
    embed: bool | None,
    expandable: bool | None,
    expect: int | None,
    memory: str,
    value: tuple[str, ...],
) -> None:
    """Write a memory, or a new version of it.

    A value that is a JSON object or list is kept as such, anything else as markdown; - reads it from stdin.
    Without a value, only the fields and tags change. What is not given stays.
    """
    place, key = here.room(room), checked(memory)
    here.handle(handle)
    typed = one_text(value, 'mycelium memory set KEY "all of it in quotes"')
    stored = value_of(typed, file)
    switches = {"expandable": expandable, "embed": embed}
    body: dict[str, Any] = {"meta": fields_of(meta) or None, "tags": tags_of(tags), **switches}
    body = {name: given for name, given in body.items() if given is not None}
    if stored is None and not body:
        raise usage("no value was given", 'mycelium memory set KEY "text" (or --file notes.md, --file - for stdin)')
    method = "PATCH" if stored is None else "PUT"
    if stored is not None:
        body["value"] = stored
    if expect is not None:
        body["expect"] = expect
    answer = here.hub(handle).write(method, path_of(place, key), body)
    here.out.answer(answer.data, lambda data, paint: was_set(data, time.time(), paint))
    if typed and typed[0] == "@" and os.path.isfile(typed[1:]):  # as other programs name a file
        here.out.note(f"the text {typed} was stored; what the file holds: --file {shell_word(typed[1:])}")


def was_set(memory: Document, now_s: float, paint: Paint) -> Iterator[str]:
    """What a write came to."""
    line = f"set {paint.bold(clean_line(memory['key']))} · version {memory['version']}"
    before = memory.get("replaced")
    if before:
        line += f" · replaced version {before['version']} by {at(before['updated_by'])}, "
        line += age(before["updated_at"], now_s)
    yield line


@command(
    "rm", example="mycelium memory rm failed/single-writer\nmycelium memory rm status/deploy --expect 4", writes=True
)
@room_option
@handle_option
@click.option("--expect", metavar="N", type=Whole(0), help="Only if it is at this version.")
@click.argument("memory", metavar="KEY")
def remove(here: Here, *, room: str | None, handle: str | None, expect: int | None, memory: str) -> None:
    """Remove a memory; its versions can still be read.

    Writing the key again goes on with them.
    """
    place, key = here.room(room), checked(memory)
    here.handle(handle)
    query = f"?expect={expect}" if expect is not None else ""
    here.hub(handle).write("DELETE", path_of(place, key) + query)
    here.out.answer({"removed": key, "room": place}, lambda data, _paint: [f"removed {clean_line(data['removed'])}"])
