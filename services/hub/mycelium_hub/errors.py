"""What the hub's program refuses, as one line for the person who started it."""

from __future__ import annotations

from typing import Any

SLUGS = {1: "cli.refused", 2: "cli.usage", 3: "cli.not_found"}  # as `mycelium` has them, for programs


class Refused(Exception):
    """It will not be done. The text says what is in the way; the next command stands in it, or in `next`."""

    def __init__(self, text: str, status: int = 1, next: str = "") -> None:
        super().__init__(text)
        self.status = status
        self.next = next

    def line(self) -> str:
        """What a person reads; where no command is told, the one that looks at everything."""
        text = str(self)
        if not self.next and "mycelium " in text:
            return f"error: {text}"
        return f"error: {text}{'' if text.endswith('.') else '.'} Next: {self.next or 'mycelium doctor'}"

    def document(self) -> dict[str, Any]:
        """The same for programs, in the shape of every refusal of `mycelium --json`."""
        slug = SLUGS.get(self.status, SLUGS[1])
        return {"slug": slug, "error": str(self), "next": self.next or "mycelium doctor", "exit": self.status}
