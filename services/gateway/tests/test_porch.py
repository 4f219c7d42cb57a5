"""How new connections are let in."""

from __future__ import annotations

import asyncio
from functools import partial

from mycelium_gateway.porch import Porch


async def test_those_inside_have_a_turn_between_two_that_come() -> None:
    """Many that come at once are let in in their order, and never two without a look at everybody else."""
    porch, seen, done = Porch(), list[str](), asyncio.Event()

    def inside(left: int) -> None:
        seen.append("inside")
        if left:
            asyncio.get_running_loop().call_soon(inside, left - 1)
        else:
            done.set()

    for number in range(3):
        porch.enter(partial(seen.append, f"new {number}"))
    asyncio.get_running_loop().call_soon(inside, 3)
    async with asyncio.timeout(5):
        await done.wait()

    assert seen == ["new 0", "inside", "new 1", "inside", "new 2", "inside", "inside"]


async def test_one_that_fails_keeps_nobody_out() -> None:
    """Its fault is its own."""
    porch, loop, faults, inside = Porch(), asyncio.get_running_loop(), list[object](), asyncio.Event()
    loop.set_exception_handler(lambda _loop, context: faults.append(context.get("exception")))

    def fail() -> None:
        raise ValueError("cannot be read")

    porch.enter(fail)
    porch.enter(inside.set)
    async with asyncio.timeout(5):
        await inside.wait()

    assert [type(fault) for fault in faults] == [ValueError]
