"""Processes of a hub that are killed while many call it: one after the other, each at its share of the race."""

import os
import random
import signal
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Protocol

from e2e.harness import Hub


class Running(Protocol):
    """A race, of claims or of memories."""

    async def reach(self, share: float) -> None:
        """Return when so much of it is done."""


def killing(hub: Hub, victims: Sequence[str], seed: int, kills: int) -> Callable[[Running], Coroutine[Any, Any, None]]:
    """SIGKILL, whom it hits following from the seed."""

    async def kill(race: Running) -> None:
        chance = random.Random(seed)
        for number in range(kills):
            await race.reach((number + 1) / (kills + 1))
            pid = hub.processes().get(chance.choice(victims), 0)
            if pid:
                os.kill(pid, signal.SIGKILL)

    return kill
