"""Logs are written one file a service, and read merged, in order, also while they grow and are rotated."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from structlog.contextvars import bound_contextvars

from mycelium_hub import logs
from mycelium_hub.errors import Refused
from mycelium_hub.home import Home

NATS_LINE = "[12] 2026/01/02 03:04:05.678901 [WRN] Slow consumer"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = Home(tmp_path / "home")
    made.prepare()
    return made


@pytest.fixture
def logging_as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    for handler in root.handlers:
        if handler not in handlers:
            handler.close()
    root.handlers[:] = handlers
    root.setLevel(level)


def _record(second: int, event: str, **extra: object) -> str:
    return json.dumps({"timestamp": f"2026-01-02T03:04:{second:02}.5Z", "level": "info", "event": event, **extra})


def _write(home: Home, name: str, *lines: str) -> None:
    with (home.logs / f"{name}.log").open("a") as file:
        file.writelines(f"{line}\n" for line in lines)


@pytest.mark.usefixtures("logging_as_before")
def test_each_record_goes_to_the_service_in_whose_context_it_arose(home: Home) -> None:
    """Also when the same library wrote both."""
    logs.write(home, ("rooms",), "info", echo=False)
    logger = logging.getLogger("anything")
    logger.info("by the hub")
    with bound_contextvars(service="rooms"):
        logger.warning("by rooms %d", 1, extra={"key": "k"})
        logger.debug("too fine")
    hub, rooms = ((home.logs / f"{name}.log").read_text().splitlines() for name in ("hub", "rooms"))
    assert [json.loads(line)["event"] for line in hub] == ["by the hub"]
    assert [(json.loads(line)["event"], json.loads(line)["key"]) for line in rooms] == [("by rooms 1", "k")]


def test_records_are_shown_as_lines() -> None:
    """Time, service, level, event, and what else was said; a traceback below."""
    raw = _record(5, "asked", key="k", exception="Traceback: x")
    assert logs.readable("rooms", raw).text == ("2026-01-02 03:04:05.5 rooms    info     asked key=k\nTraceback: x")
    assert logs.readable("nats", NATS_LINE).text == "2026-01-02 03:04:05.678 nats     warning  Slow consumer"
    assert logs.readable("hub", "no record").text == "no record"


def test_services_are_merged_in_time_and_only_the_newest_shown(home: Home) -> None:
    """One sequence of what happened."""
    _write(home, "hub", _record(1, "one"), _record(4, "four"))
    _write(home, "rooms", _record(2, "two"), "a line without time", _record(6, "six"))
    _write(home, "nats", NATS_LINE)
    shown = [
        (name, json.loads(raw)["event"] if raw.startswith("{") else raw)
        for name, raw in logs.last(home, logs.marks(home, None), 5)
    ]
    assert shown == [
        ("rooms", "two"), ("rooms", "a line without time"), ("hub", "four"), ("nats", NATS_LINE), ("rooms", "six"),
    ]  # fmt: skip
    assert len(logs.last(home, logs.marks(home, "hub"), 1)) == 1
    assert logs.last(home, logs.marks(home, None), 0) == []


def test_the_documented_name_of_the_backend_stands_for_all_of_ours(home: Home) -> None:
    """`mycelium logs mycelium-backend` shows what there the container shows."""
    for name in ("hub", "rooms", "memory", "board", "gateway", "nats", "start"):
        _write(home, name, "x")
    assert set(logs.files(home, "mycelium-backend")) == {"hub", "rooms", "memory", "board", "gateway"}
    assert set(logs.files(home, None)) == {"hub", "rooms", "memory", "board", "gateway", "nats"}


def test_an_unknown_service_is_refused_with_those_there_are(home: Home) -> None:
    """The right name is in the answer."""
    _write(home, "rooms", "x")
    with pytest.raises(Refused, match="no log of 'room'; there are: rooms"):
        logs.files(home, "room")


def test_following_shows_what_comes_also_after_a_rotation(home: Home) -> None:
    """Nothing old, each new line once, half a line not before it is whole."""
    _write(home, "hub", "old")
    coming = logs.follow(home, None, logs.marks(home, None))
    path = home.logs / "hub.log"
    _write(home, "rooms", "first of rooms")
    assert next(coming) == ("rooms", "first of rooms")
    with path.open("a") as file:
        file.write("half ")
    _write(home, "rooms", "second of rooms")
    assert next(coming) == ("rooms", "second of rooms")
    with path.open("a") as file:
        file.write("and half\n")
    assert next(coming) == ("hub", "half and half")
    path.rename(home.logs / "hub.log.1")
    _write(home, "hub", "after")
    assert next(coming) == ("hub", "after")
