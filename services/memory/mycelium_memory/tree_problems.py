"""Tells what is wrong in a room's folder, by whichever replica is asked; the one that keeps the tree notes it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING

from mycelium.memory.v1 import files_pb2
from mycelium_kernel import rooms_seen
from mycelium_kernel.service import Context
from mycelium_memory.tree_base import every_problem

if TYPE_CHECKING:
    from mycelium_kernel.run import Runtime

Listed = tuple[files_pb2.ListProblemsResponse, int]


def lister(
    root: Path | None,
) -> Callable[[Runtime, files_pb2.ListProblemsRequest, Context], Awaitable[Listed]]:
    """The answer to `ListProblems`; without a tree nothing can be wrong in it."""

    async def list_problems(runtime: Runtime, request: files_pb2.ListProblemsRequest, context: Context) -> Listed:
        assert runtime.projector is not None
        await runtime.projector.catch_up()
        room = rooms_seen.find_room(runtime.projector.tables, request.room, context)
        answer = files_pb2.ListProblemsResponse()
        for problem in await asyncio.to_thread(every_problem, root, room.id) if root else ():
            answer.problems.add(path=problem.path, reason=problem.reason)
        return answer, 0

    return list_problems
