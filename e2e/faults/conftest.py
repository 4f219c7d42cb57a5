"""Fixtures: hubs with an environment of their own, ended with the test."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from e2e.harness import Hub, free_port

MakeHub = Callable[[dict[str, str]], Hub]
# Every service in two processes of its own: what a fault hits is one of many.
SPLIT = {"MYCELIUM_RUNTIME_SPLIT": "true", "MYCELIUM_RUNTIME_REPLICAS": "2"}
CLUSTER = {"MYCELIUM_RUNTIME_NATS_SERVERS": "3"}


@pytest.fixture
def make_hub(tmp_path: Path) -> Iterator[MakeHub]:
    """Starts a hub of many processes in that environment, at an address to which it comes back."""
    made: list[Hub] = []

    def make(env: dict[str, str]) -> Hub:
        made.append(Hub(tmp_path / f"hub{len(made)}", free_port(), SPLIT | env))
        return made[-1].start()

    yield make
    for hub in made:
        hub.close()


@pytest.fixture
def fleet(make_hub: MakeHub) -> Hub:
    """A hub of many processes."""
    return make_hub({})


@pytest.fixture
def cluster(make_hub: MakeHub) -> Hub:
    """The same on three NATS servers, which keep every fact three times."""
    return make_hub(CLUSTER)
