"""Settings: where values come from, what is refused, and how the file is written."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from clients.cli.tests.conftest import Run
from mycelium_cli import config, setting_values


def write(home: Path, text: str) -> Path:
    home.mkdir(exist_ok=True)
    place = home / "config.toml"
    place.write_text(text, encoding="utf-8")
    return place


def test_the_environment_wins_over_the_file_and_that_over_the_default(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each value tells where it was found."""
    assert config.effective("runtime.backend_port") == (8000, "default")
    place = write(home, "[runtime]\nbackend_port = 8001\n")
    assert config.effective("runtime.backend_port") == (8001, str(place))
    monkeypatch.setenv("MYCELIUM_BACKEND_PORT", "8002")
    assert config.effective("runtime.backend_port") == (8002, "MYCELIUM_BACKEND_PORT")


def test_an_alias_counts_after_the_name_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """MYCELIUM_ROOM_ID works too."""
    monkeypatch.setenv("MYCELIUM_ROOM_ID", "old")
    assert config.lookup("rooms.active") == ("old", "MYCELIUM_ROOM_ID")
    monkeypatch.setenv("MYCELIUM_ACTIVE_ROOM", "new")
    assert config.lookup("rooms.active") == ("new", "MYCELIUM_ACTIVE_ROOM")


def test_set_keeps_comments_and_other_tables(home: Path, run: Run) -> None:
    """People edit the file by hand."""
    place = write(home, '# mine\n[server]\napi_url = "http://a:1" # the old one\n\n[other]\nkept = true\n')
    assert run("config", "set", "server.api_url", "http://b:2/").out == "server.api_url = http://b:2\n"
    assert place.read_text(encoding="utf-8") == (
        '# mine\n[server]\napi_url = "http://b:2" # the old one\n\n[other]\nkept = true\n'
    )


def test_the_file_is_for_its_owner_only_and_nothing_else_is_left(home: Path, run: Run) -> None:
    """0600, also when it was wider, and no half-written file beside it."""
    place = write(home, "")
    place.chmod(0o644)
    run("config", "set", "identity.name", "@Avery")
    assert stat.S_IMODE(place.stat().st_mode) == 0o600
    assert os.listdir(home) == ["config.toml"]
    assert place.read_text(encoding="utf-8") == '[identity]\nname = "avery"\n'


def test_a_link_stays_a_link(home: Path, tmp_path: Path, run: Run) -> None:
    """Who keeps the file elsewhere keeps it there."""
    elsewhere = tmp_path / "dotfiles.toml"
    elsewhere.write_text("", encoding="utf-8")
    home.mkdir()
    (home / "config.toml").symlink_to(elsewhere)
    run("config", "set", "rooms.active", "demo")
    assert (home / "config.toml").is_symlink()
    assert 'active = "demo"' in elsewhere.read_text(encoding="utf-8")


@pytest.mark.parametrize("words", [("room", "ls"), ("config", "set", "rooms.active", "demo")])
def test_a_file_nested_too_deep_is_one_line(home: Path, run: Run, words: tuple[str, ...]) -> None:
    """Not a fault of this program, and no command goes on without what it says."""
    write(home, "x = " + "[" * 3000 + "]" * 3000)
    ran = run(*words)
    assert (ran.status, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert ran.err.startswith(f"error: {config.path()} is ")
    assert "nested" in ran.err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("server = 5", "server in {} must be a table, since server.api_url stands in it"),
        ("[server.api_url]", "server.api_url in {} must be one value, not a table"),
        ("server.api_url = ['http://a']", "server.api_url in {} must be one value, not a list"),
        ("server.api_url = 2026-01-01", "server.api_url in {} must be one value, not a date or a time"),
    ],
)
def test_a_setting_of_another_shape_is_refused(home: Path, run: Run, text: str, said: str) -> None:
    """Another hub than the one that was meant must not be asked."""
    write(home, text)
    assert run("room", "ls") == (2, "", f"error: {said.format(config.path())}. Next: mend {config.path()}\n")


@pytest.mark.parametrize("words", [("room", "ls"), ("config", "set", "rooms.active", "demo")])
def test_a_file_that_is_a_pipe_is_not_waited_for(home: Path, words: tuple[str, ...]) -> None:
    """It would hang every command."""
    home.mkdir()
    os.mkfifo(home / "config.toml")
    done = subprocess.run(
        [sys.executable, "-m", "mycelium_cli", *words], capture_output=True, text=True, timeout=20, check=False
    )
    assert (done.returncode, done.stderr) == (
        2, f"error: {config.path()} is no regular file. Next: move {config.path()} away\n",
    )  # fmt: skip


