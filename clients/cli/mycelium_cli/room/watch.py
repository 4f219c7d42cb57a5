"""`room watch`: a room live, through cut lines and restarts of the hub."""

import sys
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress

import click

from mycelium_cli import completing
from mycelium_cli.api import Hub, api_path
from mycelium_cli.command import Whole, command
from mycelium_cli.context import Here
from mycelium_cli.errors import Failure
from mycelium_cli.output import Paint, at, clean_line, short
from mycelium_cli.periods import zone
from mycelium_cli.room.messages import MOST, needs_zone
from mycelium_cli.stream import Event, follow
from mycelium_cli.wording import Document, message_lines, notice_lines, person, sender, text_lines

_REMEMBERED = 256
_MORE_IS_SAID = {"resolved", "blocked"}  # kinds of notices


@command("watch", example="mycelium room watch design-review --tail 20\nmycelium room watch design-review ops --json")
@click.option("--room", metavar="ROOM", help="The room; arguments win.", shell_complete=completing.rooms)
@click.option("--tail", type=Whole(0), metavar="N", help="Begin with the last N messages.")
@click.option("--since", metavar="TIME", help="Begin with those since: an age like 2h, today, yesterday, a timestamp.")
@click.argument("names", nargs=-1, metavar="[ROOM]...", shell_complete=completing.rooms)
def watch(here: Here, *, room: str | None, tail: int | None, since: str | None, names: tuple[str, ...]) -> None:
    """Follow what is happening, live.

    Messages of the channel in full; a line for a message in a thread, a change of the board or of a
    member. With --json each event is one line. Ctrl-C ends it.
    """
    places = list(names) or [here.room(room)]
    hub = here.hub()
    if len(places) == 1:
        path, query = api_path("rooms", places[0], "stream"), {}
    else:
        path, query = api_path("stream"), {"room": places}

    shown: set[str] = set()
    screen = Screen(several=len(places) > 1)

    def opened(again: bool) -> None:
        here.out.note("back on the line" if again else f"watching {', '.join(places)}; Ctrl-C ends it")
        if not again and (since or tail):
            # From now on the stream has everything, so what lies before it can be looked up without a gap.
            for message in history(hub, places, since, tail):
                shown.add(message["id"])
                _show(here, Event("message", "", ""), message, screen)

    for event in follow(hub, path, query, on_open=opened, on_lost=here.out.note):
        document = event.document()
        if event.type in {"message", "notice"} and (document.get("id") or document.get("message_id")) in shown:
            continue
        _show(here, event, document if here.json else completed(hub, event.type, document), screen)


def history(hub: Hub, places: list[str], since: str | None, tail: int | None) -> list[Document]:
    """What was said in the rooms' channels before now, oldest first."""
    found = [message for place in places for message in _latest(hub, place, since, tail)]
    found.sort(key=lambda message: (str(message["created_at"]), message["seq"]))
    return found if tail is None else found[-tail:]


def _latest(hub: Hub, place: str, since: str | None, tail: int | None) -> list[Document]:
    """Messages of one room, newest first, as many as are wanted."""
    wanted = tail if tail is not None else sys.maxsize
    query = {"since": since, "tz": zone() if needs_zone(since) else None}
    found: list[Document] = []
    before = None
    while len(found) < wanted:
        limit = min(wanted - len(found), MOST)
        page = hub.get(api_path("rooms", place, "messages"), {**query, "limit": limit, "before": before})
        found += page["items"]
        last, before = before, page.get("older_before")
        if not before or before == last or not page["items"]:
            break
    return found


