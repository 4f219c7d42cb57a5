"""`config apply`: what it says of a hub that runs here, of one elsewhere, and of what is wrong in the file."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from clients.cli.tests.conftest import Run
from clients.cli.tests.scripted import ScriptedHub, answer
from mycelium_cli import config

Told = Callable[..., None]
URL = "http://127.0.0.1:41234"
MODEL = {"key": "llm.model", "running": "", "source": "default", "written": "a/b", "written_source": "config.toml"}
SPLIT = {
    "key": "runtime.split",
    "running": True,
    "source": "--split",
    "written": False,
    "written_source": "config.toml",
}


@pytest.fixture
def told(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Told:
    """A program of the hub that says what a test lets it, and writes down how it was called."""
    program = tmp_path / "mycelium-hub"
    monkeypatch.setattr("mycelium_cli.machine.hub.program", lambda: str(program))

    def says(**fields: Any) -> None:
        whole = {"outcome": "same", "home": str(home), "url": URL, "pid": 7, "wrong": [], "changed": []}
        whole |= {"overruled": [], "reason": None, "next": None} | fields
        program.write_text(f"#!/bin/sh\necho \"$@\" > {tmp_path}/called\ncat <<'END'\n{json.dumps(whole)}\nEND\n")
        program.chmod(0o755)

    return says


@pytest.fixture
def client_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """No program of a hub is installed."""
    monkeypatch.setattr("sys.executable", "/nowhere/python")
    monkeypatch.setenv("PATH", "/nowhere")


def write(home: Path, text: str) -> None:
    home.mkdir(exist_ok=True)
    (home / "config.toml").write_text(text, encoding="utf-8")


def test_what_changed_is_said_and_what_did_not(told: Told, run: Run, tmp_path: Path, home: Path) -> None:
    """A line each; then that the hub answers."""
    told(outcome="applied", changed=[MODEL], overruled=[SPLIT])
    lines = [
        "llm.model: - → a/b (config.toml)",
        "runtime.split stays true: --split wins over false in config.toml",
        f"the hub was started again and answers at {URL}",
    ]
    assert run("config", "apply", "--restart") == (0, "\n".join([*lines, ""]), "")
    assert (tmp_path / "called").read_text() == f"apply --home {home} --restart\n"
    document = json.loads(run("config", "apply", "--json").out)
    assert document == {
        "outcome": "applied", "home": str(home), "url": URL, "pid": 7, "changed": [MODEL], "overruled": [SPLIT],
        "next": None,
    }  # fmt: skip


def test_nothing_to_do_is_said(told: Told, run: Run, home: Path) -> None:
    """With a hub that runs with these settings, and without one."""
    told()
    assert run("config", "apply") == (0, f"the hub at {URL} runs with these settings; nothing was touched\n", "")
    told(outcome="not running", url=None, pid=None)
    assert run("config", "apply") == (0, f"no hub runs on {home}; mycelium up will use these settings\n", "")


@pytest.mark.parametrize(("outcome", "status"), [("refused", 1), ("lost", 5)])
def test_what_could_not_be_done_is_one_line(told: Told, run: Run, outcome: str, status: int) -> None:
    """With the reason and the next command."""
    told(outcome=outcome, changed=[MODEL], reason="port 7 is in use", next="mycelium up --detach")
    assert run("config", "apply") == (status, "", "error: port 7 is in use. Next: mycelium up --detach\n")


def test_everything_wrong_is_a_line_each(told: Told, run: Run, home: Path, tmp_path: Path) -> None:
    """What commands read and what the hub reads; nothing is asked of the hub but to look."""
    write(home, '[server]\napi_ur = "x"\n[runtime]\nreplicas = 99\n')
    fault = {"key": "runtime.replicas", "seen": "runtime.replicas is 99", "next": "mycelium config set x"}
    told(outcome="wrong", wrong=[fault])
    place = config.path()
    misspelt = f"{place} sets server.api_ur, which nothing reads; did you mean server.api_url?"
    assert run("config", "apply") == (
        2,
        "",
        (
            f"error: {misspelt} Next: mycelium config set server.api_url <value>\n"
            "error: runtime.replicas is 99. Next: mycelium config set x\n"
            f"error: 2 settings are wrong in {place}; nothing was touched."
            " Next: mend that, then mycelium config apply\n"
        ),
    )
    assert (tmp_path / "called").read_text() == f"apply --home {home} --check\n"
    document = json.loads(run("config", "apply", "--json").err)
    assert (document["exit"], [row["seen"] for row in document["items"]]) == (2, [misspelt, "runtime.replicas is 99"])


@pytest.mark.usefixtures("client_alone")
def test_a_client_alone_checks_the_whole_file_itself(run: Run, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And has no hub to tell: one elsewhere is its operator's, and here there is none."""
    write(home, "[runtime]\nbackend_port = 70000\n")
    assert run("config", "apply").err.splitlines()[0] == (
        "error: runtime.backend_port is a port from 0 to 65535, not 70000."
        " Next: mycelium config set runtime.backend_port <value>"
    )
    write(home, "")
    ran = run("config", "apply")
    assert (ran.status, ran.out) == (5, "")
    assert ran.err.startswith("error: mycelium-hub is not installed here")
    monkeypatch.setenv("MYCELIUM_API_URL", "http://hub.example.com")
    write(home, '[log]\nlevel = "debug"\n')
    assert run("config", "apply") == (
        1,
        "",
        (
            "error: the hub at http://hub.example.com is on another machine, and takes its settings there."
            " Next: ask its operator to run mycelium config apply on it\n"
        ),
    )


@pytest.mark.usefixtures("client_alone")
def test_settings_that_commands_read_need_no_hub(
    scripted: ScriptedHub, run: Run, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An agent's machine is set up as the hub's is; that there is nothing to hand on is no failure."""
    write(home, '[agent_auth]\nissuer = "https://sso.example.com"\naudience = "mycelium"\n')
    scripted.play(*[answer(200, b"ok", kind="text/plain")] * 2)
    for url in (scripted.url, "http://hub.example.com"):
        monkeypatch.setenv("MYCELIUM_API_URL", url)
        said = f"nothing to hand on: commands read their settings themselves, and the hub is at {url}\n"
        assert run("config", "apply") == (0, said, "")
        assert run("config", "apply", "--restart").status == 1


def test_a_hub_here_that_is_not_of_this_home_is_left_alone(
    told: Told, run: Run, home: Path, scripted: ScriptedHub
) -> None:
    """A cluster's, say, through a forwarded port."""
    told(outcome="not running", url=None, pid=None)
    write(home, '[log]\nlevel = "debug"\n')
    scripted.play(answer(200, b"ok", kind="text/plain"))
    assert run("config", "apply") == (
        1,
        "",
        (
            f"error: the hub at {scripted.url} is not the one of {home}: a container's, a cluster's, or another user's."
            " Next: change its settings where it was started (on a cluster: helm upgrade)\n"
        ),
    )


def test_a_program_of_another_version_is_said(told: Told, run: Run, tmp_path: Path) -> None:
    """In its own words."""
    told()
    program = tmp_path / "mycelium-hub"
    program.write_text("#!/bin/sh\necho 'Error: No such command apply.' >&2\nexit 2\n")
    ran = run("config", "apply")
    assert (ran.status, ran.err) == (
        1, f"error: {program} can't do it: Error: No such command apply. Next: mycelium down && mycelium up\n",
    )  # fmt: skip
