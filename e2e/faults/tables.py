"""The tables of every replica, against each other and against a rebuild from zero, all at one place of the log.

The only part of `e2e/` that imports the product: what a row has to be is said by the projection alone.
"""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from e2e.faults.havoc import Havoc
from e2e.faults.record import Verdict
from mycelium_kernel.applier import Applier
from mycelium_kernel.connections import Connection, NatsSettings
from mycelium_kernel.errors import Unavailable
from mycelium_kernel.tables import Tables
from mycelium_kernel.tail import Part, read
from mycelium_rooms.service import PROJECTION

Dump = dict[str, list[tuple[Any, ...]]]
PAGE = 1000
TRIES = 150


def files(home: Path) -> list[Path]:
    """The file of each replica."""
    return sorted((home / "tables").rglob("rooms.sqlite"))


async def compare(havoc: Havoc) -> None:
    """All equal, or a verdict that names the first table that is not."""
    connection = await Connection.open(_settings(havoc.hub.home))
    try:
        dumps, rebuilt = await _at_one_place(havoc, connection)
    finally:
        await connection.close()
    for path, dump in dumps.items():
        different = [name for name in rebuilt if dump[name] != rebuilt[name]]
        if different:
            name = different[0]
            only = set(map(repr, dump[name])) ^ set(map(repr, rebuilt[name]))
            text = f"{path}: {different} are not as rebuilt; in {name} {len(only)} rows, such as {sorted(only)[:3]}"
            raise Verdict("tables differ", text, havoc.record)


async def _at_one_place(havoc: Havoc, connection: Connection) -> tuple[dict[Path, Dump], Dump]:
    """What each file holds, and what a rebuild holds, once nothing is written any more."""
    positions: dict[Path, str] = {}
    for _ in range(TRIES):
        facts = await _facts(connection)
        try:
            dumps = {path: _dump(path) for path in files(havoc.hub.home)}
            positions = {path: _meta(dump)["position"] for path, dump in dumps.items()}
        except (Unavailable, sqlite3.Error, KeyError) as error:  # being made again
            dumps, positions = {}, {path: repr(error) for path in files(havoc.hub.home)}
        if dumps and set(positions.values()) == {str(facts[-1].sequence)}:
            return dumps, _rebuilt(facts, _meta(next(iter(dumps.values())))["epoch"])
        await havoc.passes(0.2)
    raise Verdict("tables differ", f"they don't come to one place: {positions}", havoc.record)


def _settings(home: Path) -> NatsSettings:
    """As the rooms service connects, on this machine."""
    items = json.loads((home / "run" / "processes.json").read_text())["items"]
    servers = tuple(f"nats://127.0.0.1:{item['port']}" for item in items if item["service"] == "nats")
    passwords = json.loads((home / "secrets" / "nats.json").read_text())
    return NatsSettings(servers, "rooms", passwords["rooms"])


async def _facts(connection: Connection) -> list[Any]:
    """Every fact that the tables are made from."""
    facts: list[Any] = []
    while True:
        page = await read(connection, Part(PROJECTION.filters, facts[-1].sequence if facts else 0, PAGE))
        facts += page.facts
        if not page.facts or facts[-1].sequence >= page.last:
            return facts


def _dump(path: Path) -> Dump:
    """The rows of a file that its service is writing: one snapshot."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, isolation_level=None)) as connection:
        connection.execute("BEGIN")
        return Tables(path, PROJECTION, "", connection).dump()


def _meta(dump: Dump) -> dict[str, str]:
    return {row[0]: row[1] for row in dump["meta"]}


def _rebuilt(facts: list[Any], epoch: str) -> Dump:
    tables, applier = Tables.anew(None, PROJECTION, epoch), Applier(PROJECTION)
    tables.begin()
    for fact in facts:
        applier.apply(tables, fact)
    tables.commit(facts[-1].sequence)
    with closing(tables):
        return tables.dump()
