"""Fixtures: a release that the tests share, a door to its Service, machines and rooms that use it."""

import contextlib
import itertools
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from e2e.cluster.kube import CHARTS, CLUSTER, Namespace, Release, run
from e2e.harness import Machine, free_port
from e2e.processes import Background
from e2e.room import Room
from e2e.waiting import until
from e2e.web import Api

TAG = os.environ.get("TAG", "dev")
_NUMBERS = itertools.count(1)


@contextlib.contextmanager
def installed(word: str, values: dict[str, Any]) -> Iterator[Release]:
    """The chart on a namespace that was empty, and whose pods have to be restricted; gone again at the end."""
    namespace = Namespace(f"{word}-{os.getpid()}")
    run("helm", "upgrade", "--install", "mycelium-crds", str(CHARTS / "mycelium-crds"),
        "--namespace=mycelium-crds", "--create-namespace")  # fmt: skip
    run("kubectl", "create", "namespace", namespace.name)
    run("kubectl", "label", "namespace", namespace.name, "pod-security.kubernetes.io/enforce=restricted")
    made = Release(namespace)
    try:
        made.install(**{"image.tag": TAG, "nats.onUninstall": "Delete", **values})
        yield made
    finally:
        if os.environ.get("KEEP"):
            print(f"kept: namespace {namespace.name}")
        else:
            run("kubectl", "delete", "namespace", namespace.name, "--wait=false")


@pytest.fixture(scope="session")
def release() -> Iterator[Release]:
    """The hub that tests share."""
    with installed("hub", {"services.operator.settings": {"operator.resync_s": 2}}) as made:
        yield made


@pytest.fixture
def three() -> Iterator[Release]:
    """A hub whose facts are kept by three NATS servers; without engines and objects, which have nothing to do here."""
    without = {f"services.{name}.enabled": False for name in ("engine", "operator")}
    with installed("three", {"nats.replicas": 3, "temporal.enabled": False, **without}) as made:
        yield made


@pytest.fixture(scope="session")
def url(release: Release, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where the Service answers from here: each connection goes to the Service's own address, which shares them out."""
    socket, port = tmp_path_factory.mktemp("door") / "socket", free_port()
    environment = {**os.environ}
    inside = Background(
        [CLUSTER, "run", "--", "socat", f"UNIX-LISTEN:{socket},fork", f"TCP:{release.address()}"], environment
    )
    outside = Background(
        ["socat", f"TCP-LISTEN:{port},bind=127.0.0.1,reuseaddr,fork", f"UNIX-CONNECT:{socket}"], environment
    )
    try:
        until(socket.exists, "the door is open")
        found = f"http://127.0.0.1:{port}"
        until(lambda: _answers(found), "the hub answers through its Service", 60)
        yield found
    finally:
        outside.end()
        inside.end()


def _answers(url: str) -> bool:
    try:
        return Api(url).get("/healthz").status == 200
    except OSError:
        return False


@pytest.fixture
def api(url: str) -> Api:
    """The hub over HTTP."""
    return Api(url)


@pytest.fixture
def machine(url: str, tmp_path: Path) -> Iterator[Machine]:
    """A computer that uses the hub through its Service."""
    found = Machine(tmp_path / "client", url)
    yield found
    found.close()


@pytest.fixture
def unique() -> Callable[[str], str]:
    """Names that no other test has."""
    return lambda word: f"{word}-{next(_NUMBERS)}"


@pytest.fixture
def room(api: Api, machine: Machine, unique: Callable[[str], str]) -> Room:
    """A new room."""
    return Room(api, machine, unique("room")).create()
