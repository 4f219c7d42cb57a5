"""Server-sent events: parsing, and following them through cut lines and restarts of the hub."""

import json
import random
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple

from mycelium_cli.api import Hub, Query, pauses
from mycelium_cli.errors import UNREACHABLE, Failure
from mycelium_cli.problems import unreached
from mycelium_cli.transport import Cut, Unreached

# The hub pings every 15 s: three missed ones are a line that is gone without a word.
QUIET_S = 45.0


class Event(NamedTuple):
    """One event; an empty `id` leaves the place of resuming where it was."""

    type: str
    data: str
    id: str

    def document(self) -> Any:
        """The event's JSON."""
        return json.loads(self.data)


def parse(lines: Iterable[bytes]) -> Iterator[Event]:
    """Events from the lines of a stream, by the rules of the HTML standard.

    An id without data yields an event of type `""`: it only moves the place of resuming.
    """
    kind, identifier = "", ""
    data: list[str] = []
    for raw in lines:
        line = raw.decode("utf-8", "replace").rstrip("\r\n")
        if not line:
            if data or identifier:
                yield Event((kind or "message") if data else "", "\n".join(data), identifier)
            kind, data, identifier = "", [], ""
            continue
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "event":
            kind = value
        elif name == "data":
            data.append(value)
        elif name == "id":
            identifier = value


def follow(
    hub: Hub,
    path: str,
    query: Query,
    *,
    on_open: Callable[[bool], None],
    on_lost: Callable[[str], None],
    pause: Callable[[float], None] = time.sleep,
) -> Iterator[Event]:
    """Events for ever. A lost line is taken up again where it broke; a refusal ends it.

    `on_open` is told when the hub has said its first word, since from then on nothing is missed; with true
    when the line had been open before.
    """
    last_id, ever, waits = "", False, pauses()
    while True:
        try:
            line, response = hub.open_stream(path, query, _resume(last_id), QUIET_S)
        except (Unreached, Cut) as error:
            if not ever:
                raise unreached(hub.url, str(error)) from None
        except Failure as failure:
            if not ever or failure.exit_status != UNREACHABLE:
                raise
        else:
            opened, ever = partial(on_open, ever), True
            try:
                for event in parse(_lines(response, opened)):
                    waits = pauses()
                    last_id = event.id or last_id
                    if event.type:
                        yield event
            finally:
                line.close()
            on_lost("the line to the hub was cut")
        pause(next(waits) * (0.5 + random.random()))
        hub.look_again()


def _resume(last_id: str) -> dict[str, str]:
    wanted = {"Accept": "text/event-stream"}
    return wanted | {"Last-Event-ID": last_id} if last_id else wanted


def _lines(response: Any, on_first: Callable[[], None]) -> Iterator[bytes]:
    """Lines until the stream ends, for whatever reason."""
    from http.client import HTTPException

    first = True
    try:
        while line := response.readline():
            if first:
                on_first()
            first = False
            yield line
    except (OSError, HTTPException):
        return
