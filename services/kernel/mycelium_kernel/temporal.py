"""Temporal as the hub uses it: a client and workers whose payloads are sealed with a key of the hub.

Loaded by who runs workflows, in a thread and after it is ready: it takes more than a second. Workflows and activities
are the service's own; here is only how they reach the server, and what the server gets to read.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any, ClassVar, Self

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from temporalio.api.common.v1 import Payload
from temporalio.client import Client
from temporalio.converter import (
    CompositePayloadConverter,
    DataConverter,
    DefaultFailureConverterWithEncodedAttributes,
    DefaultPayloadConverter,
    EncodingPayloadConverter,
    PayloadCodec,
    SerializationContext,
    WithSerializationContext,
)
from temporalio.exceptions import ApplicationError
from temporalio.runtime import LoggingConfig, Runtime, TelemetryConfig, TelemetryFilter
from temporalio.worker import Worker
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions

ENCODING = "encoding"
SEALED = b"binary/sealed"
FOREIGN = b"binary/foreign"
KEY_BYTES = 32
NONCE_BYTES = 12
STOP_S = 1.0  # for activities under way when the service stops; what is cut off is done again
OURS = ("mycelium", "mycelium_kernel", "google", "cryptography")  # what workflows share with the process


class BadKey(Exception):
    """The file of the payloads' key holds none. The text says what to do."""


@dataclass(frozen=True)
class TemporalSettings:
    """Where the server is, and the file of the 32 random bytes that payloads are sealed with."""

    address: str
    namespace: str
    key_file: str


class Seal(PayloadCodec, WithSerializationContext):
    """AES-256-GCM over every payload, bound to the workflow that it belongs to.

    What was not sealed here, or was copied from another workflow, comes out as a payload that no converter takes
    (`_Foreign`), so that a workflow which somebody else started fails at its first step.
    """

    def __init__(self, key: bytes, bound_to: bytes = b"") -> None:
        self._key = key
        self._cipher = AESGCM(key)
        self._bound_to = bound_to

    def with_context(self, context: SerializationContext) -> Self:
        """The codec for the payloads of one workflow."""
        name = f"{getattr(context, 'namespace', '')}\0{getattr(context, 'workflow_id', '') or ''}"
        return type(self)(self._key, name.encode())

    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        """Seal."""
        return [self._seal(payload) for payload in payloads]

    async def decode(self, payloads: Sequence[Payload]) -> list[Payload]:
        """Open."""
        return [self._open(payload) for payload in payloads]

    def _seal(self, payload: Payload) -> Payload:
        nonce = os.urandom(NONCE_BYTES)
        sealed = self._cipher.encrypt(nonce, payload.SerializeToString(), self._bound_to)
        return Payload(metadata={ENCODING: SEALED}, data=nonce + sealed)

    def _open(self, payload: Payload) -> Payload:
        if payload.metadata.get(ENCODING) != SEALED:
            return Payload(metadata={ENCODING: FOREIGN})
        nonce, sealed = payload.data[:NONCE_BYTES], payload.data[NONCE_BYTES:]
        try:
            return Payload.FromString(self._cipher.decrypt(nonce, sealed, self._bound_to))
        except (InvalidTag, ValueError):
            return Payload(metadata={ENCODING: FOREIGN})


class _Foreign(EncodingPayloadConverter):
    """Refuses what the seal could not open."""

    encoding: ClassVar[str] = FOREIGN.decode()

    def to_payload(self, value: Any) -> Payload | None:  # noqa: ARG002 - nothing is written so
        return None

    def from_payload(self, payload: Payload, type_hint: type | None = None) -> Any:  # noqa: ARG002 - whatever it is
        raise ApplicationError("not sealed with this hub's key: refused", type="payload.foreign", non_retryable=True)


class _Converter(CompositePayloadConverter):
    """Values as JSON, after foreign payloads have been refused."""

    def __init__(self) -> None:
        super().__init__(_Foreign(), *DefaultPayloadConverter.default_encoding_payload_converters)


def converter(key: bytes) -> DataConverter:
    """What all clients and workers of the hub write and read payloads with; texts of errors are sealed, too."""
    return replace(
        DataConverter.default,
        payload_converter_class=_Converter,
        payload_codec=Seal(key),
        failure_converter_class=DefaultFailureConverterWithEncodedAttributes,
    )


def read_key(path: str) -> bytes:
    """The key in that file. Raises `BadKey`."""
    try:
        key = Path(path).read_bytes()
    except OSError as error:
        raise BadKey(f"{path} can't be read: {error.strerror}") from None
    if len(key) != KEY_BYTES:
        raise BadKey(f"{path} holds {len(key)} bytes, not the {KEY_BYTES} of a key")
    return key


async def connect(settings: TemporalSettings) -> Client:
    """A client of the server. Raises `RuntimeError` while there is none."""
    quiet = LoggingConfig(filter=TelemetryFilter(core_level="ERROR", other_level="ERROR"))
    return await Client.connect(
        settings.address,
        namespace=settings.namespace,
        data_converter=converter(read_key(settings.key_file)),
        runtime=Runtime(telemetry=TelemetryConfig(logging=quiet)),
    )


def worker(
    client: Client, queue: str, workflows: Sequence[type], activities: Sequence[Callable[..., Any]], most: int
) -> Worker:
    """A worker of one queue, which does at most so many activities at once."""
    return Worker(
        client,
        task_queue=queue,
        workflows=workflows,
        activities=activities,
        max_concurrent_activities=most,
        workflow_runner=sandbox(),
        graceful_shutdown_timeout=timedelta(seconds=STOP_S),
    )


def sandbox() -> SandboxedWorkflowRunner:
    """Runs workflows so that what would differ at a replay (clocks, random numbers, files) is refused."""
    return SandboxedWorkflowRunner(restrictions=SandboxRestrictions.default.with_passthrough_modules(*OURS))


async def run_workers(workers: Sequence[Worker]) -> None:
    """Run them until cancelled, or until one fails."""
    async with asyncio.TaskGroup() as group:
        for one in workers:
            group.create_task(one.run())
