"""`mycelium doctor`: a line for each part, what was seen, what to type next, and what it mends."""

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from e2e.harness import Hub, Machine, free_port
from e2e.oidc_server import OidcServer
from e2e.requirements import requirement
from e2e.room import Room
from e2e.signing_in import by_code
from e2e.standin import StandIn
from e2e.web import path

Unique = Callable[[str], str]
HEALTHY = {"status": "ok", "version": "0", "services": {}, "nats": {"connected": True}, "warnings": []}


def looked(machine: Machine, *words: str, status: int, **said: Any) -> dict[str, list[dict[str, Any]]]:
    """What `doctor --json` tells, by part."""
    told = machine.run("doctor", *words, "--json", **said)
    assert told.status == status, told
    answer = json.loads(told.out)
    assert answer["ok"] is (status == 0)
    found: dict[str, list[dict[str, Any]]] = {}
    for row in answer["items"]:
        assert set(row) == {"part", "state", "seen", "next", "fixable"}
        assert row["seen"]
        assert row["next"] or row["state"] in {"ok", "fixed", "note"}, row
        found.setdefault(row["part"], []).append(row)
    return found


def wrong(found: dict[str, list[dict[str, Any]]]) -> dict[str, str]:
    """What is wrong, by part."""
    return {part: row["seen"] for part, rows in found.items() for row in rows if row["state"] == "wrong"}


@requirement("doctor:lines", "doctor:modes")
def test_a_whole_hub_is_looked_at_part_by_part(hub: Hub, room: Room, unique: Unique) -> None:
    """From its own home: settings, files, disk, the hub and each of its parts, clock, version, who and where.

    And what only its own process can see: the server's settings as they are, the log, how far the tables are.
    """
    handle = unique("avery")
    room.api.post(path("users"), {"handle": handle}, handle=handle).ok(201)
    machine = Machine(hub.home, hub.url)
    found = looked(machine, status=0, handle=handle, room=room.name)
    expected = {"config", "files", "disk", "hub", "nats", "rooms", "version", "sign-in", "clock", "identity", "room"}
    assert set(found) >= expected | {"log", "tables"}
    assert wrong(found) == {}
    assert "syncs every fact" in json.dumps(found["nats"])
    assert hub.url in json.dumps(found)
    text = machine.run("doctor", handle=handle, room=room.name).ok().out
    assert text.splitlines()[0].startswith("looking as a hub")
    assert text.splitlines()[-1] == "nothing is wrong"


@requirement("doctor:modes")
def test_a_spoke_is_not_asked_for_a_hubs_things(machine: Machine, room: Room) -> None:
    """Told by `--mode`; the hub is looked at from outside."""
    found = looked(machine, "--mode", "spoke", status=0, handle="avery", room=room.name)
    assert set(found) & {"disk", "hub file", "port"} == set()
    assert found["hub"][0]["state"] == "ok"
    text = machine.run("doctor", "--mode", "spoke", handle="avery", room=room.name).ok().out
    assert text.splitlines()[0] == "looking as a spoke (--mode)"
    assert machine.run("doctor", "--mode", "desktop").status == 2


@requirement("doctor:finds")
def test_wrong_settings_are_found(machine: Machine, room: Room) -> None:
    """A key that nothing reads, with the near one; a value that can't be; what the environment overrules."""
    machine.run("config", "set", "server.api_url", "http://elsewhere.example").ok()
    file = machine.home / "config.toml"
    file.write_text(f'{file.read_text()}\n[runtime]\nbackend_prot = 8000\nbackend_port = "many"\n')
    found = looked(machine, "--mode", "spoke", status=1, handle="avery", room=room.name)
    lines = "\n".join(row["seen"] for row in found["config"])
    assert "runtime.backend_prot" in lines
    assert "did you mean runtime.backend_port?" in lines
    assert "many" in lines
    assert "MYCELIUM_API_URL is set in this shell, and wins over server.api_url" in lines
    file.write_text("this is no TOML [")
    assert "config" in wrong(looked(machine, "--mode", "spoke", status=1, handle="avery", room=room.name))


