"""A name that is empty, as a variable that was never set leaves it, is refused: it never means something else."""

from __future__ import annotations

import pytest

from clients.cli.tests.conftest import Run
from clients.cli.tests.scripted import ScriptedHub


@pytest.mark.parametrize("blank", ["", "  "])
@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["board", "send", "{}", "hello"], "KEY|THREAD"),
        (["board", "messages", "{}"], "KEY|THREAD"),
        (["board", "claim", "work/x", "--to", "{}"], "--to"),
        (["board", "claim", "work/x", "--room", "{}"], "--room"),
        (["board", "claim", "work/x", "--handle", "{}"], "--handle"),
        (["board", "-r", "{}", "claim", "work/x"], "--room"),
        (["board", "--room", "{}"], "--room"),
        (["board", "--tz", "{}"], "--tz"),
        (["board", "new", "x", "--parent", "{}"], "--parent"),
        (["board", "new", "x", "--assign", "{}"], "--assign"),
        (["board", "new", "x", "--depends-on", "work/a", "--depends-on", "{}"], "--depends-on"),
        (["board", "log", "--by", "{}"], "--by"),
        (["board", "log", "--day", "{}"], "--day"),
        (["board", "log", "--since", "{}"], "--since"),
        (["board", "log", "--before", "{}"], "--before"),
        (["board", "reserve", "src", "--task", "{}"], "--task"),
        (["board", "reserve", "--check", "src", "--handle", "{}"], "--handle"),
        (["await", "--task", "{}"], "--task"),
        (["await", "--lease", "{}"], "--lease"),
        (["await", "--seat", "{}"], "--seat"),
        (["respond", "--task", "{}", "hello"], "--task"),
        (["respond", "--reply-to", "{}", "hello"], "--reply-to"),
        (["room", "send", "--thread", "{}", "hello"], "--thread"),
        (["room", "messages", "--sender", "{}"], "--sender"),
        (["room", "watch", "demo", "{}"], "ROOM"),
        (["memory", "set", "work/x", "y", "--room", "{}"], "--room"),
    ],
)
def test_an_empty_name_is_refused(words: list[str], what: str, blank: str, run: Run, scripted: ScriptedHub) -> None:
    """In one line that says which, with nothing asked of the hub."""
    ran = run(*(blank if word == "{}" else word for word in words))
    assert (ran.status, ran.out, scripted.received) == (2, "", [])
    otherwise = ", or leave it out" if what.startswith("--") else ""
    assert ran.err.startswith(f"error: {what} is empty: say which{otherwise}. Next: mycelium {words[0]}"), ran.err
    assert len(ran.err.splitlines()) == 1
