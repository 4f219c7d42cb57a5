"""`room export` and `room import`: a room as one file, and a room from one."""

import gzip
import os
import sys
from collections.abc import Iterator
from typing import BinaryIO

import click

from mycelium_cli import completing
from mycelium_cli.api import Hub, api_path
from mycelium_cli.command import command
from mycelium_cli.config_writing import replacing
from mycelium_cli.context import Here
from mycelium_cli.errors import Failure, usage
from mycelium_cli.output import Paint, clean_line, shell_word
from mycelium_cli.problems import cut, unreached
from mycelium_cli.transport import Cut, Unreached
from mycelium_cli.wording import Document

SUFFIX = ".mycelium-room.gz"
_GZIP = b"\x1f\x8b"
_BLOCK = 256 * 1024
_QUIET_S = 60.0
_IMPORT_WITHIN_S = 600.0


@command("export", example="mycelium room export design-review -o backup.mycelium-room.gz")
@click.option("--room", metavar="ROOM", help="The room; the argument wins.", shell_complete=completing.rooms)
@click.option("--output", "-o", "target", metavar="FILE", help=f"Where to; - is stdout. Default: ROOM{SUFFIX}.")
@click.argument("name", required=False, metavar="[ROOM]", shell_complete=completing.rooms)
def export(here: Here, *, room: str | None, target: str | None, name: str | None) -> None:
    """Write a room to one file, unread messages and all.

    Another hub, or this one, makes a room of it with `room import`. The file is for your eyes only.
    """
    place = here.room(name or room)
    path = target or f"{place}{SUFFIX}"
    if target is None and os.path.exists(path):
        raise usage(f"{path} is there already", f"mycelium room export {shell_word(place)} -o <file>")
    if path == "-":
        if sys.stdout.isatty():
            raise usage("a bundle is no text for a terminal", f"mycelium room export {shell_word(place)} -o <file>")
        download(here.hub(), api_path("rooms", place, "export"), sys.stdout.buffer)
        return
    with replacing(path) as (file, beside):
        download(here.hub(), api_path("rooms", place, "export"), file)
        file.flush()
        facts = whole(beside)
    size = os.path.getsize(path)
    here.out.answer({"room": place, "file": path, "bytes": size, "facts": facts}, draw_exported)


def download(hub: Hub, path: str, file: BinaryIO) -> None:
    """Copy an answer to a file as it comes; half an answer is a failure."""
    from http.client import HTTPException

    try:
        line, response = hub.open_stream(path, {}, {"Accept": "application/gzip"}, _QUIET_S)
    except (Unreached, Cut) as error:
        raise unreached(hub.url, str(error)) from None
    try:
        while block := response.read(_BLOCK):
            file.write(block)
        if response.length:
            raise cut(hub.url, "half a bundle")
    except (HTTPException, ConnectionError, TimeoutError) as error:
        raise cut(hub.url, type(error).__name__) from None
    finally:
        line.close()


def whole(path: str) -> int:
    """How many facts a bundle holds; a failure when its end is missing."""
    last = b""
    try:
        with _unpacked(path) as file:
            for text in file:
                last = text
    except (EOFError, OSError, ValueError) as error:
        raise Failure(f"the bundle is not whole ({error}); nothing was written", hint="the same again") from None
    facts = ending(last)
    if facts is None:
        raise Failure("the bundle has no end; nothing was written", hint="the same again")
    return facts


def _unpacked(path: str) -> BinaryIO:
    with open(path, "rb") as file:
        packed = file.read(len(_GZIP)) == _GZIP
    return gzip.open(path, "rb") if packed else open(path, "rb")  # type: ignore[return-value]


def ending(last_line: bytes) -> int | None:
    """The number of facts in a bundle's last line; `None` when it is another line."""
    import json

    try:
        count = json.loads(last_line)["end"]
    except (ValueError, KeyError, TypeError):
        return None
    return count if isinstance(count, int) else None


def draw_exported(answer: Document, _paint: Paint) -> Iterator[str]:
    """What was written where, and how to make a room of it."""
    place = clean_line(answer["file"])
    yield f"wrote {clean_line(answer['room'])} to {place} ({answer['facts']} facts, {answer['bytes']} bytes)"
    yield f"a room from it: mycelium room import {shell_word(answer['file'])} --name <name>"


@command("import", example="mycelium room import backup.mycelium-room.gz --name design-review-2", writes=True)
@click.option("--name", metavar="NAME", help="What the new room is called; default: as in the file.")
@click.argument("path", metavar="FILE")
def import_(here: Here, *, name: str | None, path: str) -> None:
    """Make a room from a file of `room export`.

    Nobody sees it before it is complete. A file that was cut or altered makes no room.
    """
    with open(path, "rb") as file:
        kind = "application/gzip" if file.read(len(_GZIP)) == _GZIP else "application/x-ndjson"
        size = file.seek(0, os.SEEK_END)
        if size == 0:
            raise usage(f"{path} is empty", "mycelium room export <room> -o <file>, for one that is whole")
        answer = here.hub().upload(
            api_path("rooms", "import"), {"name": name}, file, size=size, kind=kind, timeout_s=_IMPORT_WITHIN_S
        )
    here.out.answer(answer.data, draw_imported)


def draw_imported(room: Document, _paint: Paint) -> Iterator[str]:
    """The new room and the next step."""
    yield f"imported {'private room' if room.get('private') else 'room'} {clean_line(room['name'])}"
    yield f"make it the one in use: mycelium room use {shell_word(room['name'])}"
