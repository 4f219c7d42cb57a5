"""Why tasks are not ready, found out slowly and in another way: every path between all tasks of a room is followed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from mycelium_kernel import clock

PREFIXES = ("work/", "decisions/", "status/", "failed/")
OVER = ("resolved", "dismissed")


@dataclass
class Oracle:
    """The documents of a room's tasks as they are now, the threads they have, and who holds them until when."""

    documents: dict[str, dict[str, Any]] = field(default_factory=dict)
    threads: dict[str, str] = field(default_factory=dict)
    held: dict[str, tuple[str, int]] = field(default_factory=dict)

    def names(self) -> dict[str, str]:
        """The task of every name: a thread, the end of one, a key, a key without its prefix; the first counts most."""
        found: dict[str, str] = {}
        for prefix in reversed(PREFIXES):
            found |= {key.removeprefix(prefix): key for key in self.documents if key.startswith(prefix)}
        found |= {key: key for key in self.documents}
        return found | {name: key for key in self.documents for name in _ids(self.threads[key])}

    def means(self, name: str, known: dict[str, str] | None = None) -> str | None:
        plain = name.strip().removeprefix("[[").removesuffix("]]").lower()
        return (self.names() if known is None else known).get(plain)

    def is_open(self, key: str) -> bool:
        return self.documents[key].get("status") not in OVER

    def needs(self, key: str, known: dict[str, str]) -> list[str]:
        """The open tasks that its document depends on, in its order."""
        said = self.documents[key].get("depends-on", [])
        found = [self.means(name, known) for name in (said.split(",") if isinstance(said, str) else said)]
        return list(dict.fromkeys(one for one in found if one and self.is_open(one)))

    def onward(self) -> dict[str, set[str]]:
        """Of every open task: what has to be done before it, or is a part of it."""
        known = self.names()
        found = {key: set(self.needs(key, known)) for key in self.documents if self.is_open(key)}
        for part, fields in self.documents.items():
            parent = self.means(fields["part-of"], known) if fields.get("part-of") else None
            if parent in found and part in found:
                found[parent].add(part)
        return found

    def reached(self) -> dict[str, set[str]]:
        """Of every open task: all to which a way leads from it, however long."""
        onward = self.onward()
        return {key: _reached(onward, key) for key in onward}

    def waits_for(self, reached: dict[str, set[str]]) -> dict[str, list[str]]:
        """Of every open task: what it needs, but for those from which a way leads back to it."""
        known = self.names()
        return {key: [one for one in self.needs(key, known) if key not in reached[one]] for key in reached}

    def lines(self, now: int) -> dict[str, str]:
        """Of every task: why it is not ready, in the words of a row; empty when it is."""
        waits_for = self.waits_for(self.reached())
        return {key: self._line(key, waits_for.get(key, []), now) for key in self.documents}

    def _line(self, key: str, waits_for: list[str], now: int) -> str:
        fields = self.documents[key]
        if not self.is_open(key):
            return str(fields["status"])
        if fields.get("blocked_by"):
            return f"waiting on {fields['blocked_by']}"
        if fields.get("status") == "blocked":
            return "blocked"
        if waits_for:
            more = f" and {len(waits_for) - 3} more" if len(waits_for) > 3 else ""
            return f"after {', '.join(waits_for[:3])}{more}"
        holder, ends = self.held.get(key, ("", 0))
        return f"held by @{holder} until {clock.rfc3339(ends)}" if ends > now else ""


def _ids(thread: str) -> tuple[str, str]:
    return thread, thread[-8:]


def _reached(onward: dict[str, set[str]], key: str) -> set[str]:
    seen: set[str] = set()
    waiting: Iterable[str] = onward[key]
    while waiting:
        seen |= set(waiting)
        waiting = {other for one in waiting for other in onward[one]} - seen
    return seen
