"""`python -m mycelium_board`: the board service as a process of its own."""

from collections.abc import Mapping

from mycelium_board import model
from mycelium_board.service import service
from mycelium_kernel import program
from mycelium_kernel.service import Service
from mycelium_kernel.settings import Value


def build(_values: Mapping[str, Value]) -> Service:
    """The service; it has no settings of its own."""
    return service()


if __name__ == "__main__":
    program.run(model.BOARD, build, ())
