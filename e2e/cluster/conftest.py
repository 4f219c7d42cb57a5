"""Fixtures: a release that the tests share, a door to its Service, machines and rooms that use it."""

import contextlib
import itertools
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from e2e.cluster.door import door
from e2e.cluster.issuer import Guarded, Issuer
from e2e.cluster.kube import CHARTS, Namespace, Release, run
from e2e.harness import Machine
from e2e.room import Room
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
        made.install(**{"image.tag": TAG, "auth.insecure": True, "nats.onUninstall": "Delete", **values})
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
    """Where the Service of the shared hub answers from here."""
    with door(release.address(), tmp_path_factory.mktemp("door")) as found:
        yield found


@pytest.fixture(scope="session")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """A small hub where everybody signs in, at an issuer that begins after it; `operator` is an agent there too."""
    issuer, folder = Issuer(TAG, "asker", "answerer", "operator"), tmp_path_factory.mktemp("guarded")
    without = {f"services.{name}.enabled": False for name in ("engine", "memory", "board")}
    small = {"temporal.enabled": False, "services.rooms.replicas": 1, **without}
    quick = {"services.operator.settings": {"operator.resync_s": 2}}
    with (
        installed("signed", {**small, **quick, **issuer.values}) as release,
        issuer.running(release.namespace, folder),
        door(release.address(), folder) as url,
    ):
        yield Guarded(release, url, issuer, folder)


@pytest.fixture
def stranger(guarded: Guarded, tmp_path: Path) -> Iterator[Machine]:
    """A computer that uses the same hub and has no credential."""
    found = Machine(tmp_path / "stranger", guarded.url)
    yield found
    found.close()


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
