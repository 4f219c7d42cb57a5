"""`catchup`: what a room has come to, for who starts to work there. No model is asked."""

import time
from collections.abc import Iterable, Iterator

import click

from mycelium_cli.api import Query, api_path
from mycelium_cli.command import Whole, command, handle_option, room_option
from mycelium_cli.context import Here
from mycelium_cli.output import Paint, age, as_json, at, clean, clean_line, shell_word, short
from mycelium_cli.periods import zone
from mycelium_cli.room.messages import needs_zone
from mycelium_cli.wording import Document, presence, sender

LINES_OF_SYNTHESIS = 60
LINES_OF_MESSAGE = 4
CHARACTERS_OF_LINE = 200
_SYNTHESIS = "context/synthesis"


@command(
    "catchup",
    example="mycelium catchup\nmycelium memory catchup --since 2d\nmycelium catchup --room design-review --json",
)
@room_option
@handle_option
@click.option("--since", metavar="TIME", help="From when on: a timestamp, an age like 2d, today, yesterday.")
@click.option("--limit", type=Whole(1, 100), default=20, show_default=True, help="How many of each.")
def catchup(here: Here, *, room: str | None, handle: str | None, since: str | None, limit: int) -> None:
    """Catch up: what a room has come to, and what waits for you.

    The synthesis, if the room has one, and what was said and written since; without one, in the last seven days.
    Who is here, which events are open. Each part is short, and says how to see more.
    """
    query: Query = {"since": since, "limit": limit, "tz": zone() if needs_zone(since) else None}
    found = here.hub(handle).get(api_path("rooms", here.room(room), "catchup"), query)
    here.out.answer(found, lambda data, paint: draw(data, time.time(), paint))


def draw(found: Document, now_s: float, paint: Paint) -> Iterator[str]:
    """Part by part, with an empty line between; a part with nothing in it is left out."""
    place = shell_word(found["room"])
    yield f"{paint.bold(clean_line(found['room']))} · {_window(found, now_s)}"
    if found["unread"]:
        what = "1 message waits" if found["unread"] == 1 else f"{found['unread']} messages wait"
        yield paint.warn(f"{what} for you: mycelium await --room {place}")
    yield from _here(found["here"], place, now_s, paint)
    if found["synthesis"]:
        yield from _synthesis(found["synthesis"], place, now_s, paint)
    yield from _events(found["events"], place, now_s, paint)
    yield from _documents(found["documents"], place, now_s, paint)
    yield from _messages(found["messages"], place, now_s, paint)
    if not found["documents"]["items"] and not found["messages"]["items"]:
        yield ""
        yield f"nothing was said or written since; further back: mycelium catchup --room {place} --since 30d"


def _window(found: Document, now_s: float) -> str:
    since = clean_line(found["since"])
    why = {
        "asked": f"since {since}",
        "synthesis": f"since the synthesis of {since} ({age(since, now_s)})",
        "last_days": f"no synthesis, so the last seven days (since {since})",
    }
    return why.get(found["since_what"], f"since {since}")


def _here(part: Document, place: str, now_s: float, paint: Paint) -> Iterator[str]:
    people = [f"{at(member['handle'])} ({presence(member, now_s)})" for member in part["items"]]
    if people or part["more"]:
        yield f"here: {', '.join(people)}" + (f" … mycelium room show {place}" if part["more"] else "")
    else:
        yield paint.dim("nobody is here now")


def _synthesis(memory: Document, place: str, now_s: float, paint: Paint) -> Iterator[str]:
    written = f"version {memory['version']} · {at(memory['updated_by'])}, {age(memory['updated_at'], now_s)}"
    yield from _title(f"synthesis · {written}", paint)
    value = memory["value"]
    lines = clean(value if isinstance(value, str) else as_json(value)).strip("\n").split("\n")
    yield from _cut(lines, LINES_OF_SYNTHESIS)
    if memory["cut"] or len(lines) > LINES_OF_SYNTHESIS:
        yield paint.dim(f"  … mycelium memory get {_SYNTHESIS} --room {place}")


def _events(part: Document, place: str, now_s: float, paint: Paint) -> Iterator[str]:
    if part["items"]:
        yield from _title("open events", paint)
    for event in part["items"]:
        kind = clean_line((event["metadata"] or {}).get("kind") or "event")
        state = "" if event["status"] == "open" else f" ({clean_line(event['status'])})"
        who = f"{at(event['sender_handle'])}, {age(event['created_at'], now_s)}"
        yield f"  {short(event['id'])} · {kind}{state} · {who} · {_line(event['content'])}"
    if part["more"]:
        yield paint.dim(f"  … mycelium room messages {place} --status open")


def _documents(part: Document, place: str, now_s: float, paint: Paint) -> Iterator[str]:
    if part["items"]:
        yield from _title("memory", paint)
    for row in part["items"]:
        what = f"version {row['version']}" + (", removed" if row["removed"] else "")
        who = f"{at(row['updated_by'])}, {age(row['updated_at'], now_s)}"
        said = f" · {_line(row['summary'])}" if row["summary"] else ""
        yield f"  {clean_line(row['key'])} · {what} · {who}{said}"
    if part["more"]:
        yield paint.dim(f"  … mycelium catchup --room {place} --limit 100, or mycelium memory ls --room {place}")


def _messages(part: Document, place: str, now_s: float, paint: Paint) -> Iterator[str]:
    """As they were said, the oldest first."""
    if part["items"]:
        yield from _title("messages", paint)
    if part["more"]:
        yield paint.dim(f"  older: mycelium room messages {place} --before {clean_line(part['older_before'])}")
    for message in reversed(part["items"]):
        yield f"  {sender(message)} · {short(message['id'])} · {age(message['created_at'], now_s)}"
        lines = clean(message["content"]).strip("\n").split("\n")
        yield from (f"  {line}" for line in _cut(lines, LINES_OF_MESSAGE))
        if message["cut"] or len(lines) > LINES_OF_MESSAGE or any(len(line) > CHARACTERS_OF_LINE for line in lines):
            yield paint.dim(f"    … mycelium room messages {place} --history {short(message['id'])}")


def _title(text: str, paint: Paint) -> Iterator[str]:
    yield ""
    yield paint.bold(clean_line(text))


def _cut(lines: Iterable[str], most: int) -> list[str]:
    return [f"  {_line(line)}".rstrip() for line in list(lines)[:most]]


def _line(text: str) -> str:
    line = clean_line(text)
    return line if len(line) <= CHARACTERS_OF_LINE else line[:CHARACTERS_OF_LINE] + "…"
