"""What a folder was joined to: the hub, the room, the handle and its token. `context` asks here; `join` writes it.

A file that somebody else could have written is refused, not passed over: who joined a folder must not act as another
without knowing it.
"""

import json
import os
import stat
from collections.abc import Iterator
from typing import NamedTuple

from mycelium_cli import setting_values
from mycelium_cli.errors import Failure, usage

FOLDER, FILE = ".mycelium", "member.json"
_OTHERS_WRITE, _OTHERS_READ = 0o022, 0o044
_LONGEST = 100_000


class Joined(NamedTuple):
    """A joined folder, and the file that says so."""

    hub: str
    room: str
    handle: str
    token: str
    source: str


def joined() -> Joined | None:
    """The join that holds here: of this folder, or of the nearest one above it."""
    return next((found for place in places() if (found := read(place)) is not None), None)


def places() -> Iterator[str]:
    """Where the file would be: in this folder, and then in each above it."""
    try:
        folder = os.getcwd()
    except OSError:  # somebody has removed it
        return
    while True:
        yield os.path.join(folder, FOLDER, FILE)
        above = os.path.dirname(folder)
        if above == folder:
            return
        folder = above


def read(place: str) -> Joined | None:
    """What a file says; `None` when there is none. Refused when it is not this user's alone to write."""
    try:
        file = os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        if not os.access(os.path.dirname(place), os.X_OK):  # a home of somebody else, say: there is nothing of ours
            return None
        reason = "is a link" if os.path.islink(place) else f"can't be read: {error.strerror}"
        raise _foreign(place, reason) from None
    try:
        check_own(os.path.dirname(place), os.stat(os.path.dirname(place)))
        mode = check_own(place, os.fstat(file))
        if not stat.S_ISREG(mode):
            raise _foreign(place, "is no regular file")
        if mode & _OTHERS_READ:  # copied here, or restored from a backup: the token in it is nobody else's
            os.fchmod(file, stat.S_IMODE(mode) & 0o600)
        text = os.read(file, _LONGEST)
    finally:
        os.close(file)
    return _understood(place, text)


def check_own(place: str, found: os.stat_result) -> int:
    """The mode of a file or folder, or a refusal of one that others own or may write to."""
    if found.st_uid != os.geteuid():
        raise _foreign(place, f"belongs to another user (uid {found.st_uid})")
    if found.st_mode & _OTHERS_WRITE:
        raise _foreign(place, "can be written by others")
    return found.st_mode


def _foreign(place: str, reason: str) -> Failure:
    hint = f"look who put it there; rm -r {os.path.dirname(place)}" if place.endswith(FILE) else f"chmod 700 {place}"
    return usage(f"{place} {reason}, so nobody here acts by it", hint, "cli.join_unsafe")


def _understood(place: str, text: bytes) -> Joined:
    try:
        said = json.loads(text)
        found = Joined(said["hub"], said["room"], said["handle"], said["token"], place)
    except (ValueError, TypeError, KeyError, RecursionError):
        found = None
    if found is None or not all(isinstance(part, str) for part in found) or not (found.room and found.handle):
        raise usage(f"{place} is not what `mycelium join` wrote", "mycelium leave, and join again")
    return found._replace(hub=setting_values.checked_url(found.hub, place))


def written(joined: Joined) -> str:
    """The text of the file."""
    return json.dumps({name: value for name, value in joined._asdict().items() if name != "source"}, indent=2) + "\n"
