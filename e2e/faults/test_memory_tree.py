"""The memory service, and with it who keeps the tree, killed during a thousand writes and a checkout of 500 files.

Nothing is lost and nothing doubled: every write and every file is one version, files are documents, tables are the log.
"""

import os
import random
import signal
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial

import pytest

from e2e.faults import count
from e2e.faults.conftest import MakeHub
from e2e.faults.havoc import LONG
from e2e.faults.record import Record
from e2e.harness import Hub
from e2e.requirements import requirement
from e2e.room import Room
from e2e.tree import Tree
from e2e.waiting import until

pytestmark = [pytest.mark.faults, pytest.mark.timeout(600)]
FILES, WRITES, KILLS = 500, 1_000, 8
WITHIN_S = 180.0
FIRST, SECOND = ({f"notes/n{number}": f"{word} {number}" for number in range(FILES)} for word in ("first", "second"))


@requirement("memory:tree:crashes")
@pytest.mark.parametrize("seed", range(20 if LONG else 1))
def test_killed_during_writes_and_a_checkout(make_hub: MakeHub, seed: int) -> None:
    """By a seed: which of two replicas, one of which keeps the tree, and when."""
    hub, chance = make_hub({}), random.Random(seed)
    tree = Tree(hub, Room(hub.api, hub.machine, "demo").create())
    two_branches(tree)
    done: list[int] = []
    with ThreadPoolExecutor(8) as pool:
        writing = [pool.submit(write, tree, number, done) for number in range(WRITES)]
        checkout = pool.submit(tree.git, "checkout", "-q", "main")
        for least in sorted(chance.randrange(WRITES) for _ in range(KILLS)):
            until(partial(lambda least: len(done) >= least, least), "some are written", WITHIN_S)
            kill(hub, chance.choice(["memory", "memory-2"]))
        wait([*writing, checkout])
    until(lambda: tree.is_at(FIRST, 3), "the checkout is taken", WITHIN_S)
    until(lambda: len(tree.files()) == FILES + WRITES, "every document is a file", WITHIN_S)
    tree.until_same(WITHIN_S)
    calls = {row["key"]: (row["value"], row["version"]) for row in tree.rows("calls/")}
    assert calls == {f"calls/c{number}": (f"call {number}", 1) for number in range(WRITES)}
    assert not [path for path in tree.folder.rglob(".mycelium-*") if path.name.endswith(".new")]
    count.whole(hub, Record(seed))


def two_branches(tree: Tree) -> None:
    """In git: each file as it first was on `main`, and edited on `other`, which is checked out."""
    tree.path("notes/n0").parent.mkdir()
    for key, text in FIRST.items():
        tree.path(key).write_text(text, encoding="utf-8")
    until(lambda: tree.is_at(FIRST, 1), "the files are taken", WITHIN_S)
    tree.git("init", "-q", "-b", "main")
    tree.git("add", "notes", ".gitignore")
    tree.git("commit", "-q", "-m", "first")
    tree.git("checkout", "-q", "-b", "other")
    for key, text in FIRST.items():
        tree.edit(key, text, SECOND[key])
    until(lambda: tree.is_at(SECOND, 2), "the edits are taken", WITHIN_S)
    tree.git("commit", "-q", "-a", "-m", "second")


def write(tree: Tree, number: int, done: list[int]) -> None:
    """Until it is acknowledged, always under one key."""
    target, api = tree.room.at("memory", "calls", f"c{number}"), tree.room.api

    def put() -> bool:
        answer = api.put(target, {"value": f"call {number}"}, handle="avery", key=f"write-{number}", within_s=60)
        return answer.status in {200, 201}

    until(put, f"write {number}", WITHIN_S)
    done.append(number)


def wait(under_way: list["Future[None] | Future[str]"]) -> None:
    """Until all is done."""
    for future in under_way:
        future.result()


def kill(hub: Hub, name: str) -> None:
    """SIGKILL, and go on when it runs again."""
    before = hub.processes()[name]
    os.kill(before, signal.SIGKILL)
    until(lambda: hub.processes()[name] not in {0, before}, "it is back", 60)
