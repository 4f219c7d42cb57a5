"""Does this harness find anything? Builds with a known bug, under the verdicts that all else is under."""

import pytest

from e2e.faults.builds import CURSOR, EARLY, WILDCARD, switched_on
from e2e.faults.conftest import MakeHub
from e2e.faults.havoc import under_fire
from e2e.faults.load import Plan
from e2e.faults.record import Verdict
from e2e.harness import Hub
from e2e.requirements import requirement

pytestmark = [pytest.mark.faults, pytest.mark.timeout(300)]
SEED = 17
KILLS = 6
# So many at once, at one writer of the log, that facts wait for each other and share batches.
ONE_WRITER = {"MYCELIUM_RUNTIME_REPLICAS": "1"}
CROWD = Plan(posters=48, agents=3, rivals=6, races=8, pause_s=0.0, mention_every=10, calls=2)


async def storm(hub: Hub) -> None:
    """A crowd, and kills of whatever there is."""
    async with under_fire(hub, SEED, CROWD) as havoc:
        for _ in range(KILLS):
            await havoc.load.posts(100)
            await havoc.kill(havoc.random.choice(list(havoc.victims())))


@requirement("faults:seeded")
async def test_the_product_itself_passes(make_hub: MakeHub) -> None:
    """The same seed and the same storm, without a bug."""
    await storm(make_hub(ONE_WRITER))


@requirement("faults:seeded")
@pytest.mark.parametrize(("build", "kind"), [(EARLY, "lost"), (WILDCARD, "two holders"), (CURSOR, "not delivered")])
async def test_a_seeded_bug_is_caught_and_named(make_hub: MakeHub, build: str, kind: str) -> None:
    """Acknowledged before it was appended; expected over a wildcard; acknowledged when it was offered."""
    with pytest.raises(Verdict) as caught:
        await storm(make_hub(ONE_WRITER | switched_on(build)))
    assert caught.value.kind == kind, caught.value
