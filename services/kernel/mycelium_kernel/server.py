"""Answers requests of other services: the server half of the bus, over `nats.micro`.

Each request goes to a bounded task and is done within its caller's deadline, or not at all. What is answered is the
result, a refusal, that it can't be done now, or the key of a bug; never the words of an unexpected error.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import math
import time
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import nats.micro
from google.protobuf.message import DecodeError, Message
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.micro.request import Request
from nats.micro.service import Service as MicroService

from mycelium_kernel import headers, subjects, tasks, telemetry
from mycelium_kernel.bus import BUG, REFUSED, TIMEOUT_S, UNAVAILABLE
from mycelium_kernel.clock import system_clock
from mycelium_kernel.connections import NATS_ERRORS, Connection
from mycelium_kernel.errors import BUSY, DeadlinePassed, Refusal, Unavailable, words
from mycelium_kernel.service import Actor

LOGGER = logging.getLogger(__name__)
TASKS = 1024  # requests in work at once; more are told to come back later
VOUCHES = "gateway"  # the one service that sees tokens
LONGEST_S = 3600.0  # for a caller that does not say how long it waits
DRAIN_S = 5.0
START_S = 5.0
LOOK_AGAIN_S = 0.05  # whether those that wait for an answer can still be reached


@dataclass(frozen=True)
class Asked:
    """A request as the server half hands it on."""

    message: Message
    actor: Actor
    key: str
    deadline: datetime
    caller: str = ""  # the service that asks: each may publish in its own name only


Handler = Callable[[Asked], Awaitable[tuple[Message, int]]]


@dataclass(frozen=True)
class Said:
    """What a request is answered: the body, the code and slug of an error, the sequence of the fact behind it."""

    body: bytes
    code: str = ""
    slug: str = "ok"
    sequence: int = 0


@dataclass
class Server:
    """The server half of one service."""

    connection: Connection
    service: str
    version: str
    health: Callable[[], dict[str, Any]]
    _micro: MicroService | None = None
    _looks: Subscription | None = None
    _instance: str = field(default_factory=lambda: uuid.uuid4().hex[:8])
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    async def start(self, handlers: dict[type[Message], Handler]) -> None:
        """Answer each request type with its handler; all of them are answered when this returns."""
        self._micro = await nats.micro.add_service(
            self.connection.client, name=f"mycelium-{self.service}", version=self.version
        )
        for request, handler in handlers.items():
            verb = subjects.verb(subjects.method_of(request.DESCRIPTOR))
            await self._micro.add_endpoint(
                name=verb, subject=subjects.request(request, "*"), handler=self._accept(request, verb, handler)
            )
        # Not in the queue group of the endpoints: every replica answers for itself.
        own = subjects.health(self.service, "*")
        self._looks = await self.connection.client.subscribe(own, cb=self._answer_health)
        async with asyncio.timeout(START_S):
            await self._is_heard()

    async def stop(self) -> None:
        """Take no more requests, answer those that have come, end those that can't be answered any more."""
        draining = asyncio.create_task(self._drain(), name="server-drain")
        until = time.monotonic() + DRAIN_S
        while not draining.done() and self.connection.client.is_connected and time.monotonic() < until:
            await asyncio.wait({draining}, timeout=LOOK_AGAIN_S)
        await tasks.end([draining, *self._tasks])

    async def _drain(self) -> None:
        """Give up the subjects, and answer what has come already (the library's own `stop` would drop it)."""
        if self._looks:
            await self._looks.unsubscribe()
        if self._micro:
            endpoints, self._micro._endpoints = self._micro._endpoints, []  # noqa: SLF001
            await asyncio.gather(*(endpoint._subscription.drain() for endpoint in endpoints))  # noqa: SLF001
            await self._micro.stop()
        await asyncio.gather(*self._tasks)
        await self.connection.client.flush()

    async def _is_heard(self) -> None:
        """Return once its own answer came: the server knows its subjects (nats-py's `flush` would overtake them)."""
        client = self.connection.client
        inbox = client.new_inbox()
        answers = await client.subscribe(inbox)
        await client.publish(subjects.health(self.service, self.service), b"", reply=inbox)
        async for answer in answers.messages:
            if answer.data and json.loads(answer.data)["instance"] == self._instance:
                break
        await answers.unsubscribe()

    async def _answer_health(self, asked: Msg) -> None:
        with contextlib.suppress(*NATS_ERRORS):
            await asked.respond(json.dumps({**self.health(), "instance": self._instance}).encode())

    def _accept(self, kind: type[Message], verb: str, handler: Handler) -> Callable[[Request], Awaitable[None]]:
        async def accept(request: Request) -> None:
            if len(self._tasks) >= TASKS:
                telemetry.REQUESTS.labels(self.service, verb, BUSY.slug).inc()
                await self._say(request, Said(BUSY.encode(), REFUSED, BUSY.slug))
                return
            task = asyncio.create_task(self._answer(kind, verb, handler, request))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

        return accept

    async def _answer(self, kind: type[Message], verb: str, handler: Handler, request: Request) -> None:
        began = time.perf_counter()
        with telemetry.span(f"{self.service} {verb}", request.headers):
            said = await self._work(kind, verb, handler, request)
            await self._say(request, said)
        telemetry.REQUESTS.labels(self.service, verb, said.slug).inc()
        telemetry.REQUEST_SECONDS.labels(self.service, verb).observe(time.perf_counter() - began)

    async def _work(self, kind: type[Message], verb: str, handler: Handler, request: Request) -> Said:
        """Do what is asked, within the caller's deadline, and turn the outcome into an answer."""
        received = request.headers or {}
        limit = asyncio.timeout(None)
        try:
            asked = _read(kind, request.data, received, subjects.caller_of(request.subject))
            limit = asyncio.timeout((asked.deadline - system_clock()).total_seconds())
            async with limit:
                message, sequence = await handler(asked)
            return Said(_body(message, self.connection.client.max_payload), sequence=sequence)
        except Refusal as refusal:
            return Said(refusal.encode(), REFUSED, refusal.slug)
        except Unavailable as error:
            return Said(str(error).encode(), UNAVAILABLE, error.slug)
        except Exception as error:
            if isinstance(error, TimeoutError) and limit.when() is not None and limit.expired():
                text = "the request was not done before its deadline; ask again under the same key"
                return Said(text.encode(), UNAVAILABLE, Unavailable.slug)
            key = received.get(headers.KEY, "") or uuid.uuid4().hex  # logged once; the caller is told the key only
            LOGGER.exception("bug while answering %s", verb, extra={"key": key})
            telemetry.BUGS.labels(self.service).inc()
            return Said(key.encode(), BUG, "internal")

    async def _say(self, request: Request, said: Said) -> None:
        """Answer; a caller that can't be reached asks again."""
        try:
            if said.code:
                await request.respond_error(said.code, said.slug, said.body)
            else:
                extra = {headers.SEQUENCE: str(said.sequence)} if said.sequence else None
                await request.respond(said.body, headers=extra)
        except (*NATS_ERRORS, ValueError) as error:  # ValueError: the request named nowhere to answer to
            LOGGER.info("an answer could not be sent: %s", words(error))


