"""A service starts whole or not at all, keeps its workers at work, and stops in order and soon."""

from __future__ import annotations

import asyncio
import dataclasses
from pathlib import Path
from typing import Any

import pytest

from mycelium.rooms.v1 import service_pb2
from mycelium_kernel import run, tasks, testing
from mycelium_kernel.bus import Bus
from mycelium_kernel.connections import Unfit
from mycelium_kernel.errors import Unavailable
from mycelium_kernel.run import Runtime
from mycelium_kernel.service import Command, Query, Service
from services.kernel.tests import toy
from services.kernel.tests.toy import Start


async def hang(_runtime: Runtime) -> None:
    await asyncio.Event().wait()


def broken_arm(_runtime: Runtime) -> Any:
    raise AssertionError("is not called at once")


QUERY_AS_COMMAND = Command(service_pb2.ListUsersRequest, toy.load_user, toy.save_user, toy.answer_user)
COMMAND_AS_QUERY = Query(service_pb2.SaveUserRequest, toy.list_users)
BROKEN = {
    "a query wired as a command": toy.service(commands=(QUERY_AS_COMMAND,), queries=(), workers=(hang,)),
    "a command wired as a query": toy.service(commands=(), queries=(COMMAND_AS_QUERY,), workers=(hang,)),
    "commands without tables": toy.service(projection=None, queries=(), workers=(hang,)),
    "queries without tables": toy.service(projection=None, commands=(), workers=(hang,)),
    "tables without a schema": toy.service(projection=dataclasses.replace(toy.PROJECTION, schemas=(Path("no.sql"),))),
}


@pytest.mark.parametrize("service", BROKEN.values(), ids=BROKEN.keys())
async def test_a_start_that_fails_leaves_nothing_behind(nats_server: testing.NatsServer, service: Service) -> None:
    """No task and no connection is left of a service that could not start; the reason is raised."""
    before = asyncio.all_tasks()
    with pytest.raises((TypeError, OSError)):
        await run.start(service, nats_server.settings("rooms"), None)

    await toy.until(lambda: asyncio.all_tasks() <= before)


async def test_an_unfit_server_starts_no_service(tmp_path: Path) -> None:
    """The check of the server comes before everything else."""
    server = testing.NatsServer(tmp_path, sync='"2m"')
    await server.start()
    before = asyncio.all_tasks()
    with pytest.raises(Unfit):
        await run.start(toy.service(), server.settings("rooms"), None)
    await toy.until(lambda: asyncio.all_tasks() <= before)
    server.stop()


async def test_a_stopped_service_leaves_no_task(start: Start, bus: Bus) -> None:
    """Everything a service began ends with it."""
    async with start():
        await toy.save(bus, "first")  # begins the client's own task for answers
    before = asyncio.all_tasks()
    async with start(toy.service(workers=(hang, hang))):
        await toy.save(bus, "a")

    await toy.until(lambda: asyncio.all_tasks() <= before)


async def test_a_worker_that_fails_is_started_again_and_told_in_health(
    start: Start, bus: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One failing worker neither ends the service nor goes unseen."""
    monkeypatch.setattr(run, "WORKER_PAUSE_S", (0.01, 0.02))
    monkeypatch.setattr(run, "WORKER_STEADY_S", 0.3)
    tries: list[int] = []

    async def flaky(_runtime: Runtime) -> None:
        tries.append(len(tries))
        if len(tries) < 3:
            raise ZeroDivisionError
        await asyncio.Event().wait()

    async with start(toy.service(workers=(flaky,))) as runtime:
        await toy.until(lambda: len(tries) == 3)
        assert runtime.health() == {
            "status": "degraded", "detail": "flaky: ZeroDivisionError", "version": "0.1.0", "position": 0,
        }  # fmt: skip
        assert await toy.names_of(bus) == []
        await toy.until(lambda: runtime.health()["status"] == "ok")


async def test_a_worker_that_was_well_for_long_is_started_again_at_once(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only failures in a row make the pause longer."""
    monkeypatch.setattr(run, "WORKER_PAUSE_S", (0.01, 60.0))
    monkeypatch.setattr(run, "WORKER_STEADY_S", 0.0)
    tries: list[int] = []

    async def failing(_runtime: Runtime) -> None:
        tries.append(1)
        raise ZeroDivisionError

    async with start(toy.service(workers=(failing,))):
        await toy.until(lambda: len(tries) > 30)


async def test_a_worker_may_end(start: Start) -> None:
    """A worker that returns has done its work and is not begun again."""
    done: list[int] = []

    async def once(_runtime: Runtime) -> None:
        done.append(1)

    async with start(toy.service(workers=(once,))) as runtime:
        await toy.until(lambda: done)
        await toy.until(lambda: "once" not in {task.get_name() for task in runtime._workers})
    assert done == [1]


async def test_health_tells_that_nats_is_away(start: Start, nats_server: testing.NatsServer) -> None:
    """A service that can't be reached by its bus is degraded, and well again afterwards."""
    async with start() as runtime:
        nats_server.kill()
        await toy.until(lambda: "nats: not connected" in runtime.health()["detail"])
        await nats_server.start()
        await toy.until(lambda: runtime.health()["status"] == "ok")


async def test_a_service_stops_soon_without_nats(start: Start, bus: Bus, nats_server: testing.NatsServer) -> None:
    """Nobody waits for a server that is gone, though requests are in work."""
    async with start(toy.service(workers=(hang,), on_timer=toy.ignore_timer)):
        asked = [asyncio.create_task(toy.say(bus, str(n), timeout_s=3)) for n in range(20)]
        await asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED)
        nats_server.kill()
        began = asyncio.get_running_loop().time()
    assert asyncio.get_running_loop().time() - began < toy.BOUND_S  # not as long as the server is gone
    for outcome in await asyncio.gather(*asked, return_exceptions=True):
        assert not isinstance(outcome, Exception) or isinstance(outcome, Unavailable)


async def test_arming_that_fails_is_told_and_tried_again(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bug in arming timers is seen in health."""
    monkeypatch.setattr(run, "WORKER_PAUSE_S", (0.01, 0.02))
    tries: list[int] = []

    async def arm(_runtime: Runtime) -> None:
        tries.append(1)
        raise ZeroDivisionError

    async with start(toy.service(on_timer=toy.ignore_timer, arm=arm)) as runtime:
        await toy.until(lambda: len(tries) > 2)
        assert "timers: ZeroDivisionError" in runtime.health()["detail"]


async def test_a_service_without_requests_answers_health(nats_server: testing.NatsServer, bus: Bus) -> None:
    """A service that only works, such as the gateway, is on the bus too."""
    runtime = await run.start(Service("gateway", "0.1.0", workers=(hang,)), nats_server.settings("gateway"), None)
    (said,) = await bus.health("gateway")
    assert said.pop("instance")
    assert said == {"status": "ok", "detail": "", "version": "0.1.0"}
    await runtime.stop()


async def test_a_task_that_misses_a_cancellation_is_cancelled_again() -> None:
    """A lost cancellation delays an end, and does not prevent it; a task that will not end is left and named."""

    async def deaf(times: int) -> None:
        for _ in range(times):
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                continue
        raise ZeroDivisionError

    once, for_ever = asyncio.create_task(deaf(2)), asyncio.create_task(deaf(tasks.TRIES + 1))
    await asyncio.wait({once, for_ever}, timeout=0.01)
    await tasks.end([once, None, for_ever], again_s=0.02)

    assert once.done()
    assert not for_ever.done()
    for_ever.cancel()
    await asyncio.wait({for_ever})
    assert isinstance(for_ever.exception(), ZeroDivisionError)
