"""What a folder was joined to: the hub, the room, the handle and its token. `context` asks here."""

from typing import NamedTuple


class Joined(NamedTuple):
    """A joined folder, and the file that says so."""

    hub: str
    room: str
    handle: str
    token: str
    source: str


def joined() -> Joined | None:
    """The join that holds here: of this folder, or of the nearest one above it."""
    return None
