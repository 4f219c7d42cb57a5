"""Many who want the same tasks, through two gateways and two boards, some of which are killed: still one order."""

import os

import pytest

from e2e.claiming import ClaimRace
from e2e.faults.builds import NOW, RACES, RENEWED, TOKEN, switched_on
from e2e.faults.conftest import MakeHub
from e2e.faults.cutting import Cutting
from e2e.faults.havoc import LONG
from e2e.faults.killing import killing
from e2e.harness import Hub
from e2e.linear import judged
from e2e.requirements import requirement
from e2e.room import Room

# The whole is 100,000 racing calls, and LONG ten times that; `make faults` runs a part of it.
CALLS = int(os.environ.get("RACING_CALLS", "1000000" if LONG else "3000"))
BETWEEN_KILLS = 500
VICTIMS = ("board", "board-2", "gateway", "gateway-2", "nats")
pytestmark = [pytest.mark.faults, pytest.mark.timeout(300 + CALLS / 10)]


@requirement("board:races")
async def test_racing_claims_have_one_order_whoever_is_killed(fleet: Hub) -> None:
    """Lines are cut meanwhile, too; each asks again under its key until it has an answer."""
    room = Room(fleet.api, fleet.machine, "race").create()
    async with Cutting(fleet.url, seed=1, share=0.02) as line:
        race = ClaimRace(room, seed=1, calls=CALLS, url=line.url)
        await race.run(killing(fleet, VICTIMS, 1, kills=CALLS // BETWEEN_KILLS))
    assert line.cuts
    race.verdict()


ONE = {"MYCELIUM_RUNTIME_SPLIT": "false", "MYCELIUM_RUNTIME_REPLICAS": "1"}


@requirement("board:races", "faults:seeded")
@pytest.mark.parametrize(("build", "env"), [(NOW, {}), (TOKEN, ONE), (RENEWED, ONE)], ids=[NOW, TOKEN, RENEWED])
async def test_a_seeded_bug_of_claims_is_caught(make_hub: MakeHub, build: str, env: dict[str, str]) -> None:
    """Expected what is there when it is too late; a token that nobody looks at; an end that was moved, and came."""
    hub = make_hub(switched_on(build) | env)
    verdicts = [await _verdict(hub, 0)]
    while not verdicts[-1] and len(verdicts) < RACES:
        verdicts.append(await _verdict(hub, len(verdicts)))
    assert "is not linearizable" in verdicts[-1]


async def _verdict(hub: Hub, seed: int) -> str:
    """What is said of one race; empty when there is an order."""
    room = Room(hub.api, hub.machine, f"race-{seed}").create()
    race = ClaimRace(room, seed, calls=300, least_s=6.0, patience_s=5.0)
    await race.run()
    return judged(race.verdict)
