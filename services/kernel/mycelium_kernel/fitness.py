"""Whether a NATS server and the stream of facts can keep the promises; what to change when they can't.

`connections` checks when it connects, the hub's doctor when it is asked.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from typing import Any

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js.api import RetentionPolicy, StorageType, StreamConfig

from mycelium_kernel import subjects

MIN_SERVER = (2, 12)  # the first with atomic batches and message schedules
MAX_PAYLOAD = 8 * 1024 * 1024
DEDUPLICATION_S = 600.0
MONITOR_S = 2.0


class Unfit(Exception):
    """The NATS server, or its stream, is not set up so that the promises can be kept. The text says what to change."""


def check_server(client: Client) -> None:
    """Refuse a server that is too old, or that takes small messages only."""
    version = client.connected_server_version
    if (version.major, version.minor) < MIN_SERVER:
        raise Unfit(f"NATS {version.major}.{version.minor} is too old: use {MIN_SERVER[0]}.{MIN_SERVER[1]} or later")
    if client.max_payload < MAX_PAYLOAD:
        raise Unfit(f"NATS takes at most {client.max_payload} bytes a message: set `max_payload: {MAX_PAYLOAD}`")


async def ask_servers(client: Client, count: int) -> list[dict[str, Any]]:
    """What the servers say of themselves: `count` of them, or as many as answer within two seconds."""
    answers: list[dict[str, Any]] = []
    enough = asyncio.Event()

    async def answered(message: Msg) -> None:
        if message.data:
            answers.append(json.loads(message.data)["data"])
        if len(answers) >= count:
            enough.set()

    inbox = client.new_inbox()
    await client.subscribe(inbox, cb=answered)
    await client.publish("$SYS.REQ.SERVER.PING.VARZ", b"", reply=inbox)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(MONITOR_S):
            await enough.wait()
    return answers


def check_sync(answers: list[dict[str, Any]], monitor_user: str) -> None:
    """Refuse servers that acknowledge a fact before it is on disk, or that do not say; `answers` is what they said."""
    if not answers:
        raise Unfit(f"NATS does not let the user {monitor_user!r} read its settings: it needs the system account")
    for answer in answers:
        if not answer.get("jetstream", {}).get("config", {}).get("sync_always"):
            name = answer.get("server_name", "")
            raise Unfit(
                f"the NATS server {name!r} acknowledges before its disk has the message: "
                "set `sync_interval: always` under `jetstream`"
            )


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


def check_stream(found: StreamConfig, wanted: StreamConfig) -> None:
    """Refuse a stream of facts that somebody made or changed so that it can lose some."""
    for name in ("storage", "retention", "num_replicas", "allow_atomic", "subjects", "duplicate_window"):
        has, wants = getattr(found, name), getattr(wanted, name)
        if has != wants and not (name == "num_replicas" and has is not None and has > wants):
            raise Unfit(f"the stream {subjects.STREAM} has {name} {has!r}, it must be {wants!r}")
    limits = ("max_age", "max_msgs", "max_bytes", "max_msgs_per_subject", "max_msg_size")
    limited = [name for name in limits if (getattr(found, name) or -1) > 0]
    if limited:
        raise Unfit(f"the stream {subjects.STREAM} would delete or refuse facts: remove its {', '.join(limited)}")
