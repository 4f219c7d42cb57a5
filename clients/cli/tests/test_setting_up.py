"""`init`, and what answers who looks for SLIM."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from clients.cli.tests.conftest import Run
from clients.cli.tests.scripted import ScriptedHub, answer
from mycelium_cli import config
from mycelium_cli.errors import OK, USAGE


@pytest.mark.parametrize(
    ("typed", "hint"),
    [
        ("slim send hello --room demo", "mycelium room send"),
        ("slim", "mycelium room --help"),
        ("slim --help", "mycelium room --help"),
        ("hub host", "mycelium up"),
        ("hub", "mycelium up"),
        ("connect http://192.168.1.20:46357", "mycelium init --api-url http://192.168.1.20:8000"),
        ("connect 192.168.1.20:46357", "mycelium init --api-url http://192.168.1.20:8000"),
        ("connect --verbose http://[fe80::1]:46357", "mycelium init --api-url http://[fe80::1]:8000"),
        ("connect", "mycelium init --api-url http://<host>:8000"),
        ("connect http://[", "mycelium init --api-url http://<host>:8000"),
        ("install", "mycelium up"),
    ],
)
def test_a_command_of_slim_says_what_stands_in_its_place(typed: str, hint: str, run: Run) -> None:
    """Nothing is done, and the line ends in a command that helps."""
    ran = run(*typed.split())
    assert (ran.status, ran.out) == (USAGE, "")
    assert ran.err.startswith("error: ")
    assert ran.err.endswith(f". Next: {hint}\n")


@pytest.mark.parametrize("key", ["slim.master_secret", "slim.identity", "slim.node_endpoint", "slim.anything"])
def test_a_setting_of_slim_says_what_stands_in_its_place(key: str, run: Run, home: Path) -> None:
    """Read, written or taken out; a value that may be a secret is not repeated, and nothing is kept."""
    for words in (["get", key], ["set", key, "hunter2-hunter2"], ["unset", key]):
        ran = run("config", *words)
        assert (ran.status, ran.out) == (USAGE, "")
        assert ran.err.startswith(f"error: {key} is a setting of SLIM, which this hub does without: ")
        assert " Next: mycelium config " in ran.err
        assert "hunter2" not in ran.err
    assert not home.exists()


def test_settings_of_slim_in_a_file_of_before_disturb_nothing(run: Run, home: Path) -> None:
    """A config.toml of another hub of this kind is read all the same."""
    home.mkdir()
    (home / "config.toml").write_text('[slim]\nmaster_secret = "hunter2"\n[identity]\nname = "avery"\n')
    ran = run("config", "show")
    assert ran.status == OK
    assert "hunter2" not in ran.out
    assert config.lookup("identity.name") == ("avery", str(home / "config.toml"))


def test_init_makes_the_file_of_settings_and_changes_none_that_is_there(run: Run, home: Path) -> None:
    """For a hub of this machine."""
    place = home / "config.toml"
    ran = run("init")
    elsewhere = "one elsewhere: mycelium init --api-url <url>"
    said = f"settings in {place}\nnext: mycelium up, which starts a hub here ({elsewhere})\n"
    assert ran == (OK, said, "")
    assert [stat.S_IMODE(one.stat().st_mode) for one in (home, place)] == [0o700, 0o600]
    place.write_text('[identity]\nname = "avery"\n')
    assert run("init").status == OK
    assert place.read_text() == '[identity]\nname = "avery"\n'


@pytest.mark.parametrize(("enabled", "command"), [(True, "mycelium login"), (False, "mycelium iam <handle>")])
def test_init_points_at_a_hub_elsewhere_and_says_what_is_next(
    enabled: bool, command: str, scripted: ScriptedHub, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Signing in where the hub asks for it, else saying who one is."""
    url = scripted.url
    monkeypatch.delenv("MYCELIUM_API_URL")
    scripted.play(answer(200, {"version": "1", "auth": {"enabled": enabled}}))
    ran = run("init", "--api-url", f"{url}/")
    assert ran == (OK, f"settings in {config.path()}\ncommands go to the hub at {url}\nnext: {command}\n", "")
    assert config.lookup("server.api_url") == (url, config.path())
    assert "authorization" not in scripted.received[0].headers


def test_init_keeps_the_address_of_a_hub_that_is_away(run: Run) -> None:
    """And says that nobody answered."""
    ran = run("init", "--api-url", "http://127.0.0.1:9", "--json")
    assert ran.status == OK
    assert json.loads(ran.out)["reached"] is False
    assert ran.err == "warning: no hub answers at http://127.0.0.1:9 now. To look closer: mycelium doctor\n"
    assert config.lookup("server.api_url") == ("http://127.0.0.1:9", config.path())


def test_init_says_when_the_environment_wins(scripted: ScriptedHub, run: Run) -> None:
    """What was written is not what counts."""
    ran = run("init", "--api-url", "http://hub.example.com:8000")
    assert ran.status == OK
    assert ran.err == f"warning: MYCELIUM_API_URL is set, and wins over it: commands go to {scripted.url}\n"
    assert scripted.received == []


def test_init_refuses_what_is_no_address(run: Run, home: Path) -> None:
    """With a right one."""
    ran = run("init", "--api-url", "hub:8000")
    assert ran.status == USAGE
    assert not home.exists()
