"""`apply`: a running hub takes its settings in its own process; what can't be leaves it as it was."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from mycelium_hub import address, again
from services.hub.tests import calls
from services.hub.tests.test_stop import prepare

if TYPE_CHECKING:
    from services.hub.tests.conftest import HubCommand

Wait = Callable[[Callable[[], object]], None]
KEY = "sk-test-0123456789abcdefWXYZ"


def apply(hub: HubCommand, *flags: str, status: int = 0) -> dict[str, Any]:
    """What it says."""
    done = hub("apply", *flags)
    assert done.returncode == status, done.stdout + done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def write(hub: HubCommand, text: str) -> Path:
    hub.home.prepare()
    path = hub.home.path / "config.toml"
    path.write_text(text)
    return path


def runs_with(hub: HubCommand, key: str) -> tuple[object, str]:
    """A setting of the running hub, and where it is from."""
    started = hub.home.started()
    assert started
    value, source = started.settings[key]
    return value, source


def starts(hub: HubCommand) -> int:
    """How often the hub's process has started."""
    started = hub.home.started()
    assert started
    return started.times


def keys(rows: list[dict[str, Any]]) -> list[str]:
    return [row["key"] for row in rows]


def test_a_running_hub_takes_its_settings_in_its_own_process(hub: HubCommand) -> None:
    """The same process, the same address, everything that was said; a second time nothing is touched."""
    prepare(hub)
    calls.post(hub.url, "before")
    running = hub.home.running()
    assert running
    write(hub, "[log]\nlevel = 'debug'\n")
    told = apply(hub)
    assert (told["outcome"], told["url"], told["pid"]) == ("applied", running.url, running.pid)
    assert told["changed"] == [
        {
            "key": "log.level",
            "running": "info",
            "source": "default",
            "written": "debug",
            "written_source": "config.toml",
        }
    ]
    assert runs_with(hub, "log.level") == ("debug", "config.toml")
    calls.post(hub.url, "after")
    assert calls.texts(hub.url) == ["after", "before"]
    assert (apply(hub)["outcome"], starts(hub)) == ("same", 2)
    assert (apply(hub, "--restart")["outcome"], starts(hub)) == ("applied", 3)
    assert hub("down").returncode == 0
    assert not hub.processes()


def test_flags_and_variables_of_the_start_go_on_to_win(hub: HubCommand) -> None:
    """Over the file, before and after; the file's own settings are taken."""
    hub.start(MYCELIUM_LOG_LEVEL="warning", LLM_API_KEY=KEY)
    write(hub, "[log]\nlevel = 'debug'\n[runtime]\nbackend_port = 8123\n[llm]\nmodel = 'openai/a'\n")
    told = apply(hub)
    assert (keys(told["changed"]), keys(told["overruled"])) == (["llm.model"], ["runtime.backend_port", "log.level"])
    assert runs_with(hub, "log.level") == ("warning", "MYCELIUM_LOG_LEVEL")
    assert runs_with(hub, "runtime.backend_port") == (0, "--port")
    assert runs_with(hub, "llm.api_key") == ("…WXYZ", "LLM_API_KEY")
    assert runs_with(hub, "llm.model") == ("openai/a", "config.toml")
    assert (apply(hub)["outcome"], starts(hub)) == ("same", 2)


def test_another_key_of_the_model_is_told_from_the_old_one_without_being_shown(hub: HubCommand) -> None:
    """Also when both end alike; the file of what it runs with holds neither."""
    hub.home.prepare()
    kept = hub.home.secrets / "llm_api_key"
    kept.write_text(f"{KEY}\n")
    hub.start()
    assert apply(hub)["outcome"] == "same"
    kept.write_text("sk-another-key-that-ends-WXYZ\n")
    (changed,) = apply(hub)["changed"]
    assert (changed["running"], changed["written"]) == ("…WXYZ", "…WXYZ")
    assert "another-key" not in hub.home.started_file.read_text()
    assert apply(hub)["outcome"] == "same"