def completed(hub: Hub, kind: str, data: Document) -> Document:
    """With what stands in the message alone: whose it is that was amended, how a task was closed, on what it waits."""
    is_amended = kind == "message_amended" and not data.get("sender_handle")
    is_said_shortly = kind == "notice" and data.get("kind") in _MORE_IS_SAID
    identifier = data.get("id") if is_amended else data.get("message_id")
    if not identifier or not (is_amended or is_said_shortly):
        return data
    with suppress(Failure):  # it may be gone by now
        message = hub.get(api_path("rooms", data["room"], "messages", identifier))
        return {**message, **data} if is_amended else {**data, "note": None, **(message.get("metadata") or {})}
    return data


def _show(here: Here, event: Event, document: Document, screen: "Screen") -> None:
    if here.json:
        here.out.data({"event": event.type, "id": event.id or None, "data": document}, one_line=True)
    else:
        here.out.lines(screen.draw(event.type, document, here.out.paint))


class Screen:
    """What a person watches: each message once, although one in a thread comes with a ping too."""

    def __init__(self, *, several: bool = False) -> None:
        self._several = several
        self._shown: deque[str] = deque(maxlen=_REMEMBERED)

    def draw(self, kind: str, data: Document, paint: Paint) -> Iterator[str]:
        """An event as lines; kinds that this version doesn't know are left to `--json`."""
        where = f"{paint.dim(clean_line(data.get('room', '')))} " if self._several else ""
        if kind == "notice":
            first, *rest = notice_lines(data, paint)
            yield where + first
            yield from rest
        elif kind == "message" and not data.get("thread"):
            first, *rest = message_lines(data, paint)
            yield where + first
            yield from rest
        elif kind == "message_amended" and not data.get("thread"):
            who = [paint.bold(sender(data))] if data.get("sender_handle") else []
            head = [*who, short(data["id"]), paint.dim(clean_line(data["edited_at"]))]
            yield f"{where}{' · '.join(head)} {paint.dim('(edited)')}"
            yield from text_lines(data["content"])
        elif line := self._small_print(kind, data):
            yield where + paint.dim(f"-- {line}")

    def _small_print(self, kind: str, data: Document) -> str:
        if kind == "message" and data.get("message_type") == "change":
            return ""  # of a memory, for those who asked to be woken by it
        if kind in {"message", "ping"}:
            identifier = str(data.get("message_id") or data.get("id"))
            if identifier in self._shown:
                return ""
            self._shown.append(identifier)
            return _ping(data)
        return _SMALL_PRINT[kind](data) if kind in _SMALL_PRINT else ""


def _ping(data: Document) -> str:
    """A message in a thread, from its ping or from itself."""
    who = person(data.get("sender_name"), data["sender_handle"])
    return f"{who} in thread {short(data['thread'])} · {short(data.get('message_id') or data.get('id'))}"


def _presence(data: Document) -> str:
    """What a member does now."""
    note = f": {clean_line(data['note'])}" if data.get("note") else ""
    return f"{at(data['handle'])} is {clean_line(data['presence'])}{note}"


def _event_status(data: Document) -> str:
    """How far an event is, and who said so; nobody when its time was over."""
    by = f", says {at(data['set_by'])}" if data.get("set_by") else ""
    return f"event {short(data['id'])} is {clean_line(data.get('status') or 'open')}{by}"


def _room_changed(data: Document) -> str:
    kind = "private" if data.get("private") else "shared"
    return f"the room is now called {clean_line(data.get('title') or data.get('name'))}, and {kind}"


_SMALL_PRINT: dict[str, Callable[[Document], str]] = {
    "message_amended": lambda data: f"{short(data['id'])} in thread {short(data['thread'])} was edited",
    "event_status": _event_status,
    "member_joined": lambda data: f"{person(data.get('name'), data['handle'])} is in the room",
    "member_left": lambda data: f"{person('', data['handle'])} left the room",
    "presence": _presence,
    "room_changed": _room_changed,
    "room_deleted": lambda data: f"the room {clean_line(data.get('room', ''))} was deleted",
    "reset": lambda data: (
        f"some messages may be missing here ({clean_line(data.get('reason', ''))}): mycelium room messages"
    ),
}
