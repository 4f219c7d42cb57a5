"""Memory as files: written by the hub, edited by hand, under git, and whatever comes between the two."""

import os
import shutil
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from e2e.harness import Hub, Machine, free_port
from e2e.requirements import requirement
from e2e.room import Room
from e2e.tree import Tree
from e2e.waiting import until

FILES = 120  # the faults do it with 500


@pytest.fixture
def tree(hub: Hub, room: Room) -> Tree:
    """The folder of a new room."""
    return Tree(hub, room)


@pytest.fixture
def apart(tmp_path: Path) -> Iterator[Hub]:
    """A hub whose memory is a process of its own, that a test may kill."""
    found = Hub(tmp_path / "hub", free_port(), {"MYCELIUM_RUNTIME_SPLIT": "true"}).start()
    yield found
    found.close()


@requirement("memory:tree:files")
def test_a_memory_is_a_file(tree: Tree, machine: Machine) -> None:
    """What `get --raw` shows, to the letter; a removed one is no file; grep finds it."""
    tree.put("decisions/storage", "Rooms are folders")
    tree.put("notes/a", "x")
    files = tree.until_same()
    raw = machine.run("memory", "get", "decisions/storage", "--raw", room=tree.room.name).ok().out
    assert files["decisions/storage.md"] == raw
    machine.run("memory", "rm", "notes/a", handle="kim", room=tree.room.name).ok()
    assert tree.until_same().keys() == {"decisions/storage.md"}


@requirement("memory:tree:edits")
def test_an_edit_by_hand_is_a_version(tree: Tree, machine: Machine) -> None:
    """A changed file, a new one, one that is gone: by `filesystem`, within a moment, in the history."""
    tree.put("work/api", "one")
    tree.until_same()
    tree.edit("work/api", "one", "two")
    (tree.folder / "ideas").mkdir()
    tree.path("ideas/new").write_text("A thought\n", encoding="utf-8")
    until(lambda: tree.value("work/api") == "two" and tree.value("ideas/new") == "A thought", "they are versions")
    assert [version["updated_by"] for version in tree.versions("work/api")] == ["filesystem", "avery"]
    assert tree.until_same()["ideas/new.md"].startswith("---\nkey: ideas/new\nversion: 1\n")
    tree.path("work/api").unlink()
    until(lambda: tree.get("work/api") is None, "the memory is gone")
    shown = machine.run("memory", "history", "work/api", room=tree.room.name).ok().out
    assert "edited as a file" in shown


@requirement("memory:tree:edits")
def test_the_room_says_by_whom_its_files_are_edited(tree: Tree) -> None:
    """In a file `.mycelium`."""
    (tree.folder / ".mycelium").write_text('author = "kim"\n', encoding="utf-8")
    tree.path("a").write_text("x", encoding="utf-8")
    until(lambda: tree.value("a") == "x", "it is a memory")
    assert tree.versions("a")[0]["updated_by"] == "kim"


@requirement("memory:tree:renames")
def test_a_rename_says_what_it_was(tree: Tree) -> None:
    """A file, and a folder of them."""
    tree.put("a", "text of a")
    tree.put("notes/b", "text of b")
    tree.until_same()
    tree.path("a").rename(tree.path("c"))
    (tree.folder / "notes").rename(tree.folder / "archive")
    until(lambda: (tree.value("c"), tree.value("archive/b")) == ("text of a", "text of b"), "they have moved")
    assert tree.until_same().keys() == {"c.md", "archive/b.md"}
    assert [tree.versions(key)[0]["moved_from"] for key in ("c", "archive/b")] == ["a", "notes/b"]


@requirement("memory:tree:conflicts")
def test_an_edit_that_meets_a_write_keeps_both(hub: Hub, tree: Tree, machine: Machine) -> None:
    """An editor had version 1 open while version 2 was written: both can be read, and it is told."""
    tree.put("a", "one")
    opened = tree.until_same()["a.md"]
    tree.put("a", "by call", "kim")
    tree.until_same()
    tree.path("a").write_text(opened.replace("one", "by hand"), encoding="utf-8")
    until(lambda: tree.value("a") == "by hand", "the edit is there")
    assert [version["summary"] for version in tree.versions("a")] == ["by hand", "by call", "one"]
    told = machine.run("memory", "ls", "--problems", room=tree.room.name).ok().out
    assert "edited by hand while the document was written" in told
    doctor = hub.machine.run("doctor", within_s=60).out
    assert f"{tree.room.name}/a.md: it was edited by hand while the document was written" in doctor
    assert [version["conflicted"] for version in tree.versions("a")] == [True, False, False]
    history = machine.run("memory", "history", "a", room=tree.room.name).ok().out.splitlines()
    assert ["met another write" in line for line in history[-3:]] == [True, False, False]
    tree.put("a", "settled")
    until(lambda: "nothing is wrong" in machine.run("memory", "ls", "--problems", room=tree.room.name).ok().out, "over")


