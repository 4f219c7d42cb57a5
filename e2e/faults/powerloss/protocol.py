"""The kernel's side of a file system in user space: mount, requests and answers over /dev/fuse.

As `linux/fuse.h` has it, version 7.31. No library: the few structures that a store of files needs are here.
"""

import contextlib
import ctypes
import errno
import os
import struct
from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import NamedTuple

DEVICE = "/dev/fuse"
VERSION = (7, 31)
MAX_WRITE = 1 << 20
PAGE = 4096
BIG_WRITES, MAX_PAGES = 1 << 5, 1 << 22
NOSUID, NODEV, DETACH = 2, 4, 2

HEADER = struct.Struct("<IIQQIIII")  # length, operation, number, node, user, group, process, extensions
ANSWER = struct.Struct("<IiQ")  # length, error, number
INIT_IN = struct.Struct("<IIII")
INIT_OUT = struct.Struct("<IIIIHHIIHH32x")
ATTRIBUTES = struct.Struct("<QQQQQQIIIIIIIIII")
VALID = struct.Struct("<QII")  # how long attributes are valid
ENTRY = struct.Struct("<QQQQII")  # node, generation, how long name and attributes are valid
READ_IN = struct.Struct("<QQIIQII")
WRITE_IN = struct.Struct("<QQIIQII")
WRITTEN = struct.Struct("<I4x")
SETATTR_IN = struct.Struct("<IIQQQQQQIIIIIIII")
CREATE_IN = struct.Struct("<IIII")
DIRENT = struct.Struct("<QQII")
STATFS = struct.Struct("<QQQQQIIII24x")


class Operation(IntEnum):
    """What the kernel asks for."""

    LOOKUP = 1
    FORGET = 2
    GETATTR = 3
    SETATTR = 4
    MKDIR = 9
    UNLINK = 10
    RMDIR = 11
    RENAME = 12
    OPEN = 14
    READ = 15
    WRITE = 16
    STATFS = 17
    RELEASE = 18
    FSYNC = 20
    INIT = 26
    OPENDIR = 27
    READDIR = 28
    RELEASEDIR = 29
    FSYNCDIR = 30
    CREATE = 35
    INTERRUPT = 36
    DESTROY = 38
    BATCH_FORGET = 42
    RENAME2 = 45


SILENT = {Operation.FORGET, Operation.INTERRUPT, Operation.BATCH_FORGET}


class Request(NamedTuple):
    """One question: about which node, and the rest as bytes."""

    node: int
    body: bytes

    def names(self, skip: int = 0) -> list[str]:
        """The names in it, which end with a zero each."""
        return [os.fsdecode(name) for name in self.body[skip:].split(b"\0")[:-1]]


Answer = Callable[[Request], bytes]

_libc = ctypes.CDLL(None, use_errno=True)


def _call(name: str, *args: object) -> None:
    if getattr(_libc, name)(*args):
        code = ctypes.get_errno()
        raise OSError(code, f"{name}: {os.strerror(code)}")


class Mount:
    """One mount. `answer_one` answers one request; what the answers are is the caller's."""

    def __init__(self, folder: str, answers: Mapping[int, Answer]) -> None:
        self.folder = folder
        self.answers = {**answers, Operation.INIT: _begin}
        self.device = os.open(DEVICE, os.O_RDWR)
        options = f"fd={self.device},rootmode=40000,user_id={os.getuid()},group_id={os.getgid()}"
        try:
            _call("mount", b"powerloss", os.fsencode(folder), b"fuse", NOSUID | NODEV, options.encode())
        except OSError:
            os.close(self.device)
            raise

    def answer_one(self) -> bool:
        """Read a request and answer it; False when the file system was unmounted."""
        try:
            read = os.read(self.device, MAX_WRITE + PAGE)
        except OSError as error:
            if error.errno in {errno.EINTR, errno.ENOENT, errno.EAGAIN}:  # whoever asked has given up
                return True
            if error.errno in {errno.ENODEV, errno.ECONNABORTED}:
                return False
            raise
        _, operation, number, node, *_ = HEADER.unpack_from(read)
        error_code, body = self._ask(operation, Request(node, read[HEADER.size :]))
        if operation not in SILENT:
            try:
                os.writev(self.device, [ANSWER.pack(ANSWER.size + len(body), -error_code, number), body])
            except FileNotFoundError:  # whoever asked was killed meanwhile
                return True
        return True

    def _ask(self, operation: int, request: Request) -> tuple[int, bytes]:
        answer = self.answers.get(operation)
        if answer is None:
            return errno.ENOSYS, b""
        try:
            return 0, answer(request)
        except OSError as error:
            return error.errno or errno.EIO, b""

    def abort(self) -> None:
        """Answer nothing any more. Whoever waits for an answer, or asks later, gets an error."""
        os.close(self.device)
        with contextlib.suppress(OSError):  # somebody else has unmounted it
            _call("umount2", os.fsencode(self.folder), DETACH)


def _begin(request: Request) -> bytes:
    _, _, read_ahead, flags = INIT_IN.unpack_from(request.body)
    return INIT_OUT.pack(
        *VERSION, read_ahead, flags & (BIG_WRITES | MAX_PAGES), 16, 12, MAX_WRITE, 1, MAX_WRITE // PAGE, 0
    )
