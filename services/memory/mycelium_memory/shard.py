"""A shard of qdrant-edge on disk, inside the keeper's process: opened, checked, flushed, and indexed aside.

In the folder: `state.json` names the shard in use (`shard-1/`), `lock` is held by who has it open, `tries` counts the
openings after which nothing was answered, `unclean` is there while files hold what was deleted for good, and `cleaning`
while a copy without it is made. The index is built by another process in a copy, since it takes a minute for
100,000 vectors; what changes meanwhile is done to the copy afterwards, and then the copy is put in use.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import qdrant_edge as edge

from mycelium_memory.vectors import Found

TRIES = 3  # openings without an answer, and the files are taken for broken
LOOK_S = 0.5
QUIET_S = 2.0  # without a change, and what was changed is flushed
UNFLUSHED = 2_000  # changes after which a flush waits no longer
UNINDEXED = 5_000  # vectors that a search looks through one by one (1 ms), before they get an index
GROWN = 4  # and they are a fourth of those that have one, or nothing changes for a while: it is built whole each time
WHILE_S = 30.0
CHANGED = 200_000  # changes after which an index is built anew, without what was deleted
LOCK_S = 20.0


class Shard:
    """The shard in a folder; `found` and `why` say what was there."""

    def __init__(self, folder: Path, dimensions: int, unindexed: int = UNINDEXED) -> None:
        self.dimensions = dimensions
        self._most_unindexed = unindexed
        self.ef = 64  # how many candidates a search looks at, at least; 128 finds no more here, and takes twice as long
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._lock = _locked(folder / "lock")
        self.found, self.why = Found.NOTHING, "there was none"
        self.edge = self._open()
        self._tried = True
        self._changed_at = 0.0
        self._unflushed = 0
        self._since_built = 1  # so that an index which is missing is seen at the first look
        self._looked_at = 0.0
        self._builder: subprocess.Popen[bytes] | None = None
        self._later: list[edge.UpdateOperation] = []

    def change(self, operation: edge.UpdateOperation) -> None:
        """Do it, and keep it for the copy that is being indexed, if one is."""
        self.edge.update(operation)
        if self._builder is not None:
            self._later.append(operation)
        self._unflushed += 1
        self._since_built += 1

    def forget(self) -> None:
        """Leave nothing on the disk of what was deleted until now: soon, in files that are written anew."""
        (self._folder / "unclean").touch(mode=0o600)

    def worked(self, *, changed: bool) -> None:
        """After each answer."""
        if self._tried:
            self._tried = False
            (self._folder / "tries").unlink(missing_ok=True)
        if changed:
            self._changed_at = time.monotonic()
            if self._unflushed >= UNFLUSHED:
                self._flush()
        if time.monotonic() - self._looked_at >= LOOK_S:
            self.look()

    def look(self) -> None:
        """At what is to be flushed or built; between requests, and while nothing is asked."""
        self._looked_at = time.monotonic()
        if self._unflushed and time.monotonic() - self._changed_at >= QUIET_S:
            self._flush()
        if self._builder is not None:
            if self._builder.poll() is not None:
                self._take_built()
        elif self._since_built:
            self._build_if_due()

    def state(self) -> tuple[int, int, bool]:
        """How many vectors there are, how many have an index, and whether one is being built or will be soon."""
        info = self.edge.info()
        many = info.points_count - info.indexed_vectors_count >= self._most_unindexed
        is_building = self._builder is not None or (many and self._since_built > 0)
        return info.points_count, info.indexed_vectors_count, is_building

    def close(self) -> None:
        """Everything is on disk afterwards."""
        if self._builder is not None:
            self._builder.kill()
            self._builder.wait()
        self.edge.flush()
        self.edge.close()

    def _flush(self) -> None:
        self.edge.flush()
        self._unflushed = 0
        if self._builder is None:
            self._build_if_due()

    def _build_if_due(self) -> None:
        if not self._is_due(self.edge.info()):
            return
        self.edge.flush()
        copy = self._folder / f"shard-{self._number() + 1}"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(self._folder / f"shard-{self._number()}", copy)
        command = [sys.executable, "-P", "-m", "mycelium_memory.indexing", str(os.getpid()), str(copy)]
        if (self._folder / "unclean").exists():
            os.replace(self._folder / "unclean", self._folder / "cleaning")
            command += [str(self.dimensions), str(self._most_unindexed)]
        self._builder = subprocess.Popen(command, stdin=subprocess.DEVNULL)
        self._later, self._since_built = [], 0

    def _is_due(self, info: edge.ShardInfo) -> bool:
        if (self._folder / "unclean").exists():
            return True
        if not self._since_built:
            return False  # it was just built, and an index is not made for few
        unindexed = info.points_count - info.indexed_vectors_count
        is_time = unindexed * GROWN >= info.indexed_vectors_count or time.monotonic() - self._changed_at >= WHILE_S
        return (unindexed >= self._most_unindexed and is_time) or self._since_built >= CHANGED

    def _take_built(self) -> None:
        assert self._builder is not None
        status, self._builder = self._builder.returncode, None
        later, self._later = self._later, []
        copy = self._folder / f"shard-{self._number() + 1}"
        if status != 0:
            shutil.rmtree(copy, ignore_errors=True)
            print(f"the index of {copy} could not be built: status {status}", flush=True)
            return
        built = edge.EdgeShard.load(str(copy))
        for operation in later:
            built.update(operation)
        built.flush()
        old, self.edge = self.edge, built
        old.close()
        number = self._number()
        self._write_state(number + 1)
        shutil.rmtree(self._folder / f"shard-{number}", ignore_errors=True)
        (self._folder / "cleaning").unlink(missing_ok=True)

    def _open(self) -> edge.EdgeShard:
        tries = self._folder / "tries"
        before = len(tries.read_bytes()) if tries.exists() else 0
        with tries.open("ab") as file:
            file.write(b".")
        state = self._folder / "state.json"
        if (self._folder / "cleaning").exists():  # it ended in the middle
            self.forget()
        if before >= TRIES:
            self.found, self.why = Found.BROKEN, f"it was opened {before} times and never answered"
            tries.write_bytes(b".")
        elif state.exists() or any(self._folder.glob("shard-*")):
            try:
                return self._load()
            except BaseException as error:  # a panic of the library is no Exception
                if isinstance(error, KeyboardInterrupt | SystemExit):
                    raise
                self.found, self.why = Found.BROKEN, f"{type(error).__name__}: {error}".splitlines()[0]
        return self._create()

    def _load(self) -> edge.EdgeShard:
        number = self._number()
        for folder in self._folder.glob("shard-*"):
            if folder.name != f"shard-{number}":
                shutil.rmtree(folder)
        if not (self._folder / f"shard-{number}").is_dir():
            raise FileNotFoundError(f"shard-{number} is missing")
        shard = edge.EdgeShard.load(str(self._folder / f"shard-{number}"), self._config())
        shard.count(edge.CountRequest(exact=True))
        self.found, self.why = Found.KEPT, ""
        return shard

    def _create(self) -> edge.EdgeShard:
        for folder in self._folder.glob("shard-*"):
            shutil.rmtree(folder)
        shard = create(self._folder / "shard-1", self._config())
        self._write_state(1)
        return shard

    def _config(self) -> edge.EdgeConfig:
        return config(self.dimensions, self._most_unindexed)

    def _number(self) -> int:
        number = json.loads((self._folder / "state.json").read_text(encoding="utf-8"))["shard"]
        assert isinstance(number, int)
        return number

    def _write_state(self, number: int) -> None:
        beside = self._folder / ".state.json"
        beside.write_text(json.dumps({"shard": number}), encoding="utf-8")
        beside.replace(self._folder / "state.json")


def config(dimensions: int, unindexed: int) -> edge.EdgeConfig:
    """How vectors of so many dimensions are kept."""
    return edge.EdgeConfig(
        vectors=edge.EdgeVectorParams(size=dimensions, distance=edge.Distance.Cosine),
        optimizers=edge.EdgeOptimizersConfig(indexing_threshold=max(1, unindexed * dimensions * 4 // 1024)),
    )


def create(folder: Path, how: edge.EdgeConfig) -> edge.EdgeShard:
    """An empty shard that can be asked for all that `vectors.payload` says."""
    shard = edge.EdgeShard.create(str(folder), how)
    keyword = edge.KeywordIndexParams
    schemas: dict[str, edge.KeywordIndexParams | edge.PayloadSchemaType] = {
        "room": keyword(is_tenant=True),
        "document": keyword(prefix=True),
        "tags": keyword(),
        "author": keyword(),
        "time": edge.PayloadSchemaType.Integer,
    }
    for field, schema in schemas.items():
        shard.update(edge.UpdateOperation.create_field_index(field, schema))
    shard.flush()
    return shard


def _locked(path: Path) -> int:
    """Held until the process ends. One that was killed a moment ago may still be going."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    deadline = time.monotonic() + LOCK_S
    while True:
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return descriptor
        if time.monotonic() > deadline:
            raise SystemExit(f"another process has {path.parent} open")
        time.sleep(0.05)
