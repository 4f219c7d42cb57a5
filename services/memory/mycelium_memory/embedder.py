"""The process that holds the embedding model; `embedding.Embedder` starts it and asks it.

`python -m mycelium_memory.embedder <pid of the parent> <model> <folder> <threads>`. Questions have a thread of their
own beside that of the batches, and onnxruntime lets go of the interpreter while it computes, so none waits for a batch.
"""

from __future__ import annotations

import queue
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from mycelium_memory import models
from mycelium_memory.frames import Frame
from mycelium_memory.standalone import Channel, open_channel

if TYPE_CHECKING:
    from fastembed import TextEmbedding

SHORT = 200  # characters


def main() -> None:
    """Load the model, say hello, answer until the parent is gone."""
    name, folder, threads = sys.argv[2:5]
    channel = open_channel()
    began = time.monotonic()
    model = _load(name, folder, int(threads))
    channel.send(Frame({"model": name, "load_s": round(time.monotonic() - began, 3)}))
    lanes = {True: _lane(channel, model, "questions"), False: _lane(channel, model, "batches")}
    while (frame := channel.receive()) is not None:
        lanes[frame.body["urgent"]].put(frame)


def _load(name: str, folder: str, threads: int) -> TextEmbedding:
    from fastembed import TextEmbedding

    models.restore(name, Path(folder))
    model = TextEmbedding(name, specific_model_path=folder, threads=threads, local_files_only=True)
    list(model.embed(["ready"]))  # the first one takes longer than all others
    return model


def _lane(channel: Channel, model: TextEmbedding, name: str) -> queue.SimpleQueue[Frame]:
    waiting: queue.SimpleQueue[Frame] = queue.SimpleQueue()

    def work() -> None:
        while True:
            channel.answer(waiting.get(), lambda frame: _embed(model, frame))

    threading.Thread(target=work, name=name, daemon=True).start()
    return waiting


def _embed(model: TextEmbedding, frame: Frame) -> Frame:
    import numpy as np

    texts = frame.body["texts"]
    # Long texts gain no time by company, and cost twice the memory.
    together = 8 if max(map(len, texts)) <= SHORT else 1
    vectors = np.asarray(list(model.embed(texts, batch_size=together)), dtype="<f4")
    return Frame({}, vectors.tobytes())


if __name__ == "__main__":
    main()
