"""Who, where and on which hub: the order of the sources, and the session's name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from clients.cli.tests.conftest import Run
from clients.cli.tests.scripted import ScriptedHub, answer
from mycelium_cli import config, config_writing, context


def test_a_flag_wins_over_the_environment_and_that_over_iam(monkeypatch: pytest.MonkeyPatch) -> None:
    """The order of the contract."""
    assert context.handle(None) is None
    config_writing.write("identity.name", "casey")
    assert context.handle(None) == ("casey", config.path())
    monkeypatch.setenv("MYCELIUM_AGENT_HANDLE", "@Sec")
    assert context.handle(None) == ("sec", "MYCELIUM_AGENT_HANDLE")
    assert context.handle("@ops") == ("ops", "--handle")


def test_the_hub_is_the_named_one_else_this_machines_own(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Environment, config.toml, run/hub.json, default."""
    assert context.hub_url() == ("http://localhost:8000", "default")
    (home / "run").mkdir(parents=True)
    place = home / "run" / "hub.json"
    place.write_text('{"url": "http://127.0.0.1:41234", "pid": 1}', encoding="utf-8")
    assert context.hub_url() == ("http://127.0.0.1:41234", str(place))
    config_writing.write("server.api_url", "http://hub:8000/")
    assert context.hub_url() == ("http://hub:8000", config.path())
    monkeypatch.setenv("MYCELIUM_API_URL", "https://mycelium.example.com")
    assert context.hub_url() == ("https://mycelium.example.com", "MYCELIUM_API_URL")


