"""`board --watch`: the board, drawn anew whenever something on it changes, until Ctrl-C.

Two streams tell of changes: the room's own, of claims and what else becomes of tasks, and that of its documents. Each
is read by a thread; what they hear is only a reason to ask the hub for the rows.
"""

import signal
import sys
from collections.abc import Callable
from queue import Empty, SimpleQueue
from threading import Thread
from typing import NamedTuple

from mycelium_cli.api import Query, api_path
from mycelium_cli.context import Here
from mycelium_cli.errors import UNREACHABLE, Failure
from mycelium_cli.stream import Event, follow
from mycelium_cli.wording import Document

# Of the room, and of the documents that are tasks.
QUERIES: tuple[Query, ...] = ({}, {"memory": ["work/", "decisions/", "status/", "failed/"]})
LONGEST_S = 60.0  # after which ages are drawn anew, and a day that began is seen
TOLD = frozenset({"notice", "presence", "member_joined", "member_left", "memory_written", "memory_removed", "reset"})
_CLEAR = "\x1b[H\x1b[2J"


class Said(NamedTuple):
    """What one of the streams says: an event, why it ended, or that it is open; before that, what it told is lost."""

    stream: int
    word: Event | Failure | None


def watch(here: Here, room: str, ask: Callable[[], Document], show: Callable[[Document], None]) -> None:
    """Show what `ask` answers, and again after each change. Returns when the room is deleted."""
    heard: SimpleQueue[Said] = SimpleQueue()
    for number in range(len(QUERIES)):
        Thread(target=_listen, args=(here, room, number, heard), daemon=True).start()
    silent = set(range(len(QUERIES)))
    while silent:
        said = heard.get()
        is_change(said)  # raises what a stream ended of
        silent -= {said.stream} if said.word is None else set()
    here.out.note(f"watching the board of {room}; Ctrl-C ends it")
    # The terminal has another size: the queue is one that a handler of signals may put into.
    signal.signal(signal.SIGWINCH, lambda *_: heard.put(Said(0, None)))
    last = _draw(here, ask, show, None)
    while (changed := next_change(heard, LONGEST_S)) is not None:
        if changed:
            last = _draw(here, ask, show, last)
    here.out.note(f"the room {room} was deleted")


def _listen(here: Here, room: str, number: int, heard: SimpleQueue[Said]) -> None:
    """Put what a stream says into the queue."""
    path = api_path("rooms", room, "stream")
    told = here.out.note if number == 0 else lambda _text: None  # one of them is enough
    try:
        for event in follow(
            here.hub(), path, QUERIES[number], on_open=lambda _again: heard.put(Said(number, None)), on_lost=told
        ):
            heard.put(Said(number, event))
    except Failure as failure:
        heard.put(Said(number, failure))


def next_change(heard: SimpleQueue[Said], longest_s: float) -> bool | None:
    """Whether to look again, once all that was heard until now is read; None when there is nothing any more."""
    try:
        found = is_change(heard.get(timeout=longest_s))
    except Empty:
        return True
    while found is not None and not heard.empty():
        further = is_change(heard.get())
        found = None if further is None else found or further
    return found


def is_change(said: Said) -> bool | None:
    """Whether the rows may have changed; None when there are none any more. Raises what ended a stream."""
    if isinstance(said.word, Failure):
        raise said.word
    if said.word is None:
        return True
    return None if said.word.type == "room_deleted" else _matters(said.word)


def _matters(event: Event) -> bool:
    """Whether the rows may have changed: people's messages change none."""
    return event.type in TOLD or (event.type == "message" and event.document().get("message_type") == "notice")


def _draw(
    here: Here, ask: Callable[[], Document], show: Callable[[Document], None], last: Document | None
) -> Document | None:
    """Show the board when it is another than `last`; on a terminal always, since ages pass."""
    try:
        page = ask()
    except Failure as failure:
        if failure.exit_status != UNREACHABLE:
            raise
        here.out.note(failure.cause)  # it is asked again when the line is back
        return last
    is_screen = sys.stdout.isatty() and not here.json
    if page == last and not is_screen:
        return last
    if is_screen:
        sys.stdout.write(_CLEAR)
    elif last is not None and not here.json:
        sys.stdout.write("\n")
    show(page)
    return page
