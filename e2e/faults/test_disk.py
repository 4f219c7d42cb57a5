"""A disk that others fill up and leave again, under load: refused with 507, nothing acknowledged is lost."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.faults.conftest import SPLIT
from e2e.faults.havoc import LONG, under_fire
from e2e.faults.load import Plan
from e2e.harness import Hub, free_port
from e2e.requirements import requirement
from mycelium_kernel import testing

pytestmark = [pytest.mark.faults, pytest.mark.timeout(300)]
MEGABYTES = 256
FULL = Plan(again=frozenset({0, 503, 507}))


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Hub]:
    """A hub whose home is a small disk."""
    hub = Hub(tmp_path / "disk" / "home", free_port(), SPLIT)
    try:
        with testing.small_disk(tmp_path / "disk", MEGABYTES):
            yield hub.start()
            hub.close()
    except PermissionError as error:
        pytest.skip(f"no small disk can be mounted ({error}); try as root, or under `unshare -Urm`")
    finally:
        hub.close()


@requirement("faults:disk")
async def test_a_disk_that_is_full_again_and_again_loses_nothing(small: Hub) -> None:
    """Filled to the last byte, or nearly; held so while posts are refused; then there is room again."""
    filler = small.home.parent / "filler"
    async with under_fire(small, seed=3, plan=FULL) as havoc:
        for _ in range(30 if LONG else 4):
            await havoc.moment(30)
            left = havoc.random.choice([0, 0, 100_000, 5_000_000])
            havoc.record.note(f"the disk is filled but for {left} bytes")
            _fill(filler, left)
            await havoc.passes(havoc.random.uniform(0.5, 3.0))
            filler.unlink()
            havoc.record.note("the disk has room")
            await havoc.moment(30)
        await havoc.all_well()


def _fill(filler: Path, left: int) -> None:
    with contextlib.suppress(OSError), filler.open("wb", buffering=0) as file:
        while file.write(b"\0" * (1 << 20)):
            pass
    os.truncate(filler, max(0, filler.stat().st_size - left))