def test_two_writers_at_once_lose_nothing(home: Path) -> None:
    """Read, change and write are one step."""
    writes = [
        ("runtime.backend_port", "9000"),
        ("rooms.active", "demo"),
        ("identity.name", "avery"),
        ("log.level", "debug"),
    ]
    processes = [
        subprocess.Popen([sys.executable, "-m", "mycelium_cli", "config", "set", *pair], stdout=subprocess.DEVNULL,
                         stderr=subprocess.DEVNULL)
        for pair in writes
    ]  # fmt: skip
    assert [process.wait(30) for process in processes] == [0] * len(writes)
    assert {key: str(config.effective(key).value) for key, _ in writes} == dict(writes)
    assert os.listdir(home) == ["config.toml"]


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("server.api_ulr", "x", 'no setting is called "server.api_ulr"; did you mean server.api_url?'),
        ("api_url", "x", "did you mean server.api_url?"),
        ("runtime.port", "8001", "did you mean runtime.backend_port?"),
        ("runtime.backend_port", "eight", 'runtime.backend_port is a number (port), not "eight"'),
        ("runtime.backend_port", "70000", "runtime.backend_port is a port from 0 to 65535, not 70000"),
        ("log.level", "loud", "error, not loud. Next: mycelium config set log.level <debug|info|warning|error>"),
        ("runtime.nats_servers", "2", "runtime.nats_servers is one of 1, 3, not 2"),
        (
            "runtime.replicas",
            "99",
            "is from 1 to 16 (processes), not 99. Next: mycelium config set runtime.replicas <value>",
        ),
        ("llm.max_tokens", "0", "llm.max_tokens is 1 or more (tokens), not 0"),
        ("llm.model", "gpt", 'llm.model is provider/model, such as anthropic/claude-sonnet-4-6, not "gpt"'),
        ("auth.insecure", "maybe", 'auth.insecure is true or false, not "maybe"'),
        ("server.api_url", "hub:8000", "an address without http:// or https://. Next: use http://hub:8000"),
        ("server.api_url", "http://hub:80000", "which is no http:// or https:// address"),
        ("server.api_url", "http://[::1", "which is no http:// or https:// address"),
        ("server.api_url", "http://", "which is no http:// or https:// address"),
        ("server.api_url", "ftp://hub", "which is no http:// or https:// address"),
        ("oidc.issuer", "http://sso example", "which is no http:// or https:// address"),
        ("llm.max_usd_per_room", "nan", 'llm.max_usd_per_room is a number (US dollars a room), not "nan"'),
        ("llm.usd_per_million_input_tokens", "cheap", "is an amount of US dollars, such as 0.15, not"),
        ("runtime.bind_addr", "all of them", "is an address of this machine, such as 127.0.0.1"),
        ("runtime.trusted_proxies", "10.0.0.0/33", 'holds "10.0.0.0/33": use addresses or networks'),
        ("auth.operators", "avery, no/body", 'auth.operators holds "no/body", which is no handle'),
        ("auth.handle_claim", "", "auth.handle_claim is the name of a claim, and not empty"),
        ("auth.audience", "my\x07celium", "auth.audience is a text without control characters"),
        ("rooms.active", "a/b", "rooms.active is a room's name, without slashes"),
        ("identity.name", "a b", 'identity.name is "a b", which is no handle'),
    ],
)
def test_a_wrong_key_or_value_is_refused_and_nothing_written(
    key: str, value: str, said: str, run: Run, home: Path
) -> None:
    """Types are checked when a setting is written, not when it hurts."""
    ran = run("config", "set", key, value)
    assert ran.status == 2
    assert said in ran.err
    assert not home.exists()


def test_an_issuers_address_keeps_its_last_slash(run: Run) -> None:
    """Tokens name it so, and are compared to the letter."""
    assert run("config", "set", "oidc.issuer", " https://sso.example/ ").out == "oidc.issuer = https://sso.example/\n"
    assert run("config", "set", "oidc.issuer", "").out == "oidc.issuer = \n"


