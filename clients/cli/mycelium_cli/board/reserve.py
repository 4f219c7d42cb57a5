"""`board reserve`: who works on which paths. Reserve, list, renew, release, and check for a hook of git."""

import sys
import unicodedata
from collections.abc import Callable, Iterator

import click

from mycelium_cli.api import Hub, api_path
from mycelium_cli.board import paths, tokens
from mycelium_cli.board.claims import ttl_s
from mycelium_cli.board.zones import reader_clock
from mycelium_cli.command import Notes, command, handle_option, room_option
from mycelium_cli.context import Here
from mycelium_cli.errors import REFUSED, Failure, usage
from mycelium_cli.output import Paint, at, clean_line, table
from mycelium_cli.wording import Document

_KIND = "reservations"
_LOST = "lease.lost"
_NOTES: Notes = {
    "Patterns": {
        "src/auth": "that, and everything below it",
        "src/*.py": "* and ? stay within a folder; nothing below",
        "src/**": "** is any number of folders",
        "{a,b} [a-z] [!a-z]": "either; one character of these; one of all others",
        "deploy:staging": "any name that all of you use",
    },
    "Paths": "As from the top folder of the repository; absolute ones become so. Case matters. Quote wildcards.",
}
_EXAMPLE = """\
mycelium board reserve 'src/auth/**' --task work/ship-passkey-login --ttl 30
mycelium board reserve
mycelium board reserve --renew
mycelium board reserve --release 'src/auth/**'
git diff --cached --name-only --no-renames -z | mycelium board reserve --check --stdin"""


@command("reserve", example=_EXAMPLE, writes=True, notes=_NOTES)
@room_option
@handle_option
@click.option("--task", metavar="TASK", help="What they are for; they end with that task.")
@click.option("--ttl", metavar="MINUTES", help="For how long: minutes, or 90s, 30m, 2h. Default: 30.")
@click.option("--force", is_flag=True, help="End others' reservations that are in the way.")
@click.option("--renew", is_flag=True, help="Let yours last longer: those named, else all.")
@click.option("--release", is_flag=True, help="Give yours back: those named, else all.")
@click.option("--note", metavar="TEXT", help="What others should know, with --release.")
@click.option("--check", is_flag=True, help="Exit 1, with a line each, when others have reserved any of these paths.")
@click.option("--stdin", is_flag=True, help="With --check, paths from stdin: one a line, or NUL between; so does -.")
@click.argument("patterns", metavar="[PATTERN]...", nargs=-1)
def reserve(
    here: Here,
    *,
    room: str | None,
    handle: str | None,
    task: str | None,
    ttl: str | None,
    force: bool,
    renew: bool,
    release: bool,
    note: str | None,
    check: bool,
    stdin: bool,
    patterns: tuple[str, ...],
) -> None:
    """Reserve paths, or anything else that has a name.

    All patterns or none: refused while another has reserved anything that overlaps. Without PATTERN, show what is
    reserved. A reservation ends unless it is renewed; reserving the same again shows what you have.
    """
    if renew + release + check > 1:
        raise usage("--renew, --release and --check each go alone")
    _refuse(
        {"--task": task, "--force": force}, "patterns to reserve", fits=bool(patterns) and not renew + release + check
    )
    _refuse({"--ttl": ttl}, "patterns to reserve, or --renew", fits=renew or (bool(patterns) and not release + check))
    _refuse({"--note": note}, "--release", fits=release)
    _refuse({"--stdin": stdin}, "--check", fits=check)
    patterns = tuple(map(paths.from_top, patterns))
    if check:
        _check(here, room, handle, patterns, stdin=stdin)
    elif renew:
        _renew(here, room, handle, patterns, ttl_s(ttl))
    elif release:
        _release(here, room, handle, patterns, note)
    elif patterns:
        _reserve(here, room, handle, {"patterns": patterns, "task": task, "ttl_s": ttl_s(ttl), "force": force})
    else:
        found = here.hub(handle).get(_path(here.room(room)))
        here.out.answer(found, lambda data, paint: _draw_list(data, paint, here.out.note))


def _refuse(given: dict[str, object], what: str, *, fits: bool) -> None:
    for flag, value in given.items():
        if value and not fits:
            raise usage(f"{flag} goes with {what}")


def _path(room: str, *verb: str) -> str:
    return api_path("rooms", room, _KIND, *verb)


def _folder(here: Here, room: str, handle: str | None) -> str:
    return tokens.folder(here.hub_url, room, here.handle(handle), _KIND)


def _reserve(here: Here, room: str | None, handle: str | None, body: Document) -> None:
    place = here.room(room)
    folder = _folder(here, place, handle)
    told = here.hub(handle).post(_path(place), {name: value for name, value in body.items() if value})
    for one in told["items"]:
        tokens.keep(folder, one["pattern"], "", one["token"])
    here.out.answer(told, lambda data, paint: _draw_reserved(data, paint, here.out.note))


