"""`python -m mycelium_memory`: the memory service as a process of its own."""

import socket
from collections.abc import Mapping
from pathlib import Path

from mycelium_kernel import program
from mycelium_kernel.service import Service
from mycelium_kernel.settings import Value
from mycelium_memory import model
from mycelium_memory.service import service
from mycelium_memory.settings import SEARCH_SETTINGS, SERVICE_SETTINGS, index_settings


def build(values: Mapping[str, Value]) -> Service:
    """The service; it owns the index where it is told a folder and its machine is the one, and may keep the tree."""
    folder = str(values["memory.index_folder"])
    is_owner = folder and socket.gethostname().endswith(str(values["memory.index_host"]))
    tree = str(values["memory.tree"])
    return service(index_settings(values, Path(folder)) if is_owner else None, Path(tree) if tree else None)


if __name__ == "__main__":
    program.run(model.MEMORY, build, (*SEARCH_SETTINGS, *SERVICE_SETTINGS))
