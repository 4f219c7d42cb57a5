"""Room folders on disk: the seven parts, names as documented, links and files in the way, what a delete takes."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from mycelium.rooms.v1 import service_pb2 as pb
from mycelium_kernel import names, run, subjects, testing
from mycelium_kernel.bus import Bus
from mycelium_kernel.connections import Connection
from mycelium_kernel.service import Actor
from mycelium_rooms.room_folders import MARK, PARTS, Folders, InTheWay
from mycelium_rooms.service import service

ONE, TWO = "0190aaaa-0000-7000-8000-000000000001", "0190aaaa-0000-7000-8000-000000000002"


def digest(name: str) -> str:
    return subjects.digest(names.fold_room_name(name))


@pytest.mark.parametrize("name", ["design-review", "CE-Area Team", "Café ☕", ".hidden", "...", "é" * 100, "-rf"])
def test_a_room_has_a_folder_with_seven_parts(tmp_path: Path, name: str) -> None:
    """R1: named as the room; made twice it is the same."""
    folders = Folders(tmp_path / "rooms")
    folders.make(name, ONE)
    (tmp_path / "rooms" / name / "work" / "x.md").write_text("kept")
    folders.make(name, ONE)
    assert {path.name for path in (tmp_path / "rooms" / name).iterdir()} == {*PARTS, MARK}
    assert (tmp_path / "rooms" / name / "work" / "x.md").read_text() == "kept"
    assert (tmp_path / "rooms").stat().st_mode & 0o077 == 0
    folders.remove(ONE, digest(name))
    assert list((tmp_path / "rooms").iterdir()) == []


def test_a_delete_takes_the_folder_of_that_room_alone(tmp_path: Path) -> None:
    """Rooms `a` and `ab`; a later room of the same name; a folder that somebody put there."""
    folders = Folders(tmp_path)
    folders.make("a", ONE)
    folders.make("ab", TWO)
    (tmp_path / "A ").mkdir()
    os.mkdir(os.fsencode(tmp_path) + b"/\xff")
    folders.remove(ONE, digest("A"))
    folders.remove(ONE, digest("A"))
    assert {path.name for path in tmp_path.iterdir()} == {"ab", "A ", os.fsdecode(b"\xff")}
    folders.make("a", TWO)
    folders.remove(ONE, digest("a"))
    assert (tmp_path / "a" / MARK).read_text().strip() == TWO
    Folders(tmp_path / "none").remove(ONE, digest("a"))


def test_what_is_written_while_a_folder_is_removed_goes_too(tmp_path: Path) -> None:
    """An editor, or the memory service, that has the folder open and has not heard yet."""
    folders = Folders(tmp_path)

    def write(folder: int) -> None:
        with contextlib.suppress(FileNotFoundError):  # the folder is no more
            for number in range(300):
                os.close(os.open(f"{number}.md", os.O_CREAT | os.O_WRONLY, dir_fd=folder))

    for _ in range(20):
        folders.make("a", ONE)
        for number in range(50):
            (tmp_path / "a" / "work" / f"old-{number}.md").touch()
        opened = [os.open(tmp_path / "a" / part, os.O_RDONLY) for part in (".", "work")]
        with ThreadPoolExecutor() as writers:
            writing = [writers.submit(write, folder) for folder in opened]
            folders.remove(ONE, digest("a"))
            assert not list(tmp_path.iterdir())
        for written, folder in zip(writing, opened, strict=True):
            written.result()
            os.close(folder)


def test_nothing_is_followed_or_written_through_a_link(tmp_path: Path) -> None:
    """Neither to the room's folder, nor to one of its parts or its mark; but the folder of rooms may be one."""
    outside, root = tmp_path / "outside", tmp_path / "rooms"
    outside.mkdir()
    (outside / "file").write_text("precious")
    root.mkdir()
    (root / "linked").symlink_to(outside)
    (root / "part").mkdir()
    (root / "part" / "work").symlink_to(outside)
    (root / "mark").mkdir()
    (root / "mark" / MARK).symlink_to(outside / "file")
    (root / "file").write_text("x")
    (tmp_path / "root-link").symlink_to(root)
    folders = Folders(root)
    for name in ("linked", "part", "mark", "file"):
        with pytest.raises(InTheWay, match="move it away"):
            folders.make(name, ONE)
    Folders(tmp_path / "root-link").make("x", ONE)  # the operator's own link, to a larger disk
    assert (root / "x" / "work").is_dir()
    assert [path.name for path in outside.iterdir()] == ["file"]
    (root / "real").mkdir()
    (root / "real" / MARK).write_text(ONE)
    (root / "real" / "link").symlink_to(outside)
    for name in ("linked", "real", "mark"):
        folders.remove(ONE, digest(name))
    assert (outside / "file").read_text() == "precious"
    assert not (root / "real").exists()
    assert (root / "linked").is_symlink()


def test_a_folder_of_another_room_is_in_the_way(tmp_path: Path) -> None:
    """Left by a hub whose log is gone: its files are somebody's."""
    folders = Folders(tmp_path)
    folders.make("a", ONE)
    with pytest.raises(InTheWay, match="another room"):
        folders.make("a", TWO)


def test_no_descriptor_is_left_open(tmp_path: Path) -> None:
    """Whatever goes wrong."""
    folders = Folders(tmp_path)
    (tmp_path / "file").write_text("x")
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        folders.make("a", ONE)
        with pytest.raises(InTheWay):
            folders.make("file", ONE)
        folders.remove(ONE, digest("a"))
    assert len(os.listdir("/proc/self/fd")) == before


async def becomes(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 - what changes it is a thread
            await asyncio.sleep(0.01)


async def test_the_service_makes_and_removes_them(nats_server: testing.NatsServer, tmp_path: Path) -> None:
    """Also those of rooms that were made while it kept no folders, and not of those that are gone since."""
    root = tmp_path / "rooms"
    connection = await Connection.open(nats_server.settings("gateway"))
    bus, avery = Bus(connection, "gateway"), Actor("avery", "")
    runtime = await run.start(service(), nats_server.settings("rooms"), tmp_path / "tables")
    for name in ("before", "gone"):
        await bus.ask(pb.CreateRoomRequest(name=name), pb.CreateRoomResponse, actor=avery)
    await bus.ask(pb.DeleteRoomRequest(room="gone"), pb.DeleteRoomResponse, actor=avery)
    await runtime.stop()
    runtime = await run.start(service(rooms_folder=root), nats_server.settings("rooms"), tmp_path / "tables")
    await bus.ask(pb.CreateRoomRequest(name="after"), pb.CreateRoomResponse, actor=avery)
    await becomes((root / "after" / MARK).exists)
    assert {path.name for path in root.iterdir()} == {"before", "after"}
    await bus.ask(pb.DeleteRoomRequest(room="before"), pb.DeleteRoomResponse, actor=avery)
    await becomes(lambda: not (root / "before").exists())
    (root / "blocked").write_text("x")
    await bus.ask(pb.CreateRoomRequest(name="blocked"), pb.CreateRoomResponse, actor=avery)
    await becomes(lambda: "move it away" in runtime.health()["detail"])
    await runtime.stop()
    await connection.close()
