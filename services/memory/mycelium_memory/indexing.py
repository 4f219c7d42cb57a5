"""The process that builds the index of a copy of a shard, and ends.

`python -m mycelium_memory.indexing <pid of the parent> <folder>`. The keeper starts it, and puts the copy in use
afterwards. It takes what the machine has left over.
"""

from __future__ import annotations

import contextlib
import os
import sys

import qdrant_edge as edge

from mycelium_memory.standalone import die_with_parent


def main() -> None:
    """Build it and leave it on disk."""
    die_with_parent()
    with contextlib.suppress(OSError):
        os.nice(15)
    shard = edge.EdgeShard.load(sys.argv[2])
    shard.optimize()
    shard.flush()
    shard.close()


if __name__ == "__main__":
    main()
