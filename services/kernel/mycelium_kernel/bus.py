"""Asks other services: the client half of the bus; `server` is the other.

A request is one protobuf message on the subject of its rpc; who asks, the key, the deadline and the trace travel in
headers. `ask` waits, tries again while nobody answers and the deadline stands, and raises what the service raised.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import time
import uuid
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import nats.errors
import nats.micro
from google.protobuf.message import DecodeError, Message
from nats.aio.msg import Msg

from mycelium_kernel import headers, subjects, telemetry
from mycelium_kernel.connections import NATS_ERRORS, Connection
from mycelium_kernel.errors import DeadlinePassed, Internal, Refusal, StoreFull, Unavailable, words
from mycelium_kernel.service import Actor

LOGGER = logging.getLogger(__name__)
R = TypeVar("R", bound=Message)
TIMEOUT_S = 10.0
ATTEMPT_S = 3.0
PAUSE_S = (0.02, 0.5)  # between tries while nobody answers: first, longest
UNAVAILABLE_TRIES = 5  # with a service that answers that it can't now; about half a second in all
REFUSED, UNAVAILABLE, BUG = "400", "503", "500"


@dataclass(frozen=True)
class Reply(Generic[R]):
    """An answer, and the sequence of the fact behind it (0 for a query or when nothing was appended)."""

    message: R
    sequence: int


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
        headers.check(actor=actor.handle, session=actor.session, proven=actor.proven, key=key)
        asked = {
            headers.ACTOR: actor.handle,
            headers.SESSION: actor.session,
            headers.PROVEN: actor.proven,
            headers.OPERATOR: "yes" if actor.operator else "",
            headers.KEY: key or uuid.uuid4().hex,
            headers.DEADLINE: f"{time.time() + timeout_s:.3f}",
            headers.BUDGET: f"{timeout_s:.3f}",
        }
        until = time.monotonic() + timeout_s
        with telemetry.span(f"ask {request.DESCRIPTOR.name}"):
            telemetry.inject(asked)
            sent = {name: value for name, value in asked.items() if value}
            answer = await self._request(type(request), request.SerializeToString(), sent, until)
        sequence = (answer.headers or {}).get(headers.SEQUENCE, "0")
        return Reply(response.FromString(answer.data), int(sequence))

    async def _request(self, kind: type[Message], data: bytes, sent: dict[str, str], until: float) -> Msg:
        """Ask until there is an answer, a refusal, or no time left."""
        subject = subjects.request(kind, self._caller)
        pause_s, attempt_s, unavailable = PAUSE_S[0], ATTEMPT_S, 0
        last: Exception = Unavailable(f"{kind.DESCRIPTOR.name} was not asked: there was no time")
        while (left := until - time.monotonic()) > 0:
            try:
                async with self._connection.attempt(min(attempt_s, left)):
                    answer = await self._connection.client.request(subject, data, timeout=left + 1, headers=sent)
                if headers.ERROR_CODE not in (answer.headers or {}):
                    return answer
                last = _decode_error(answer)
                unavailable += 1
                if not _may_pass(last) or unavailable >= UNAVAILABLE_TRIES:
                    raise last
            except nats.errors.MaxPayloadError:
                raise Refusal("content.too_large", f"{len(data)} bytes are more than a request may have") from None
            except nats.errors.ConnectionClosedError as error:
                raise Unavailable("the connection to NATS is closed") from error
            except NATS_ERRORS as error:
                LOGGER.debug("%s: %s", subject, words(error))
                if isinstance(error, TimeoutError):
                    attempt_s *= 2  # a service that is only slow is not given the same work ever more often
                last = Unavailable(f"no answer from {subject.split('.')[1]} in time")
            await asyncio.sleep(min(pause_s, max(0.0, until - time.monotonic())))
            pause_s = min(pause_s * 2, PAUSE_S[1])
        raise last

    async def health(self, service: str, timeout_s: float = 1.0, replicas: int = 1) -> list[dict[str, Any]]:
        """What the replicas of a service say of their own health: `replicas` of them, or as many as answer in time."""
        said: list[dict[str, Any]] = []
        enough = asyncio.Event()

        async def answered(message: Msg) -> None:
            if message.data:
                said.append(json.loads(message.data))
            if len(said) >= replicas or not message.data:  # an empty one: nobody listens
                enough.set()

        client = self._connection.client
        try:
            inbox = await client.subscribe(client.new_inbox(), cb=answered)
            await client.publish(subjects.health(service, self._caller), b"", reply=inbox.subject)
        except NATS_ERRORS:
            return said
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await enough.wait()
        with contextlib.suppress(*NATS_ERRORS):
            await inbox.unsubscribe()
        return said


def _decode_error(answer: Msg) -> Exception:
    received = answer.headers or {}
    code, data = received[headers.ERROR_CODE], answer.data
    if code == REFUSED:
        try:
            return Refusal.decode(data)
        except DecodeError:
            return Internal("an answer could not be read")
    if code == UNAVAILABLE:
        text = data.decode(errors="replace")
        kinds = {kind.slug: kind for kind in (DeadlinePassed, StoreFull)}
        return kinds.get(received.get(headers.ERROR, ""), Unavailable)(text)
    return Internal(data.decode(errors="replace"))


def _may_pass(error: Exception) -> bool:
    """Whether another replica, or the same in a moment, may do better."""
    return isinstance(error, Unavailable) and not isinstance(error, DeadlinePassed | StoreFull)
