"""One connection to NATS for each service, the stream of facts, and the check that the server can keep the promises."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import logging
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import nats.errors
import nats.js.errors
from nats.aio.client import Client
from nats.js import JetStreamContext
from nats.js.api import StreamConfig, StreamInfo

from mycelium_kernel import subjects, tasks
from mycelium_kernel.errors import Unavailable, words
from mycelium_kernel.fitness import Unfit, ask_servers, check_server, check_stream, check_sync, fact_stream

__all__ = ["NATS_ERRORS", "Connection", "NatsSettings", "Unfit", "fact_stream", "reaching"]

if TYPE_CHECKING:
    from mycelium_kernel.in_memory import Kept

LOGGER = logging.getLogger(__name__)
CONNECT_S = 10.0
STREAM_S = 60.0  # servers that were all restarted take a while to agree who leads
RECONNECT_S = 0.1
PING_S = 2  # a server that does not answer two of these is frozen: another one of the cluster is tried
READ_S = 5.0
CLOSE_S = 2.0
# All that NATS being away can raise; uvloop's RuntimeError is for a connection that was closed a moment ago.
NATS_ERRORS = (nats.errors.Error, nats.js.errors.Error, TimeoutError, OSError, RuntimeError)


@contextlib.contextmanager
def reaching(what: str) -> Iterator[None]:
    """Turn every error of NATS within the block into `Unavailable`."""
    try:
        yield
    except NATS_ERRORS as error:
        raise Unavailable(f"{what} can't be reached: {words(error)}") from error


@dataclass(frozen=True)
class NatsSettings:
    """Where NATS is, who connects, and how facts are kept. `replicas` is 1 on one machine, 3 on a cluster.

    `store` is the folder of the server's store when that is on this machine, so that its disk is not filled up.
    """

    servers: tuple[str, ...]
    user: str
    password: str
    replicas: int = 1
    monitor_user: str = ""
    monitor_password: str = ""
    store: str = ""


class Connection:
    """A connected client with JetStream, that tells its listeners when it is connected again.

    `lost` is set when the client has given up for good, as it does when the server closes it for breaking the
    protocol: then whoever started the service has to start it again.
    """

    def __init__(self, settings: NatsSettings) -> None:
        self.settings = settings
        self.client = Client()
        self.jetstream: JetStreamContext = self.client.jetstream(timeout=5)
        self.lost = asyncio.Event()
        self.epoch = ""
        self.kept: dict[str, Kept] = {}  # the streams in memory that this process looks after
        self._attempts: set[asyncio.Timeout] = set()
        self._listeners: list[Callable[[], None]] = [self._give_up_attempts]

    @classmethod
    async def open(cls, settings: NatsSettings) -> Connection:
        """Connect as `settings.user`, and again for ever.

        Raises `Unfit` when the server refuses the user, `OSError` or another error of NATS when it can't be reached
        within ten seconds.
        """
        connection = cls(settings)
        await _connect(
            connection.client,
            settings,
            settings.user,
            settings.password,
            name=f"mycelium-{settings.user}",
            ping_interval=PING_S,
            max_outstanding_pings=2,
            pending_size=64 * 1024 * 1024,
            reconnected_cb=connection._reconnected,
            disconnected_cb=connection._disconnected,
            closed_cb=connection._closed,
        )
        return connection

    async def _reconnected(self) -> None:
        LOGGER.info("connected to NATS again")
        for listener in self._listeners:
            listener()

    async def _disconnected(self) -> None:
        LOGGER.info("connection to NATS lost")

    async def _closed(self) -> None:
        self.lost.set()

    def on_reconnect(self, listener: Callable[[], None]) -> None:
        """Call `listener` after each time the connection came back."""
        self._listeners.append(listener)

    def off_reconnect(self, listener: Callable[[], None]) -> None:
        """Stop calling `listener`."""
        if listener in self._listeners:
            self._listeners.remove(listener)

    @contextlib.asynccontextmanager
    async def attempt(self, timeout_s: float) -> AsyncIterator[None]:
        """A bound for one exchange with NATS, after which the caller tries again. Raises `TimeoutError` at its end.

        It also ends when the connection has come back: an answer that was on its way when the connection was lost
        never comes, so there is nothing to wait for.
        """
        async with asyncio.timeout(timeout_s) as bound:
            self._attempts.add(bound)
            try:
                yield
            finally:
                self._attempts.discard(bound)

    def _give_up_attempts(self) -> None:
        now = asyncio.get_running_loop().time()
        for bound in self._attempts:
            if not bound.expired():
                bound.reschedule(now)

    async def prepare(self) -> None:
        """Make the stream of facts if it is missing, and refuse a server or stream that can't keep the promises.

        Raises `Unfit`. Sets `epoch`, a text that differs for every stream ever made.
        """
        check_server(self.client)
        await _check_sync(self.settings)
        wanted = fact_stream(self.settings.replicas)
        info = await self._find_stream(wanted)
        check_stream(info.config, wanted)
        self.epoch = _epoch(info)

    async def _find_stream(self, wanted: StreamConfig) -> StreamInfo:
        """The stream of facts, made if it is missing; waits while JetStream is starting or has no leader."""
        async with asyncio.timeout(STREAM_S):
            while True:
                try:
                    return await self.jetstream.stream_info(subjects.STREAM)
                except nats.js.errors.NotFoundError:
                    with contextlib.suppress(nats.js.errors.ServiceUnavailableError):
                        return await self.jetstream.add_stream(wanted)
                except (nats.js.errors.ServiceUnavailableError, nats.errors.TimeoutError) as error:
                    LOGGER.info("waiting for JetStream: %s", words(error))
                await asyncio.sleep(0.1)

    async def look(self) -> tuple[str, int]:
        """Epoch and last sequence of the log as it is now; an empty epoch when there is none. Raises `Unavailable`."""
        with reaching("the log"):
            try:
                info = await self.jetstream.stream_info(subjects.STREAM)
            except nats.js.errors.NotFoundError:
                return "", 0
        return _epoch(info), int(info.state.last_seq)

    async def last_sequence(self, subject: str | None, timeout_s: float = READ_S) -> int:
        """Sequence of the last fact on `subject`, a wildcard too (None: of the whole log); 0 when there is none.

        Asked of the stream's leader, so that it is never behind an acknowledged append. Raises `Unavailable`.
        """
        if subject is None:
            return (await self.look())[1]
        stored = await self._get({"last_by_subj": subject}, timeout_s)
        return int(stored["seq"]) if stored else 0

    async def end(self, timeout_s: float = READ_S) -> int:
        """Sequence of the last fact of the whole log, asked of the stream's leader. Raises `Unavailable`."""
        body = await self._ask(subjects.stream_info(subjects.STREAM), {}, timeout_s)
        if "error" in body:
            with reaching("the log"):
                raise nats.js.errors.APIError.from_error(body["error"])
        return int(body["state"]["last_seq"])

    async def has_after(self, subject: str, sequence: int, timeout_s: float = READ_S) -> bool:
        """Whether there is a fact on `subject`, a wildcard too, after that sequence. Raises `Unavailable`."""
        return await self._get({"seq": sequence + 1, "next_by_subj": subject}, timeout_s) is not None

    async def subject_of(self, sequence: int, timeout_s: float = READ_S) -> str:
        """Subject of the fact with that sequence; empty when it was erased. Raises `Unavailable`."""
        stored = await self._get({"seq": sequence}, timeout_s)
        return str(stored["subject"]) if stored else ""

    async def get(self, sequence: int) -> tuple[dict[str, str], bytes] | None:
        """Headers and data of the fact with that sequence; None when it was erased. Raises `Unavailable`."""
        stored = await self._get({"seq": sequence}, READ_S)
        if stored is None:
            return None
        header_lines = base64.b64decode(stored.get("hdrs", "")).decode().split("\r\n")
        pairs = (line.split(":", 1) for line in header_lines if ":" in line)
        return {name.strip(): value.strip() for name, value in pairs}, base64.b64decode(stored.get("data", ""))

    async def last(self, subject: str) -> tuple[int, bytes]:
        """Sequence and data of the last fact on `subject`, as of now; 0 when there is none. Raises `Unavailable`."""
        stored = await self._get({"last_by_subj": subject}, READ_S)
        return (int(stored["seq"]), base64.b64decode(stored.get("data", ""))) if stored else (0, b"")

    async def _get(self, query: dict[str, Any], timeout_s: float) -> dict[str, Any] | None:
        with reaching("the log"):
            body = await self._ask(subjects.stored_message(subjects.STREAM), query, timeout_s)
            if "error" in body:
                if body["error"].get("err_code") == 10037:  # no message found
                    return None
                raise nats.js.errors.APIError.from_error(body["error"])
        message: dict[str, Any] = body["message"]
        return message

    async def _ask(self, subject: str, query: dict[str, Any], timeout_s: float) -> dict[str, Any]:
        with reaching("the log"):
            async with self.attempt(timeout_s):
                answer = await self.client.request(subject, json.dumps(query).encode(), timeout=timeout_s + 1)
        body: dict[str, Any] = json.loads(answer.data)
        return body

    async def close(self) -> None:
        """Close at once; nothing that was acknowledged is lost by it."""
        await _close(self.client)


