"""Setting up a machine: `init`, and what answers who knows SLIM's commands."""

from pathlib import Path

import pytest

from e2e.harness import Hub, Machine
from e2e.requirements import requirement


@requirement("init:elsewhere")
def test_a_spoke_is_pointed_at_the_hub_and_told_what_is_next(hub: Hub, tmp_path: Path) -> None:
    """One command, and every later one goes there."""
    spoke = Machine(tmp_path / "spoke")
    done = spoke.run("init", "--api-url", f"{hub.url}/").ok()
    lines = [f"settings in {spoke.home}/config.toml", f"commands go to the hub at {hub.url}"]
    assert done == (0, "\n".join([*lines, "next: mycelium iam <handle>", ""]), "")
    assert spoke.run("config", "get", "server.api_url").ok().out == f"{hub.url}\n"
    assert spoke.run("status").ok().out.startswith("hub")


@requirement("config:apply:elsewhere")
def test_a_spoke_has_nothing_to_hand_on(hub: Hub, tmp_path: Path) -> None:
    """What commands read needs no hub to take it; what a hub reads is not taken from here, and that is told."""
    spoke = Machine(tmp_path / "spoke")
    spoke.run("init", "--api-url", hub.url).ok()
    for words in (("agent_auth.issuer", "https://sso.example.com"), ("agent_auth.audience", "mycelium")):
        spoke.run("config", "set", *words).ok()
    assert spoke.run("config", "apply").ok().out.endswith(f"the hub is at {hub.url}\n")
    spoke.run("config", "set", "log.level", "debug").ok()
    assert "is not the one of" in spoke.run("config", "apply").failed(1).err


@requirement("init:here")
def test_a_machine_of_its_own_is_set_up_and_not_changed_by_doing_it_again(tmp_path: Path) -> None:
    """The second time nothing is written."""
    own = Machine(tmp_path / "own")
    assert "next: mycelium up" in own.run("init").ok().out
    own.run("config", "set", "identity.name", "avery").ok()
    before = (own.home / "config.toml").read_bytes()
    own.run("init").ok()
    assert (own.home / "config.toml").read_bytes() == before


@requirement("cli:slim")
@pytest.mark.parametrize(
    ("typed", "instead"),
    [
        ("slim send hello", "mycelium room send"),
        ("hub host", "mycelium up"),
        ("connect http://192.168.1.20:46357", "mycelium init --api-url http://192.168.1.20:8000"),
        ("config set slim.identity signerjwt", "mycelium config set auth.enabled true"),
        ("config get slim.node_endpoint", "mycelium config set server.api_url http://<host>:8000"),
    ],
)
def test_who_looks_for_slim_finds_what_stands_in_its_place(typed: str, instead: str, tmp_path: Path) -> None:
    """Nothing is done."""
    ran = Machine(tmp_path / "own").run(*typed.split()).failed(2)
    assert ran.out == ""
    assert ran.err.startswith("error: ")
    assert ran.err.endswith(f". Next: {instead}\n")
