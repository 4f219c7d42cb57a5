"""Tells whether a program has a file open for writing, where the system can say so: the tree waits for its end.

Linux grants a lease for reading only on a file that nobody writes. It is given back at once; who opens the file within
that moment makes the system send a signal, which is set to one that nobody minds.
"""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import sys

OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Held(Exception):
    """A program has the file open for writing."""


def check(name: str, folder: int) -> None:
    """Raise `Held` for a file that a program may still write into. Nothing to say of one that is gone, or no file."""
    if sys.platform != "linux":
        return
    try:
        opened = os.open(name, OPEN, dir_fd=folder)
    except OSError:
        return
    try:
        fcntl.fcntl(opened, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(opened, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        fcntl.fcntl(opened, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    except OSError as error:  # some disks, and files of others, have no leases
        if error.errno == errno.EAGAIN:
            raise Held from None
    finally:
        os.close(opened)