def test_a_secret_that_is_too_short_is_refused_with_one_that_is_not(
    run: Run, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not repeated, and `doctor` finds one that was put there by hand."""
    ran = run("config", "set", "auth.session_secret", "hunter2")
    assert ran == (
        2,
        "",
        (
            "error: auth.session_secret has 32 characters or more; what came has 7."
            " Next: openssl rand -hex 32 | mycelium config set auth.session_secret\n"
        ),
    )
    assert not home.exists()
    monkeypatch.setattr("sys.executable", "/nowhere/python")  # a hub's own program says it in its own words
    monkeypatch.setenv("PATH", "/nowhere")
    (home / "secrets").mkdir(parents=True)
    (home / "secrets" / "auth_session_secret").write_text("hunter2\n", encoding="utf-8")
    assert "auth.session_secret has 32 characters or more; what came has 7" in run("doctor").out


@pytest.mark.parametrize(
    ("key", "value", "other", "said"),
    [
        ("runtime.replicas", "2", ("runtime.split", "true"), "while runtime.split is false"),
        ("runtime.bind_addr", "0.0.0.0", ("auth.enabled", "true"), "while nobody has to sign in"),
        ("runtime.bind_addr", "::", ("auth.insecure", "true"), "while nobody has to sign in"),
    ],
)
def test_a_value_that_needs_another_one_is_written_and_the_other_is_told(
    run: Run, key: str, value: str, other: tuple[str, str], said: str
) -> None:
    """The order of the two is anybody's; with both there is nothing to warn of."""
    ran = run("config", "set", key, value)
    assert (ran.status, ran.out) == (0, f"{key} = {value}\n")
    assert ran.err.startswith(f"warning: {key} is {value}")
    assert said in ran.err
    assert " Next: mycelium config set " in ran.err
    applied = "the hub reads it when it starts; one that runs takes it with: mycelium config apply\n"
    assert run("config", "set", *other).err == applied


def test_unset_takes_a_setting_out_and_tells_what_holds_now(
    home: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Comments and other settings stay; what isn't set changes nothing."""
    assert run("config", "unset", "rooms.active").out == "rooms.active = - (default)\n"
    assert not home.exists()
    place = write(home, '[rooms]\nactive = "demo" # mine\n[log]\nlevel = "debug" # loud\n')
    monkeypatch.setenv("MYCELIUM_ROOM_ID", "build")
    assert run("config", "unset", "rooms.active").out == "rooms.active = build (MYCELIUM_ROOM_ID)\n"
    assert place.read_text(encoding="utf-8") == '[rooms]\n[log]\nlevel = "debug" # loud\n'
    ran = run("config", "unset", "log.level")
    assert ran == (
        0, "log.level = info (default)\n",
        "the hub reads it when it starts; one that runs takes it with: mycelium config apply\n",
    )  # fmt: skip
    assert run("config", "unset", "log.leevel").status == 2


def test_a_broken_file_is_one_line_that_says_where(home: Path, run: Run) -> None:
    """The line and column are TOML's."""
    write(home, "[server\n")
    for words in (["config", "show"], ["room", "ls"], ["config", "set", "rooms.active", "x"]):
        ran = run(*words)
        assert ran.status == 2 or words == ["config", "show"]
        assert "is not valid TOML" in ran.err + ran.out
        assert "line 1" in ran.err + ran.out


def test_show_tells_every_value_and_its_source(home: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong value is shown with its reason and hides no other."""
    place = write(home, '[rooms]\nactive = "demo"\n[log]\nlevel = "debug"\n')
    monkeypatch.setenv("MYCELIUM_BACKEND_PORT", "x")
    rows = {
        row["key"]: (row["value"], row["source"]) for row in json.loads(run("config", "show", "--json").out)["items"]
    }
    assert rows["rooms.active"] == ("demo", str(place))
    assert rows["log.level"] == ("debug", str(place))
    assert rows["server.api_url"] == ("http://localhost:8000", "default")
    assert rows["runtime.backend_port"][0] == "?"
    assert list(rows) == list(setting_values.known())


def test_get_prints_the_value_in_force(home: Path, run: Run) -> None:
    """Also the address of a hub that runs on this machine."""
    assert run("config", "get", "server.api_url").out == "http://localhost:8000\n"
    (home / "run").mkdir(parents=True)
    (home / "run" / "hub.json").write_text('{"url": "http://127.0.0.1:41234"}', encoding="utf-8")
    assert run("config", "get", "server.api_url").out == "http://127.0.0.1:41234\n"
    assert run("config", "get", "auth.insecure").out == "false\n"


def test_secrets_are_shown_by_their_last_four_characters() -> None:
    """On the screen and in JSON."""
    secret = setting_values.Setting("llm.api_key", ["X"], "", "", "", "hub")
    assert setting_values.shown(secret, "sk-1234567890") == "…7890"
    assert setting_values.shown(secret, "short") == "…"
    assert setting_values.shown(setting_values.known()["log.level"], "info") == "info"


def test_a_home_that_can_not_be_written_is_one_line(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It names the file, the reason, and the way without files."""
    (tmp_path / "file").write_text("", encoding="utf-8")
    monkeypatch.setenv("MYCELIUM_HOME", str(tmp_path / "file" / "home"))
    ran = run("config", "set", "rooms.active", "demo")
    assert ran.status == 1
    assert ran.err.startswith(
        f"error: cannot write {tmp_path}/file/home/config.toml: Not a directory. Next: set MYCELIUM_HOME"
    )
