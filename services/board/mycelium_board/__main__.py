"""`python -m mycelium_board`: the board service as a process of its own."""

from collections.abc import Mapping

from mycelium_board import model
from mycelium_board.service import service
from mycelium_board.settings import BOARD_SETTINGS, GATE
from mycelium_kernel import program
from mycelium_kernel.service import Service
from mycelium_kernel.settings import Value


def build(values: Mapping[str, Value]) -> Service:
    """The service, with the gate as it is set."""
    return service(is_gated=bool(values[GATE.key]))


if __name__ == "__main__":
    program.run(model.BOARD, build, BOARD_SETTINGS)
