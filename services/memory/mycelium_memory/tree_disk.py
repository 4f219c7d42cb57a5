"""Files of the markdown tree, read and written so that nothing leads out of a room's folder and nothing is lost.

Every folder on the way is opened by its descriptor and never through a link. A file is written beside its place under
a hidden name and put there in one step. What stood there is not thrown away: it changes places with the new text and
is kept under the hidden name for a moment (`Kept`), so that an edit of the very moment can still be seen.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mycelium_memory import tree_open, tree_swap
from mycelium_memory.tree_swap import Clash

MOST_BYTES = 2 * 1024 * 1024  # more than any document's text, fields and value can have
OPEN_ROOT = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC  # the operator may have linked it to another disk
OPEN_FOLDER = OPEN_ROOT | os.O_NOFOLLOW
OPEN_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # a pipe must hold up nobody
OPEN_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
READS = 3

Signature = tuple[int, int, int, int]  # inode, bytes, when changed, when touched


class Illegal(Exception):
    """What lies there can't be a document. The text says why."""


@dataclass(frozen=True)
class Found:
    """A file as it was read."""

    text: str
    digest: bytes
    signature: Signature


@dataclass(frozen=True)
class Place:
    """A file below the folder of all rooms: the room's folder, the folders in it, the name."""

    parts: tuple[str, ...]

    @property
    def folders(self) -> tuple[str, ...]:
        return self.parts[:-1]

    @property
    def name(self) -> str:
        return self.parts[-1]

    def beside(self, name: str) -> Place:
        return Place((*self.folders, name))


@dataclass(frozen=True)
class Kept:
    """What stood where a file was written or removed, under its hidden name, and how it was when last looked at."""

    place: Place
    signature: Signature

    def is_same(self, now: Signature) -> bool:
        """Whether nobody has written into it; that it was renamed touches it, too."""
        return now[:3] == self.signature[:3]


def digest(text: str) -> bytes:
    """What tells one text of a file from another."""
    return hashlib.sha256(text.encode()).digest()


def signature(found: os.stat_result) -> Signature:
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


