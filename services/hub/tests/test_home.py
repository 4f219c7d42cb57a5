"""A home has one owner at a time, is private, and its files are believed only while the owner lives."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mycelium_hub.errors import Refused
from mycelium_hub.home import DATA, Home, Running, locate, write_private

OWNS = """
import sys
from pathlib import Path
from mycelium_hub.home import Home
with Home(Path(sys.argv[1])).owned():
    print("owned", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = Home(tmp_path / "home")
    made.prepare()
    return made


def test_the_flag_wins_over_the_environment_and_its_older_name() -> None:
    """Flag, then MYCELIUM_HOME, then MYCELIUM_DATA_DIR, then the home directory."""
    both = {"MYCELIUM_HOME": "/a", "MYCELIUM_DATA_DIR": "/b"}
    assert locate("/flag", both).path == Path("/flag")
    assert locate(None, both).path == Path("/a")
    assert locate(None, {"MYCELIUM_DATA_DIR": "/b"}).path == Path("/b")
    assert locate(None, {}).path == Path("~/.mycelium").expanduser()


def test_everything_in_a_home_is_private(home: Home) -> None:
    """Nobody else lists or reads it."""
    for folder in (home.path, *(home.path / name for name in DATA)):
        assert folder.stat().st_mode & 0o777 == 0o700


def test_a_home_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    """The path and the reason are named."""
    (tmp_path / "file").write_text("")
    with pytest.raises(Refused, match=r"file.* can't be the hub's home: Not a directory"):
        Home(tmp_path / "file" / "home").prepare()


def test_a_second_owner_is_refused_until_the_first_has_died(home: Home) -> None:
    """The lock is the process's, and goes with it, also by SIGKILL."""
    with subprocess.Popen(
        [sys.executable, "-c", OWNS, str(home.path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"owned\n"
        assert home.owner() == other.pid
        with pytest.raises(Refused, match=rf"already runs on .*: pid {other.pid}, not ready yet"), home.owned():
            pass
        other.kill()
    assert home.owner() is None
    with home.owned():
        assert home.owner() == os.getpid()


def test_a_hub_file_without_an_owner_is_not_believed(home: Home) -> None:
    """A hub that was killed leaves its file; nobody is sent there."""
    home.announce(Running("http://127.0.0.1:1", os.getpid(), "0", "2026-01-01T00:00:00.000Z"))
    assert home.running() is None
    with home.owned():
        running = home.running()
        assert running is not None
        assert running.url == "http://127.0.0.1:1"


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"url": 1}'])
def test_a_broken_hub_file_is_no_hub(home: Home, text: str) -> None:
    """Whatever is in it, it never fails the program."""
    home.hub_file.write_text(text)
    with home.owned():
        assert home.running() is None


def test_files_are_written_whole_and_private(home: Home) -> None:
    """0600, and nothing else is left in the folder."""
    target = home.run / "x.json"
    write_private(target, json.dumps({"a": 1}))
    write_private(target, json.dumps({"a": 2}))
    assert json.loads(target.read_text()) == {"a": 2}
    assert target.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in home.run.iterdir()] == ["x.json"]
