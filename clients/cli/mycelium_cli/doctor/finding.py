"""A line of `doctor`: what was looked at, what was seen, what to type next, and how it can be mended."""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

COMMANDS = "commands"  # a finding about what commands on this machine are set to, of which a hub knows nothing
OK, NOTE, WRONG, FIXED = "ok", "note", "wrong", "fixed"


class Finding(NamedTuple):
    """What one look has shown."""

    part: str
    state: str
    seen: str
    next: str = ""
    mend: Callable[[], None] | None = None
    of: str = ""

    def mended(self) -> "Finding":
        """The same after `--fix` has tried; what can't be mended says why."""
        if self.state != WRONG or self.mend is None:
            return self
        try:
            self.mend()
        except OSError as error:
            return self._replace(seen=f"{self.seen}; it can't be mended here: {error.strerror}")
        return self._replace(state=FIXED, next="")

    def document(self) -> dict[str, Any]:
        """The same for programs."""
        return {
            "part": self.part,
            "state": self.state,
            "seen": self.seen,
            "next": self.next or None,
            "fixable": self.mend is not None and self.state == WRONG,
        }


def counted(findings: Iterable[Finding], state: str) -> int:
    """How many are in a state."""
    return sum(1 for finding in findings if finding.state == state)
