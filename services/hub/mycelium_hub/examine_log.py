"""Looks at the NATS server and the log in it: version, what it syncs, the stream's settings, its size, its clock."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from nats.aio.client import Client
from nats.js.api import StreamInfo

from mycelium_hub import nats_config, roster
from mycelium_hub.finding import NOTE, OK, WRONG, Finding
from mycelium_hub.home import Home
from mycelium_hub.services import projections
from mycelium_kernel import fitness, subjects
from mycelium_kernel.connections import NATS_ERRORS, fact_stream
from mycelium_kernel.errors import words
from mycelium_kernel.space import Space

WITHIN_S = 3.0
AHEAD = timedelta(seconds=2)
RESTART = "mycelium down && mycelium up"


@dataclass(frozen=True)
class Told:
    """What the server told of the log, for the looks at the tables."""

    epoch: str
    last: dict[str, int] = field(default_factory=dict)  # by filter


async def check(home: Home, told: list[Told]) -> list[Finding]:
    """Ask the server of this home; nothing is told when there is none."""
    server = next((one for one in roster.members(home) if one.service == roster.NATS), None)
    if home.owner() is None or server is None:
        size = sum(map(_bytes_below, home.stores))
        return [Finding("nats", NOTE, f"is not running; the log is {_size(size)} on disk", "mycelium up")]
    try:
        async with _connect(home, server.port, nats_config.MONITOR) as monitor:
            found = await _servers(monitor, len(home.stores))
        async with _connect(home, server.port, nats_config.DOCTOR) as doctor:
            return [*found, *await _log(doctor, home, told)]
    except NATS_ERRORS as error:
        seen = f"pid {server.pid} does not answer on 127.0.0.1:{server.port}: {words(error)}"
        return [Finding("nats", WRONG, seen, RESTART)]


def _bytes_below(store: Path) -> int:
    """The bytes of a store's files. One that goes meanwhile has none: whether the hub runs is only nearly known."""
    size = 0
    for folder, _folders, names in os.walk(store):
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                size += Path(folder, name).lstat().st_size
    return size


@contextlib.asynccontextmanager
async def _connect(home: Home, port: int, user: str) -> AsyncIterator[Client]:
    client = Client()
    await client.connect(
        f"nats://127.0.0.1:{port}",
        user=user,
        password=nats_config.known_passwords(home).get(user, ""),
        inbox_prefix=subjects.inbox(user).encode(),
        allow_reconnect=False,
        connect_timeout=int(WITHIN_S),
        error_cb=_quiet,
    )
    try:
        yield client
    finally:
        await client.close()


async def _quiet(_error: Exception) -> None:
    return


async def _servers(monitor: Client, count: int) -> list[Finding]:
    answers = await fitness.ask_servers(monitor, count)
    found = [_server(monitor, answer) for answer in answers]
    if len(answers) < count:
        found.append(
            Finding("nats", WRONG, f"{len(answers)} of {count} servers answer", "mycelium logs nats --tail 50")
        )
    return found


def _server(monitor: Client, answer: dict[str, Any]) -> Finding:
    try:
        fitness.check_server(monitor)
        fitness.check_sync([answer], nats_config.MONITOR)
    except fitness.Unfit as error:
        return Finding("nats", WRONG, str(error), RESTART)
    memory = _size(int(answer.get("mem", 0)))
    seen = f"{answer['server_name']} is version {answer['version']}, syncs every fact, {memory} of memory"
    return Finding("nats", OK, seen)


async def _log(doctor: Client, home: Home, told: list[Told]) -> list[Finding]:
    answer = await _ask(doctor, f"$JS.API.STREAM.INFO.{subjects.STREAM}", {})
    if "error" in answer:
        return [Finding("stream", WRONG, f"{subjects.STREAM}: {answer['error']['description']}", RESTART)]
    info = StreamInfo.from_response(dict(answer))
    found = [_stream(info, len(home.stores))]
    epoch = f"{int(info.created.timestamp() * 1_000_000):x}" if info.created else "0"
    told.append(Told(epoch, {one: await _last(doctor, one) for one in _filters()}))
    state = answer["state"]
    gone = f", {state['num_deleted']} erased" if state.get("num_deleted") else ""
    shortage = Space(str(home.store)).shortage()
    free = Space(str(home.store)).look()[0]
    seen = f"facts {state['first_seq']} to {state['last_seq']}{gone}, {_size(state['bytes'])}, {_size(free)} free"
    if shortage:
        found.append(Finding("log", WRONG, f"{seen}: posts are refused", f"make room on the disk of {home.store}"))
    else:
        found.append(Finding("log", OK, seen))
    if state["messages"]:
        found.append(_clock(datetime.fromisoformat(micros(state["last_ts"]))))
    return found


def _stream(info: StreamInfo, replicas: int) -> Finding:
    try:
        fitness.check_stream(info.config, fact_stream(replicas))
    except fitness.Unfit as error:
        return Finding("stream", WRONG, str(error), "mycelium down, then bring back a copy of the home")
    return Finding("stream", OK, f"{subjects.STREAM} is on disk, without a limit that would drop facts")


def _clock(last: datetime) -> Finding:
    ahead = last - datetime.now(UTC)
    if ahead > AHEAD:
        seen = f"this machine's clock is {ahead.total_seconds():.0f} s behind the last fact's time: it was set back"
        return Finding("clock", WRONG, seen, "timedatectl set-ntp true")
    return Finding("clock", OK, f"the last fact is of {last.isoformat(timespec='seconds').replace('+00:00', 'Z')}")


def _filters() -> set[str]:
    return {one for projection in projections().values() for one in projection.filters}


async def _last(doctor: Client, subject: str) -> int:
    answer = await _ask(doctor, subjects.stored_message(subjects.STREAM), {"last_by_subj": subject})
    return int(answer["message"]["seq"]) if "message" in answer else 0


async def _ask(doctor: Client, subject: str, query: dict[str, Any]) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(
        (await doctor.request(subject, json.dumps(query).encode(), timeout=WITHIN_S)).data
    )
    return answer


def micros(moment: str) -> str:
    """Nanoseconds are more than Python reads."""
    whole, _, rest = moment.rstrip("Z").partition(".")
    return f"{whole}.{rest[:6]:0<6}+00:00"


def _size(count: int) -> str:
    for step, unit in ((1 << 30, "GB"), (1 << 20, "MB"), (1 << 10, "kB")):
        if count >= step:
            return f"{count / step:.1f} {unit}"
    return f"{count} B"
