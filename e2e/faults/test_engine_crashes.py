"""Engines through the death of anything: after every event of a run's history something is killed."""

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client
from temporalio.service import RPCError

from e2e.engines import answered, answers, engine_room, health, hub_with_engines, members, settings
from e2e.harness import Hub, Machine, free_port
from e2e.model import Model
from e2e.requirements import requirement
from e2e.room import Room
from e2e.waiting import until

pytestmark = [pytest.mark.faults, pytest.mark.timeout(1200)]

EVENTS = 21  # of a run that nothing disturbs; the last one says that it is over
RECORDED = EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED


class World(NamedTuple):
    """A hub that comes back at its address, its model, a room with @greeter."""

    hub: Hub
    model: Model
    room: Room
    room_id: str


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """All of it is the test's own."""
    with Model() as model, hub_with_engines(tmp_path / "home", settings(model), free_port()) as hub:
        machine = Machine(tmp_path / "client", hub.url)
        room = engine_room(hub, machine)
        answered(room, room.post("@greeter warm up"))
        yield World(hub, model, room, room.api.get(room.at(), handle="avery").ok(200).json["id"])
        machine.close()


def kill_service(name: str) -> Callable[[Hub], None]:
    """Kills every process of a service; the hub starts them again."""

    def kill(hub: Hub) -> None:
        for member in members(hub):
            if member["service"] == name:
                os.kill(member["pid"], signal.SIGKILL)

    return kill


VICTIMS: dict[str, Callable[[Hub], None]] = {
    "engine": kill_service("engine"),
    "temporal": kill_service("temporal"),
    "nats": kill_service("nats"),
    "hub": Hub.kill,
}


@requirement("engines:runs:every-event")
@pytest.mark.parametrize("victim", list(VICTIMS))
def test_killed_after_every_event_of_its_history_a_run_still_answers_once(world: World, victim: str) -> None:
    """No model is asked again for an answer that was recorded."""
    for number in range(1, EVENTS + 1):
        before = len(world.model.asked)
        message, seen = asyncio.run(_strike(world, number, VICTIMS[victim]))
        assert len(seen) == number, f"{len(seen)} events, not {number}"
        if not world.hub.alive:
            world.hub.start()
        answered(world.room, message)
        until(lambda: health(world.hub)["engine"]["status"] == "ok", "engines are well again", 60)
        asyncio.run(_closed(world, message))
        assert len(answers(world.room, message)) == 1
        asked = len(world.model.asked) - before
        assert asked == 1 if RECORDED in seen else asked <= 2, f"asked {asked} times, killed after {number}"
    days = world.room.api.get(world.room.at("board", "log"), handle="avery").ok(200).json["items"]
    assert sum(day["runs"] for day in days) == EVENTS + 1, "each is told once"


async def _strike(world: World, number: int, kill: Callable[[Hub], None]) -> tuple[dict[str, Any], list[int]]:
    """Mention @greeter, and kill as soon as that event is stored; the engines stand still until all is watched."""
    engines = [member["pid"] for member in members(world.hub) if member["service"] == "engine"]
    client = await _client(world.hub)
    for pid in engines:
        os.kill(pid, signal.SIGSTOP)
    try:
        message = await asyncio.to_thread(world.room.post, f"@greeter number {number}")
    finally:
        for pid in engines:
            os.kill(pid, signal.SIGCONT)
    seen: list[int] = []
    async with asyncio.timeout(60):
        async for event in _events(world, client, message):
            seen.append(event)
            if len(seen) == number:
                kill(world.hub)
                break
    return message, seen


async def _events(world: World, client: Client, message: dict[str, Any]) -> Any:
    """The types of a run's events, each as soon as it is stored."""
    run = client.get_workflow_handle(_run_id(world.room_id, message))
    while True:
        try:
            await run.describe()
        except RPCError:
            await asyncio.sleep(0.002)
            continue
        break
    async for event in run.fetch_history_events(wait_new_event=True):
        yield event.event_type


async def _closed(world: World, message: dict[str, Any]) -> None:
    """Return once the run is over, so that nothing more can come of it; Temporal may still be coming back."""
    async with asyncio.timeout(90):
        while True:
            run = (await _client(world.hub)).get_workflow_handle(_run_id(world.room_id, message))
            with contextlib.suppress(RPCError):
                async for _event in run.fetch_history_events(wait_new_event=True):
                    pass
                return
            await asyncio.sleep(0.002)


async def _client(hub: Hub) -> Client:
    """Temporal as anybody on this machine reaches it: it tells what happens, not what is said."""
    async with asyncio.timeout(60):
        while True:
            port = next(member["port"] for member in members(hub) if member["service"] == "temporal")
            with contextlib.suppress(RuntimeError):  # it is coming back
                return await Client.connect(f"127.0.0.1:{port}", namespace="mycelium")
            await asyncio.sleep(0.002)


def _run_id(room_id: str, message: dict[str, Any]) -> str:
    return f"HelloRun:{room_id}:{message['id']}:greeter"