@requirement("doctor:finds")
def test_who_and_where_are_looked_at(machine: Machine, unique: Unique) -> None:
    """A room that is gone is wrong, nobody and an unknown handle are worth a note."""
    found = looked(machine, "--mode", "spoke", status=1, handle=unique("ghost"), room=unique("absent"))
    assert "404 Room not found" in wrong(found)["room"]
    assert (found["identity"][0]["state"], "no registered" in found["identity"][0]["seen"]) == ("note", True)
    found = looked(machine, "--mode", "spoke", status=0)
    assert found["identity"][0]["next"].startswith("mycelium iam")
    assert (found["room"][0]["seen"], found["room"][0]["next"]) == ("No active room set.", "mycelium room use <name>")


@requirement("doctor:finds")
def test_a_hub_that_is_away_and_a_taken_port_are_told_apart(tmp_path: Path) -> None:
    """Nothing there, another program there, and the port that a hub would take."""
    machine = Machine(tmp_path / "home", f"http://127.0.0.1:{free_port()}")
    port = {"MYCELIUM_BACKEND_PORT": str(free_port())}
    found = looked(machine, status=1, env=port)
    assert "Failed to connect to the Mycelium API" in wrong(found)["hub"]
    assert found["hub"][0]["next"] == "mycelium up"
    assert (found["port"][0]["state"], "is free" in found["port"][0]["seen"]) == ("ok", True)
    with StandIn(200, b"<h1>It works!</h1>", "text/html") as other:
        port = {"MYCELIUM_BACKEND_PORT": other.url.rpartition(":")[2]}
        machine.url = other.url
        found = looked(machine, status=1, env=port)
        assert "does not answer as a Mycelium hub" in wrong(found)["hub"]
        assert f"port {port['MYCELIUM_BACKEND_PORT']} is in use" in wrong(found)["port"]
        assert "runtime.backend_port" in json.dumps(found["port"])


@requirement("doctor:finds")
def test_drift_is_found(hub: Hub) -> None:
    """Commands ask one hub, and the one of this home is another."""
    with StandIn(200, HEALTHY) as other:
        found = looked(Machine(hub.home, other.url), status=1, handle="avery")
        seen = wrong(found)["drift"]
        assert "Runtime config drift" in seen
        assert (hub.url in seen, other.url in seen) == (True, True)
        assert hub.url in json.dumps([row["next"] for row in found["drift"]])


@requirement("doctor:fix")
def test_fix_mends_what_it_can(own_hub: Hub, own_room: Room) -> None:
    """Files that others can read, and a `hub.json` that a killed hub left; what it can't mend stays and is said."""
    machine = own_hub.machine
    assert own_room.contents() == []
    machine.run("config", "set", "identity.name", "avery").ok()
    file = own_hub.home / "config.toml"
    file.chmod(0o644)
    own_hub.kill()
    found = looked(machine, status=1)
    mendable = [row["part"] for rows in found.values() for row in rows if row["fixable"]]
    assert sorted(mendable) == ["files", "hub file"]
    assert stat.S_IMODE(file.stat().st_mode) == 0o644
    text = machine.run("doctor").out.splitlines()[-1]
    assert text.endswith("mycelium doctor --fix mends 2")
    mended = looked(machine, "--fix", status=1)
    assert {row["part"] for rows in mended.values() for row in rows if row["state"] == "fixed"} == {"files", "hub file"}
    assert set(wrong(mended)) >= {"hub"}
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert not own_hub.hub_file.exists()
    assert {"files", "hub file"} & set(wrong(looked(machine, status=1))) == set()


