"""A folder on a disk that loses what was not synced: what tests mount, freeze and cut."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

DEVICE = Path("/dev/fuse")
ROOT = Path(__file__).parents[3]
ENDED_S = 10.0


class Layer:
    """The folder, and the program that keeps it."""

    def __init__(self, folder: Path, *, journal: bool = False) -> None:
        self.folder = folder
        command = [sys.executable, "-m", "e2e.faults.powerloss.serve", str(folder), *["--journal"] * journal]
        self.program = subprocess.Popen(  # in a session of its own: a signal that ends the tests must not end it first
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT, start_new_session=True
        )
        self._hear()

    def freeze(self, after: int = 0, *, unsynced: bool = False) -> None:
        """The power goes: after so many more requests nothing is answered. Returns when it has gone.

        `unsynced`: it goes as soon after them as something would be lost by it.
        """
        self._tell({"freeze": after, "unsynced": unsynced})

    def cut(self, seed: int | None = None) -> dict[str, int]:
        """Lose what was not synced, and come back. `seed`: some of it survives. Returns what was lost."""
        return self._tell({"cut": seed})

    def close(self) -> None:
        """Unmount it."""
        assert self.program.stdin is not None
        assert self.program.stdout is not None
        self.program.stdin.close()
        self.program.wait(ENDED_S)
        self.program.stdout.close()

    def _tell(self, order: dict[str, Any]) -> dict[str, Any]:
        assert self.program.stdin is not None
        self.program.stdin.write(json.dumps(order) + "\n")
        self.program.stdin.flush()
        return self._hear()

    def _hear(self) -> dict[str, Any]:
        assert self.program.stdout is not None
        line = self.program.stdout.readline()
        if not line:
            raise OSError(f"the disk of {self.folder} has ended with status {self.program.wait(ENDED_S)}")
        heard: dict[str, Any] = json.loads(line)
        return heard


@contextmanager
def layer(folder: Path, *, journal: bool = False) -> Iterator[Layer]:
    """Such a disk for the time of the block. Where there can be none, the test says that it tried nothing."""
    if os.geteuid() != 0 or not DEVICE.exists():
        pytest.skip(f"NOTHING about a loss of power was tested: it needs root and {DEVICE}")
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    found = Layer(folder, journal=journal)
    try:
        yield found
    finally:
        found.close()
