"""The markdown tree on a real NATS server: both ways, conflicts, what is left alone, restarts, rooms that go."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from mycelium_kernel import testing
from mycelium_memory import tree_open
from mycelium_memory.model import document_id
from mycelium_memory.tree_base import Bases, every_problem
from services.memory.tests.tree import Desk, desk_at, until, until_body


@pytest.fixture
async def desk(nats_server: testing.NatsServer, tmp_path: Path) -> AsyncIterator[Desk]:
    async with desk_at(nats_server, tmp_path) as found:
        yield found


async def test_what_is_set_is_a_file_and_what_is_removed_is_none(desk: Desk) -> None:
    """With the hub's fields; folders that are empty then go, but for the room's own."""
    folder = await desk.room()
    await desk.set("work/api", "# API")
    await desk.set("notes/deep/a", "text")
    files = await desk.same()
    assert files.keys() == {"work/api.md", "notes/deep/a.md"}
    assert files["work/api.md"].startswith("---\nkey: work/api\nversion: 1\n")
    assert (folder / "work/api.md").stat().st_mode & 0o077 == 0
    await desk.set("work/api", "two")
    await desk.same()
    await desk.remove("work/api")
    await desk.remove("notes/deep/a")
    assert await desk.same() == {}
    await until(lambda: not (folder / "notes").exists(), "empty folders go")
    assert (folder / "work").is_dir()


async def test_an_edit_a_new_file_and_a_removal_become_versions(desk: Desk) -> None:
    """By `filesystem`, each once."""
    folder = await desk.room()
    await desk.set("work/api", "one")
    await desk.same()
    file = folder / "work/api.md"
    file.write_text(file.read_text().replace("one", "two"))
    await until_body(desk, "work/api", "two")
    (folder / "ideas").mkdir()
    (folder / "ideas/new.md").write_text("a thought\n")
    await until_body(desk, "ideas/new", "a thought")
    assert (await desk.same())["ideas/new.md"].startswith("---\nkey: ideas/new\nversion: 1\ncreated_by: filesystem\n")
    file.unlink()
    await until_body(desk, "work/api", None)
    made = [(version.version, version.updated_by, version.removed) for version in await desk.versions("work/api")]
    assert made == [(3, "filesystem", True), (2, "filesystem", False), (1, "avery", False)]


async def test_a_rename_says_from_where(desk: Desk) -> None:
    """Of a file, of a folder, and onto another document."""
    folder = await desk.room()
    for key in ("a", "notes/b", "c", "d"):
        await desk.set(key, f"text of {key}")
    await desk.same()
    (folder / "a.md").rename(folder / "a2.md")
    (folder / "notes").rename(folder / "archive")
    (folder / "c.md").rename(folder / "d.md")
    await until_body(desk, "a2", "text of a")
    await until_body(desk, "archive/b", "text of notes/b")
    await until_body(desk, "d", "text of c")
    assert (await desk.same()).keys() == {"a2.md", "archive/b.md", "d.md"}
    for key, was in (("a2", "a"), ("archive/b", "notes/b"), ("d", "c")):
        assert (await desk.versions(key))[0].moved_from == was
        assert (await desk.versions(was))[0].removed


async def test_the_room_names_the_author(desk: Desk) -> None:
    """In `.mycelium`; a name that can't be one is told, and `filesystem` stands in."""
    folder = await desk.room()
    (folder / ".mycelium").write_text('author = "kim"\n')
    (folder / "a.md").write_text("x")
    await until_body(desk, "a", "x")
    (folder / ".mycelium").write_text("author = 1\n")
    (folder / "b.md").write_text("x")
    await until_body(desk, "b", "x")
    authors = [document.updated_by if document else "" for document in (await desk.get("a"), await desk.get("b"))]
    assert authors == ["kim", "filesystem"]


async def test_an_edit_that_meets_a_write_keeps_both(desk: Desk) -> None:
    """The file that was written from version 1 becomes version 3, beside version 2."""
    folder = await desk.room()
    await desk.set("a", "one")
    text = (await desk.same())["a.md"]
    await desk.stop()
    (folder / "a.md").write_text(text.replace("one", "by hand"))
    await desk.start()
    await until_body(desk, "a", "by hand")
    text = (await desk.same())["a.md"]
    await desk.set("a", "by call")
    await desk.same()
    (folder / "a.md").write_text(text.replace("by hand", "by hand again"))
    await until_body(desk, "a", "by hand again")
    bodies = [version.summary for version in await desk.versions("a")]
    assert bodies == ["by hand again", "by call", "by hand", "one"]


