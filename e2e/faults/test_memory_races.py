"""Many callers on a few memories, through two gateways and two replicas, some of which are killed: still one order."""

import pytest

from e2e.faults.builds import NOW, OLD, RACES, WILDCARD, switched_on
from e2e.faults.conftest import MakeHub
from e2e.faults.havoc import LONG
from e2e.faults.killing import killing
from e2e.harness import Hub
from e2e.linear import judged
from e2e.racing import Race
from e2e.requirements import requirement
from e2e.room import Room

pytestmark = [pytest.mark.faults, pytest.mark.timeout(300)]
SEEDS = range(50 if LONG else 2)
VICTIMS = ("memory", "memory-2", "gateway", "gateway-2", "nats")


@requirement("memory:races")
@pytest.mark.parametrize("seed", SEEDS)
def test_racing_calls_have_one_order_whoever_is_killed(fleet: Hub, seed: int) -> None:
    """Each asks again under its key until it has an answer."""
    race = Race(Room(fleet.api, fleet.machine, "race").create(), seed, calls=60)
    race.run(killing(fleet, VICTIMS, seed, kills=6))
    race.verdict()


# Facts share a batch only where many wait for one writer; the others need two who decide at once.
ALONE = {"MYCELIUM_RUNTIME_REPLICAS": "1"}


@requirement("memory:races", "faults:seeded")
@pytest.mark.parametrize(
    ("build", "env", "racers"), [(WILDCARD, ALONE, 40), (NOW, {}, 12), (OLD, {}, 12)], ids=[WILDCARD, NOW, OLD]
)
def test_a_seeded_bug_is_caught(make_hub: MakeHub, build: str, env: dict[str, str], racers: int) -> None:
    """Expected over a wildcard; expected what is there by now; answered from tables that are behind."""
    hub = make_hub(env | switched_on(build))
    verdicts = (_verdict(hub, seed, racers) for seed in range(RACES))
    assert any("is not linearizable" in verdict for verdict in verdicts)


def _verdict(hub: Hub, seed: int, racers: int) -> str:
    """What is said of one race; empty when there is an order."""
    race = Race(Room(hub.api, hub.machine, f"race-{seed}").create(), seed, racers=racers, calls=15, patience_s=5.0)
    race.run()
    return judged(race.verdict)


@requirement("memory:races", "faults:seeded")
def test_the_product_itself_passes_where_one_writes(make_hub: MakeHub) -> None:
    """The same many, without a bug."""
    hub = make_hub(ALONE)
    race = Race(Room(hub.api, hub.machine, "race").create(), seed=1, racers=40, calls=15)
    race.run()
    race.verdict()
