"""The kinds of engine: a new one is a folder, a line here, a value of the proto's EngineKind, docs and a test.

Loaded with Temporal's library, which workflows stand on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from mycelium.rooms.v1 import views_pb2
from mycelium_engine.calls import Call
from mycelium_engine.hello import workflow as hello


@dataclass(frozen=True)
class Kind:
    """One kind: what is started for a mention, and under which id."""

    workflow: type
    workflow_type: str
    workflow_id: Callable[[Call], str]


KINDS: Mapping[int, Kind] = {
    views_pb2.ENGINE_KIND_HELLO: Kind(hello.HelloRun, hello.TYPE, hello.workflow_id),
}


def named(name: str) -> Kind | None:
    """The kind that facts call by this name, such as `hello`; None when nobody runs it."""
    return KINDS.get(dict(views_pb2.EngineKind.items()).get(f"ENGINE_KIND_{name.upper()}", 0))


def workflows() -> list[type[Any]]:
    """Every workflow that a worker of the hub runs."""
    return [kind.workflow for kind in KINDS.values()]
