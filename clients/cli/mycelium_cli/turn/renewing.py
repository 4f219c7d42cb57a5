"""While a loop runs, what its handle claimed and reserved on this machine lasts on: each is renewed in time.

A thread of its own does it, so that neither a long wait nor a command at work keeps a claim waiting, nor the other way
round. It goes by the tokens that are kept here, whoever of this machine made the claim. A reservation is
kept like a claim, its pattern in place of the task.
"""

import os
import threading
import time
from collections.abc import Callable
from typing import NamedTuple

from mycelium_cli import transport
from mycelium_cli.api import Hub, api_path, new_key
from mycelium_cli.board import tokens
from mycelium_cli.board.naming import task_path
from mycelium_cli.errors import Failure
from mycelium_cli.problems import unreached
from mycelium_cli.transport import Unreached
from mycelium_cli.turn.mailbox import passes

LOOK_EVERY_S = 0.5  # at the folder of tokens: a claim of a few seconds must be found in time
_AGAIN_S = 1.0  # after a hub that is away
_REFUSED_S = 60.0  # after a refusal that says nothing of the claim
_ANSWER_S = 10.0
_READ_AGAIN_S = 10.0  # a folder's time may not tell of a change in the same tick
_OVER = {"lease.lost", "claim.none", "task.not_found", "reservation.none"}
_RESERVED = "reservations"


class _Next(NamedTuple):
    """When a claim is renewed, and why it seems to be over, if it does."""

    at_s: float
    lost: str = ""


class Renewer:
    """Renews the claims of one handle in one room until it is told to stop. `clock` counts seconds."""

    def __init__(
        self,
        hub: Hub,
        room: str,
        handle: str,
        *,
        say: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._hub = hub
        self._room = room
        self._handle = handle
        self._say = say
        self._clock = clock
        self._first_url = hub.url
        self._next: dict[tuple[str, int], _Next] = {}
        self._kept: list[tokens.Kept] = []
        self._reserved: set[tokens.Kept] = set()
        self._read: tuple[list[int], float] = ([], 0.0)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="renewing", daemon=True)

    def start(self) -> None:
        """Begin; what the thread needs is loaded before it runs."""
        transport.load_http_client(secure=self._hub.url.startswith("https:"))
        self._thread.start()

    def stop(self) -> None:
        """End, without waiting for an answer that is on its way."""
        self._stopped.set()

    def _run(self) -> None:
        while not self._stopped.wait(LOOK_EVERY_S):
            self.look()

    def look(self) -> None:
        """Renew what is due. A claim that is found here for the first time may be old, so it is due at once."""
        now_s = self._clock()
        kept = {(one.place, one.token): one for one in self._tokens(now_s)}
        self._next = {named: due for named, due in self._next.items() if named in kept}
        for named, one in kept.items():
            due = self._next.get(named, _Next(now_s))
            if due.lost:  # still here after a moment: whoever gave the claim back would have forgotten its token
                self._say(f"{due.lost}; it is not renewed any more")
                tokens.forget_if(one)
            elif due.at_s <= now_s:
                self._next[named] = self._renew(one)

    def _tokens(self, now_s: float) -> list[tokens.Kept]:
        """What is kept here now; read again when the folders have changed."""
        urls = {self._first_url, self._hub.url}
        places = sorted(tokens.folder(url, self._room, self._handle) for url in urls)
        reserved = sorted(tokens.folder(url, self._room, self._handle, _RESERVED) for url in urls)
        changed = [_changed_at(place) for place in [*places, *reserved]]
        before, read_s = self._read
        if changed != before or now_s - read_s >= _READ_AGAIN_S:
            self._reserved = {one for place in reserved for one in tokens.kept(place)}
            self._kept = [one for place in places for one in tokens.kept(place)] + sorted(self._reserved)
            self._read = changed, now_s
        return self._kept

    def _renew(self, kept: tokens.Kept) -> _Next:
        try:
            return _Next(self._clock() + self._ask(kept) / 3)
        except Unreached as error:
            failure = unreached(self._hub.url, str(error))
        except Failure as refused:
            failure = refused
        if failure.slug in _OVER:
            return _Next(self._clock(), failure.cause)
        if passes(failure):
            self._hub.look_again()
            return _Next(self._clock() + _AGAIN_S)
        return _Next(self._clock() + _REFUSED_S)

    def _ask(self, kept: tokens.Kept) -> float:
        """Renew it: for how many seconds it lasts now."""
        if kept in self._reserved:
            path = api_path("rooms", self._room, _RESERVED, "renew")
            body = {"reservations": [{"pattern": kept.task, "token": kept.token}]}
            return float(self._hub.ask_once(path, body, new_key(), _ANSWER_S).data["items"][0]["ttl_s"])
        path = task_path(self._room, kept.task, "renew")
        return float(self._hub.ask_once(path, {"token": kept.token}, new_key(), _ANSWER_S).data["ttl_s"])


def _changed_at(place: str) -> int:
    try:
        return os.stat(place).st_mtime_ns
    except OSError:
        return 0
