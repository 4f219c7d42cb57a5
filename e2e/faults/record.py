"""What everybody saw under fire: written down by those who post, wait and read, judged afterwards by `count`."""

from collections import defaultdict
from dataclasses import dataclass, field
from typing import NamedTuple


class Posted(NamedTuple):
    """A post that was acknowledged, when it was first sent, and when its answer was there."""

    id: str
    content: str
    began_s: float
    ended_s: float


class Given(NamedTuple):
    """A mention that an agent was given, and in which of its sessions."""

    message: str
    session: str
    attempt: int
    redelivered: bool


def names(content: str, handle: str) -> bool:
    """Whether a text mentions somebody."""
    return content.startswith((f"@{handle} ", "@all "))


class Verdict(AssertionError):
    """A promise that was broken: `kind` says which, the text how, under which seed, and after what was done."""

    def __init__(self, kind: str, text: str, record: "Record") -> None:
        done = "\n  ".join(record.trace[-80:]) or "nothing"
        super().__init__(f"{kind}: {text}\nseed {record.seed}; what was done, last:\n  {done}")
        self.kind = kind


@dataclass
class Record:
    """One run. Posters, agents and readers have names; `won` is who got the name of a room, by id of what they made.

    `trace` is what was done to the hub.
    """

    seed: int
    posted: defaultdict[str, list[Posted]] = field(default_factory=lambda: defaultdict(list))
    given: defaultdict[str, list[Given]] = field(default_factory=lambda: defaultdict(list))
    read: defaultdict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    won: dict[str, list[str]] = field(default_factory=dict)
    tries: int = 0
    connects: int = 0
    trace: list[str] = field(default_factory=list)

    @property
    def count(self) -> int:
        """How many posts were acknowledged."""
        return sum(map(len, self.posted.values()))

    def note(self, what: str) -> None:
        """Something was done to the hub."""
        self.trace.append(f"after {self.count} posts: {what}")

    def mentions(self, handle: str) -> set[str]:
        """The acknowledged posts that mention somebody."""
        return {post.id for posts in self.posted.values() for post in posts if names(post.content, handle)}
