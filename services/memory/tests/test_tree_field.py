"""What people, editors, git and disks do to a room's folder: each ends as one would want it, and loses nothing."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
import unicodedata
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from mycelium_kernel import subjects, testing
from mycelium_kernel.tail import RawFact
from mycelium_memory import tree_scan
from mycelium_memory.tree import Tree
from mycelium_memory.tree_base import every_problem
from mycelium_memory.tree_disk import Disk, Illegal, Place
from mycelium_memory.tree_store import Store
from services.memory.tests.tree import Desk, desk_at, read_only, until, until_body


@pytest.fixture
async def desk(nats_server: testing.NatsServer, tmp_path: Path) -> AsyncIterator[Desk]:
    async with desk_at(nats_server, tmp_path) as found:
        yield found


def in_place(path: Path, text: str) -> None:
    """As VS Code and nano do: the file is emptied and written."""
    path.write_text(text)


def renamed_over(path: Path, text: str) -> None:
    """As `sed -i`, git and most others do: written beside it, and given its name."""
    beside = path.with_name(f"{path.name}.tmp-1234")
    beside.write_text(text)
    beside.rename(path)


def as_vim(path: Path, text: str) -> None:
    """A probe, a swap file, the old file renamed to a backup, a new one written, the backup removed."""
    swap, probe, backup = path.with_name(f".{path.name}.swp"), path.with_name("4913"), path.with_name(f"{path.name}~")
    swap.write_bytes(b"b0VIM 9.0")
    probe.touch()
    probe.unlink()
    path.rename(backup)
    path.write_text(text)
    backup.unlink()
    swap.unlink()


def as_emacs(path: Path, text: str) -> None:
    """A lock that is a link to nowhere, a file of unsaved changes, a backup that stays."""
    lock, unsaved = path.with_name(f".#{path.name}"), path.with_name(f"#{path.name}#")
    lock.symlink_to("kim@desk.1234:1")
    unsaved.write_text(text)
    shutil.copy(path, path.with_name(f"{path.name}~"))
    path.write_text(text)
    unsaved.unlink()
    lock.unlink()


def removed_and_written(path: Path, text: str) -> None:
    """As some programs do that know no better."""
    path.unlink()
    path.write_text(text)


@pytest.mark.parametrize("save", [in_place, renamed_over, as_vim, as_emacs, removed_and_written])
async def test_however_an_editor_saves_it_is_one_version(desk: Desk, save: Callable[[Path, str], None]) -> None:
    """Never a removal, nor a memory of an editor's own file."""
    folder = await desk.room()
    await desk.set("notes/a", "text 0")
    for number in (1, 2, 3):
        text = (await desk.same())["notes/a.md"]
        save(folder / "notes/a.md", text.replace(f"text {number - 1}", f"text {number}"))
        await until_body(desk, "notes/a", f"text {number}")
    await desk.same()
    assert [(version.version, version.removed) for version in await desk.versions("notes/a")] == [
        (4, False), (3, False), (2, False), (1, False),
    ]  # fmt: skip
    assert (await desk.documents()).keys() == {"notes/a.md"}


async def written_by(program: str, folder: Path) -> None:
    """A program of its own that writes into a folder, to its end."""
    running = await asyncio.create_subprocess_exec("sh", "-c", program, cwd=folder)
    assert await running.wait() == 0


HELD = "for n in $(seq 40); do echo line $n; sleep 0.1; done >> log.md"
AGAIN = "for n in $(seq 40); do echo line $n >> log.md; sleep 0.05; done"


@pytest.mark.parametrize("program", [HELD, AGAIN], ids=["held open", "opened again and again"])
async def test_a_file_that_is_written_slowly_is_whole_in_the_end(desk: Desk, program: str) -> None:
    """Line after line, for seconds: whatever versions are made meanwhile, the last has every line."""
    folder = await desk.room()
    await written_by(program, folder)
    await until_body(desk, "log", "\n".join(f"line {number}" for number in range(1, 41)))
    await desk.same()
    assert not [problem.path for problem in every_problem(desk.root)]


