"""A fact on its way into the log, and where it stands once it is there. `log` sends them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import datetime

from mycelium_kernel.errors import DeadlinePassed, Unavailable


@dataclass(frozen=True)
class Appended:
    """Where a fact stands. `duplicate`: the log had a fact of this message id already, and this is its place."""

    sequence: int
    duplicate: bool = False


@dataclass(eq=False)
class Append:
    """A fact on its way: `expect` is the last sequence its subject must have, None for a free fact.

    `own_id` says that its message id was made here, so that a duplicate can only be this very fact. `sent` says that
    it has gone out, so that without an answer nobody knows whether it is stored.
    """

    subject: str
    data: bytes
    headers: dict[str, str]
    expect: int | None
    deadline: datetime
    done: asyncio.Future[Appended]
    own_id: bool = False
    sent: bool = False

    @property
    def size(self) -> int:
        """Bytes of payload and headers, roughly."""
        return len(self.data) + 512

    def succeed(self, sequence: int, *, duplicate: bool = False) -> None:
        """Tell the caller, if it still waits, where the fact stands."""
        if not self.done.done():
            self.done.set_result(Appended(sequence, duplicate and not self.own_id))

    def fail(self, error: Exception) -> None:
        """Tell the caller, if it still waits, why there is no answer."""
        if not self.done.done():
            self.done.set_exception(error)

    def overdue(self) -> Unavailable:
        """What the caller is told once its deadline has passed."""
        if self.sent:
            return Unavailable("the log did not say in time whether it took the fact; ask again under the same key")
        return DeadlinePassed("the log could not be asked before the deadline")
