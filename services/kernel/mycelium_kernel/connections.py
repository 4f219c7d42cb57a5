"""One connection to NATS for each service, the stream of facts, and the check that the server can keep the promises."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import nats
import nats.errors
import nats.js.errors
from nats.aio.client import Client
from nats.js import JetStreamContext
from nats.js.api import RetentionPolicy, StorageType, StreamConfig

from mycelium_kernel import subjects

LOGGER = logging.getLogger(__name__)
DEDUPLICATION_S = 600.0
MAX_PAYLOAD = 8 * 1024 * 1024
MIN_SERVER = (2, 12)  # the first with atomic batches and message schedules
CONNECT_S = 10.0


@dataclass(frozen=True)
class NatsSettings:
    """Where NATS is, who connects, and how facts are kept. `replicas` is 1 on one machine, 3 on a cluster."""

    servers: tuple[str, ...]
    user: str
    password: str
    replicas: int = 1
    monitor_user: str = ""
    monitor_password: str = ""


class Unfit(Exception):
    """The NATS server, or its stream, is not set up so that the promises can be kept. The text says what to change."""


class Connection:
    """A connected client with JetStream, that tells its listeners when it is connected again."""

    def __init__(self, client: Client, settings: NatsSettings, listeners: list[Callable[[], None]]) -> None:
        self.client = client
        self.settings = settings
        self.jetstream: JetStreamContext = client.jetstream(timeout=5)
        self.epoch = ""
        self._listeners = listeners

    @classmethod
    async def open(cls, settings: NatsSettings) -> Connection:
        """Connect as `settings.user`, and again for ever. Raises `OSError` or `nats.errors.Error` when it can't at first."""
        listeners: list[Callable[[], None]] = []

        async def reconnected() -> None:
            LOGGER.info("connected to NATS again")
            for listener in list(listeners):
                listener()

        async def disconnected() -> None:
            LOGGER.info("connection to NATS lost")

        client = await nats.connect(
            list(settings.servers),
            user=settings.user,
            password=settings.password,
            name=f"mycelium-{settings.user}",
            inbox_prefix=subjects.inbox(settings.user).encode(),
            max_reconnect_attempts=-1,
            reconnect_time_wait=0.1,
            connect_timeout=CONNECT_S,
            ping_interval=5,
            max_outstanding_pings=2,
            pending_size=64 * 1024 * 1024,
            reconnected_cb=reconnected,
            disconnected_cb=disconnected,
            error_cb=_log_error,
        )
        return cls(client, settings, listeners)

    def on_reconnect(self, listener: Callable[[], None]) -> None:
        """Call `listener` after each time the connection came back."""
        self._listeners.append(listener)

    def off_reconnect(self, listener: Callable[[], None]) -> None:
        """Stop calling `listener`."""
        if listener in self._listeners:
            self._listeners.remove(listener)

    async def prepare(self) -> None:
        """Make the stream of facts if it is missing, and refuse a server or stream that can't keep the promises.

        Raises `Unfit`. Sets `epoch`, a text that differs for every stream ever made.
        """
        _check_server(self.client)
        await _check_sync(self.settings)
        wanted = fact_stream(self.settings.replicas)
        try:
            info = await self.jetstream.stream_info(subjects.STREAM)
        except nats.js.errors.NotFoundError:
            info = await self.jetstream.add_stream(wanted)
        _check_stream(info.config, wanted)
        self.epoch = f"{int(info.created.timestamp() * 1_000_000):x}" if info.created else "0"

    async def last_sequence(self, subject: str | None) -> int:
        """Sequence of the last fact on `subject`, which may be a wildcard (None: of the whole log); 0 when there is none.

        Asked of the stream's leader, so that it is never behind an acknowledged append.
        """
        if subject is None:
            info = await self.jetstream.stream_info(subjects.STREAM)
            return int(info.state.last_seq)
        stored = await self._get({"last_by_subj": subject})
        return int(stored["seq"]) if stored else 0

    async def get(self, sequence: int) -> tuple[dict[str, str], bytes] | None:
        """Headers and data of the fact with that sequence; None when it was erased."""
        stored = await self._get({"seq": sequence})
        if stored is None:
            return None
        header_lines = base64.b64decode(stored.get("hdrs", "")).decode().split("\r\n")
        pairs = (line.split(":", 1) for line in header_lines if ":" in line)
        return {name.strip(): value.strip() for name, value in pairs}, base64.b64decode(stored.get("data", ""))

    async def _get(self, query: dict[str, Any]) -> dict[str, Any] | None:
        subject = f"$JS.API.STREAM.MSG.GET.{subjects.STREAM}"
        answer = await self.client.request(subject, json.dumps(query).encode(), timeout=5)
        body = json.loads(answer.data)
        if "error" in body:
            if body["error"].get("err_code") == 10037:  # noqa: PLR2004 - "no message found"
                return None
            raise nats.js.errors.APIError.from_error(body["error"])
        message: dict[str, Any] = body["message"]
        return message

    async def close(self) -> None:
        """Close at once; nothing that was acknowledged is lost by it."""
        if not self.client.is_closed:
            await self.client.close()


