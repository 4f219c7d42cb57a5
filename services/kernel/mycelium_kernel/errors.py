"""The three kinds of error that cross a boundary, and the form in which a refusal travels.

Commands raise `Refusal`; the bus raises `Unavailable`; everything else is a bug, which the bus logs once and answers
as `internal`. Which HTTP status a slug has is the gateway's business.
"""

from __future__ import annotations

from mycelium.kernel.v1 import errors_pb2


class Refusal(Exception):
    """The request was understood and will not be done: the caller must change something.

    `slug` is stable and public, `detail` one line saying what and where, `next` a command that gets the caller
    further, `extras` facts that a program can use.
    """

    def __init__(self, slug: str, detail: str, next: str = "", **extras: str | list[str]) -> None:
        super().__init__(f"{slug}: {detail}")
        self.slug = slug
        self.detail = detail
        self.next = next
        self.extras = {name: [value] if isinstance(value, str) else value for name, value in extras.items()}

    def encode(self) -> bytes:
        """The refusal as the body of an answer."""
        message = errors_pb2.Refusal(slug=self.slug, detail=self.detail, next=self.next)
        for name, values in self.extras.items():
            message.extras[name].values.extend(values)
        return message.SerializeToString()

    @classmethod
    def decode(cls, data: bytes) -> Refusal:
        """The refusal that a service sent. Raises `google.protobuf.message.DecodeError` on anything else."""
        message = errors_pb2.Refusal.FromString(data)
        extras: dict[str, str | list[str]] = {name: list(values.values) for name, values in message.extras.items()}
        return cls(message.slug, message.detail, message.next, **extras)


BUSY = Refusal("rate.limited", "too many requests are in work; try again in a moment")


class Unavailable(Exception):
    """A part that the request needs did not answer within its deadline; nothing is known to have been done."""

    slug = "unavailable"


class DeadlinePassed(Unavailable):
    """The caller's deadline was over before the fact was appended, so nothing was done."""

    slug = "deadline.passed"


class Conflict(Refusal):
    """The race for an entity was lost three times in a row."""

    def __init__(self, subject: str) -> None:
        super().__init__("conflict", f"others changed it at the same moment, again and again ({subject}); try again")


class WrongSequence(Exception):
    """An append expected another last sequence on its subject than there is; the kernel's loop decides again."""


class StoreFull(Unavailable):
    """The log's disk or limit is full: nothing was stored."""

    slug = "store.full"


class Internal(Exception):
    """Another process has a bug. `key` finds its log record; nothing else is told."""

    def __init__(self, key: str) -> None:
        super().__init__(f"internal error, key {key}")
        self.key = key


def words(error: BaseException) -> str:
    """What an error says, or its kind when it says nothing, as a `TimeoutError` does. No error is ever false."""
    return str(error) or type(error).__name__
