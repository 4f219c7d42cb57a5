"""A hub with engines, and the model that its tests script."""

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from e2e.harness import Hub, Machine
from e2e.model import KEY, Model
from e2e.room import Room
from e2e.waiting import until

ANSWER_S = 60.0  # of a busy machine; the first answer loads the library of models
START_S = 90.0


def settings(model: Model, name: str = "openai/scripted", key: str = KEY) -> dict[str, str]:
    """The environment of a hub that asks this model."""
    return {
        "MYCELIUM_RUNTIME_ENGINES": "true",
        "LLM_MODEL": name,
        "LLM_BASE_URL": model.url,
        "LLM_API_KEY": key,
        "MYCELIUM_LLM_TIMEOUT_S": "20",
    }


@contextlib.contextmanager
def hub_with_engines(home: Path, env: dict[str, str], port: int = 0) -> Iterator[Hub]:
    """A hub whose engines are there."""
    hub = Hub(home, port, env)
    try:
        hub.start()
        until(lambda: health(hub)["engine"]["status"] == "ok", "engines are there", START_S)
        yield hub
    finally:
        hub.close()


def health(hub: Hub) -> dict[str, Any]:
    """What the hub says of its services."""
    found: dict[str, Any] = hub.api.get("/health").ok(200).json["services"]
    return found


def engine_room(hub: Hub, machine: Machine, name: str = "sprint-plan", handle: str = "greeter") -> Room:
    """A room with a hello engine in it."""
    room = Room(hub.api, machine, name).create()
    machine.run("engine", "create", handle, "--kind", "hello", "-r", name, handle="avery").ok()
    return room


def answers(room: Room, message: dict[str, Any], handle: str = "greeter") -> list[dict[str, Any]]:
    """Every reply of an engine to a message."""
    query: dict[str, str | int] = {"sender": handle, "limit": 500, "all": "true"}
    return [found for found in room.page(**query)["items"] if found["reply_to"] == message["id"]]


def answered(room: Room, message: dict[str, Any], handle: str = "greeter") -> dict[str, Any]:
    """The one reply of an engine to a message, once it is there."""
    found = until(lambda: answers(room, message, handle), "the engine answers", ANSWER_S)
    assert len(found) == 1, found
    return found[0]


def members(hub: Hub) -> list[dict[str, Any]]:
    """The processes of a hub, as it tells of them."""
    found: list[dict[str, Any]] = json.loads((hub.home / "run" / "processes.json").read_text())["items"]
    return found
