"""The disk itself: what was synced survives a cut, what was not is gone, or is there in part."""

import contextlib
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from e2e.faults.powerloss.disk import SECTOR
from e2e.faults.powerloss.layer import Layer, layer
from e2e.requirements import requirement

pytestmark = pytest.mark.faults


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Layer]:
    with layer(tmp_path / "disk") as found:
        yield found


def sync(path: Path) -> None:
    """`fsync` of a file or a folder."""
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def write(path: Path, text: str) -> Path:
    """A file, synced with its name."""
    path.write_text(text)
    sync(path)
    sync(path.parent)
    return path


def listed(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@requirement("faults:power:seen")
def test_a_write_that_was_not_synced_is_gone(disk: Layer) -> None:
    path = write(disk.folder / "a", "one")
    with path.open("a") as file:
        file.write(" two")
        file.flush()
        os.fsync(file.fileno())
        file.write(" three")
    assert path.read_text() == "one two three"
    assert disk.cut() == {"written": 6, "names": 0, "edits_survived": 0, "names_survived": 0}
    assert path.read_text() == "one two"


@requirement("faults:power:seen")
def test_a_file_opened_to_be_synced_at_each_write_keeps_each(disk: Layer) -> None:
    path = write(disk.folder / "a", "")
    for flag in (os.O_SYNC, os.O_DSYNC):
        opened = os.open(path, os.O_WRONLY | os.O_APPEND | flag)
        os.write(opened, b"kept ")
        os.close(opened)
    disk.cut()
    assert path.read_text() == "kept kept "


@requirement("faults:power:seen")
def test_a_name_is_gone_when_its_folder_was_not_synced(disk: Layer) -> None:
    path = disk.folder / "a"
    path.write_text("one")
    sync(path)
    disk.cut()
    assert listed(disk.folder) == []


@requirement("faults:power:seen")
def test_a_rename_without_a_sync_of_the_folder_leaves_the_old_name(disk: Layer) -> None:
    old = write(disk.folder / "old", "text")
    old.rename(disk.folder / "new")
    assert listed(disk.folder) == ["new"]
    disk.cut()
    assert listed(disk.folder) == ["old"]
    old.rename(disk.folder / "new")
    sync(disk.folder)
    disk.cut()
    assert listed(disk.folder) == ["new"]
    assert (disk.folder / "new").read_text() == "text"


@requirement("faults:power:seen")
def test_what_was_removed_or_truncated_without_a_sync_is_back(disk: Layer) -> None:
    removed, cut_off = write(disk.folder / "removed", "text"), write(disk.folder / "cut-off", "text")
    removed.unlink()
    os.truncate(cut_off, 1)
    disk.cut()
    assert [path.read_text() for path in (removed, cut_off)] == ["text", "text"]


@requirement("faults:power:seen")
def test_a_folder_in_a_folder_needs_both_synced(disk: Layer) -> None:
    inner = disk.folder / "outer" / "inner"
    inner.mkdir(parents=True)
    write(inner / "a", "one")
    sync(disk.folder)
    disk.cut()
    assert listed(disk.folder / "outer") == []
    inner.mkdir()
    write(inner / "a", "one")
    sync(disk.folder / "outer")
    disk.cut()
    assert (inner / "a").read_text() == "one"


@requirement("faults:power:seen")
def test_a_journal_keeps_names_with_any_sync(tmp_path: Path) -> None:
    with layer(tmp_path / "disk", journal=True) as disk:
        (disk.folder / "a").write_text("one")
        (disk.folder / "b").write_text("two")
        sync(disk.folder / "b")
        (disk.folder / "c").write_text("three")
        disk.cut()
        assert {path.name: path.read_text() for path in disk.folder.iterdir()} == {"a": "", "b": "two"}


@requirement("faults:power:seen")
def test_some_of_what_was_not_synced_may_survive_and_is_torn_at_sectors(disk: Layer) -> None:
    size = 8 * SECTOR
    seen = set()
    for seed in range(30):
        path = write(disk.folder / f"{seed}", "")
        path.write_bytes(b"x" * size)
        disk.cut(seed)
        sectors = [path.read_bytes()[at : at + SECTOR] for at in range(0, path.stat().st_size, SECTOR)]
        assert all(sector in {b"x" * SECTOR, bytes(SECTOR)} for sector in sectors)
        seen.add(
            "none" if not sectors else "holes" if bytes(SECTOR) in sectors else "all" if len(sectors) == 8 else "a part"
        )
    assert seen >= {"none", "holes", "a part"}


@requirement("faults:power:seen")
def test_who_waits_for_a_frozen_disk_is_let_go_with_an_error(disk: Layer) -> None:
    opened = os.open(disk.folder / "a", os.O_WRONLY | os.O_CREAT)
    disk.freeze()
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(os.write, opened, b"late")
        disk.cut()
        assert isinstance(writing.exception(10), OSError)
    with contextlib.suppress(OSError):  # closing says it, too
        os.close(opened)
    assert listed(disk.folder) == []
