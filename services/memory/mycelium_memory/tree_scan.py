"""What lies in a room's folder: the files that are documents by their names, and what is left alone, with the reason.

Names that begin with a dot, and files that don't end in `.md`, are nobody's business here: editors' temporary files,
`.git`, pictures. Nothing is read, and no link is followed.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from mycelium_kernel.errors import Refusal
from mycelium_memory import keys
from mycelium_memory.tree_disk import Disk, Illegal, Place, Signature, signature
from mycelium_memory.tree_swap import is_kept, is_unfinished

DEEPEST = keys.PARTS + 2  # folders in each other that are looked into


@dataclass
class Seen:
    """What was found."""

    files: dict[str, Signature] = field(default_factory=dict)  # by path under the room's folder
    problems: dict[str, str] = field(default_factory=dict)
    hidden: list[Place] = field(default_factory=list)  # files of ours that were not put in their place, or kept


def scan(disk: Disk, room: str, path: str, known: Collection[str]) -> Seen:
    """Look at a path under a room's folder and at everything in it; empty is the whole folder.

    Names of `known` paths were found right before.
    """
    seen = Seen()
    parts = tuple(path.split("/")) if path else ()
    if any(part.startswith(".") for part in parts):
        return seen
    try:
        with disk.opened((room, *parts[:-1])) as folder:
            if parts:
                _entry(_Walk(seen, known, room), parts[-1], folder, parts[:-1])
            else:
                _walk(_Walk(seen, known, room), folder, ())
    except FileNotFoundError:
        pass
    except Illegal as illegal:
        seen.problems[path] = str(illegal)
    return seen


@dataclass(frozen=True)
class _Walk:
    seen: Seen
    known: Collection[str]
    room: str


def _walk(walk: _Walk, folder: int, within: tuple[str, ...]) -> None:
    for name in sorted(os.listdir(folder)):
        _entry(walk, name, folder, within)


def _entry(walk: _Walk, name: str, folder: int, within: tuple[str, ...]) -> None:
    path = "/".join((*within, name))
    if name.startswith("."):
        if is_kept(name) or is_unfinished(name):
            walk.seen.hidden.append(Place((walk.room, *within, name)))
        return
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return
    if stat.S_ISDIR(found.st_mode):
        _folder(walk, name, folder, within)
    elif not name.endswith(keys.ENDING):
        if stat.S_ISLNK(found.st_mode) and _leads_to_folder(name, folder):
            walk.seen.problems[_text(path)] = "it is a link to a folder, and nothing is read through one"
    elif reason := _fault(walk, path, found, folder):
        walk.seen.problems[_text(path)] = reason
    else:
        walk.seen.files[path] = signature(found)


def _folder(walk: _Walk, name: str, folder: int, within: tuple[str, ...]) -> None:
    path = "/".join((*within, name))
    if name.endswith(keys.ENDING):
        walk.seen.problems[_text(path)] = "it is a folder with the name of a document"
    elif len(within) < DEEPEST:
        try:
            opened = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
        except OSError as error:
            walk.seen.problems[_text(path)] = f"it can't be opened: {error.strerror}"
            return
        try:
            _walk(walk, opened, (*within, name))
        finally:
            os.close(opened)


def _fault(walk: _Walk, path: str, found: os.stat_result, folder: int) -> str:
    """Why the file of that path is no document; empty when it may be one."""
    if stat.S_ISLNK(found.st_mode):
        return "it is a link, and nothing is read through one"
    if not stat.S_ISREG(found.st_mode):
        return "it is no file"
    if path in walk.known:
        return ""
    try:
        right = str(keys.path(keys.of_path(PurePosixPath(path))))
    except Refusal as refusal:
        return refusal.detail
    if right == path or _is_same(right, found, folder):
        return ""
    return f"its name is not quite the one of its document; rename it to {right!r}"


def _is_same(right: str, found: os.stat_result, folder: int) -> bool:
    """Whether the disk has the file under its right name, too, as one that does not tell the forms of a letter apart.

    Only the name itself may be in another form: folders are as the tree has made them.
    """
    try:
        other = os.stat(right.rpartition("/")[2], dir_fd=folder, follow_symlinks=False)
    except OSError:
        return False
    return (other.st_dev, other.st_ino) == (found.st_dev, found.st_ino)


def _leads_to_folder(name: str, folder: int) -> bool:
    try:
        return stat.S_ISDIR(os.stat(name, dir_fd=folder).st_mode)
    except OSError:
        return False


def _text(path: str) -> str:
    """A path that can be shown and kept, whatever bytes are in it."""
    return os.fsencode(path).decode(errors="backslashreplace")
