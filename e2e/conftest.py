"""Fixtures: one hub that tests share while it is whole, hubs of a test's own, a machine and a room for each test."""

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from e2e import oidc_server
from e2e.guarding import OPERATOR, guarded
from e2e.harness import Hub, Machine, free_port
from e2e.room import Room

_NUMBERS = itertools.count(1)


@pytest.fixture(scope="session")
def _shared_hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    hub = Hub(tmp_path_factory.mktemp("shared") / "home")
    try:
        yield hub
        if hub.alive:
            assert hub.stop().status == 0
            assert not hub.errors()
    finally:
        hub.close()


@pytest.fixture(scope="session")
def idp(tmp_path_factory: pytest.TempPathFactory) -> Iterator[oidc_server.OidcServer]:
    """An issuer that other tests use too: nobody stops it or changes its keys."""
    with oidc_server.started(tmp_path_factory.mktemp("idp")) as server:
        yield server


@pytest.fixture(scope="session")
def guarded_hub(idp: oidc_server.OidcServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    """A hub that other tests use too, where nobody is anybody without a token, not on this machine either."""
    env = {**guarded(idp), "MYCELIUM_AUTH_OPERATORS": OPERATOR}
    found = Hub(tmp_path_factory.mktemp("guarded") / "hub", env=env).start()
    try:
        yield found
    finally:
        found.close()


@pytest.fixture
def hub(_shared_hub: Hub) -> Hub:
    """A hub that other tests use too: names of rooms and people are the test's own, and nobody kills it."""
    return _shared_hub if _shared_hub.alive else _shared_hub.start()


@pytest.fixture
def own_hub(tmp_path: Path) -> Iterator[Hub]:
    """A hub that a test may kill; it comes back on the same port."""
    found = Hub(tmp_path / "hub", free_port()).start()
    try:
        yield found
    finally:
        found.close()


@pytest.fixture
def new_hub(tmp_path: Path) -> Iterator[Hub]:
    """A hub that has not been started: its home is not even there."""
    found = Hub(tmp_path / "new")
    yield found
    found.close()


@pytest.fixture
def machine(hub: Hub, tmp_path: Path) -> Iterator[Machine]:
    """A computer that uses the shared hub from elsewhere."""
    found = Machine(tmp_path / "client", hub.url)
    yield found
    found.close()


@pytest.fixture
def unique() -> Callable[[str], str]:
    """Names that no other test has."""

    def made(word: str) -> str:
        return f"{word}-{next(_NUMBERS)}"

    return made


@pytest.fixture
def room(hub: Hub, machine: Machine, unique: Callable[[str], str]) -> Room:
    """A new room of the shared hub."""
    return Room(hub.api, machine, unique("room")).create()


@pytest.fixture
def own_room(own_hub: Hub, tmp_path: Path) -> Iterator[Room]:
    """A room on a hub that the test may kill."""
    machine = Machine(tmp_path / "client", own_hub.url)
    yield Room(own_hub.api, machine, "demo").create()
    machine.close()
