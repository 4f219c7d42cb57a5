"""`python -m mycelium_operator`: the operator in a pod, until it is told to stop."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import ssl
import sys
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import aiohttp
import kopf
from aiohttp import web

from mycelium_operator import handlers, settings
from mycelium_operator.apply import Operator
from mycelium_operator.cluster import ACCOUNT, Access, Cluster
from mycelium_operator.hub import Hub
from mycelium_operator.settings import OperatorSettings


async def run(given: OperatorSettings) -> None:
    """Serve until a signal."""
    ready = asyncio.Event()
    trust = ssl.create_default_context(cafile=str(ACCOUNT / "ca.crt"))
    host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ["KUBERNETES_SERVICE_PORT"]
    server = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
    async with (
        _probes(given, ready),
        aiohttp.ClientSession() as to_hub,
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=trust)) as to_cluster,
    ):
        cluster = Cluster(to_cluster, Access(server))
        if not await cluster.knows_rooms():
            sys.exit("the cluster does not know Rooms: helm install mycelium-crds charts/mycelium-crds")
        operator = Operator(Hub(to_hub, given.gateway, given.token_file), cluster, _now)
        await kopf.operator(
            registry=handlers.registry(operator, kopf.login_with_service_account, given.resync_s),
            namespaces=[given.namespace],
            standalone=True,
            ready_flag=ready,
        )


@contextlib.asynccontextmanager
async def _probes(given: OperatorSettings, ready: asyncio.Event) -> AsyncIterator[None]:
    """Alive while the event loop turns; ready once it watches."""

    async def healthz(_: web.Request) -> web.Response:
        return web.Response(text="ok")

    async def readyz(_: web.Request) -> web.Response:
        return web.Response(text="ok") if ready.is_set() else web.Response(text="starting", status=503)

    app = web.Application()
    app.add_routes([web.get("/healthz", healthz), web.get("/readyz", readyz)])
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, given.probe_host, given.probe_port).start()
    try:
        yield
    finally:
        await runner.cleanup()


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def main() -> None:
    """Read the settings and run."""
    given = settings.load(os.environ)
    kopf.configure(verbose=given.log_level == "debug")
    logging.getLogger("kopf").setLevel(given.log_level.upper())
    asyncio.run(run(given))


if __name__ == "__main__":
    main()
