"""How a task is named in an address."""

from mycelium_cli.api import api_path
from mycelium_cli.errors import usage


def task_path(room: str, task: str, verb: str) -> str:
    """The address of something that can be done to a task; a key's slashes are part of its name."""
    named = task.strip().strip("/")
    if not named:
        raise usage("TASK is empty: name a task by its key or its thread", "mycelium board")
    return api_path("rooms", room, "tasks", *named.split("/"), verb)
