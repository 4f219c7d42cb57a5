"""Logs, metrics and traces of every process. Cheap by default: without an exporter no span is recorded.

Metrics live in prometheus_client's registry; each process shows them on its port. A trace begun by a caller
(`traceparent`, W3C Trace Context) is carried through the bus and into the log, and ends in the projection.
"""

from __future__ import annotations

import contextlib
import logging
import logging.handlers
import sys
from collections.abc import Iterator, Mapping, MutableMapping
from typing import TYPE_CHECKING, TextIO

import structlog
from prometheus_client import Counter, Gauge, Histogram

from mycelium_kernel import headers

if TYPE_CHECKING:
    from opentelemetry.sdk.trace.export import SpanExporter

REQUESTS = Counter("mycelium_requests_total", "Requests answered on the bus.", ["service", "verb", "outcome"])
REQUEST_SECONDS = Histogram(
    "mycelium_request_seconds",
    "Time to answer a request on the bus.",
    ["service", "verb"],
    buckets=(0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
)
FACTS_APPENDED = Counter("mycelium_facts_appended_total", "Facts acknowledged by the log.", ["service"])
BATCHES = Histogram(
    "mycelium_append_batch_facts", "Facts in one atomic batch.", ["service"], buckets=(16, 32, 64, 128, 256, 512, 1000)
)
FACTS_APPLIED = Counter("mycelium_facts_applied_total", "Facts applied to the tables.", ["service"])
POSITION = Gauge("mycelium_tables_position", "Sequence of the last fact that the tables hold.", ["service"])
BUGS = Counter("mycelium_bugs_total", "Unexpected errors.", ["service"])

FILE_BYTES = 10 * 1024 * 1024
FILES_KEPT = 3
FLUSH_MS = 2_000

_recording = False


def log_file(path: str) -> logging.Handler:
    """Where records go that are kept in a file, which is rotated."""
    return logging.handlers.RotatingFileHandler(path, maxBytes=FILE_BYTES, backupCount=FILES_KEPT, encoding="utf-8")


def configure_logs(level: str = "INFO", stream: TextIO | None = None, file: str = "") -> None:
    """Write every log record as one JSON line to `file`, else to `stream` (stderr)."""
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    formatter = structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[*shared, structlog.stdlib.ExtraAdder()],
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(),
        ],
    )
    handler = log_file(file) if file else logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(formatter)
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)


def configure_traces(service: str, exporter: SpanExporter | None = None, endpoint: str = "") -> None:
    """Record spans, and send them to `exporter`, or over OTLP/HTTP to `endpoint`. Neither: no span is recorded."""
    global _recording  # noqa: PLW0603 - one tracer provider a process, as OpenTelemetry has it
    if exporter is None and not endpoint:
        return
    from opentelemetry import trace
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor

    provider = TracerProvider(resource=Resource.create({"service.name": service}))
    if exporter is not None:
        provider.add_span_processor(SimpleSpanProcessor(exporter))
    else:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=endpoint)))
    trace.set_tracer_provider(provider)
    _recording = True


def flush() -> None:
    """Send what is still held back, before a process ends in a way that Python does not see."""
    if _recording:
        from opentelemetry import trace
        from opentelemetry.sdk.trace import TracerProvider

        provider = trace.get_tracer_provider()
        if isinstance(provider, TracerProvider):
            provider.force_flush(FLUSH_MS)


def recording() -> bool:
    """Whether spans are recorded in this process."""
    return _recording


@contextlib.contextmanager
def span(name: str, carrier: Mapping[str, str] | None = None) -> Iterator[None]:
    """A span around a piece of work; its parent is the caller's in `carrier`, or the one around it."""
    if not _recording:
        if carrier and headers.TRACE in carrier:
            with _pass_on(carrier):
                yield
        else:
            yield
        return
    from opentelemetry import propagate, trace

    context = propagate.extract(carrier) if carrier and headers.TRACE in carrier else None
    with trace.get_tracer("mycelium").start_as_current_span(name, context=context):
        yield


@contextlib.contextmanager
def _pass_on(carrier: Mapping[str, str]) -> Iterator[None]:
    """Carry a caller's trace through a process that records nothing."""
    from opentelemetry import context, propagate

    token = context.attach(propagate.extract(carrier))
    try:
        yield
    finally:
        context.detach(token)


def inject(carrier: MutableMapping[str, str]) -> None:
    """Put the current trace, if there is one, into the headers of a message."""
    if not _recording and "opentelemetry.propagate" not in sys.modules:
        return
    from opentelemetry import propagate

    propagate.inject(carrier)
