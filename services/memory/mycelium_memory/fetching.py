"""Fetches the files of `BAAI/bge-small-en-v1.5` into the folder of models, where the setting says that it may.

`python -m mycelium_memory.fetching <pid of the parent> <folder>`, a process of its own that ends with the files there
or with a line that says why not. Without the setting nothing here runs, and nothing is ever asked of a network.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
import sys
from pathlib import Path

from mycelium_memory.models import BGE
from mycelium_memory.standalone import die_with_parent

FETCH_S = 900.0
NEEDED = 150_000_000  # bytes on the disk, of which the files take 70 million
SHA256 = 64  # digits of the name under which a large file is kept: its digest, as it was announced


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
    folder = Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(folder).free
    if free < NEEDED:  # the library would try again and again
        raise SystemExit(f"{folder} has {free // 1_000_000} MB left, {NEEDED // 1_000_000} are needed")
    from fastembed import TextEmbedding

    try:
        TextEmbedding(BGE, cache_dir=str(folder), lazy_load=True)
    finally:
        damaged = [file for file in folder.glob("models--*/blobs/*") if _is_damaged(file)]
        for file in damaged:
            file.unlink()
    if damaged:
        raise SystemExit("a file is not what was announced: it was damaged on its way")


def _is_damaged(file: Path) -> bool:
    """The library looks at sizes alone."""
    if len(file.name) != SHA256:
        return False
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest() != file.name


if __name__ == "__main__":
    main()