def _body(message: Message, limit: int) -> bytes:
    body = message.SerializeToString()
    if len(body) > limit:
        raise ValueError(f"an answer of {len(body)} bytes is more than NATS takes")
    return body


def _read(kind: type[Message], data: bytes, received: dict[str, str], caller: str) -> Asked:
    vouched = received if caller == VOUCHES else {}
    proven, operator = vouched.get(headers.PROVEN, ""), headers.OPERATOR in vouched
    actor = Actor(received.get(headers.ACTOR, ""), received.get(headers.SESSION, ""), proven, operator)
    key = received.get(headers.KEY, "")
    headers.check(actor=actor.handle, session=actor.session, key=key)
    deadline = _deadline(received)
    try:
        message = kind.FromString(data)
    except DecodeError:
        raise Refusal("request.invalid", f"the request is not a {kind.DESCRIPTOR.name}") from None
    return Asked(message, actor, key, deadline, caller)


def _deadline(received: dict[str, str]) -> datetime:
    """When the caller gives up, by this machine's clock.

    The time that the caller allows bounds it, should its clock be ahead; one that is behind by more than that can't be
    told from a request that was long on its way, and is told so.
    """
    now = time.time()
    try:
        budget_s = float(received.get(headers.BUDGET, LONGEST_S))
        deadline = float(received.get(headers.DEADLINE, now + TIMEOUT_S))
    except ValueError:
        budget_s = deadline = math.nan
    if not math.isfinite(budget_s + deadline):
        raise Refusal("request.invalid", "the deadline is not a time")
    if deadline <= now:
        late_s = now - deadline
        raise DeadlinePassed(
            f"the request came {late_s:.1f} s after its deadline, or the clocks of two machines differ"
        )
    return datetime.fromtimestamp(min(deadline, now + budget_s), UTC)
