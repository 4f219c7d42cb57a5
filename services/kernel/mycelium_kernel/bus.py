"""Requests and answers between services, over `nats.micro`.

A request is one protobuf message on the subject of its rpc; who asks, the key, the deadline and the trace travel in
headers. The server half hands each request to a bounded task and answers only errors of its own; the client half
waits, tries again while nobody answers and the deadline stands, and raises what the service raised.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Generic, TypeVar

import nats.errors
import nats.micro
from google.protobuf.message import DecodeError, Message
from nats.micro.request import Request
from nats.micro.service import Service as MicroService

from mycelium_kernel import headers, subjects, telemetry
from mycelium_kernel.clock import Clock
from mycelium_kernel.connections import Connection
from mycelium_kernel.errors import DeadlinePassed, Internal, Refusal, Unavailable
from mycelium_kernel.service import Actor

LOGGER = logging.getLogger(__name__)
R = TypeVar("R", bound=Message)
TIMEOUT_S = 10.0
ATTEMPT_S = 3.0
TASKS = 1024  # requests in work at once; more are told to come back later
REFUSED, UNAVAILABLE, BUG = "400", "503", "500"


@dataclass(frozen=True)
class Reply(Generic[R]):
    """An answer, and the sequence of the fact behind it (0 for a query or when nothing was appended)."""

    message: R
    sequence: int


@dataclass(frozen=True)
class Asked:
    """A request as the server half hands it on."""

    message: Message
    actor: Actor
    key: str
    deadline: datetime


Handler = Callable[[Asked], Awaitable[tuple[Message, int]]]


class Bus:
    """The client half: asks other services in the name of `caller`, which is also the NATS user."""

    def __init__(self, connection: Connection, caller: str) -> None:
        self._connection = connection
        self._caller = caller

    async def ask(
        self, request: Message, response: type[R], *, actor: Actor, key: str = "", timeout_s: float = TIMEOUT_S
    ) -> Reply[R]:
        """Ask the service whose rpc takes `request`; the answer is a `response`.

        Raises `Refusal` when the service refuses, `Internal` when it has a bug, `Unavailable` (or `DeadlinePassed`)
        when no answer came within `timeout_s` seconds. Safe to repeat under the same `key`; without one, a key is
        made here, so that the tries of one call have one effect.
        """
        subject = subjects.request(type(request), self._caller)
        deadline = time.time() + timeout_s
        asked = {
            headers.ACTOR: actor.handle,
            headers.SESSION: actor.session,
            headers.KEY: key or uuid.uuid4().hex,
            headers.DEADLINE: f"{deadline:.3f}",
        }
        with telemetry.span(f"ask {request.DESCRIPTOR.name}"):
            telemetry.inject(asked)
            answer = await self._request(subject, request.SerializeToString(), asked, deadline)
        received = answer.headers or {}
        code = received.get(headers.ERROR_CODE)
        if code:
            raise _decode_error(code, received.get(headers.ERROR, ""), answer.data)
        return Reply(response.FromString(answer.data), int(received.get(headers.SEQUENCE, "0")))

    async def _request(self, subject: str, data: bytes, asked: dict[str, str], deadline: float) -> Any:
        pause_s = 0.02
        sent = {name: value for name, value in asked.items() if value}
        while True:
            left = deadline - time.time()
            if left <= 0:
                raise Unavailable(f"no answer from {subject.split('.')[1]} in time")
            try:
                return await self._connection.client.request(subject, data, timeout=min(ATTEMPT_S, left), headers=sent)
            except nats.errors.ConnectionClosedError as error:
                raise Unavailable("the connection to NATS is closed") from error
            except (nats.errors.Error, TimeoutError, OSError) as error:
                LOGGER.debug("%s: %s", subject, error or type(error).__name__)
                await asyncio.sleep(min(pause_s, max(0.0, left)))
                pause_s = min(pause_s * 2, 0.5)

    async def health(self, service: str, timeout_s: float = 1.0) -> dict[str, Any]:
        """What a service says of its own health; `{"status": "down"}` when it says nothing within `timeout_s`."""
        try:
            answer = await self._connection.client.request(subjects.health(service, self._caller), b"", timeout=timeout_s)
        except (nats.errors.Error, TimeoutError, OSError):
            return {"status": "down", "detail": "no answer"}
        said: dict[str, Any] = json.loads(answer.data)
        return said


def _decode_error(code: str, slug: str, data: bytes) -> Exception:
    if code == REFUSED:
        try:
            return Refusal.decode(data)
        except DecodeError:
            return Internal("an answer could not be read")
    if code == UNAVAILABLE:
        text = data.decode(errors="replace")
        return DeadlinePassed(text) if slug == DeadlinePassed.slug else Unavailable(text)
    return Internal(data.decode(errors="replace"))


@dataclass
class Server:
    """The server half of one service."""

    connection: Connection
    service: str
    version: str
    clock: Clock
    health: Callable[[], dict[str, Any]]
    _micro: MicroService | None = None
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    async def start(self, handlers: dict[type[Message], Handler]) -> None:
        """Answer each request type with its handler."""
        self._micro = await nats.micro.add_service(
            self.connection.client, name=f"mycelium-{self.service}", version=self.version
        )
        for request, handler in handlers.items():
            verb = subjects.verb(subjects.method_of(request.DESCRIPTOR))
            await self._micro.add_endpoint(
                name=verb, subject=subjects.request(request, "*"), handler=self._accept(request, verb, handler)
            )
        await self._micro.add_endpoint(
            name="health", subject=subjects.health(self.service, "*"), handler=self._answer_health
        )

    async def stop(self) -> None:
        """Take no more requests and wait for those in work."""
        if self._micro and self.connection.client.is_connected:
            await self._micro.stop()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=5)

    async def _answer_health(self, request: Request) -> None:
        await request.respond(json.dumps(self.health()).encode())

    def _accept(self, kind: type[Message], verb: str, handler: Handler) -> Callable[[Request], Awaitable[None]]:
        async def accept(request: Request) -> None:
            if len(self._tasks) >= TASKS:
                await request.respond_error(REFUSED, "rate.limited", Refusal("rate.limited", "too many requests").encode())
                return
            task = asyncio.create_task(self._answer(kind, verb, handler, request))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

        return accept

    async def _answer(self, kind: type[Message], verb: str, handler: Handler, request: Request) -> None:
        began = time.perf_counter()
        received = request.headers or {}
        outcome = "ok"
        with telemetry.span(f"{self.service} {verb}", received):
            try:
                asked = self._read(kind, request)
                message, sequence = await handler(asked)
                extra = {headers.SEQUENCE: str(sequence)} if sequence else None
                await request.respond(message.SerializeToString(), headers=extra)
            except Refusal as refusal:
                outcome = refusal.slug
                await request.respond_error(REFUSED, refusal.slug, refusal.encode())
            except Unavailable as error:
                outcome = error.slug
                await request.respond_error(UNAVAILABLE, error.slug, str(error).encode())
            except Exception:  # a bug: logged once, with the key that the caller is given
                outcome = "internal"
                key = received.get(headers.KEY, "") or uuid.uuid4().hex
                LOGGER.exception("bug while answering %s", verb, extra={"key": key})
                telemetry.BUGS.labels(self.service).inc()
                await request.respond_error(BUG, "internal", key.encode())
        telemetry.REQUESTS.labels(self.service, verb, outcome).inc()
        telemetry.REQUEST_SECONDS.labels(self.service, verb).observe(time.perf_counter() - began)

    def _read(self, kind: type[Message], request: Request) -> Asked:
        received = request.headers or {}
        deadline = datetime.fromtimestamp(float(received.get(headers.DEADLINE, time.time() + TIMEOUT_S)), UTC)
        if deadline <= self.clock():
            raise DeadlinePassed("the request came after its deadline")
        try:
            message = kind.FromString(request.data)
        except DecodeError:
            raise Refusal("request.invalid", f"the request is not a {kind.DESCRIPTOR.name}") from None
        actor = Actor(received.get(headers.ACTOR, ""), received.get(headers.SESSION, ""))
        return Asked(message, actor, received.get(headers.KEY, ""), deadline)
