"""`room clone`: a room as local files, at one point in time."""

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import IO

import click

from mycelium_cli import completing, setting_values
from mycelium_cli.api import Caller, Hub, api_path
from mycelium_cli.command import command
from mycelium_cli.context import Here
from mycelium_cli.errors import UNREACHABLE, Failure, usage
from mycelium_cli.memory.keys import path_of
from mycelium_cli.memory.read import file_of
from mycelium_cli.output import PLAIN, Paint, clean, clean_line
from mycelium_cli.wording import Document, message_heading

_PAGE = 500


@command("clone", example="mycelium room clone design-review --from http://hub-ip:8000\nmycelium room clone ops ~/ops")
@click.option("--from", "source", metavar="URL", help="The hub that has the room; default: the one in use.")
@click.argument("name", metavar="ROOM", shell_complete=completing.rooms)
@click.argument("target", required=False, metavar="[DIR]")
def clone(here: Here, *, source: str | None, name: str, target: str | None) -> None:
    """Copy a room to local files.

    For a backup, or to read without the hub: room.json, members.json, every message in messages.jsonl
    and messages.md, oldest first, and the room's memory in memory/, a file each.
    """
    folder = target or name
    if target is None and ("/" in name or name in {"", ".", ".."}):
        raise usage(f'"{name}" is no name for a folder', f"mycelium room clone {clean_line(name)} <dir>")
    if os.path.isdir(folder) and os.listdir(folder):
        raise usage(f"{folder} is there already, and not empty", "mycelium room clone <room> <another dir>")
    hub = _hub(here, source)
    room = hub.get(api_path("rooms", name))
    with _folder(folder) as beside:
        _write(beside, "room.json", {**room, "cloned_from": hub.url, "cloned_at": _now()})
        _write(beside, "members.json", hub.items(api_path("rooms", name, "members")))
        count = _write_messages(hub, name, beside)
        memories = _write_memory(hub, name, os.path.join(beside, "memory"))
    counts = {"messages": count, "memories": memories}
    answer = {"room": room["name"], "from": hub.url, "folder": os.path.abspath(folder), **counts}
    here.out.answer(answer, draw_cloned)


def draw_cloned(answer: Document, _paint: Paint) -> list[str]:
    """What was copied where."""
    counts = f"{answer['messages']} messages, {answer['memories']} memories"
    return [f"cloned {clean_line(answer['room'])} to {clean_line(answer['folder'])} ({counts})"]


def _hub(here: Here, source: str | None) -> Hub:
    """The hub to copy from. A credential goes to the hub it was set for, and to no other."""
    own = here.hub()
    url = setting_values.checked_url(source, "--from") if source else own.url
    if url == own.url:
        return own
    return Hub(url, Caller(own.caller.handle, own.caller.session, ""), verbose=here.verbose)


@contextmanager
def _folder(path: str) -> Iterator[str]:
    """A folder beside `path` that takes its place when the block succeeds, so that half a copy is never seen."""
    beside = f"{path.rstrip('/')}.{os.getpid()}.new"
    os.makedirs(beside, mode=0o700)
    try:
        yield beside
        os.rename(beside, path)
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _write_messages(hub: Hub, name: str, folder: str) -> int:
    """Both forms of the messages. Pages come newest first: they are laid down as they come and read backwards."""
    spool = os.path.join(folder, ".pages")
    with open(spool, "w+b") as pages:
        places = list(_spooled(hub, name, pages))
        with open(os.path.join(folder, "messages.jsonl"), "wb") as file:
            for start, size in reversed(places):
                pages.seek(start)
                file.write(pages.read(size))
    os.unlink(spool)
    with (
        open(os.path.join(folder, "messages.jsonl"), encoding="utf-8") as lines,
        open(os.path.join(folder, "messages.md"), "w", encoding="utf-8") as file,
    ):
        file.write(f"# {clean_line(name)}\n")
        return sum(1 for line in lines if file.write(as_markdown(json.loads(line))))


def _spooled(hub: Hub, name: str, file: IO[bytes]) -> Iterator[tuple[int, int]]:
    before = None
    while True:
        page = hub.get(api_path("rooms", name, "messages"), {"all": "true", "limit": _PAGE, "before": before})
        lines = [json.dumps(message, ensure_ascii=False) + "\n" for message in reversed(page["items"])]
        text = "".join(lines).encode("utf-8", "surrogatepass")
        if text:
            yield file.tell(), len(text)
            file.write(text)
        last, before = before, page.get("older_before")
        if not before or before == last or not page["items"]:
            return


def _write_memory(hub: Hub, name: str, folder: str) -> int:
    """The file of each memory. What the hub calls a key must be a path below the folder, whoever the hub is."""
    keys = [str(row["key"]) for row in hub.items(api_path("rooms", name, "memory"), {"brief": "true"})]
    for key in keys:
        parts = key.split("/")
        if "\\" in key or "\0" in key or any(part in {"", ".", ".."} for part in parts):
            cause = f'the hub has a memory "{clean_line(key)}", which is no file name'
            raise Failure(cause, exit_status=UNREACHABLE, hint="mycelium whoami --sources, to see which hub it is")
        path = os.path.join(folder, *parts) + ".md"
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        with open(path, "w", encoding="utf-8", newline="") as file:
            file.write(file_of(hub, path_of(name, key), {"view": "raw"}))
    return len(keys)


def as_markdown(message: Document) -> str:
    """A message for reading: a heading with who, id and time, then the text as it was written."""
    return f"\n## {message_heading(message, PLAIN)}\n\n{clean(message['content'])}\n"


def _write(folder: str, name: str, data: object) -> None:
    with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
        json.dump(data, file, indent=2, ensure_ascii=False)
        file.write("\n")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
