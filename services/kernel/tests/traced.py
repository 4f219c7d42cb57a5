"""A process that records spans: a caller's trace through ask, answer, append and projection. Run by test_telemetry."""

from __future__ import annotations

import asyncio
import json
import sys

from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from mycelium_kernel import events, run, telemetry
from mycelium_kernel.bus import Bus
from mycelium_kernel.connections import Connection, NatsSettings
from services.kernel.tests import toy


async def main(url: str, password: str, parent: str) -> None:
    """Post once under the trace of `parent`, and print the spans and the fact's trace."""
    exporter = InMemorySpanExporter()
    telemetry.configure_traces("rooms", exporter)
    settings = NatsSettings((url,), "rooms", password, 1, "monitor", password)
    runtime = await run.start(toy.service(), settings, None)
    connection = await Connection.open(settings)
    with telemetry.span("call", {"traceparent": parent}):
        said = await toy.say(Bus(connection, "test"), "hello")
    await toy.names_of(Bus(connection, "test"))
    stored = await connection.get(said.sequence)
    await connection.close()
    await runtime.stop()
    spans = [
        {
            "name": span.name,
            "trace": f"{span.context.trace_id:032x}",
            "id": f"{span.context.span_id:016x}",
            "parent": f"{span.parent.span_id:016x}" if span.parent else "",
        }
        for span in exporter.get_finished_spans()
        if span.context
    ]
    print(json.dumps({"spans": spans, "stored": stored[0]["traceparent"] if stored else ""}))


if __name__ == "__main__":
    assert events
    asyncio.run(main(*sys.argv[1:]))
