"""The folder `.mycelium` of a joined folder: made, written whole or not at all, unseen by git, taken away again.

What could fail is done before the code is spent: the folder is there and locked, and there is room for the file.
"""

import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Self

from mycelium_cli import joining
from mycelium_cli.errors import Failure
from mycelium_cli.joining import FILE, FOLDER, Joined
from mycelium_cli.put_off import stops_put_off

_IGNORED = "*\n"  # this file too: git sees nothing of the folder
_IGNORE = ".gitignore"
_ROOM = 4096  # bytes that are kept free for the file


class Interruption:
    """Notes what would have ended the program; it ends where nothing is half done."""

    def __init__(self) -> None:
        self.came: list[int] = []

    def check(self) -> None:
        """Nothing has been asked of the hub yet: end here."""
        if self.came:
            raise KeyboardInterrupt

    def pause(self, seconds: float) -> None:
        """Wait for another try, unless nobody wants one any more."""
        self.check()
        time.sleep(seconds)
        self.check()

    def note(self, number: int) -> None:
        """The first is put off, the second is not."""
        if self.came:
            raise KeyboardInterrupt
        self.came.append(number)


@contextmanager
def uninterrupted() -> Iterator[Interruption]:
    """Put off Ctrl-C and its like: a code that was spent has its membership written."""
    interruption = Interruption()
    with stops_put_off(interruption.came, interruption.note):
        yield interruption


class Folder:
    """The folder that is joined. Inside `with` it is this process's alone; what was made goes unless it is saved."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.inner = os.path.join(path, FOLDER)
        self.file = os.path.join(self.inner, FILE)
        self._beside = f"{self.file}.new"
        self._ignore = os.path.join(self.inner, _IGNORE)
        self._made: list[str] = []
        self._lock = -1

    def __enter__(self) -> Self:
        """Everything that the file needs. Refused when it can't be had, or another join is at work."""
        try:
            self._make()
        except BaseException as error:
            self.__exit__()
            if isinstance(error, OSError):
                raise self._failed(error) from None
            raise
        return self

    def _make(self) -> None:
        with suppress(FileExistsError):
            os.mkdir(self.inner, 0o700)
            self._made.append(self.inner)
        self._lock = os.open(self.inner, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        joining.check_own(self.inner, os.fstat(self._lock))
        self._take_lock()
        if not os.path.lexists(self._ignore):
            self._made.append(self._ignore)
            self._write(self._ignore, _IGNORED, os.O_EXCL)
        if not self._is_ignored():
            raise Failure(f"git would see {self.file}", hint=f"a line `*` in {self._ignore}")
        self._made.append(self._beside)
        with suppress(FileNotFoundError):
            os.unlink(self._beside)  # of a join that was killed
        self._write(self._beside, " " * _ROOM, os.O_EXCL)

    def _take_lock(self) -> None:
        import fcntl

        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Failure(f"another join is at work in {self.path}", hint="mycelium whoami --sources") from None

    def _is_ignored(self) -> bool:
        with open(self._ignore, encoding="utf-8", errors="replace") as file:
            return "*" in {line.strip() for line in file}

    def save(self, member: Joined) -> None:
        """Write the membership over what was there."""
        try:
            self._write(self._beside, joining.written(member), os.O_TRUNC)
            os.replace(self._beside, self.file)
            os.fsync(self._lock)
        except OSError as error:
            failed = self._failed(error)
            failed.cause += f"; the code of @{member.handle} is spent"
            failed.hint = "mend that, and ask for a new code"
            raise failed from None
        self._made.clear()

    def _failed(self, error: OSError) -> Failure:
        return Failure(
            f"cannot write {error.filename or self.file}: {error.strerror}", hint="join in a folder of yours"
        )

    def _write(self, place: str, text: str, flags: int) -> None:
        flags |= os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        with open(os.open(place, flags, 0o600), "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())

    def __exit__(self, *_: object) -> None:
        """Take away what was made for nothing, then let others in."""
        for place in reversed(self._made):
            self._remove(place)
        if self._lock >= 0:
            os.close(self._lock)

    def clear(self) -> None:
        """Take the membership away, and what was made for it."""
        try:
            os.unlink(self.file)
        except OSError as error:
            raise Failure(f"cannot remove {self.file}: {error.strerror}", hint=f"rm {self.file}") from None
        with suppress(OSError):
            if os.listdir(self.inner) == [_IGNORE] and self._is_ignored():
                self._remove(self._ignore)
                self._remove(self.inner)

    def _remove(self, place: str) -> None:
        with suppress(OSError):
            (os.rmdir if stat.S_ISDIR(os.lstat(place).st_mode) else os.unlink)(place)
