"""Fetches the files of `BAAI/bge-small-en-v1.5` into the folder of models, where the setting says that it may.

`python -m mycelium_memory.fetching <pid of the parent> <folder>`, a process of its own that ends with the files there
or with a line that says why not. Without the setting nothing here runs, and nothing is ever asked of a network.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from mycelium_memory.models import BGE
from mycelium_memory.standalone import die_with_parent

FETCH_S = 900.0


async def fetch(folder: Path, within_s: float = FETCH_S) -> str:
    """Why the files are not there afterwards; empty when they are."""
    command = (sys.executable, "-P", "-m", "mycelium_memory.fetching", str(os.getpid()), str(folder))
    process = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE)
    try:
        async with asyncio.timeout(within_s):
            _out, said = await process.communicate()
    except TimeoutError:
        return f"{BGE} could not be fetched within {within_s:g} s"
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode == 0:
        return ""
    lines = said.decode(errors="replace").strip().splitlines() or [f"ended with {process.returncode}"]
    return f"{BGE} could not be fetched: {lines[-1][:300]}"


def main() -> None:
    """Fetch them, whole or not at all."""
    die_with_parent()
    from fastembed import TextEmbedding

    TextEmbedding(BGE, cache_dir=sys.argv[2], lazy_load=True)


if __name__ == "__main__":
    main()
