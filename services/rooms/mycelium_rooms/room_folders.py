"""A room's folder on the machine that keeps one: made with the room, with its seven parts, and removed with it.

Named as the room, whose name is a legal folder name and unlike every other also where case does not count. A hidden
file in it names the room's id, so that a folder which a later room of that name has made is not removed for an
earlier one. Nothing is followed through a link: whoever may write into the folder of rooms can't point it elsewhere.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import os
import shutil
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mycelium.rooms.v1 import events_pb2
from mycelium_kernel import names, subjects
from mycelium_kernel.errors import Unavailable
from mycelium_kernel.service import Reaction, Stored

if TYPE_CHECKING:
    from mycelium_kernel.run import Runtime

LOGGER = logging.getLogger(__name__)
PARTS = ("decisions", "context", "status", "work", "procedures", "log", "failed")
MARK = ".room"
OPEN_ROOT = os.O_RDONLY | os.O_DIRECTORY  # the operator may have linked it to another disk
OPEN_FOLDER = OPEN_ROOT | os.O_NOFOLLOW
TRIES = 100
WRITTEN_MEANWHILE = {errno.ENOTEMPTY, errno.ENOENT}
IN_THE_WAY = {errno.ELOOP, errno.ENOTDIR, errno.EEXIST}


class InTheWay(Exception):
    """Something that is no folder of the room stands where it should be. The text says what."""


@dataclass(frozen=True)
class Folders:
    """The folder of all rooms' folders."""

    root: Path

    def make(self, name: str, room_id: str) -> None:
        """Make a room's folder; what is there already stays. Raises `InTheWay` for a file, a link, another room's."""
        self.root.mkdir(parents=True, exist_ok=True, mode=0o700)
        with _opened(self.root, None) as root:
            _make(name, root)
            with _opened(name, root) as folder:
                mark = _mark(folder)
                if mark not in {"", room_id}:
                    raise InTheWay(f"the folder of {name!r} is that of another room; move it away")
                for part in PARTS:
                    _make(part, folder)
                    with _opened(part, folder):  # a folder, not a link to one
                        pass
                if not mark:
                    _write(MARK, room_id, folder)

    def remove(self, room_id: str, digest: str) -> None:
        """Remove the folder of a room that was deleted, which is known by its mark and its name's digest.

        Raises `Unavailable` when somebody writes into it without end.
        """
        try:
            with _opened(self.root, None) as root:
                for name in sorted(os.listdir(root)):
                    if _digest(name) == digest and self._is_of(name, room_id, root):
                        _remove(name, room_id, root)
        except FileNotFoundError:
            return

    def _is_of(self, name: str, room_id: str, root: int) -> bool:
        try:
            with _opened(name, root) as folder:
                return _mark(folder) == room_id
        except (InTheWay, FileNotFoundError):
            return False


@contextlib.contextmanager
def _opened(name: str | Path, parent: int | None) -> Iterator[int]:
    """A folder by its descriptor, so that what is done in it is done in this one and no other."""
    try:
        opened = os.open(name, OPEN_ROOT if parent is None else OPEN_FOLDER, dir_fd=parent)
    except OSError as error:
        if error.errno in IN_THE_WAY:
            raise InTheWay(f"{str(name)!r} is a file or a link, not a folder; move it away") from error
        raise
    try:
        yield opened
    finally:
        os.close(opened)


def _remove(name: str, room_id: str, root: int) -> None:
    """Remove a folder into which somebody may still write. Its mark goes last, so that it can be tried again."""
    for _ in range(TRIES):
        with _opened(name, root) as folder:
            try:
                for inside in set(os.listdir(folder)) - {MARK}:
                    _remove_inside(inside, folder)
                os.unlink(MARK, dir_fd=folder)
                os.rmdir(name, dir_fd=root)
            except OSError as error:
                if error.errno not in WRITTEN_MEANWHILE:
                    raise
                with contextlib.suppress(FileExistsError):
                    _write(MARK, room_id, folder)
            else:
                return
    raise Unavailable("a program writes into the folder of a room that was deleted")


def _remove_inside(name: str, folder: int) -> None:
    if stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
        shutil.rmtree(name, dir_fd=folder)
    else:
        os.unlink(name, dir_fd=folder)


def _digest(name: str) -> str:
    """What a room of that name has in its subject; empty for a name that no room can have."""
    try:
        return subjects.digest(names.fold_room_name(name))
    except UnicodeEncodeError:  # bytes that are no text
        return ""


def _make(name: str, parent: int) -> None:
    with contextlib.suppress(FileExistsError):
        os.mkdir(name, mode=0o700, dir_fd=parent)


def _mark(folder: int) -> str:
    """The id that a folder's mark holds; empty without one."""
    try:
        opened = os.open(MARK, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=folder)
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise InTheWay(f"{MARK!r} is a link, not a file; move it away") from error
    with os.fdopen(opened, encoding="utf-8", errors="replace") as file:
        return file.read(100).strip()


def _write(name: str, text: str, folder: int) -> None:
    opened = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600, dir_fd=folder)
    with os.fdopen(opened, "w", encoding="utf-8") as file:
        file.write(text + "\n")


def reaction(root: Path) -> Reaction:
    """The reaction that keeps the rooms' folders under `root`."""
    folders = Folders(root)

    async def run(runtime: Runtime, event: events_pb2.RoomCreated | events_pb2.RoomDeleted, stored: Stored) -> None:
        try:
            if isinstance(event, events_pb2.RoomDeleted):
                await asyncio.to_thread(folders.remove, event.room_id, subjects.identifier_of(stored.subject))
            elif await _exists(runtime, event.room_id, stored):
                await asyncio.to_thread(folders.make, event.name, event.room_id)
        except InTheWay as error:
            LOGGER.warning("the folder of room %s can't be made: %s", event.room_id, error)
            runtime.report("folders", str(error), 3600.0)

    kinds = (events_pb2.RoomCreated, events_pb2.RoomDeleted)
    return Reaction("folders", kinds, (subjects.of_room(subjects.NAMES),), run)


async def _exists(runtime: Runtime, room_id: str, stored: Stored) -> bool:
    """Whether a room was not deleted since; this may be a repeat of long ago."""
    if runtime.projector is None or runtime.tables is None:
        return False
    await runtime.projector.wait(stored.sequence)
    return runtime.tables.one("SELECT 1 FROM room WHERE room_id = ?", room_id) is not None