@requirement("memory:tree:problems")
def test_a_file_that_is_no_document_is_left_alone_and_told(hub: Hub, tree: Tree, machine: Machine) -> None:
    """By `memory ls --problems` and by the doctor; no write gets out of the folder through a link."""
    outside = hub.home.parent / tree.room.name
    outside.mkdir()
    (outside / "secret.md").write_text("secret", encoding="utf-8")
    tree.put("notes", "x")
    tree.until_same()
    left = {"work/Api.md": b"x", "bad.md": b"---\na: [\n---\n", "latin.md": b"caf\xe9", "Notes.md": b"y", "a.md~": b"z"}
    for name, data in left.items():
        (tree.folder / name).write_bytes(data)
    (tree.folder / "link.md").symlink_to(outside / "secret.md")
    (tree.folder / "linked").symlink_to(outside)
    tree.put("linked/new", "must stay inside")
    named = {"work/Api.md", "bad.md", "latin.md", "Notes.md", "link.md", "linked"}

    def told() -> set[str]:
        page = tree.room.api.get(tree.room.at("memory", view="problems")).ok(200).json
        return {row["path"] for row in page["items"]}

    until(lambda: named <= told(), "each is told")
    shown = machine.run("memory", "ls", "--problems", room=tree.room.name).ok().out
    assert "it is not UTF-8 at byte 3" in shown
    assert f"{tree.room.name}/Notes.md: " in hub.machine.run("doctor", within_s=60).out
    assert {name: (tree.folder / name).read_bytes() for name in left} == left
    assert [path.name for path in outside.iterdir()] == ["secret.md"]
    assert tree.value("link") is None
    (tree.folder / "bad.md").unlink()
    (tree.folder / "latin.md").write_text("café", encoding="utf-8")
    until(lambda: told() & {"bad.md", "latin.md"} == set(), "what was mended is told no more")
    assert tree.value("latin") == "café"


@pytest.mark.timeout(150)
@requirement("memory:tree:git")
def test_a_folder_under_git_goes_back_and_forth(tree: Tree) -> None:
    """A checkout of hundreds of files at once; `.git` is nobody's memory."""
    first, second = (
        {f"notes/n{number}": f"{word} {number}" for number in range(FILES)} for word in ("first", "second")
    )
    tree.path("notes/n0").parent.mkdir()
    for key, text in first.items():
        tree.path(key).write_text(text, encoding="utf-8")
    until(lambda: tree.is_at(first, 1), "they are taken", 60)
    tree.git("init", "-q", "-b", "main")
    tree.git("add", ".")
    assert set(tree.git("ls-files").split()) == {".gitignore", *(f"{key}.md" for key in first)}
    tree.git("commit", "-q", "-m", "first")
    tree.git("checkout", "-q", "-b", "other")
    for key, text in first.items():
        tree.edit(key, text, second[key])
    until(lambda: tree.is_at(second, 2), "the edits are taken", 60)
    tree.git("commit", "-q", "-a", "-m", "second")
    tree.git("checkout", "-q", "main")
    until(lambda: tree.is_at(first, 3), "they are as they were", 60)
    assert tree.until_same(30).keys() == {f"{key}.md" for key in first}


@requirement("memory:tree:down")
def test_what_was_done_while_the_hub_was_down_is_taken_up(own_hub: Hub, own_room: Room) -> None:
    """Each once, however often it starts."""
    tree = Tree(own_hub, own_room)
    for key in ("edited", "gone", "same"):
        tree.put(key, "one")
    tree.until_same()
    own_hub.kill()
    tree.edit("edited", "one", "two")
    tree.path("gone").unlink()
    tree.path("new").write_text("new", encoding="utf-8")
    own_hub.start()
    until(lambda: tree.get("gone") is None and tree.value("new") == "new", "all is taken up")
    assert tree.value("edited") == "two"
    tree.until_same()
    own_hub.restart()
    tree.put("last", "x")
    tree.until_same()
    assert [len(tree.versions(key)) for key in ("edited", "gone", "same", "new")] == [2, 2, 1, 1]


