"""One trace from the caller to the tables, metrics that exist, logs of one line."""

from __future__ import annotations

import io
import json
import logging
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import ClassVar

import pytest
from prometheus_client import REGISTRY

from mycelium_kernel import telemetry, testing
from mycelium_kernel.bus import Bus
from mycelium_kernel.connections import Connection
from services.kernel.tests import toy
from services.kernel.tests.toy import Start

TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = f"00-{TRACE}-b7ad6b7169203331-01"


async def test_one_trace_leads_from_the_caller_to_the_tables(nats_server: testing.NatsServer) -> None:
    """Ask → answer → append → projection, each the child of the one before, under the caller's own trace."""
    command = [sys.executable, "-m", "services.kernel.tests.traced", nats_server.url, testing.PASSWORD, PARENT]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)  # noqa: ASYNC221
    told = json.loads(done.stdout)
    spans = {span["name"]: span for span in told["spans"] if span["trace"] == TRACE}

    assert spans["call"]["parent"] == "b7ad6b7169203331"
    assert spans["ask PostMessageRequest"]["parent"] == spans["call"]["id"]
    assert spans["rooms post_message"]["parent"] == spans["ask PostMessageRequest"]["id"]
    assert spans["project MessagePosted"]["parent"] == spans["rooms post_message"]["id"]
    assert told["stored"].split("-")[1:3] == [TRACE, spans["rooms post_message"]["id"]]


async def test_a_process_that_records_nothing_passes_a_trace_on(start: Start, bus: Bus, connection: Connection) -> None:
    """A trace does not end where nobody watches."""
    async with start():
        with telemetry.span("call", {"traceparent": PARENT}):
            said = await toy.say(bus, "hello")
        untraced = await toy.say(bus, "hello")
        traced, other = await connection.get(said.sequence), await connection.get(untraced.sequence)

    assert traced
    assert traced[0]["traceparent"] == PARENT
    assert other
    assert "traceparent" not in other[0]


class Collector(BaseHTTPRequestHandler):
    """Takes spans, and remembers how many requests brought some."""

    came: ClassVar[list[bytes]] = []

    def do_POST(self) -> None:
        self.came.append(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(200)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Nothing on stderr."""


def test_spans_that_are_held_back_are_sent_before_a_process_ends_unseen() -> None:
    """As a hub does that starts itself again; where nothing is recorded there is nothing to send."""
    telemetry.flush()
    server = HTTPServer(("127.0.0.1", 0), Collector)
    serving = threading.Thread(target=server.handle_request)
    serving.start()
    ends = "with telemetry.span('the last one'): pass\ntelemetry.flush()\nos._exit(0)"
    begins = f"telemetry.configure_traces('test', endpoint='http://127.0.0.1:{server.server_port}/v1/traces')"
    program = f"import os\nfrom mycelium_kernel import telemetry\n{begins}\n{ends}"
    subprocess.run([sys.executable, "-c", program], timeout=30, check=True)
    serving.join(10)
    server.server_close()

    assert b"the last one" in Collector.came[0]


def count(name: str, **labels: str) -> float:
    return REGISTRY.get_sample_value(name, labels) or 0.0


async def test_what_happens_is_counted(start: Start, bus: Bus) -> None:
    """Requests by outcome, facts appended and applied, bugs, the tables' position."""
    verb = {"service": "rooms", "verb": "post_message"}
    before = {
        name: count(name, service="rooms")
        for name in ("mycelium_facts_appended_total", "mycelium_facts_applied_total", "mycelium_bugs_total")
    }
    requests = count("mycelium_requests_total", **verb, outcome="ok")
    async with start():
        await toy.say(bus, "hello")
        await toy.names_of(bus)
        with pytest.raises(Exception, match="internal"):
            await toy.say(bus, "bug")

    assert {name: count(name, service="rooms") - number for name, number in before.items()} == dict.fromkeys(before, 1)
    assert count("mycelium_requests_total", **verb, outcome="ok") == requests + 1
    assert count("mycelium_tables_position", service="rooms") == 1
    assert count("mycelium_request_seconds_count", **verb) > 0


@pytest.fixture
def _root_logger() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.mark.usefixtures("_root_logger")
def test_each_log_record_is_one_line_of_json() -> None:
    """Also one with line breaks, extras and a traceback."""
    stream = io.StringIO()
    telemetry.configure_logs("info", stream)
    try:
        1 / 0  # noqa: B018
    except ZeroDivisionError:
        logging.getLogger("test").exception("two\nlines", extra={"key": "k1"})
    logging.getLogger("test").debug("not shown")

    (line,) = stream.getvalue().splitlines()
    said = json.loads(line)
    assert (said["event"], said["level"], said["logger"], said["key"]) == ("two\nlines", "error", "test", "k1")
    assert "ZeroDivisionError" in said["exception"]
    assert said["timestamp"].endswith("Z")


def test_without_an_exporter_nothing_is_recorded() -> None:
    """Tracing is paid for by those who ask for it."""
    telemetry.configure_traces("rooms")
    assert not telemetry.recording()
