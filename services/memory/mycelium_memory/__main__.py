"""`python -m mycelium_memory`: the memory service as a process of its own."""

from collections.abc import Mapping

from mycelium_kernel import program
from mycelium_kernel.service import Service
from mycelium_kernel.settings import Value
from mycelium_memory import model
from mycelium_memory.service import service


def build(_values: Mapping[str, Value]) -> Service:
    """The service."""
    return service()


if __name__ == "__main__":
    program.run(model.MEMORY, build)
