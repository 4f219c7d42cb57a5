"""Looks at the rooms' folders: which files in them are left alone, as the memory service has noted it."""

from __future__ import annotations

from collections.abc import Iterator

from mycelium_hub.finding import NOTE, OK, Finding
from mycelium_hub.home import Home

SHOWN = 5


def check(home: Home) -> Iterator[Finding]:
    """Files that are no documents as they stand, and edits that met a write."""
    from mycelium_memory.tree_base import every_problem

    found = every_problem(home.rooms)
    if not found:
        yield Finding("tree", OK, "every file in the rooms' folders that should be a document is one")
    for problem in found[:SHOWN]:
        next_command = f"mycelium memory ls --problems --room {problem.room_id}"
        yield Finding("tree", NOTE, f"{home.rooms / problem.room / problem.path}: {problem.reason}", next_command)
    if len(found) > SHOWN:
        yield Finding("tree", NOTE, f"{len(found) - SHOWN} more files are left alone", "mycelium memory ls --problems")