def test_everything_wrong_in_the_file_is_named_and_nothing_is_touched(hub: HubCommand) -> None:
    """Unknown keys with the nearest, values of the wrong kind, values out of bounds, values that mean nothing."""
    hub.start()
    path = write(
        hub,
        "[runtime]\nbackend_prot = 1\nreplicas = 99\n[log]\nlevel = 'loud'\n[auth]\ninsecure = 'perhaps'\n"
        "[llm]\nmodel = 'x'\nbase_url = 'nowhere'\ntimeout_s = 0\nmax_tokens = 0\n[server]\napi_url = 'of commands'\n",
    )
    told = apply(hub, status=2)
    assert told["outcome"] == "wrong"
    assert keys(told["wrong"]) == [
        "runtime.backend_prot", "runtime.replicas", "llm.timeout_s", "llm.max_tokens", "auth.insecure", "log.level",
        "llm.model", "llm.base_url",
    ]  # fmt: skip
    assert all(row["seen"] and row["next"] for row in told["wrong"])
    assert "did you mean runtime.backend_port?" in told["wrong"][0]["seen"]
    assert starts(hub) == 1
    path.write_text("= =")
    (fault,) = apply(hub, status=2)["wrong"]
    assert "can't be read" in fault["seen"]
    for text in ("x = " + "[" * 3000 + "]" * 3000, f"[{'x.' * 3000}x]\n", f"x = {'1' * 5000}\n"):
        path.write_text(text)
        (fault,) = apply(hub, "--check", status=2)["wrong"]
        assert "can't be read" in fault["seen"]
    path.write_text(
        f"[llm]\nmax_turns_per_room = 1{'0' * 400}\nmodel = 'x/y'\nbase_url = 'http://['\n"
        "[runtime]\nbind_addr = \"127.0.0.1\\u0000\"\n[telemetry]\ntraces_endpoint = 'http://h:70000'\n"
    )
    assert keys(apply(hub, "--check", status=2)["wrong"]) == [
        "runtime.bind_addr", "llm.max_turns_per_room", "llm.base_url", "telemetry.traces_endpoint",
    ]  # fmt: skip
    path.write_text("[log]\nlevel = 'debug'\n")
    short = hub.home.secrets / "auth_session_secret"
    short.write_text("hunter2\n")
    (fault,) = apply(hub, "--check", status=2)["wrong"]
    assert (fault["key"], "hunter2" in str(fault)) == ("auth.session_secret", False)
    short.unlink()
    assert (apply(hub, "--check")["outcome"], starts(hub)) == ("same", 1)


def test_without_a_hub_it_says_that_the_next_start_takes_them(hub: HubCommand) -> None:
    """And makes nothing."""
    assert (apply(hub)["outcome"], apply(hub)["next"]) == ("not running", "mycelium up")
    assert not hub.home.path.exists()


