"""A seeded bug: a replica answers from its tables as they are, without a look at how far the log is."""

from typing import Any

MODULE = "mycelium_kernel.projector"


def patch(projector: Any) -> None:
    """Let `catch_up` return at once."""

    async def at_once(_self: Any) -> None:
        return None

    projector.Projector.catch_up = at_once
