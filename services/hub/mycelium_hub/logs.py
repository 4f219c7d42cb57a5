"""The hub's logs: written as JSON lines, one file a service, in `logs/`; shown as plain lines by `mycelium logs`."""

from __future__ import annotations

import json
import logging
import logging.handlers
import re
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from mycelium_hub.errors import Refused
from mycelium_hub.home import Home

HUB = "hub"
NATS = "nats"
FILE_BYTES = 10 * 1024 * 1024
FILES_KEPT = 3
FOLLOW_S = 0.2
# The service's name in the documentation of the container stack; here it is several.
ALIASES = {"mycelium-backend": (HUB, "gateway", "rooms")}
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
        handler = logging.handlers.RotatingFileHandler(
            home.logs / f"{name}.log", maxBytes=FILE_BYTES, backupCount=FILES_KEPT, encoding="utf-8"
        )
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
    def __init__(self, inner: logging.Formatter | None) -> None:
        super().__init__()
        self._inner = inner or logging.Formatter()

    def format(self, record: logging.LogRecord) -> str:
        return readable(current_service(), self._inner.format(record)).text


@dataclass(frozen=True)
class Line:
    """One record: when it was, and how it is shown."""

    at: str
    text: str


def readable(service: str, raw: str) -> Line:
    """A record of a log file as a line for people. What is not a record is shown as it is."""
    raw = raw.rstrip("\n")
    if service == NATS:
        return _readable_nats(raw)
    try:
        record = json.loads(raw)
        at, level, event = str(record["timestamp"]), str(record["level"]), str(record["event"])
    except (ValueError, KeyError, TypeError):
        return Line("", raw)
    rest = "".join(f" {name}={value}" for name, value in record.items() if name not in _SHOWN)
    trace = f"\n{record['exception']}" if record.get("exception") else ""
    return Line(at, f"{_moment(at)} {service:<8} {level:<8} {event}{rest}{trace}")


def _moment(at: str) -> str:
    return f"{at[:10]} {at[11:23]}"


def _readable_nats(raw: str) -> Line:
    found = _NATS_LINE.fullmatch(raw)
    if not found:
        return Line("", raw)
    year, month, day, clock, millis, level, text = found.groups()
    at = f"{year}-{month}-{day}T{clock}.{millis}"
    return Line(at, f"{_moment(at)} {NATS:<8} {_NATS_LEVELS.get(level, level.lower()):<8} {text}")


def files(home: Home, service: str | None) -> dict[str, Path]:
    """The log files that a name stands for, all of them without one. Refuses a name that none has."""
    found = {path.stem: path for path in sorted(home.logs.glob("*.log")) if path.stem != "start"}
    if service is None:
        return found
    names = ALIASES.get(service, (service,))
    chosen = {name: found[name] for name in names if name in found}
    if not chosen:
        known = ", ".join(found) or "none yet"
        raise Refused(f"there is no log of {service!r}; there are: {known}", status=3)
    return chosen


def last(home: Home, service: str | None, count: int) -> list[tuple[str, str]]:
    """The last records of some services, oldest first, as pairs of service and raw line."""
    found: list[tuple[str, str, str]] = []
    for name, path in files(home, service).items():
        at = ""
        for raw in _last_lines(path, count):
            at = readable(name, raw).at or at  # a line that has no time belongs to the one before
            found.append((at, name, raw))
    found.sort(key=lambda entry: entry[0])
    return [(name, raw) for _, name, raw in found[max(0, len(found) - count) :]]


def _last_lines(path: Path, count: int) -> list[str]:
    lines: deque[str] = deque(maxlen=count)
    for file in (path.with_name(f"{path.name}.1"), path):
        if file.exists():
            with file.open(encoding="utf-8", errors="replace") as opened:
                lines.extend(line.rstrip("\n") for line in opened)
    return list(lines)


def follow(home: Home, service: str | None) -> Iterator[tuple[str, str]]:
    """New records as they are written, for ever; files that appear or are rotated are picked up."""
    positions = {path: (path.stat().st_ino, path.stat().st_size) for path in files(home, service).values()}
    while True:
        for name, path in files(home, service).items():
            try:
                state = path.stat()
            except FileNotFoundError:  # at this moment rotated away
                continue
            inode, position = positions.get(path, (state.st_ino, 0))
            if inode != state.st_ino or position > state.st_size:
                position = 0
            with path.open("rb") as opened:
                opened.seek(position)
                for raw in opened:
                    if not raw.endswith(b"\n"):
                        break
                    position += len(raw)
                    yield name, raw.decode(errors="replace").rstrip("\n")
            positions[path] = (state.st_ino, position)
        time.sleep(FOLLOW_S)
