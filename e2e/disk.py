"""What lies on the disk of a hub that runs, and so makes and removes files and folders while one looks."""

import os
from collections.abc import Iterator
from pathlib import Path


def files(folder: Path) -> Iterator[Path]:
    """Everything below a folder that is no folder. `os.walk` passes over what goes meanwhile; `rglob` fails on it."""
    for place, _folders, names in os.walk(folder):
        yield from (Path(place, name) for name in names)


def content(file: Path) -> bytes | None:
    """What a file holds; None when it went meanwhile."""
    try:
        return file.read_bytes() if file.is_file() else b""
    except FileNotFoundError:
        return None


def holders(folder: Path, text: str) -> list[str]:
    """The files that hold a text, or that went before that was known: then one has to look again."""
    found = []
    for file in files(folder):
        held = content(file)
        if held is None or text.encode() in held:
            found.append(str(file.relative_to(folder)))
    return found
