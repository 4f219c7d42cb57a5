"""What every test of the command needs: an environment that says nothing, a home of its own, a line to run."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from clients.cli.tests.scripted import ScriptedHub
from mycelium_cli import main
from mycelium_cli.session import AGENT_SESSION_VARIABLES


class Ran(NamedTuple):
    """What a command line came to."""

    status: int
    out: str
    err: str


Run = Callable[..., Ran]


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A home that does not exist yet, in an environment without any of our variables or proxies."""
    for name in list(os.environ):
        if name.startswith("MYCELIUM_") or name in AGENT_SESSION_VARIABLES or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    for name in ("NO_COLOR", "TRACEPARENT", "FORWARDED_ALLOW_IPS"):
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "home"
    monkeypatch.setenv("MYCELIUM_HOME", str(folder))
    return folder


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command line in this process, as the console script would."""

    def ran(*words: str) -> Ran:
        status = main.execute(list(words))
        out, err = capsys.readouterr()
        return Ran(status, out, err)

    return ran


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedHub]:
    """A server that plays a hub whose line is bad; commands of the test talk to it."""
    with ScriptedHub() as hub:
        monkeypatch.setenv("MYCELIUM_API_URL", hub.url)
        monkeypatch.setenv("MYCELIUM_ACTIVE_ROOM", "demo")
        monkeypatch.setenv("MYCELIUM_AGENT_HANDLE", "avery")
        yield hub