async def _connect(client: Client, settings: NatsSettings, user: str, password: str, **options: Any) -> None:
    """Connect, within ten seconds. A client that could not is closed again, and the last error raised."""
    errors: list[Exception] = []
    opening = True

    async def failed(error: Exception) -> None:
        if opening and "authorization" in str(error).lower():
            raise Unfit(f"NATS refuses the user {user!r}: its name or password is not in the server's configuration")
        errors[:] = [error]
        LOGGER.info("NATS: %s", words(error))

    waits: dict[str, Any] = {"connect_timeout": CONNECT_S, "reconnect_time_wait": RECONNECT_S}
    try:
        async with asyncio.timeout(CONNECT_S):
            await client.connect(
                list(settings.servers),
                user=user,
                password=password,
                inbox_prefix=subjects.inbox(user).encode(),
                max_reconnect_attempts=-1,
                error_cb=failed,
                **waits,
                **options,
            )
    except BaseException as error:
        await _close(client)
        if isinstance(error, TimeoutError) and errors:
            raise errors[0] from error
        raise
    opening = False


async def _close(client: Client) -> None:
    """Close, within two seconds: a server that is stopped in its tracks reads nothing any more.

    nats-py gives up half-way when the server died a moment ago; then its socket and its readers are ended here.
    """
    if client.is_closed:
        return
    try:
        async with asyncio.timeout(CLOSE_S):
            await client.close()
    except NATS_ERRORS as error:
        LOGGER.info("closing the connection to NATS: %s", words(error))
        await tasks.end([subscription._wait_for_msgs_task for subscription in client._subs.values()])  # noqa: SLF001
        if client._transport:  # noqa: SLF001
            client._transport.close()  # noqa: SLF001


def _epoch(info: StreamInfo) -> str:
    return f"{int(info.created.timestamp() * 1_000_000):x}" if info.created else "0"


async def _check_sync(settings: NatsSettings) -> None:
    """Read back from the servers that every fact is synced to disk before it is acknowledged."""
    if not settings.monitor_user:
        raise Unfit("no monitor user is set, so that `sync_interval: always` can't be read back from NATS")
    client = Client()
    await _connect(client, settings, settings.monitor_user, settings.monitor_password)
    try:
        answers = await ask_servers(client, settings.replicas)
    finally:
        await _close(client)
    check_sync(answers, settings.monitor_user)
