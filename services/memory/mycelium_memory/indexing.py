"""The process that builds the index of a copy of a shard, and ends.

`python -m mycelium_memory.indexing <pid of the parent> <folder> [<dimensions> <unindexed>]`. The keeper starts it, and
puts the copy in use afterwards. It takes what the machine has left over. With dimensions, the copy is written anew
first, since the library leaves on the disk what was deleted.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from pathlib import Path

import qdrant_edge as edge

from mycelium_memory.shard import config, create
from mycelium_memory.standalone import die_with_parent

CLEAN = 3  # the first of the arguments that have the copy written anew
PAGE = 500


def main() -> None:
    """Build it and leave it on disk."""
    die_with_parent()
    with contextlib.suppress(OSError):
        os.nice(15)
    folder = Path(sys.argv[2])
    if len(sys.argv) > CLEAN:
        _write_anew(folder, config(*map(int, sys.argv[CLEAN:])))
    shard = edge.EdgeShard.load(str(folder))
    shard.optimize()
    shard.flush()
    shard.close()


def _write_anew(folder: Path, how: edge.EdgeConfig) -> None:
    """The same points, in files that never held another."""
    beside = folder.with_name("anew")
    shutil.rmtree(beside, ignore_errors=True)
    old, new, after = edge.EdgeShard.load(str(folder)), create(beside, how), None
    while True:
        page, after = old.scroll(edge.ScrollRequest(offset=after, limit=PAGE, with_payload=True, with_vector=True))
        points = [edge.Point(one.id, one.vector or [], one.payload) for one in page]
        if points:
            new.update(edge.UpdateOperation.upsert_points(points))
        if after is None:
            break
    new.flush()
    new.close()
    old.close()
    shutil.rmtree(folder)
    beside.rename(folder)


if __name__ == "__main__":
    main()
