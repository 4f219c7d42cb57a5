"""A room as one file, from one file, and as local files."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from clients.cli.tests.conftest import Run
from clients.cli.tests.scripted import CUT, MESSAGE, ScriptedHub, answer

BUNDLE = gzip.compress(b'{"format": "mycelium-room"}\n{"sequence": 1}\n{"end": 1, "sha256": "x"}\n')
ROOM: dict[str, Any] = {"name": "demo", "title": "", "private": False}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A place to write to."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def bundle(content: bytes) -> bytes:
    return answer(200, content, kind="application/gzip")


def test_an_export_is_written_whole_and_for_its_owner_alone(scripted: ScriptedHub, run: Run, folder: Path) -> None:
    """Named after the room; a second one must be told where to go."""
    scripted.play(bundle(BUNDLE))
    ran = run("room", "export")
    place = folder / "demo.mycelium-room.gz"
    assert ran.out == (
        f"wrote demo to demo.mycelium-room.gz (1 facts, {len(BUNDLE)} bytes)\n"
        "a room from it: mycelium room import demo.mycelium-room.gz --name <name>\n"
    )
    assert place.read_bytes() == BUNDLE
    assert place.stat().st_mode & 0o777 == 0o600
    assert run("room", "export").status == 2


@pytest.mark.parametrize(
    "reply",
    [
        bundle(BUNDLE)[:-9],
        bundle(BUNDLE[:-9]),
        bundle(gzip.compress(b'{"format": "mycelium-room"}\n')),
        bundle(b"<html>sign in</html>"),
        answer(404, {"slug": "room.not_found", "detail": "Room not found: demo"}),
        CUT,
    ],
)
def test_half_an_export_leaves_nothing(reply: bytes, scripted: ScriptedHub, run: Run, folder: Path) -> None:
    """A backup that can't be read is none; an older one stays."""
    (folder / "old.gz").write_bytes(b"old")
    scripted.play(reply)
    ran = run("room", "export", "-o", "old.gz")
    assert ran.status != 0
    assert ran.err.count("\n") == 1
    assert [(path.name, path.read_bytes()) for path in folder.iterdir()] == [("old.gz", b"old")]


def test_an_import_is_sent_whole_also_when_the_line_was_cut(scripted: ScriptedHub, run: Run, folder: Path) -> None:
    """The same bytes under the same key."""
    (folder / "demo.gz").write_bytes(BUNDLE)
    scripted.play(CUT, answer(201, {**ROOM, "name": "demo 2"}))
    ran = run("room", "import", "demo.gz", "--name", "demo 2")
    assert ran.out == "imported room demo 2\nmake it the one in use: mycelium room use 'demo 2'\n"
    assert [request.line for request in scripted.received] == ["POST /api/rooms/import?name=demo%202 HTTP/1.1"] * 2
    assert [request.body for request in scripted.received] == [BUNDLE] * 2
    assert scripted.received[0].headers["content-type"] == "application/gzip"
    assert len(set(scripted.keys())) == 1


def test_a_file_that_is_not_there_or_empty_is_one_line(run: Run, folder: Path) -> None:
    """Before anything is sent."""
    (folder / "empty").touch()
    assert (
        run("room", "import", "nope.gz").err
        == "error: nope.gz: No such file or directory. Next: the same with one that is there\n"
    )
    assert run("room", "import", "empty").err == (
        "error: empty is empty. Next: mycelium room export <room> -o <file>, for one that is whole\n"
    )


def page(messages: list[dict[str, Any]], older_before: str | None) -> bytes:
    return answer(200, {"items": messages, "next": None, "older_before": older_before})


def test_a_clone_reads_oldest_first_though_pages_come_newest_first(
    scripted: ScriptedHub, run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For programs and for reading; the credential stays with its own hub."""
    monkeypatch.setenv("MYCELIUM_API_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("MYCELIUM_AGENT_AUTH_TOKEN", "secret")
    one, two, three = ({**MESSAGE, "content": text} for text in ("one", "two", "three"))
    scripted.play(
        answer(200, ROOM),
        answer(200, {"items": [{"handle": "sec"}], "next": None}),
        page([three, two], "2026-09-03T16:40:00.000Z~7"),
        page([one], None),
        answer(200, {"items": [{"key": "work/api"}], "next": None}),
        answer(200, b"---\nkey: work/api\n---\n\ntext\n", kind="text/markdown"),
    )
    ran = run("room", "clone", "demo", "--from", scripted.url)
    assert ran.out == f"cloned demo to {folder}/demo (3 messages, 1 memories)\n"
    copy = folder / "demo"
    assert (copy / "memory/work/api.md").read_text() == "---\nkey: work/api\n---\n\ntext\n"
    assert sorted(path.name for path in copy.iterdir()) == [
        "members.json",
        "memory",
        "messages.jsonl",
        "messages.md",
        "room.json",
    ]
    lines = (copy / "messages.jsonl").read_text().splitlines()
    assert [json.loads(line)["content"] for line in lines] == ["one", "two", "three"]
    heading = "## @avery · 1a2b3c4d · 2026-09-03T16:40:00.000Z"
    assert (
        copy / "messages.md"
    ).read_text() == f"# demo\n\n{heading}\n\none\n\n{heading}\n\ntwo\n\n{heading}\n\nthree\n"
    assert json.loads((copy / "members.json").read_text()) == [{"handle": "sec"}]
    assert json.loads((copy / "room.json").read_text())["cloned_from"] == scripted.url
    assert scripted.received[3].line.endswith("?all=true&limit=500&before=2026-09-03T16%3A40%3A00.000Z~7 HTTP/1.1")
    assert all("authorization" not in request.headers for request in scripted.received)
    assert run("room", "clone", "demo", "--from", scripted.url).status == 2


@pytest.mark.parametrize("key", ["../../evil", "/etc/evil", "a/./b", "a\\b"])
def test_a_hub_can_t_write_beside_the_clone(scripted: ScriptedHub, run: Run, folder: Path, key: str) -> None:
    """Whatever it calls a key, files are made below the folder or not at all."""
    scripted.play(
        answer(200, ROOM),
        answer(200, {"items": [], "next": None}),
        page([], None),
        answer(200, {"items": [{"key": key}], "next": None}),
        answer(200, b"evil", kind="text/markdown"),
    )
    ran = run("room", "clone", "demo")
    assert (ran.status, "is no file name" in ran.err) == (5, True)
    assert list(folder.iterdir()) == []


def test_a_clone_that_fails_leaves_nothing(scripted: ScriptedHub, run: Run, folder: Path) -> None:
    """Half a copy would pass for a whole one."""
    scripted.play(answer(200, ROOM), answer(404, {"slug": "room.not_found", "detail": "Room not found: demo"}))
    assert run("room", "clone", "demo").status == 3
    assert list(folder.iterdir()) == []
