"""Fixtures: a real hub, an API server in memory (kmock), and the operator between them."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import kmock
import kopf
import pytest

from e2e.harness import Hub
from mycelium_operator import handlers, names
from mycelium_operator.apply import Operator
from mycelium_operator.cluster import Access, Cluster
from mycelium_operator.hub import Hub as HubClient

BOUND_S = 20.0
ROOMS = f"{names.API_VERSION}/{names.ROOMS}"
RESOURCES = (  # the last two are what kopf looks for before it begins
    (ROOMS, names.ROOM, True),
    ("v1/events", "Event", True),
    ("v1/namespaces", "Namespace", False),
    ("apiextensions.k8s.io/v1/customresourcedefinitions", "CustomResourceDefinition", False),
)
VERBS = ["get", "list", "watch", "patch", "create", "delete"]


@pytest.fixture(scope="session")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    """A hub on one machine; each test names rooms of its own."""
    started = Hub(tmp_path_factory.mktemp("operator") / "home").start()
    yield started
    started.close()


class Kubernetes:
    """The objects of an API server in memory, which an operator watches."""

    def __init__(self, server: Any, hub: Hub) -> None:
        self.server = server
        self.hub = hub
        self.url = str(server.url).rstrip("/")

    @contextlib.asynccontextmanager
    async def operator(self, hub_url: str = "", resync_s: float = 3600) -> AsyncIterator[None]:
        """An operator, for the time of the block.

        In an event loop of its own: at its end it waits for whatever else is in its loop.
        """
        ready, stop = threading.Event(), threading.Event()
        running = asyncio.create_task(
            asyncio.to_thread(lambda: asyncio.run(self._operate(hub_url or self.hub.url, resync_s, ready, stop)))
        )
        started = asyncio.create_task(asyncio.to_thread(ready.wait, BOUND_S))
        await asyncio.wait((running, started), return_when=asyncio.FIRST_COMPLETED)
        try:
            assert not running.done(), running.result()
            yield
        finally:
            stop.set()
            await asyncio.wait_for(running, BOUND_S)

    async def _operate(self, hub_url: str, resync_s: float, ready: threading.Event, stop: threading.Event) -> None:
        def login(**_: Any) -> kopf.ConnectionInfo:
            return kopf.ConnectionInfo(server=self.url, token="t", default_namespace="ns")

        async with aiohttp.ClientSession() as session:
            operator = Operator(
                HubClient(session, hub_url), Cluster(session, Access(self.url, Path("/nowhere"))), lambda: "T"
            )
            await kopf.operator(
                registry=handlers.registry(operator, login, resync_s),
                namespaces=["ns"],
                standalone=True,
                ready_flag=ready,
                stop_flag=stop,
            )

    async def create(self, object_name: str, **spec: Any) -> None:
        metadata = {
            "name": object_name,
            "namespace": "ns",
            "uid": f"uid-{object_name}",
            "generation": 1,
            "resourceVersion": "1",
        }
        body = {"apiVersion": names.API_VERSION, "kind": names.ROOM, "metadata": metadata, "spec": spec}
        await self._call("POST", "", body)

    async def patch(self, name: str, **parts: Any) -> None:
        await self._call("PATCH", f"/{name}", parts)

    async def delete(self, name: str) -> None:
        await self._call("DELETE", f"/{name}", None)

    async def _call(self, method: str, rest: str, body: Any) -> None:
        url = f"{self.url}/apis/{names.API_VERSION}/namespaces/ns/rooms{rest}"
        headers = {"Content-Type": "application/merge-patch+json"} if method == "PATCH" else {}
        async with aiohttp.ClientSession() as session, session.request(method, url, json=body, headers=headers) as said:
            assert said.ok, await said.text()

    def room(self, name: str) -> dict[str, Any] | None:
        """The object as it is; None when it has gone."""
        found = self.server.objects[ROOMS, "ns", name]
        return None if found.deleted else dict(found.raw)

    async def until(self, look: Callable[[], Any]) -> Any:
        """What `look` returns once that is true. The operator runs in this very loop, so it is let run."""
        async with asyncio.timeout(BOUND_S):
            while not (seen := look()):  # noqa: ASYNC110 - another process is looked at
                await asyncio.sleep(0.02)
        return seen

    async def until_ready(self, name: str, verdict: str = "True") -> dict[str, Any]:
        """The object's condition once it has that verdict."""

        def look() -> dict[str, Any] | None:
            body = self.room(name) or {}
            conditions = (body.get("status") or {}).get("conditions") or []
            generation = body["metadata"].get("generation")
            for one in conditions:
                if (one["status"], one["observedGeneration"]) == (verdict, generation):
                    return dict(one)
            return None

        found: dict[str, Any] = await self.until(look)
        return found


@pytest.fixture
async def kubernetes(kmock: kmock.RawHandler, hub: Hub) -> Kubernetes:
    """An API server that knows what the operator uses."""
    server: Any = kmock
    for resource, kind, namespaced in RESOURCES:
        server.resources[resource] = {
            "kind": kind,
            "singular": kind.lower(),
            "namespaced": namespaced,
            "verbs": VERBS,
            "subresources": ["status"] if resource == ROOMS else [],
            "shortnames": [],
            "categories": [],
        }
    return Kubernetes(server, hub)
