"""The hub's logs: written as JSON lines, one file a service, in `logs/`; shown as plain lines by `mycelium logs`."""

from __future__ import annotations

import json
import logging
import os
import re
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from mycelium_hub.errors import Refused
from mycelium_hub.home import Home
from mycelium_hub.roster import NATS

HUB = "hub"
FOLLOW_S = 0.2
# The service's name in the documentation of the container stack; here it is several.
ALIASES = {"mycelium-backend": (HUB, "gateway", "rooms", "memory", "board")}
_REPLICA = re.compile(r"-\d+$")  # a service's name stands for all its replicas
_NATS_LINE = re.compile(r"\[\d+\] (\d{4})/(\d\d)/(\d\d) (\d\d:\d\d:\d\d)\.(\d{3})\d* \[(\w+)\] (.*)")
_NATS_LEVELS = {"INF": "info", "WRN": "warning", "ERR": "error", "FTL": "error", "DBG": "debug", "TRC": "debug"}
_SHOWN = {"event", "level", "timestamp", "logger", "exception", "service"}


def write(home: Home, services: tuple[str, ...], level: str, *, echo: bool) -> None:
    """Send every record to the file of the service in whose context it arose, or to the hub's.

    `echo` shows warnings on stderr as well, for a hub in the foreground.
    """
    from mycelium_kernel import telemetry

    telemetry.configure_logs(level)
    root = logging.getLogger()
    formatter = root.handlers[0].formatter
    root.handlers.clear()
    for name in (HUB, *services):
        handler = telemetry.log_file(str(home.logs / f"{name}.log"))
        handler.setFormatter(formatter)
        handler.addFilter(_belongs_to(name, services))
        root.addHandler(handler)
    if echo:
        shown = logging.StreamHandler(sys.stderr)
        shown.setLevel(logging.WARNING)
        shown.setFormatter(_Readable(formatter))
        root.addHandler(shown)


def _belongs_to(name: str, services: tuple[str, ...]) -> Callable[[logging.LogRecord], bool]:
    def belongs(_record: logging.LogRecord) -> bool:
        service = current_service()
        return service == name or (name == HUB and service not in services)

    return belongs


def current_service() -> str:
    """The service in whose context this runs, the hub's own when it is none's."""
    from structlog.contextvars import get_contextvars

    return str(get_contextvars().get("service", HUB))


class _Readable(logging.Formatter):
    """One line a record; its traceback is in the file."""

    def __init__(self, inner: logging.Formatter | None) -> None:
        super().__init__()
        self._inner = inner or logging.Formatter()

    def format(self, record: logging.LogRecord) -> str:
        return readable(current_service(), self._inner.format(record)).text.partition("\n")[0]


@dataclass(frozen=True)
class Line:
    """One record: when it was, and how it is shown."""

    at: str
    text: str


def readable(service: str, raw: str) -> Line:
    """A record of a log file as a line for people. What is not a record is shown as it is."""
    raw = raw.rstrip("\n")
    if _REPLICA.sub("", service) == NATS:
        return _readable_nats(service, raw)
    try:
        record = json.loads(raw)
        at, level, event = str(record["timestamp"]), str(record["level"]), str(record["event"])
    except (ValueError, KeyError, TypeError):
        return Line("", raw)
    rest = "".join(f" {name}={value}" for name, value in record.items() if name not in _SHOWN)
    trace = f"\n{record['exception']}" if record.get("exception") else ""
    return Line(at, f"{_moment(at)} {service:<8} {level:<8} {event}{rest}{trace}")


def _moment(at: str) -> str:
    return f"{at[:10]} {at[11:23].removesuffix('Z')}"


def _readable_nats(service: str, raw: str) -> Line:
    found = _NATS_LINE.fullmatch(raw)
    if not found:
        return Line("", raw)
    year, month, day, clock, millis, level, text = found.groups()
    at = f"{year}-{month}-{day}T{clock}.{millis}"
    return Line(at, f"{_moment(at)} {service:<8} {_NATS_LEVELS.get(level, level.lower()):<8} {text}")


def files(home: Home, service: str | None) -> dict[str, Path]:
    """The log files that a name stands for, all of them without one. Refuses a name that none has."""
    found = {path.stem: path for path in sorted(home.logs.glob("*.log")) if path.stem != "start"}
    if service is None:
        return found
    names = ALIASES.get(service, (service,))
    chosen = {name: path for name, path in found.items() if name in names or _REPLICA.sub("", name) in names}
    if not chosen:
        known = ", ".join(found) or "none yet"
        raise Refused(f"there is no log of {service!r}; there are: {known}", 3, "mycelium logs hub")
    return chosen


@dataclass(frozen=True)
class Mark:
    """How far a file has been read: which file it was, and the byte after the last line."""

    inode: int
    position: int


def marks(home: Home, service: str | None) -> dict[str, Mark]:
    """The ends of the log files at this moment, by service."""
    states = {name: path.stat() for name, path in files(home, service).items()}
    return {name: Mark(state.st_ino, state.st_size) for name, state in states.items()}


def last(home: Home, ends: Mapping[str, Mark], count: int) -> list[tuple[str, str]]:
    """The last records before some ends, oldest first, as pairs of service and raw line."""
    found: list[tuple[str, str, str]] = []
    for name, end in ends.items():
        at = ""
        for raw in _last_lines(home.logs / f"{name}.log", end, count):
            at = readable(name, raw).at or at  # a line that has no time belongs to the one before
            found.append((at, name, raw))
    found.sort(key=lambda entry: entry[0])
    return [(name, raw) for _, name, raw in found[max(0, len(found) - count) :]]


def _last_lines(path: Path, end: Mark, count: int) -> list[str]:
    lines: deque[str] = deque(maxlen=count)
    for file in (path.with_name(f"{path.name}.1"), path):
        if file.exists():
            with file.open("rb") as opened:
                whole = opened.read() if file.stat().st_ino != end.inode else opened.read(end.position)
            lines.extend(_split(whole))
    return list(lines)


def follow(home: Home, service: str | None, ends: Mapping[str, Mark]) -> Iterator[tuple[str, str]]:
    """Records after some ends as they are written, for ever; files that appear or are rotated are picked up."""
    read = dict(ends)
    while True:
        for name, path in files(home, service).items():
            lines, read[name] = _new_lines(path, read.get(name))
            yield from ((name, line) for line in lines)
        time.sleep(FOLLOW_S)


def _new_lines(path: Path, mark: Mark | None) -> tuple[list[str], Mark]:
    try:
        with path.open("rb") as opened:
            inode = os.fstat(opened.fileno()).st_ino
            begin = mark.position if mark and mark.inode == inode else 0
            opened.seek(begin)
            new = opened.read()
    except FileNotFoundError:  # at this moment rotated away
        return [], mark or Mark(0, 0)
    whole = new[: new.rfind(b"\n") + 1]
    return _split(whole), Mark(inode, begin + len(whole))


def _split(data: bytes) -> list[str]:
    """Lines as files have them: `str.splitlines` would also split at characters that a text may hold."""
    return data.decode(errors="replace").removesuffix("\n").split("\n") if data else []