async def test_a_program_that_writes_into_the_replaced_file_loses_nothing(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has opened the file before the hub replaced it, and writes after: on a disk that can't tell that it has."""
    monkeypatch.setattr(tree_open, "check", lambda *_where: None)
    folder = await desk.room()
    await desk.set("a", "one")
    await desk.same()
    with (folder / "a.md").open("r+") as file:
        await desk.set("a", "two")
        await desk.same()
        file.write(file.read().replace("one", "late by hand"))
    assert (await desk.same())["a.md"].endswith("\ntwo\n")
    await until(lambda: "late by hand" in (folder / "a.md").read_text(), "the late text is there")
    assert [version.updated_by for version in await desk.versions("a")] == ["filesystem", "avery", "avery"]


async def test_what_came_while_the_hub_was_down_is_taken_up(desk: Desk) -> None:
    """Edits, new files and removals; nothing is made a version twice."""
    folder = await desk.room()
    for key in ("edited", "gone", "same"):
        await desk.set(key, "one")
    files = await desk.same()
    await desk.stop()
    (folder / "edited.md").write_text(files["edited.md"].replace("one", "two"))
    (folder / "gone.md").unlink()
    (folder / "new.md").write_text("new")
    await desk.start()
    await until_body(desk, "gone", None)
    await until_body(desk, "new", "new")
    await until_body(desk, "edited", "two")
    await desk.same()
    await desk.restart()
    await desk.set("last", "x")
    await desk.same()
    counts = {key: len(await desk.versions(key)) for key in ("edited", "gone", "same", "new")}
    assert counts == {"edited": 2, "gone": 2, "same": 1, "new": 1}


async def test_without_its_notes_the_tree_makes_no_versions(desk: Desk) -> None:
    """They are lost, and files are behind: each gets its document's text again."""
    folder = await desk.room()
    await desk.set("a", "one")
    await desk.set("b", "one")
    before = await desk.same()
    await desk.set("a", "two")
    await desk.remove("b")
    await desk.same()
    await desk.stop()
    for path in desk.root.glob(".tree.sqlite*"):
        path.unlink()
    (folder / "a.md").write_text(before["a.md"])
    (folder / "b.md").write_text(before["b.md"])
    await desk.start()
    assert (await desk.same()).keys() == {"a.md"}
    assert [len(await desk.versions(key)) for key in ("a", "b")] == [2, 2]


async def test_what_a_killed_process_left_is_no_edit_however_long_ago(desk: Desk) -> None:
    """A file that it had replaced, still under its hidden name, and one that was never written again."""
    folder = await desk.room()
    (folder / "b.md").write_text("by hand")
    await until_body(desk, "b", "by hand")
    await desk.set("a", "first")
    before = await desk.same()
    await desk.stop()
    for path in desk.root.glob(".tree.sqlite*"):
        path.unlink()
    (folder / f".mycelium-{document_id('b')}-0a1b2c3d.tmp").write_text("by hand")
    await desk.start(tree=False)
    for number in range(60):
        await desk.set("a", f"later {number}")
        await desk.set("b", f"later {number}")
    await desk.restart()
    files = await desk.same()
    assert before["a.md"] != files["a.md"]
    assert [await desk.body(key) for key in ("a", "b")] == ["later 59", "later 59"]
    assert [len(await desk.versions(key)) for key in ("a", "b")] == [61, 61]
    await until(lambda: not list(folder.glob(".mycelium-*")), "the hidden file is gone")


async def test_a_process_killed_while_it_takes_a_file_away_removes_nothing_more(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a document that was written again since: its file is not there, and nobody has removed it by hand."""
    folder = await desk.room()
    await desk.set("a", "one")
    await desk.same()
    with monkeypatch.context() as patched:
        patched.setattr(Bases, "forget", lambda *_where: 1 / 0)  # what comes after the file was taken away
        await desk.remove("a")
        await until(lambda: not (folder / "a.md").exists(), "the file is taken away")
        await desk.stop()
    await desk.start(tree=False)
    await desk.set("a", "again")
    await desk.restart()
    assert (await desk.same())["a.md"].endswith("\nagain\n")
    assert [version.removed for version in await desk.versions("a")] == [False, True, False]
    assert not every_problem(desk.root)


async def test_notes_that_are_damaged_are_made_anew(desk: Desk) -> None:
    """Nothing that matters was only in them."""
    await desk.room()
    for number in range(50):
        await desk.set(f"n{number}", "one")
    await desk.same()
    await desk.stop()
    notes = desk.root / ".tree.sqlite"
    with notes.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * (notes.stat().st_size - 4096))
    await desk.start()
    await desk.set("last", "x")
    assert len(await desk.same()) == 51
    assert len(await desk.versions("n0")) == 1


async def test_an_older_file_that_is_brought_back_is_a_version(desk: Desk) -> None:
    """As `git checkout` does, also of a document that was removed."""
    folder = await desk.room()
    await desk.set("a", "one")
    await desk.set("b", "one")
    before = await desk.same()
    await desk.set("a", "two")
    await desk.remove("b")
    await desk.same()
    for name, text in before.items():
        (folder / name).write_text(text)
    await until_body(desk, "a", "one")
    await until_body(desk, "b", "one")
    await desk.same()
    assert [len(await desk.versions(key)) for key in ("a", "b")] == [3, 3]


async def test_what_is_no_document_is_left_alone(desk: Desk, tmp_path: Path) -> None:
    """And stays as it is, whatever it is; the documents beside it are kept."""
    folder = await desk.room()
    await desk.set("notes", "x")
    await desk.same()
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.md").write_text("secret")
    left = {
        "work/Api.md": b"x",
        "bad.md": b"---\na: [\n---\n",
        "latin.md": b"caf\xe9",
        "huge.md": b"x" * (3 * 1024 * 1024),
        "large.md": b"x" * (600 * 1024),
        "CON.md": b"x",
        "Notes.md": b"folds",
        "picture.png": b"\0",
        ".hidden.md": b"x",
        "a.md~": b"x",
        "4913": b"",
    }
    for name, data in left.items():
        (folder / name).write_bytes(data)
    (folder / "link.md").symlink_to(outside / "secret.md")
    (folder / "linked").symlink_to(outside)
    (folder / "folder.md").mkdir()
    os.mkfifo(folder / "pipe.md")
    (folder / ".git").mkdir()
    (folder / ".git/x.md").write_text("x")
    (folder / "last.md").write_text("last")
    await until_body(desk, "last", "last")
    await desk.set("linked/new", "must not get out")
    await desk.set("link", "must not get out")
    await desk.set("last", "more")
    await until(lambda: "more" in (folder / "last.md").read_text(), "it goes on")
    assert (await desk.documents()).keys() == {"notes.md", "last.md", "linked/new.md", "link.md"}
    assert {name: (folder / name).read_bytes() for name in left} == left
    assert sorted(path.name for path in outside.iterdir()) == ["secret.md"]
    assert (outside / "secret.md").read_text() == "secret"
    assert (folder / "link.md").is_symlink()


async def test_a_folder_that_is_gone_comes_back(desk: Desk) -> None:
    """Its documents were not removed one by one, so they are not removed."""
    folder = await desk.room()
    await desk.set("a", "one")
    await desk.same()
    folder.rename(desk.root / "elsewhere")
    await until((folder / "a.md").exists, "the folder is there again")
    assert len(await desk.versions("a")) == 1


async def test_a_deleted_room_takes_its_tree_and_no_other(desk: Desk) -> None:
    """Rooms of similar names keep theirs; a new one of the same name begins empty."""
    from mycelium.rooms.v1 import service_pb2 as rooms_pb

    names = ["a", "ab", "a b", "a.md"]
    for name in names:
        await desk.room(name)
        await desk.set("a/b", f"of {name}", room=name)
        await desk.same(name)
    await desk.ask(rooms_pb.DeleteRoomRequest(room="a"))
    await until(lambda: not (desk.root / "a").exists(), "its folder is gone")
    await desk.set("more", "x", room="ab")
    for name in names[1:]:
        assert "a/b.md" in await desk.same(name)
    await desk.room("a")
    assert await desk.same("a") == {}


async def test_only_one_process_keeps_the_tree(desk: Desk, tmp_path: Path) -> None:
    """A second waits, and goes on when the first has ended."""
    folder = await desk.room()
    first, second = desk.memory, Desk(desk.server, tmp_path / "tables-second", desk.root, desk._bus)
    await second.start()
    try:
        (folder / "a.md").write_text("x")
        await until_body(desk, "a", "x")
        assert len(await desk.versions("a")) == 1
        assert first is not None
        await desk.stop()
        (folder / "b.md").write_text("x")
        await until_body(second, "b", "x")
    finally:
        await second.stop()
