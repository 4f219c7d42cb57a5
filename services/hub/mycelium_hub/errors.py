"""What the hub's program refuses, as one line for the person who started it."""

from __future__ import annotations


class Refused(Exception):
    """It will not be done. The text says what is in the way and, where there is one, the next command."""

    def __init__(self, text: str, status: int = 1) -> None:
        super().__init__(text)
        self.status = status
