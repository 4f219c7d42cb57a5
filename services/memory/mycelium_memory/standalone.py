"""The inside of a child process of the memory service: it answers frames on its standard input until that ends.

The embedder and the keeper of vectors run on it. It dies with its parent, also when that is killed, and whatever a
library prints goes to the standard error, never between the frames.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import BinaryIO

from mycelium_memory.frames import Frame, read

_PR_SET_PDEATHSIG = 1


class Channel:
    """The two ends that a child has of its parent; `send` may be called by any thread."""

    def __init__(self, source: BinaryIO, target: BinaryIO) -> None:
        self._source = source
        self._target = target
        self._lock = threading.Lock()

    def send(self, frame: Frame) -> None:
        """Send a frame. A parent that is gone is found by `frames`, which ends."""
        data = frame.encode()
        with self._lock:
            try:
                self._target.write(data)
                self._target.flush()
            except BrokenPipeError:
                return

    def receive(self) -> Frame | None:
        """The next frame of the parent; None when there will be no more."""
        return read(self._source)

    def answer(self, asked: Frame, run: Callable[[Frame], Frame]) -> None:
        """Answer one request with what `run` makes of it, or with its error as one line."""
        number = asked.body["id"]
        try:
            answer = run(asked)
            self.send(Frame({**answer.body, "id": number}, answer.blob))
        except Exception as error:
            self.send(Frame({"id": number, "error": f"{type(error).__name__}: {error}"}))


def open_channel() -> Channel:
    """The frames' own ends; from here on, what is printed goes to the standard error."""
    die_with_parent()
    source, target = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends this one
    return Channel(source, target)


def die_with_parent() -> None:
    """A library may hold the interpreter for minutes, and then the end of the standard input is not seen."""
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if len(sys.argv) > 1 and os.getppid() != int(sys.argv[1]):  # it died before the line above
            os._exit(1)