class Disk:
    """The folder of all rooms' folders."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @contextlib.contextmanager
    def opened(self, folders: tuple[str, ...], *, make: bool = False) -> Iterator[int]:
        """A folder by its descriptor. Raises `Illegal` for what is no folder, `FileNotFoundError` for none."""
        current = os.open(self.root, OPEN_ROOT)
        try:
            for depth, folder in enumerate(folders):
                following = _enter(folder, current, make=make and depth > 0)  # never the room's own
                os.close(current)
                current = following
            yield current
        finally:
            os.close(current)

    def read(self, place: Place) -> Found | None:
        """A file's text; None when there is none. Raises `Illegal` for what can't be a document."""
        try:
            with self.opened(place.folders) as folder:
                return _read(place.name, folder)
        except FileNotFoundError:
            return None

    def is_there(self, place: Place) -> bool:
        """Whether anything has that name."""
        try:
            with self.opened(place.folders) as folder:
                os.stat(place.name, dir_fd=folder, follow_symlinks=False)
        except (FileNotFoundError, Illegal):
            return False
        return True

    def write(self, place: Place, text: str, document_id: str, before: Found | None) -> tuple[Signature, Kept | None]:
        """Put a text where `before` lies, or nothing.

        Raises `Clash` when that is not so, `Held` while a program has it open for writing, `Illegal` for a link.
        """
        with self.opened(place.folders, make=True) as folder:
            if before:
                _check(place.name, folder, before.signature)
            hidden = tree_swap.hidden_name(document_id)
            mode = _mode(place.name, folder) if before else 0o600
            _write(hidden, text, mode, folder)
            try:
                if before:  # writing to disk took its time
                    _check(place.name, folder, before.signature)
                kept = (
                    tree_swap.exchange(hidden, place.name, folder)
                    if before
                    else tree_swap.put(hidden, place.name, folder)
                )
            except BaseException:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(hidden, dir_fd=folder)
                raise
            now = signature(os.stat(place.name, dir_fd=folder, follow_symlinks=False))
            return now, Kept(place.beside(kept), before.signature) if before and kept else None

    def remove(self, place: Place, document_id: str, before: Found) -> Kept:
        """Take away the file that `before` is. Raises `Clash` when another lies there, `Held` while it is written."""
        with self.opened(place.folders) as folder:
            _check(place.name, folder, before.signature)
            hidden = tree_swap.hidden_name(document_id)
            try:
                os.rename(place.name, hidden, src_dir_fd=folder, dst_dir_fd=folder)
            except FileNotFoundError:
                raise Clash from None
            return Kept(place.beside(hidden), before.signature)

    def look(self, kept: Kept) -> Found | None:
        """What was kept, if somebody has written into it since; None when it is as it was, or gone.

        Raises `Held` while somebody may still write into it.
        """
        try:
            with self.opened(kept.place.folders) as folder:
                tree_open.check(kept.place.name, folder)
                now = os.stat(kept.place.name, dir_fd=folder, follow_symlinks=False)
                return None if kept.is_same(signature(now)) else _read(kept.place.name, folder)
        except FileNotFoundError:
            return None

    def read_kept(self, place: Place) -> Found | None:
        """What an earlier process has left under a hidden name. Raises `Held` as `look` does."""
        with contextlib.suppress(FileNotFoundError), self.opened(place.folders) as folder:
            tree_open.check(place.name, folder)
        return self.read(place)

    def discard(self, place: Place, spared: frozenset[str]) -> None:
        """Remove a hidden file, and the folders that are empty then, but for those of the room itself."""
        with contextlib.suppress(FileNotFoundError, Illegal), self.opened(place.folders) as folder:
            os.unlink(place.name, dir_fd=folder)
        folders = place.folders
        with contextlib.suppress(OSError, Illegal):
            while len(folders) > 2 or (len(folders) == 2 and folders[1] not in spared):
                with self.opened(folders[:-1]) as parent:
                    os.rmdir(folders[-1], dir_fd=parent)
                folders = folders[:-1]


def _enter(name: str, parent: int, *, make: bool) -> int:
    if make:
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, mode=0o700, dir_fd=parent)
    try:
        return os.open(name, OPEN_FOLDER, dir_fd=parent)
    except OSError as error:
        if error.errno in {errno.ELOOP, errno.ENOTDIR}:
            raise Illegal(f"{name!r} is a link or a file, and should be a folder; move it away") from error
        if error.errno == errno.EACCES:
            raise Illegal(f"{name!r} can't be opened: {error.strerror}") from error
        raise


def _read(name: str, folder: int) -> Found:
    try:
        opened = os.open(name, OPEN_FILE, dir_fd=folder)
    except OSError as error:
        if error.errno == errno.ENOENT:
            raise
        is_link = error.errno == errno.ELOOP
        raise Illegal("it is a link, and nothing is read through one" if is_link else _cant(error)) from error
    with os.fdopen(opened, "rb", buffering=0):
        for _try in range(READS):
            before = os.fstat(opened)
            if not stat.S_ISREG(before.st_mode):
                raise Illegal("it is no file")
            if before.st_size > MOST_BYTES:
                raise Illegal(f"it has {before.st_size:,} bytes, at most {MOST_BYTES:,} are read")
            data = os.pread(opened, MOST_BYTES + 1, 0)
            if signature(os.fstat(opened)) == signature(before) and len(data) == before.st_size:
                return _found(data, signature(before))
    raise Clash


def _cant(error: OSError) -> str:
    return f"it can't be read: {error.strerror}"


def _found(data: bytes, now: Signature) -> Found:
    try:
        return Found(data.decode(), hashlib.sha256(data).digest(), now)
    except UnicodeDecodeError as error:
        raise Illegal(f"it is not UTF-8 at byte {error.start:,}") from None


def _check(name: str, folder: int, expected: Signature) -> None:
    try:
        now = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        raise Clash from None
    if signature(now) != expected:
        raise Clash
    tree_open.check(name, folder)


def _mode(name: str, folder: int) -> int:
    return stat.S_IMODE(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)


def _write(name: str, text: str, mode: int, folder: int) -> None:
    """On disk before it gets its name: after a loss of power a file is whole, or the one before."""
    unfinished = tree_swap.unfinished_name(name)
    opened = os.open(unfinished, OPEN_NEW, 0o600, dir_fd=folder)
    with os.fdopen(opened, "wb") as file:
        os.fchmod(opened, mode)
        file.write(text.encode())
        file.flush()
        os.fsync(opened)
    os.rename(unfinished, name, src_dir_fd=folder, dst_dir_fd=folder)
