"""The program that mounts a disk and obeys: a process of its own, so that a test which dies leaves no mount behind.

    python -m e2e.faults.powerloss.serve FOLDER [--journal]

One line of JSON on stdin, one on stdout for it: `{"freeze": n, "unsynced": false}` answers so many more requests of the
kernel and then none (true: none from the first moment after them at which something is not synced, or from the 500th
request); `{"cut": seed}` lets everybody who waits go with an error, loses what was not synced (null: all of it; a
number: some survives, by that seed), and mounts what is left. At the end of stdin it unmounts and ends.
"""

import dataclasses
import json
import os
import random
import select
import sys
from typing import Any

from e2e.faults.powerloss.answers import Answers
from e2e.faults.powerloss.disk import Disk
from e2e.faults.powerloss.protocol import Mount

STDIN = 0
PATIENCE = 500  # requests


class Server:
    """One folder, mounted again after each cut."""

    def __init__(self, folder: str, disk: Disk) -> None:
        self.folder = folder
        self.disk = disk
        self.mount = self._mount()
        self.left: int | None = None  # requests until the freeze
        self.unsynced = False  # whether the freeze waits for something that is not synced
        self.frozen = False

    def _mount(self) -> Mount:
        return Mount(self.folder, Answers(self.disk).table())

    def serve(self) -> None:
        """Until stdin ends, or somebody unmounts the folder."""
        say({"mounted": self.folder})
        try:
            self.serve_on()
        finally:
            self.mount.abort()

    def serve_on(self) -> None:
        """Answer the kernel and the test, whoever asks."""
        while True:
            sources = [STDIN] if self.frozen else [STDIN, self.mount.device]
            ready, _, _ = select.select(sources, [], [])
            if STDIN in ready:
                line = os.read(STDIN, 4096)
                if not line:
                    return
                self.obey(json.loads(line))
            elif not self.answer_one():
                return

    def answer_one(self) -> bool:
        """Answer one request."""
        if not self.mount.answer_one():
            return False
        if self.left is not None:
            self.left -= 1
            self._freeze_when_due()
        return True

    def _freeze_when_due(self) -> None:
        if self.left is None or self.left > 0:
            return
        if self.disk.is_unsynced() or not self.unsynced or self.left < -PATIENCE:
            self.frozen = True
            say({"frozen": True})

    def obey(self, order: dict[str, Any]) -> None:
        """Do what the test says. A freeze is answered when it has come."""
        if "freeze" in order:
            self.left, self.unsynced = order["freeze"], order["unsynced"]
            self._freeze_when_due()
        elif "cut" in order:
            self.mount.abort()
            seed = order["cut"]
            lost = self.disk.cut(None if seed is None else random.Random(seed))
            self.left, self.frozen = None, False
            self.mount = self._mount()
            say(dataclasses.asdict(lost))


def say(answer: dict[str, Any]) -> None:
    """One line."""
    print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    Server(sys.argv[1], Disk(journal="--journal" in sys.argv[2:])).serve()
