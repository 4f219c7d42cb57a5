"""Every file of a folder in which programs still write, with what is in it: for tests that look for secrets."""

import contextlib
from collections.abc import Iterator
from pathlib import Path


def contents(*folders: Path) -> Iterator[tuple[Path, bytes]]:
    """What is no link. A file that goes while one looks was somebody's for a moment, as those of SQLite are."""
    for folder in folders:
        for place in folder.rglob("*"):
            with contextlib.suppress(FileNotFoundError):
                if place.is_file() and not place.is_symlink():
                    yield place, place.read_bytes()