def _renew(here: Here, room: str | None, handle: str | None, patterns: tuple[str, ...], lasting_s: int | None) -> None:
    place = here.room(room)
    body = {"ttl_s": lasting_s} if lasting_s else {}
    told, _, lost = _proven(here, place, handle, patterns, "renew", body)
    here.out.answer(told, lambda data, paint: _draw_reserved(data, paint, here.out.note))
    if lost:
        raise lost


def _release(here: Here, room: str | None, handle: str | None, patterns: tuple[str, ...], note: str | None) -> None:
    told, kept, lost = _proven(here, here.room(room), handle, patterns, "release", {"note": note} if note else {})
    gone = {one["pattern"] for one in told["items"]}
    for one in kept:
        if one.task in gone:
            tokens.forget(one)

    def draw(data: Document, paint: Paint) -> list[str]:
        return [f"{paint.good('✓')} released {clean_line(one['pattern'])}" for one in data["items"]]

    here.out.answer(told, draw)
    if lost:
        here.out.note(lost.cause)


def _proven(
    here: Here, room: str, handle: str | None, patterns: tuple[str, ...], verb: str, body: Document
) -> tuple[Document, list[tokens.Kept], Failure | None]:
    """Do it under the tokens that are kept here. Those that were lost are told of once: then they are forgotten.

    Where all are meant, it is done with those that are left, and what was lost is answered beside it.
    """
    kept, hub = tokens.kept(_folder(here, room, handle)), here.hub(handle)
    known = {one.task: one.token for one in kept}
    named = [_written(pattern) for pattern in patterns] or _mine(hub, room, here.handle(handle), known)
    proofs = {pattern: {"pattern": pattern, "token": known.get(pattern)} for pattern in named}

    def ask() -> Document:
        told: Document = hub.post(_path(room, verb), {**body, "reservations": list(proofs.values())})
        return told

    try:
        return ask(), kept, None
    except Failure as failure:
        gone = failure.problem.get("lost", []) if failure.slug == _LOST else []
        for one in kept:
            if one.task in gone:
                tokens.forget_if(one)
        for pattern in gone:
            proofs.pop(pattern, None)
        if patterns or not gone or not proofs:
            raise
        return ask(), kept, failure


def _mine(hub: Hub, room: str, handle: str, known: dict[str, int]) -> list[str]:
    """All that was reserved here, and what the handle has reserved elsewhere."""
    items = hub.get(_path(room))["items"] if handle else []
    return [*known, *(one["pattern"] for one in items if one["holder"] == handle)]


def _written(pattern: str) -> str:
    """A pattern as the hub writes it, so that its token is found."""
    parts = unicodedata.normalize("NFC", pattern.strip()).split("/")
    return "/".join(part for part in parts if part not in {"", "."})


def _check(here: Here, room: str | None, handle: str | None, typed: tuple[str, ...], *, stdin: bool) -> None:
    place, hub = here.room(room), here.hub(handle)
    is_piped = stdin or "-" in typed
    if not typed and not is_piped:
        raise usage("no path was given", "mycelium board reserve --check PATH... (or --stdin)")
    named = [paths.readable(path) for path in typed if path != "-"]
    piped = map(paths.from_top, paths.read(sys.stdin.buffer.read()) if is_piped else [])
    found: Document = {"items": [], "more": False}
    for part in paths.parts([*named, *piped]):
        told = hub.post(_path(place, "check"), {"paths": part})
        found = {"items": [*found["items"], *told["items"]], "more": found["more"] or told["more"]}
    here.out.answer(found, lambda data, _paint: _draw_conflicts(data, here.out.note))
    if found["items"]:
        raise click.exceptions.Exit(REFUSED)


def _draw_conflicts(found: Document, note: Callable[[str], None]) -> Iterator[str]:
    until = reader_clock(note)
    for one in found["items"]:
        written = "" if one["pattern"] == one["path"] else f" as {clean_line(one['pattern'])}"
        yield f"{clean_line(one['path'])} is reserved by {at(one['holder'])}{written} until {until(one['expires_at'])}"
    if found["more"]:
        yield "… and more"


def _draw_reserved(told: Document, paint: Paint, note: Callable[[str], None]) -> Iterator[str]:
    until = reader_clock(note)
    for one in told["items"]:
        task = f" · for {clean_line(one['task'])}" if one["task"] else ""
        yield f"{paint.good('✓')} {clean_line(one['pattern'])} — yours until {until(one['expires_at'])}{task}"
    for one in told.get("taken", []):
        yield f"  taken from {at(one['holder'])}: {clean_line(one['pattern'])}"


def _draw_list(found: Document, paint: Paint, note: Callable[[str], None]) -> list[str]:
    until = reader_clock(note)
    if not found["items"]:
        return [f"nothing is reserved in {clean_line(found['room'])}"]
    rows = [(one["pattern"], at(one["holder"]), until(one["expires_at"]), one["task"] or "") for one in found["items"]]
    return table(("PATTERN", "HOLDER", "UNTIL", "TASK"), rows, paint)
