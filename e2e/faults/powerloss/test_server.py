"""A bare NATS server on such a disk: one that acknowledges before it syncs is caught, one that syncs first is not.

The first shows that a loss would be seen; the second tells the server's part of the promise from the hub's.
"""

import random
from pathlib import Path

import pytest

from e2e.faults.powerloss.layer import layer
from e2e.faults.powerloss.server import Server
from e2e.requirements import requirement

pytestmark = pytest.mark.faults
CUTS = 5


async def missing_after(folder: Path, sync: str, *, torn: bool, journal: bool = True) -> list[int]:
    """How many acknowledged messages are missing after each cut, up to the first at which some are."""
    chance = random.Random(f"{sync} {torn}")
    found: list[int] = []
    with layer(folder / "disk", journal=journal) as disk:
        server = Server(folder, disk, sync)
        try:
            while len(found) < CUTS and not any(found):
                await server.under_load(chance, chance.randint(5, 60))
                await server.lose_power(chance, torn=torn)
                found.append(len(await server.missing()))
        finally:
            server.process.kill()
    return found


@requirement("faults:power:seen")
async def test_a_server_that_acknowledges_before_it_syncs_is_caught(tmp_path: Path) -> None:
    """With the server's own default, two minutes between syncs, the first cut takes all of it."""
    found = await missing_after(tmp_path, "2m", torn=False)
    assert found[0] >= 5


@pytest.mark.parametrize("torn", [False, True], ids=["all-lost", "torn"])
@requirement("faults:power:seen")
async def test_a_server_that_syncs_first_loses_nothing(tmp_path: Path, torn: bool) -> None:
    """With the setting that the hub insists on."""
    assert await missing_after(tmp_path, "always", torn=torn) == [0] * CUTS


@requirement("faults:power:seen")
async def test_a_disk_that_keeps_no_names_of_its_own_accord_is_no_place_for_a_log(tmp_path: Path) -> None:
    """The server syncs its files, never the folders that name them. Journals of file systems make up for that.

    When this fails, the server has learned it, and the limit can be taken out of what is promised.
    """
    found = await missing_after(tmp_path, "always", torn=False, journal=False)
    assert found[0] >= 5