def fact_stream(replicas: int) -> StreamConfig:
    """The one stream that every fact is in."""
    return StreamConfig(
        name=subjects.STREAM,
        subjects=[subjects.ALL_FACTS],
        retention=RetentionPolicy.LIMITS,
        storage=StorageType.FILE,
        num_replicas=replicas,
        duplicate_window=DEDUPLICATION_S,
        allow_atomic=True,
        allow_direct=False,  # a direct get may be answered by a replica that is behind
        deny_purge=False,
        max_consumers=20_000,
    )


def _check_server(client: Client) -> None:
    version = client.connected_server_version
    if (version.major, version.minor) < MIN_SERVER:
        raise Unfit(f"NATS {version.major}.{version.minor} is too old: use {MIN_SERVER[0]}.{MIN_SERVER[1]} or later")
    if client.max_payload < MAX_PAYLOAD:
        raise Unfit(f"NATS takes at most {client.max_payload} bytes a message: set `max_payload: {MAX_PAYLOAD}`")


async def _check_sync(settings: NatsSettings) -> None:
    """Read back from the server that every fact is synced to disk before it is acknowledged."""
    if not settings.monitor_user:
        raise Unfit("no monitor user is set, so that `sync_interval: always` can't be read back from NATS")
    client = await nats.connect(
        list(settings.servers),
        user=settings.monitor_user,
        password=settings.monitor_password,
        connect_timeout=CONNECT_S,
        inbox_prefix=subjects.inbox(settings.monitor_user).encode(),
    )
    try:
        answer = await client.request("$SYS.REQ.SERVER.PING.VARZ", b"", timeout=5)
    finally:
        await client.close()
    jetstream = json.loads(answer.data)["data"].get("jetstream", {}).get("config", {})
    if not jetstream.get("sync_always"):
        raise Unfit("NATS acknowledges before its disk has the message: set `sync_interval: always` under `jetstream`")


def _check_stream(found: StreamConfig, wanted: StreamConfig) -> None:
    for name in ("storage", "retention", "num_replicas", "allow_atomic", "subjects", "duplicate_window"):
        has, wants = getattr(found, name), getattr(wanted, name)
        if has != wants and not (name == "num_replicas" and has is not None and has > wants):
            raise Unfit(f"the stream {subjects.STREAM} has {name} {has!r}, it must be {wants!r}")
    if found.max_age or (found.max_msgs or -1) > 0 or (found.max_bytes or -1) > 0:
        raise Unfit(f"the stream {subjects.STREAM} has limits that would delete facts: remove max_age, max_msgs, max_bytes")


async def _log_error(error: Exception) -> None:
    if isinstance(error, (nats.errors.SlowConsumerError, asyncio.CancelledError)):
        LOGGER.warning("NATS: %s", error)
    else:
        LOGGER.info("NATS: %s", error or type(error).__name__)