def test_what_the_hub_could_not_be_started_with_is_refused_before_it_is_stopped(hub: HubCommand) -> None:
    """A port that somebody has, an address of another machine, an open one, another number of servers."""
    write(hub, f"[runtime]\nbackend_port = {address.free_ports(1)[0]}\n")
    assert hub("up", "--detach").returncode == 0
    with closing(address.listen("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        for text, words in (
            (f"[runtime]\nbackend_port = {port}\n", f"port {port} is in use (pid {os.getpid()}"),
            ("[runtime]\nbind_addr = '192.0.2.1'\n[auth]\ninsecure = true\n", "is no address of this machine"),
            ("[runtime]\nbind_addr = '0.0.0.0'\n", "sign-in is off"),
            ("[runtime]\nnats_servers = 3\n", "began with one NATS server"),
        ):
            write(hub, text)
            told = apply(hub, status=1)
            assert told["outcome"] == "refused"
            assert words in told["reason"]
            assert told["reason"].endswith("nothing was touched")
    assert starts(hub) == 1
    assert calls.call(hub.url, "GET", "/healthz")[0] == calls.OK


def test_settings_that_fail_at_the_start_are_given_up_for_those_before(hub: HubCommand) -> None:
    """The hub comes back at its address with all that was said, and tells why; once that is mended, they are taken."""
    prepare(hub)
    calls.post(hub.url, "kept")
    url, in_the_way = hub.url, hub.home.tables / "2"
    in_the_way.write_text("where the second replica's tables would be")
    write(hub, "[runtime]\nsplit = true\nreplicas = 2\n")
    told = apply(hub, status=1)
    assert told["outcome"] == "refused"
    assert "rooms-2 ended with status" in told["reason"]
    assert told["reason"].endswith("; it runs with the settings before")
    assert runs_with(hub, "runtime.replicas") == (1, "default")
    assert (hub.url, calls.texts(hub.url)) == (url, ["kept"])
    in_the_way.unlink()
    assert apply(hub)["outcome"] == "applied"
    assert (hub.url, calls.texts(hub.url)) == (url, ["kept"])


@pytest.mark.parametrize("taken", [True, False])
def test_a_hub_moves_to_another_port_or_stays_where_it_was(hub: HubCommand, wait: Wait, *, taken: bool) -> None:
    """One that is taken only after it was looked at is refused by the hub itself, which is then where it was."""
    old, new = address.free_ports(2)
    write(hub, f"[runtime]\nbackend_port = {old}\n")
    assert hub("up", "--detach").returncode == 0
    write(hub, f"[runtime]\nbackend_port = {new}\n")
    if not taken:
        assert apply(hub)["url"] == hub.url == f"http://127.0.0.1:{new}"
        return
    running = hub.home.running()
    assert running
    with closing(address.listen("127.0.0.1", new)):
        os.kill(running.pid, again.ASKED)
        wait(lambda: (found := hub.home.started()) and found.times > 1 and hub.home.running())
    started = hub.home.started()
    assert started
    assert f"port {new} is in use" in started.refused
    assert hub.url == running.url
    assert calls.call(hub.url, "GET", "/healthz")[0] == calls.OK


def test_a_hub_on_any_free_port_keeps_it_when_its_address_changes(hub: HubCommand) -> None:
    """Everybody knows it by that port."""
    hub.start()
    port = address.port_of(hub.url)
    write(hub, "[runtime]\nbind_addr = '127.0.0.2'\n")
    assert apply(hub)["url"] == f"http://127.0.0.2:{port}"


def test_a_hub_in_the_foreground_takes_them_too(hub: HubCommand) -> None:
    """It stays in its terminal, where Ctrl-C ends it as before."""
    command = [sys.executable, "-P", "-m", "mycelium_hub", "up", "--port", "0", "--home", str(hub.home.path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=hub.environment) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        write(hub, "[log]\nlevel = 'error'\n")
        told = apply(hub)
        assert (told["outcome"], told["pid"]) == ("applied", process.pid)
        assert process.stdout.readline() == first
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 0
        assert process.stderr is not None
        assert process.stderr.read() == b""
    assert not hub.processes()


def test_up_on_a_hub_that_runs_with_something_else_says_so(hub: HubCommand) -> None:
    """What the file would change, and what the command line would, each with the next command."""
    hub.start()
    write(hub, "[log]\nlevel = 'debug'\n")
    said = hub("up", "--detach", "--port", "7").stdout.splitlines()
    assert said[1:] == [
        "log.level is 'info' there, and 'debug' in config.toml",
        "Next: mycelium config apply",
        "runtime.backend_port is 0 there, and 7 by --port",
        "Next: mycelium down, then the same again",
    ]
    assert json.loads(hub("up", "--detach", "--json").stdout)["drift"] == said[1:3]
    refused = hub("up")
    assert (refused.returncode, refused.stderr.splitlines()[1:]) == (1, said[1:3])
    apply(hub)
    assert hub("up", "--detach").stdout.count("\n") == 1