@requirement("memory:tree:field")
def test_what_people_and_their_programs_do_to_a_folder(tree: Tree) -> None:
    """An editor that renames, a title with colons, a folder that is removed at once, the room's folder with it."""
    for key in ("work/a", "work/ab", "work/a/x", "notes/a"):
        tree.put(key, "one")
    text = tree.until_same()["notes/a.md"]
    tree.path("notes/a").rename(tree.folder / "notes/a.md~")  # as vim saves
    tree.path("notes/a").write_text(text.replace("\n---\n", "\ntitle: Re: plan: phase 2\n---\n"), encoding="utf-8")
    (tree.folder / "notes/a.md~").unlink()
    until(lambda: (tree.get("notes/a") or {"meta": None})["meta"] == {"title": "Re: plan: phase 2"}, "it is taken")
    assert [version["removed"] for version in tree.versions("notes/a")] == [False, False]
    shutil.rmtree(tree.folder / "work/a")
    until(lambda: tree.get("work/a/x") is None, "it is removed")
    before = tree.until_same()
    assert before.keys() == {"work/a.md", "work/ab.md", "notes/a.md"}
    shutil.rmtree(tree.folder)
    until(tree.path("notes/a").exists, "the folder is there again", 20)
    assert tree.until_same() == before


@requirement("memory:tree:rooms")
def test_a_deleted_room_takes_its_folder_and_no_other(hub: Hub, machine: Machine, unique: Callable[[str], str]) -> None:
    """Rooms with names near it keep theirs; a new one of the same name begins empty."""
    short = unique("a")
    trees = [Tree(hub, Room(hub.api, machine, name).create()) for name in (short, f"{short}b", f"{short} b")]
    for tree in trees:
        tree.put(f"{short}/b", tree.room.name)
        tree.until_same()
    first = trees[0]
    first.room.api.delete(first.room.at(), handle="avery").ok(204)
    until(lambda: not first.folder.exists(), "its folder is gone")
    for tree in trees[1:]:
        tree.put("more", "x")
        assert tree.until_same().keys() == {f"{short}/b.md", "more.md"}
    again = Tree(hub, first.room.create())
    assert again.until_same() == {}


@requirement("memory:tree:crashes")
def test_a_killed_memory_service_loses_and_doubles_nothing(apart: Hub, tmp_path: Path) -> None:
    """Killed again and again during writes by calls and by hand: files, documents and versions agree."""
    room = Room(apart.api, Machine(tmp_path / "client", apart.url), "demo").create()
    tree = Tree(apart, room)
    done: list[str] = []

    def write(number: int) -> None:
        """Until it is acknowledged, always under one key."""
        target, key = room.at("memory", "calls", f"c{number}"), f"write-{number}"
        body = {"value": f"call {number}"}
        until(lambda: room.api.put(target, body, handle="avery", key=key).status in {200, 201}, f"write {number}", 60)
        done.append(key)

    with ThreadPoolExecutor(4) as pool:
        writing = [pool.submit(write, number) for number in range(FILES)]
        for number in range(FILES):
            path = tree.path(f"hand/h{number}")
            path.parent.mkdir(exist_ok=True)
            path.write_text(f"hand {number}", encoding="utf-8")
            if number % 50 == 25:
                until(partial(lambda least: len(done) > least, number * 0.4), "some are written", 60)
                kill_memory(apart)
        for future in writing:
            future.result()
    until(lambda: len(tree.files()) == 2 * FILES, "every document is a file", 60)
    files = tree.until_same(60)
    assert all(files[f"calls/c{number}.md"].endswith(f"\ncall {number}\n") for number in range(FILES))
    assert all(files[f"hand/h{number}.md"].endswith(f"\nhand {number}\n") for number in range(FILES))
    assert {len(tree.versions(name.removesuffix(".md"))) for name in files} == {1}
    assert not [path for path in tree.folder.rglob(".mycelium-*") if path.name.endswith(".new")]


def kill_memory(hub: Hub) -> None:
    """SIGKILL, and wait until it is started again."""
    before = hub.processes()["memory"]
    os.kill(before, signal.SIGKILL)
    until(lambda: hub.processes()["memory"] not in {0, before}, "it is started again", 30)
