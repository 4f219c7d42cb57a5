"""Gives a file the place of another in one step, and the other a hidden name, so that nothing is overwritten.

Linux can exchange two files; elsewhere the other is kept by a second name first.
"""

from __future__ import annotations

import ctypes
import errno
import os
import secrets
import sys

HIDDEN, KEPT_END, NEW_END = ".mycelium-", ".tmp", ".new"
NO_REPLACE, EXCHANGE = 1, 2  # of renameat2
UNSUPPORTED = {errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EPERM}


class Clash(Exception):
    """What lies there is no longer what was expected: look again."""


def is_kept(name: str) -> bool:
    """Whether a name is one of those under which what was replaced is kept."""
    return name.startswith(HIDDEN) and name.endswith(KEPT_END)


def is_unfinished(name: str) -> bool:
    """Whether a name is one of those under which files are written."""
    return name.startswith(HIDDEN) and name.endswith(NEW_END)


def document_of(name: str) -> str:
    """The id of the document that a hidden name is for."""
    return name.removeprefix(HIDDEN).split("-", 1)[0]


def unfinished_name(kept: str) -> str:
    """The name under which a file is written before it has the other."""
    return kept.removesuffix(KEPT_END) + NEW_END


def hidden_name(document_id: str) -> str:
    """The name under which the new file of a document waits, and then the old one."""
    return f"{HIDDEN}{document_id}-{secrets.token_hex(4)}{KEPT_END}"


def put(hidden: str, name: str, folder: int) -> str:
    """Give a file its name unless something has it."""
    try:
        if not _renamed(hidden, name, folder, NO_REPLACE):
            os.link(hidden, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
            os.unlink(hidden, dir_fd=folder)
    except FileExistsError:
        raise Clash from None
    return ""


def exchange(hidden: str, name: str, folder: int) -> str:
    """Give a file the name of another, and return the name that the other has then."""
    try:
        if _renamed(hidden, name, folder, EXCHANGE):
            return hidden
        kept = hidden_name(document_of(hidden))
        os.link(name, kept, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        raise Clash from None
    os.rename(hidden, name, src_dir_fd=folder, dst_dir_fd=folder)
    return kept


def _renamed(source: str, target: str, folder: int, how: int) -> bool:
    """Rename as only Linux can; False where that is not so."""
    rename = _renameat2()
    if rename is None:
        return False
    if rename(folder, os.fsencode(source), folder, os.fsencode(target), how) == 0:
        return True
    code = ctypes.get_errno()
    if code in UNSUPPORTED:
        return False
    raise OSError(code, os.strerror(code), target)


def _renameat2() -> ctypes._NamedFuncPointer | None:
    if not sys.platform.startswith("linux"):
        return None
    return getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
