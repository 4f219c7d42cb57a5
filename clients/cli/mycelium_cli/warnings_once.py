"""Warnings that a command tells once, however many requests it makes, and not while the shell completes a word."""

import os

_told: set[str] = set()


def warn(text: str) -> None:
    """Say it on stderr, unless this command has."""
    from mycelium_cli.output import clean_line, note

    if text not in _told and "_MYCELIUM_COMPLETE" not in os.environ:
        _told.add(text)
        note(f"warning: {clean_line(text)}")


def forget() -> None:
    """Begin as a new command would: for tests, which are many commands in one process."""
    _told.clear()
