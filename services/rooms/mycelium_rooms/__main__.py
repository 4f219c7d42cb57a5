"""`python -m mycelium_rooms`: the rooms service as a process of its own."""

from collections.abc import Mapping
from pathlib import Path

from mycelium_kernel import program
from mycelium_kernel.service import Service
from mycelium_kernel.settings import Setting, Value
from mycelium_rooms import model
from mycelium_rooms.service import service

SETTINGS = (
    Setting(
        "rooms.folder",
        "str",
        "",
        "Where each room has a folder; empty keeps none. One replica only may be told to keep them.",
        unit="folder",
        scope="service",
    ),
)


def build(values: Mapping[str, Value]) -> Service:
    """The service, with the folders of rooms where it is told to keep them."""
    folder = str(values["rooms.folder"])
    return service(rooms_folder=Path(folder) if folder else None)


if __name__ == "__main__":
    program.run(model.ROOMS, build, SETTINGS)