async def test_a_file_that_a_program_holds_open_is_written_when_it_lets_go(desk: Desk) -> None:
    """The hub's version waits meanwhile, and it is told."""
    folder = await desk.room()
    await desk.set("a", "one")
    await desk.same()
    with (folder / "a.md").open("a"):
        await desk.set("a", "two")
        await until(
            lambda: any("holds it open" in problem.reason for problem in every_problem(desk.root)), "it is told"
        )
        assert "one" in (folder / "a.md").read_text()
    assert (await desk.same())["a.md"].endswith("\ntwo\n")
    await until(lambda: not every_problem(desk.root), "nothing is wrong any more")
    assert len(await desk.versions("a")) == 2


async def test_a_program_that_holds_a_file_of_the_hubs_open_never_meets_itself(desk: Desk) -> None:
    """What it writes was taken while the hub's own version waits: the fields at the top are then of an older one."""
    folder = await desk.room()
    await desk.set("log", "line 1")
    await desk.same()
    with (folder / "log.md").open("a") as log:
        for number in (2, 3, 4):
            log.write(f"line {number}\n")
            log.flush()
            await until_body(desk, "log", "\n".join(f"line {line}" for line in range(1, number + 1)))
        assert not [problem for problem in every_problem(desk.root) if "edited by hand" in problem.reason]
        await desk.set("log", "another")
        log.write("line 5\n")
        log.flush()
        await until_body(desk, "log", "\n".join(f"line {line}" for line in range(1, 6)))
    assert [version.conflicted for version in await desk.versions("log")] == [True, False, False, False, False, False]


async def test_a_fact_that_is_here_before_the_tables_have_it_is_not_forgotten(desk: Desk, tmp_path: Path) -> None:
    """Facts come to the tree and to the tables by two ways, of which either may be ahead."""
    await desk.stop()
    await desk.start(tree=False)
    await desk.room()
    await desk.set("notes/a", "x")
    await desk.rows()
    assert desk.memory is not None
    assert desk.memory.tables is not None
    (tmp_path / "another").mkdir()
    store = Store(tmp_path / "another")
    await store.open(desk.memory.epoch)
    tree = Tree(desk.memory, store, tmp_path / "another")
    room_id, document_id = desk.memory.tables.all("SELECT room_id, document_id FROM document")[0]
    subject = subjects.fact("memory", room_id, "document", document_id)
    tree._on_facts([RawFact(desk.memory.tables.position + 1, subject, "", b"", {})])
    await tree._settle(tree._pending)
    store.close()
    assert list(tree._pending.documents) == [(room_id, document_id)]


async def test_a_folder_that_is_removed_at_once_removes_its_documents(desk: Desk) -> None:
    """Each of them, by a version; those of names near it stay."""
    folder = await desk.room()
    near = {"work/a", "work/ab", "work/ab/n1", "work/b/a/n1"}
    for key in (*near, *(f"work/a/deep/n{number}" for number in range(60))):
        await desk.set(key, "x")
    await desk.same()
    shutil.rmtree(folder / "work/a")
    await until_body(desk, "work/a/deep/n59", None)
    assert (await desk.same()).keys() == {f"{key}.md" for key in near}
    made = await desk.versions("work/a/deep/n7")
    assert [(version.removed, version.updated_by) for version in made] == [(True, "filesystem"), (False, "avery")]


async def test_a_room_s_folder_that_is_removed_whole_comes_back(desk: Desk) -> None:
    """`rm -r` of the folder takes no memory: what was removed with the folder was not removed one by one."""
    folder = await desk.room()
    for number in range(200):
        await desk.set(f"notes/n{number}", f"text {number}")
    before = await desk.same()
    shutil.rmtree(folder)
    await until(lambda: len(desk.files()) == 200, "the files are there again")
    assert await desk.same() == before
    assert {len(await desk.versions(f"notes/n{number}")) for number in range(0, 200, 20)} == {1}


