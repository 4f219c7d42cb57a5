"""The folder of one hub: where everything in it lies, who may read it, and which process owns it.

A hub owns its home while it holds the lock on `run/lock`. The lock goes with the process, however that ends; files
that say something about a running hub are believed only while somebody holds it.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from mycelium_hub.errors import Refused

# What `down --volumes` deletes; settings stay.
DATA = ("nats", "tables", "rooms", "index", "temporal", "secrets", "run", "logs")
MOST_SERVERS = 3
DEFAULT = "~/.mycelium"


def locate(given: str | None, environ: Mapping[str, str]) -> Home:
    """The home that a flag or the environment names, else `~/.mycelium`."""
    named = given or environ.get("MYCELIUM_HOME") or environ.get("MYCELIUM_DATA_DIR") or DEFAULT
    return Home(Path(named).expanduser().absolute())


@dataclass(frozen=True)
class Running:
    """What a running hub tells others, in `run/hub.json`."""

    url: str
    pid: int
    version: str
    started_at: str


@dataclass(frozen=True)
class Started:
    """What a hub started with, in `run/started.json`: each setting's value and source, and what the clocks said.

    `marks` tell by key another secret from the one in use, without being it. `times` counts the starts of this
    process; a hub that does not count them (an older one) can't start itself again. `refused` says why settings that
    it was to take could not be started with; it then runs with those before.
    """

    pid: int
    settings: Mapping[str, tuple[object, str]]
    wall_s: float
    boot_s: float
    marks: Mapping[str, str] = field(default_factory=dict)
    times: int = 0
    refused: str = ""


@dataclass(frozen=True)
class Home:
    """Paths below one folder, and its lock."""

    path: Path

    @property
    def run(self) -> Path:
        return self.path / "run"

    @property
    def logs(self) -> Path:
        return self.path / "logs"

    @property
    def tables(self) -> Path:
        return self.path / "tables"

    @property
    def rooms(self) -> Path:
        return self.path / "rooms"

    @property
    def index(self) -> Path:
        """What memory is found by: models and vectors. Can be deleted at any moment, and comes back."""
        return self.path / "index"

    @property
    def store(self) -> Path:
        return self.path / "nats"

    def store_of(self, number: int) -> Path:
        """The store of one of several servers, numbered from 1."""
        return self.store if number == 1 else self.path / f"nats-{number}"

    @property
    def stores(self) -> list[Path]:
        """Every server's store that there is."""
        return [store for store in map(self.store_of, range(1, MOST_SERVERS + 1)) if (store / "jetstream").is_dir()]

    def tables_of(self, replica: int) -> Path:
        """The tables of one of several replicas, numbered from 1; each keeps all of them."""
        return self.tables if replica == 1 else self.tables / str(replica)

    def table_files(self, service: str) -> list[Path]:
        """A service's table files, those of every replica that has run."""
        name = f"{service}.sqlite"
        replicas = sorted(self.tables.glob(f"[0-9]*/{name}"), key=lambda path: int(path.parent.name))
        return [path for path in (self.tables / name, *replicas) if path.exists()]

    @property
    def temporal(self) -> Path:
        return self.path / "temporal"

    @property
    def secrets(self) -> Path:
        return self.path / "secrets"

    @property
    def hub_file(self) -> Path:
        return self.run / "hub.json"

    @property
    def started_file(self) -> Path:
        return self.run / "started.json"

    @property
    def lock_file(self) -> Path:
        return self.run / "lock"

    def prepare(self) -> None:
        """Make the folders, for nobody else's eyes. Refuses a path that can't be such a folder."""
        try:
            for folder in (self.path, *(self.path / name for name in DATA)):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                folder.chmod(0o700)
        except OSError as error:
            raise Refused(f"{error.filename or self.path} can't be the hub's home: {error.strerror}") from None

    @contextlib.contextmanager
    def owned(self, kept: int | None = None) -> Iterator[int]:
        """Hold the lock, or go on holding the one that was kept. Refuses when another hub has it."""
        descriptor = self._try_lock() if kept is None else kept
        if descriptor is None:
            raise Refused(self.occupied(), next="mycelium status")
        try:
            if kept is None:  # else it is signed already
                os.ftruncate(descriptor, 0)
                os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
            yield descriptor
        finally:
            os.close(descriptor)

    def _try_lock(self) -> int | None:
        descriptor = os.open(self.lock_file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        return descriptor

    def is_here(self) -> bool:
        """Whether this process's lock and the server's store still stand where others would look for them.

        Where they don't, somebody has deleted or replaced the home under a running hub: what is acknowledged from then
        on would go into files that nobody can find again.
        """
        try:
            signed = self.lock_file.read_text().strip()
        except OSError:
            return False
        return signed == str(os.getpid()) and self.store.is_dir() and any(self.store.iterdir())

    def owner(self) -> int | None:
        """The process that holds the lock; None when nobody does."""
        if not self.lock_file.exists():
            return None
        descriptor = self._try_lock()
        if descriptor is not None:
            os.close(descriptor)
            return None
        text = self.lock_file.read_text().strip()
        return int(text) if text.isdigit() else 0  # 0: it took the lock a moment ago and has not signed yet

    def running(self) -> Running | None:
        """What the hub that owns this home says of itself; None when there is none, or it is not ready yet."""
        owner = self.owner()
        if owner is None:
            return None
        try:
            found = Running(**json.loads(self.hub_file.read_text()))
        except (OSError, ValueError, TypeError):
            return None
        return found if found.pid == owner else None

    def started(self) -> Started | None:
        """What the hub that owns this home started with; None when there is none, or it is not ready yet."""
        owner = self.owner()
        try:
            found = Started(**json.loads(self.started_file.read_text()))
        except (OSError, ValueError, TypeError):
            return None
        return found if owner and found.pid == owner else None

    def occupied(self) -> str:
        """Which process has this home, in words."""
        running = self.running()
        who = f"pid {running.pid}, {running.url}" if running else f"pid {self.owner()}, not ready yet"
        return f"a hub already runs on {self.path}: {who}"

    def announce(self, running: Running) -> None:
        """Tell where the hub is."""
        write_private(self.hub_file, json.dumps(asdict(running), indent=2) + "\n")

    def record(self, started: Started) -> None:
        """Tell what the hub was started with."""
        write_private(self.started_file, json.dumps(asdict(started), indent=2) + "\n")

    def withdraw(self) -> None:
        """Stop telling where the hub is, also for a hub that could not do it itself."""
        self.hub_file.unlink(missing_ok=True)


def write_private(path: Path, text: str) -> None:
    """Write a file whole or not at all, readable by its owner only."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)
        raise
