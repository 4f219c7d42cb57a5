"""A line of `mycelium-hub doctor`: what was looked at, what was seen, what to type next, and how it can be mended."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from mycelium_hub.errors import Refused

OK, NOTE, WRONG, FIXED = "ok", "note", "wrong", "fixed"


@dataclass(frozen=True)
class Finding:
    """What one look has shown."""

    part: str
    state: str
    seen: str
    next: str = ""
    mend: Callable[[], None] | None = None

    def mended(self) -> Finding:
        """The same after `--fix` has tried; what can't be mended says why."""
        if self.state != WRONG or self.mend is None:
            return self
        try:
            self.mend()
        except (OSError, Refused) as error:
            return replace(self, seen=f"{self.seen}; it can't be mended here: {error}")
        return replace(self, state=FIXED, next="")

    def document(self) -> dict[str, Any]:
        """The same for programs."""
        fixable = self.mend is not None and self.state == WRONG
        return {
            "part": self.part,
            "state": self.state,
            "seen": self.seen,
            "next": self.next or None,
            "fixable": fixable,
        }


def lines(findings: Iterable[Finding]) -> list[str]:
    """Findings for people: one line each, the next command below what needs one."""
    shown = list(findings)
    width = max((len(finding.part) for finding in shown), default=0)
    said = []
    for finding in shown:
        said.append(f"{finding.state:<6} {finding.part:<{width}}  {finding.seen}")
        if finding.next and finding.state != OK:
            said.append(f"{'':<6} {'':<{width}}  → {finding.next}")
    wrong = sum(finding.state == WRONG for finding in shown)
    said.append(f"{wrong} wrong" if wrong else "nothing is wrong")
    return said
