"""A member's queue at the hub, as one waiting process uses it: take the next message, say how it went.

Nothing is taken as received before it has been printed or handed over: a process killed in between finds
the message again.
"""

import time
from collections.abc import Callable
from typing import NamedTuple

from mycelium_cli.api import Hub, api_path, new_key, pauses
from mycelium_cli.errors import UNREACHABLE, Failure
from mycelium_cli.problems import Answer, unreached
from mycelium_cli.transport import Unreached
from mycelium_cli.wording import Document

# One request waits this long at most; longer waits are several. Proxies cut connections that say nothing.
LONGEST_REQUEST_S = 300.0
_GRACE_S = 15.0
_EARLY_S = 1.0


class Address(NamedTuple):
    """Whose queue: a room, a handle, and what may wake it. With `lease` it is that task's changing hands."""

    room: str
    handle: str
    task: str | None = None
    seat: str | None = None
    lease: str | None = None

    def body(self) -> Document:
        """The fields that are set."""
        known = {"handle": self.handle, "task": self.task, "seat": self.seat, "lease": self.lease}
        return {name: value for name, value in known.items() if value}


class Mailbox:
    """The queue of one address. A hub that was there once is waited for; one that never was is told at once."""

    def __init__(
        self,
        hub: Hub,
        address: Address,
        *,
        on_lost: Callable[[str], None],
        since: int | None = None,
        after: int = 0,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self.hub = hub
        self.address = address
        self._since = since
        self._after = after
        self._on_lost = on_lost
        self._pause = pause
        self._reached = False

    def next(self, timeout_s: float | None) -> Document | None:
        """The next message for this address; `None` when the time is up, never without one when it isn't set."""
        end_s = None if timeout_s is None else time.monotonic() + timeout_s
        early = 0
        while True:
            begun_s = time.monotonic()
            left_s = LONGEST_REQUEST_S if end_s is None else max(0.0, end_s - time.monotonic())
            wait_s = min(left_s, LONGEST_REQUEST_S)
            if self.address.lease and self._since is None:
                wait_s = 0.0  # first where the wait begins: then a cut line loses nothing
            body = {**self.address.body(), **self._place(), "timeout_s": round(wait_s, 3), "confirm": True}
            answer = self._ask("await", body, wait_s + _GRACE_S, end_s)
            if self.address.lease:
                self._keep_place(answer)
            if answer.status == 200:
                document: Document = answer.data
                return document
            now_s = time.monotonic()
            if end_s is not None and now_s >= end_s - 0.001:
                return None
            early = early + 1 if now_s - begun_s < min(wait_s, _EARLY_S) else 0
            if early > 1:  # a wait lasts no longer than its token, which may be over by now
                self._pause(_EARLY_S)

    @property
    def place(self) -> tuple[int, int]:
        """From where on the next wait for this task looks: the moves' sequence, and the last notice's number."""
        return self._since or 0, self._after

    def _place(self) -> Document:
        known = {"since": self._since, "after": self._after or None}
        return {name: value for name, value in known.items() if value is not None}

    def _keep_place(self, answer: Answer) -> None:
        """From where on the next wait looks: of the same moves, and behind the notice that has come."""
        if answer.status == 200:
            self._after = int(answer.data["message"]["seq"])
        if self._since is None:
            told = answer.data["sequence"] if answer.status == 200 else answer.headers.get("mycelium-sequence", 0)
            self._since = int(told)

    def report(self, ack: str, outcome: str, *, patience_s: float | None = None) -> None:
        """Tell the hub what became of a delivery: received, acknowledged or parked. A lease's notice is none."""
        if self.address.lease:
            return
        body = {**self.address.body(), "ack": ack, "outcome": outcome}
        body.pop("task", None)
        end_s = None if patience_s is None else time.monotonic() + patience_s
        self._ask("ack", body, _GRACE_S, end_s)

    def wait_for_hub(self, lost: str) -> bool:
        """Wait until the hub answers; whether it had been away, which is told once."""
        for number, pause_s in enumerate(pauses()):
            if self.hub.answers():
                return number > 0
            if number == 0:
                self._on_lost(lost)
            self._pause(pause_s)
            self.hub.look_again()
        raise AssertionError("pauses() has no end")

    def _ask(self, verb: str, body: Document, timeout_s: float, end_s: float | None) -> Answer:
        """One POST, repeated under the same key while the hub is away: until the time is up, or for ever."""
        path, key, told = api_path("rooms", self.address.room, verb), new_key(), False
        for pause_s in pauses():
            try:
                answer = self.hub.ask_once(path, body, key, timeout_s)
            except Unreached as error:
                failure = unreached(self.hub.url, str(error))
            except Failure as refused:
                failure = refused
                self._reached = self._reached or failure.arrived
            else:
                self._reached = True
                return answer
            late = end_s is not None and time.monotonic() + pause_s >= end_s
            if late or not self._reached or not passes(failure):
                raise failure from None
            if not told:
                self._on_lost(f"{failure.cause}; trying again")
                told = True
            self._pause(pause_s)
            self.hub.look_again()
        raise AssertionError("pauses() has no end")


def passes(failure: Failure) -> bool:
    """Whether waiting may help: the hub is away, busy or broken. A refusal stays one; repeating it is a flood."""
    return failure.exit_status == UNREACHABLE or failure.http_status == 429 or failure.http_status >= 500