async def test_two_forms_of_a_letter_are_one_document(desk: Desk) -> None:
    """A file whose name is written the other way is left alone and named, and overwrites nothing."""
    folder = await desk.room()
    await desk.set("café", "composed")
    await desk.same()
    other = folder / f"{unicodedata.normalize('NFD', 'café')}.md"
    other.write_text("decomposed")
    await until(lambda: any("café" in problem.reason for problem in every_problem(desk.root)), "it is told")
    await desk.set("last", "x")
    await until((folder / "last.md").exists, "it goes on")
    assert await desk.body("café") == "composed"
    assert other.read_text() == "decomposed"
    other.unlink()
    await until(lambda: not every_problem(desk.root), "nothing is wrong any more")


async def test_a_name_as_long_as_a_disk_allows(desk: Desk) -> None:
    """255 bytes with the ending, in two folders as long, by a call and by hand, also in letters of three bytes."""
    folder = await desk.room()
    last, first = "b" * 252, "a" * 252
    wide = "あ" * 84
    await desk.set(f"{first}/{last}", "by call")
    await desk.set(wide, "wide")
    await desk.same()
    by_hand = folder / first / f"{'c' * 252}.md"
    by_hand.write_text("by hand")
    await until_body(desk, f"{first}/{'c' * 252}", "by hand")
    (folder / first / f"{last}.md").write_text("edited")
    await until_body(desk, f"{first}/{last}", "edited")
    assert len(await desk.same()) == 3


@pytest.mark.parametrize(
    "data",
    [b"\xef\xbb\xbfone\r\ntwo\r\n", b"one\r\ntwo\r\n", b"\xef\xbb\xbf---\r\nowner: kim\r\n---\r\none\r\ntwo\r\n"],
)
async def test_a_file_from_windows_is_taken_once(desk: Desk, data: bytes) -> None:
    """A mark at its beginning, and its ends of lines: one version, and then the file is as the hub writes it."""
    folder = await desk.room()
    (folder / "a.md").write_bytes(data)
    await until(lambda: b"version: 1" in (folder / "a.md").read_bytes(), "it is as the hub writes it")
    await desk.set("b", "x")
    await desk.same()
    body = str(await desk.body("a"))
    assert body.split() == ["one", "two"]
    assert not body.startswith("\ufeff")
    assert len(await desk.versions("a")) == 1


async def test_a_disk_that_can_only_be_read(desk: Desk) -> None:
    """Writes are facts all the same; the files follow as soon as they can be written."""
    folder = await desk.room()
    await desk.set("a", "one")
    await desk.same()
    with read_only(folder):
        await desk.set("a", "two")
        await desk.set("b", "new")
        await until(lambda: {problem.path for problem in every_problem(desk.root)} >= {"a.md", "b.md"}, "it is told")
        assert "one" in (folder / "a.md").read_text()
    assert (await desk.same()).keys() == {"a.md", "b.md"}
    await until(lambda: not every_problem(desk.root), "nothing is wrong any more")
    assert [len(await desk.versions(key)) for key in ("a", "b")] == [2, 1]


def test_what_may_not_be_read_is_told() -> None:
    """A file and a folder without any permission, seen by a process that is not root."""
    with tempfile.TemporaryDirectory() as place:
        os.chmod(place, 0o755)
        root = Path(place)
        (root / "demo/secret").mkdir(parents=True)
        (root / "demo/secret/a.md").write_text("x")
        (root / "demo/b.md").write_text("x")
        (root / "demo/secret").chmod(0)
        (root / "demo/b.md").chmod(0)
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                if os.geteuid() == 0:
                    os.setuid(65534)
                told = tree_scan.scan(Disk(root), "demo", "", ()).problems.get("secret", "nothing")
                try:
                    Disk(root).read(Place(("demo", "b.md")))
                except Illegal as illegal:
                    told += f"; {illegal}"
                os.write(writer, told.encode())
            finally:
                os._exit(0)
        os.close(writer)
        os.waitpid(child, 0)
        with os.fdopen(reader) as pipe:
            assert pipe.read() == "it can't be opened: Permission denied; it can't be read: Permission denied"
        (root / "demo/secret").chmod(0o700)