def test_a_hub_that_is_down_is_looked_for_at_its_own_port(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the default port another home's hub may answer, and would be told what is for this one."""
    config_writing.write("runtime.backend_port", 8055)
    assert context.hub_url() == ("http://localhost:8055", f"runtime.backend_port, {config.path()}")
    assert context.named_hub_url() == "http://localhost:8055"
    config_writing.write("runtime.backend_port", 0)
    assert context.hub_url() == ("http://localhost:8000", "default")
    monkeypatch.setenv("MYCELIUM_BACKEND_PORT", "8056")
    assert context.hub_url() == ("http://localhost:8056", "runtime.backend_port, MYCELIUM_BACKEND_PORT")
    (home / "run").mkdir(parents=True)
    (home / "run" / "hub.json").write_text('{"url": "http://127.0.0.1:41234", "pid": 1}', encoding="utf-8")
    assert context.hub_url().value == "http://127.0.0.1:41234"


@pytest.mark.parametrize("content", ["", "{", "[]", '{"pid": 1}'])
def test_a_half_written_hub_file_is_no_hub(home: Path, content: str) -> None:
    """It is being written right now, or was left by a crash."""
    (home / "run").mkdir(parents=True)
    (home / "run" / "hub.json").write_text(content, encoding="utf-8")
    assert context.hub_url().source == "default"


def test_whoami_sources_says_what_commands_do(scripted: ScriptedHub, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every part with its value and where it came from; the credential by its end."""
    monkeypatch.setenv("MYCELIUM_AGENT_AUTH_TOKEN", "eyJabcdefgh1234")
    monkeypatch.setenv("MYCELIUM_SESSION", "s1")
    scripted.play(answer(200, {"handle": "avery", "registered": True, "kind": "user", "name": "Avery Quinn"}))
    assert run("whoami", "--sources").out == "\n".join(
        [
            "acting as Avery Quinn (@avery)",
            "            VALUE                   FROM",
            f"hub         {scripted.url}  MYCELIUM_API_URL",
            "handle      avery                   MYCELIUM_AGENT_HANDLE",
            "room        demo                    MYCELIUM_ACTIVE_ROOM",
            "credential  …1234                   MYCELIUM_AGENT_AUTH_TOKEN",
            "session     s1                      MYCELIUM_SESSION",
            "",
        ]
    )
    assert scripted.received[0].headers["authorization"] == "Bearer eyJabcdefgh1234"


@pytest.mark.parametrize("wrong", ["two words", "line\nbreak", "é"])
def test_a_token_that_no_header_can_carry_is_refused_without_being_shown(
    wrong: str, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be a secret with a slip in it."""
    monkeypatch.setenv("MYCELIUM_AGENT_AUTH_TOKEN", wrong)
    said = "error: MYCELIUM_AGENT_AUTH_TOKEN holds a blank or a character that is not plain ASCII. "
    assert run("room", "ls") == (2, "", f"{said}Next: mend MYCELIUM_AGENT_AUTH_TOKEN\n")


def test_whoami_without_a_hub_still_says_what_is_set(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """What this machine knows doesn't need the hub."""
    monkeypatch.setenv("MYCELIUM_API_URL", "http://127.0.0.1:9")
    ran = run("whoami", "--json", "--sources")
    assert ran.status == 0
    assert json.loads(ran.out)["handle"] == ""
    assert "warning: Failed to connect to the Mycelium API" in ran.err


def test_iam_without_a_hub_sets_the_identity_and_says_what_was_not_saved(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit 0, a warning on stderr."""
    monkeypatch.setenv("MYCELIUM_API_URL", "http://127.0.0.1:9")
    ran = run("iam", "@Avery", "--name", "Avery Quinn")
    assert (ran.status, ran.out) == (0, "you are @avery\n")
    assert ran.err.startswith("warning: the user record was not saved: Failed to connect to the Mycelium API")
    assert config.lookup("identity.name") == ("avery", config.path())


@pytest.mark.parametrize(("status", "slug", "ends"), [(409, "handle.taken", 1), (403, "handle.mismatch", 4)])
def test_iam_that_the_hub_refuses_changes_nothing(
    status: int, slug: str, ends: int, scripted: ScriptedHub, run: Run
) -> None:
    """An agent's handle is not taken over by a command that failed."""
    config_writing.write("identity.name", "avery")
    scripted.play(answer(status, {"slug": slug, "detail": "@scout is an agent"}))
    assert run("iam", "scout").status == ends
    assert config.from_file("identity.name") == ("avery", config.path())


def test_nothing_is_written_when_the_environment_says_everything(scripted: ScriptedHub, home: Path, run: Run) -> None:
    """A read-only home must do."""
    scripted.play(answer(200, {"items": [], "next": None, "older_before": None}))
    assert run("room", "messages").out == "no messages\n"
    assert not home.exists()


def test_a_folder_of_somebodys_repository_gets_no_token_that_is_for_another_hub(
    scripted: ScriptedHub, run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The file names a hub; what this environment holds for its own hub goes there once somebody else says so too."""
    url = scripted.url
    monkeypatch.delenv("MYCELIUM_API_URL")
    monkeypatch.delenv("MYCELIUM_AGENT_HANDLE")
    monkeypatch.setenv("MYCELIUM_AGENT_AUTH_TOKEN", "for-my-own-hub")
    place = tmp_path / "cloned" / ".mycelium" / "member.json"
    place.parent.mkdir(parents=True)
    place.write_text(json.dumps({"hub": url, "room": "demo", "handle": "sec", "token": "myc_joined"}), encoding="utf-8")
    place.chmod(0o600)
    monkeypatch.chdir(tmp_path / "cloned")
    scripted.play(*[answer(200, {"items": [], "next": None})] * 2)
    ran = run("room", "ls")
    said = f"warning: MYCELIUM_AGENT_AUTH_TOKEN is not sent to {url}, which {place} alone names."
    assert ran.err == f"{said} Next: export MYCELIUM_API_URL={url}\n"
    config_writing.write("server.api_url", url)
    assert run("room", "ls").err == ""
    sent = [request.headers["authorization"] for request in scripted.received]
    assert sent == ["Bearer myc_joined", "Bearer for-my-own-hub"]
