"""Ten thousand streams that come back with their last id while others post, and processes die: no gap, no repeat."""

import pytest

from e2e.faults.havoc import LONG, under_fire
from e2e.faults.load import Plan
from e2e.harness import Hub
from e2e.requirements import requirement

pytestmark = [pytest.mark.faults, pytest.mark.timeout(900)]
RECONNECTS = 100_000 if LONG else 10_000
PLAN = Plan(posters=2, agents=0, pairs=0, rivals=0, readers=40, pause_s=0.2, follow_s=0.3)


@requirement("faults:reconnects")
async def test_streams_that_come_back_have_no_gap_and_no_repeat(fleet: Hub) -> None:
    """Forty readers leave at any moment, also before they are connected, and come back; a gateway dies now and then."""
    async with under_fire(fleet, seed=10, plan=PLAN) as havoc:
        for share in range(1, 11):
            await havoc.load.until(
                lambda share=share: havoc.record.connects >= RECONNECTS * share / 10,  # type: ignore[misc]
                "more reconnects",
                600,
            )
            await havoc.kill(havoc.random.choice(["gateway", "gateway-2", "rooms", "nats"]))
        havoc.record.note(f"{havoc.record.connects} streams")