@requirement("doctor:sign-in", "doctor:private", "status:sign-in")
def test_a_hub_with_sign_in_is_looked_at_from_elsewhere(
    guarded_hub: Hub, idp: OidcServer, tmp_path: Path, unique: Unique
) -> None:
    """From a machine of nobody yet, signed in, under another name, with a file that others can read."""
    machine, avery = Machine(tmp_path / "home", guarded_hub.url), unique("avery")
    assert f"sign-in: on, at {idp.issuer}\n" in machine.run("status").ok().out
    found = looked(machine, "--mode", "spoke", status=1)
    assert wrong(found)["sign-in"] == "on, and nobody is signed in here"
    assert found["sign-in"][-1]["next"].startswith("mycelium login")
    by_code(machine, idp, avery).ok()
    found = looked(machine, "--mode", "spoke", status=0)
    (row,) = found["sign-in"]
    assert row["seen"].startswith(f"on; signed in as @{avery} at {idp.issuer}, until 2")
    assert row["seen"].endswith(", renewed by itself")
    found = looked(machine, "--mode", "spoke", status=1, handle=unique("other"))
    assert f"the sign-in is @{avery}'s" in json.dumps(found["identity"])
    (machine.home / "agent-credentials.json").write_text('{"agents": {}}')
    (machine.home / "agent-credentials.json").chmod(0o644)
    assert "agent-credentials.json" in wrong(looked(machine, "--mode", "spoke", status=1))["files"]
    looked(machine, "--mode", "spoke", "--fix", status=0)
    assert stat.S_IMODE((machine.home / "agent-credentials.json").stat().st_mode) == 0o600


@requirement("doctor:finds")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_files_of_somebody_else_are_found(machine: Machine) -> None:
    """As after `sudo`; the line to type is the documented one."""
    machine.run("config", "set", "identity.name", "avery").ok()
    os.chown(machine.home / "config.toml", 65_534, 65_534)
    found = looked(machine, "--mode", "spoke", status=1)
    assert "belong to somebody else" in wrong(found)["files"]
    assert found["files"][0]["next"] == f"sudo chown -R $USER {machine.home}"


@requirement("doctor:finds")
def test_a_clock_that_is_wrong_is_found(machine: Machine) -> None:
    """By the hub's own date."""
    with StandIn(200, HEALTHY) as other:
        other.date = "Mon, 30 Nov 2020 00:00:00 GMT"
        machine.url = other.url
        found = looked(machine, "--mode", "spoke", status=1)
    assert "clock is" in wrong(found)["clock"]
    assert "ahead of the hub's" in wrong(found)["clock"]


@requirement("doctor:deep")
@pytest.mark.timeout(180)
def test_a_flipped_bit_is_named_and_put_right(own_hub: Hub, own_room: Room) -> None:
    """In the log, by file, byte, fact and room; in a table, by row. All that was said is there again."""
    said = [own_room.post(f"word {place}")["content"] for place in range(5)]
    machine = own_hub.machine
    found = looked(machine, "--deep", status=0, handle="avery", room=own_room.name)
    assert "every checksum is right" in found["store"][0]["seen"]
    assert "row by row what the log says" in found["contents"][0]["seen"]
    own_hub.stop()
    for pattern, seen in (("nats*/**/FACTS/msgs/*.blk", "is wrong (fact "), ("tables/**/rooms.sqlite", "table ")):
        for file in own_hub.home.glob(pattern):
            content = bytearray(file.read_bytes())
            content[content.index(b"word 3")] ^= 1
            file.write_bytes(content)
            found = looked(machine, "--deep", "--fix", status=1, handle="avery", room=own_room.name)
            fixed = [row["seen"] for row in (*found["store"], *found["contents"]) if row["state"] == "fixed"]
            assert seen in fixed[0]
            assert str(file.relative_to(own_hub.home)) in fixed[0]
    assert {"store", "contents"} & set(wrong(looked(machine, "--deep", status=1))) == set()
    own_hub.start()
    assert own_room.contents() == said
