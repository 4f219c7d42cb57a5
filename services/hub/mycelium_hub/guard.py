"""Looks at the newest blocks of the log before a NATS server starts on them, and mends what that server would cut off.

A server that was killed reads its newest blocks again when it starts, and drops everything after the first record
whose hash is wrong, up to 8 MB of acknowledged facts, without a word. So a flipped bit is put right here. A record
that nobody can put right is taken out by itself, and the block as it was is kept beside the log. An unfinished record
at the end is none of that: it was not acknowledged, and the server cuts it off.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path

from mycelium_hub import deep_store
from mycelium_hub.deep_block import Broken

LOGGER = logging.getLogger(__name__)


def look(store: Path, *, is_only: bool) -> None:
    """Mend the blocks that a server reads when it starts. `is_only`: no other server has a copy."""
    try:
        _look(store, is_only=is_only)
    except OSError:
        LOGGER.exception("the newest blocks of %s could not be looked at", store)


def _look(store: Path, *, is_only: bool) -> None:
    folder = store / deep_store.FACTS
    index = folder / "msgs" / "index.db"
    since = index.stat().st_mtime_ns if index.exists() else 0
    for path in deep_store.blocks(folder):
        if path.stat().st_mtime_ns > since:
            _look_at(store, folder, path, is_only=is_only)


def _look_at(store: Path, folder: Path, path: Path, *, is_only: bool) -> None:
    content = path.read_bytes()
    records, broken = deep_store.records_of(folder, path, content)
    end = max((record.place + record.length for record in records), default=0)
    mended = content
    for one in reversed(broken):
        stop = one.place + one.length
        if one.mended:
            LOGGER.error("%s: %s: put right", path, one.describe(content))
            mended = mended[: one.place] + one.mended + mended[stop:]
        elif is_only and stop <= end:
            _keep(store, path, content, one)
            mended = mended[: one.place] + mended[stop:]
    if mended != content:
        _write(path, mended)


def _keep(store: Path, path: Path, content: bytes, broken: Broken) -> None:
    kept = store / deep_store.KEPT / f"{path.name}-{path.stat().st_mtime_ns}"
    kept.parent.mkdir(mode=0o700, exist_ok=True)
    _write(kept, content)
    LOGGER.error(
        "%s: %s, after fact %d: taken out, so that the server does not drop what follows; the file as it was is %s",
        path, broken.describe(content), broken.after, kept,
    )  # fmt: skip


def _write(path: Path, content: bytes) -> None:
    """Whole or not at all."""
    beside = path.with_name(f".{path.name}.new")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)
    folder = os.open(path.parent, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
