"""A way from this machine to an address inside the cluster."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from e2e.cluster.kube import CLUSTER
from e2e.harness import free_port
from e2e.processes import Background
from e2e.waiting import until
from e2e.web import Api


@contextlib.contextmanager
def door(address: str, folder: Path, port: int = 0) -> Iterator[str]:
    """Where a Service answers from here: each connection goes to the Service's own address, which shares them out."""
    socket, port = folder / f"door-{address.replace(':', '-')}", port or free_port()
    environment = {**os.environ}
    inside = Background([CLUSTER, "run", "--", "socat", f"UNIX-LISTEN:{socket},fork", f"TCP:{address}"], environment)
    outside = Background(
        ["socat", f"TCP-LISTEN:{port},bind=127.0.0.1,reuseaddr,fork", f"UNIX-CONNECT:{socket}"], environment
    )
    try:
        until(socket.exists, "the door is open")
        found = f"http://127.0.0.1:{port}"
        until(lambda: _answers(found), f"{address} answers", 60)
        yield found
    finally:
        outside.end()
        inside.end()


def _answers(url: str) -> bool:
    try:
        return Api(url).get("/healthz").status < 500
    except OSError:
        return False
