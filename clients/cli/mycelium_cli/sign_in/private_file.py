"""Files with tokens and secrets, as they are read: this user's alone, whoever copied them here or made them by hand."""

import errno
import os
import stat
from contextlib import suppress

_OF_OTHERS = 0o077


def read(place: str) -> str:
    """The text of a file, which is closed to others first. OSError for what is none, such as a pipe without an end."""
    descriptor = os.open(place, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, "it is no regular file", place)
        if mode & _OF_OTHERS:
            with suppress(OSError):
                os.fchmod(descriptor, 0o600)
        with open(descriptor, encoding="utf-8", closefd=False) as file:
            return file.read()
    finally:
        os.close(descriptor)
