"""The hub on one machine: starting, stopping, two of them, ports, what a kill leaves."""

import json
import os
import signal
import socket
import stat
from pathlib import Path

from e2e.harness import Hub, Machine, free_port
from e2e.processes import children, is_running
from e2e.requirements import requirement
from e2e.room import Room
from e2e.waiting import until
from e2e.web import Api, path


@requirement("hub:up:ready", "hub:down")
def test_up_starts_a_hub_on_an_empty_home_and_down_stops_it(new_hub: Hub) -> None:
    """Its address is printed and written down; down is right the second time too."""
    hub = new_hub.start()
    assert hub.process is not None
    said = hub.process.line(lambda line: "http://" in line, "the address")
    assert hub.url in said
    written = json.loads(hub.hub_file.read_text())
    assert (written["url"], written["pid"]) == (hub.url, hub.pid)
    assert hub.machine.run("room", "ls").ok().out.startswith("no rooms")
    stopped = hub.machine.run("down").ok()
    assert str(hub.pid) in stopped.out
    assert hub.process.ended(10).status == 0
    assert not hub.hub_file.exists()
    assert "No hub was running" in hub.machine.run("down").ok().out
    assert not hub.errors()


@requirement("hub:up:detached", "hub:status", "hub:logs", "hub:up:second", "hub:up:private")
def test_a_detached_hub_is_asked_and_stopped_by_commands(tmp_path: Path) -> None:
    """The whole life of a hub in the background.

    1. up --detach returns, the hub answers; again says that it is there
    2. status by text and JSON; nobody else can read its home
    3. a second hub in the foreground is refused, naming the first
    4. logs of all and of one
    5. down; status and exit status without it
    """
    machine = Machine(tmp_path / "home")
    up = machine.run("up", "--detach", "--port", "0", "--json").json
    try:
        assert up["started"]
        assert Api(up["url"]).get("/health").ok(200).json["status"] == "ok"
        assert "already running" in machine.run("up", "--detach").ok().out
        assert machine.run("up", "--detach", "--json").json["pid"] == up["pid"]

        status = machine.run("status", "--json").json
        assert (status["status"], status["url"]) == ("ok", up["url"])
        text = machine.run("status").ok().out
        assert f"hub {up['url']}: ok" in text
        assert "rooms" in text
        exposed = [
            str(found.relative_to(tmp_path))
            for found in (machine.home, *machine.home.iterdir())
            if found.is_dir() and stat.S_IMODE(found.stat().st_mode) & 0o077
        ]
        assert exposed == []
        assert stat.S_IMODE(machine.home.stat().st_mode) == 0o700

        second = machine.run("up", "--port", "0")
        assert second.status == 1
        assert f"pid {up['pid']}" in second.err
        assert up["url"] in second.err

        assert "ready at" in machine.run("logs", "hub", "--tail", "50").ok().out
        assert len(machine.run("logs", "--tail", "3").ok().out.splitlines()) == 3
        unknown = machine.run("logs", "nonsense")
        assert (unknown.status, "nonsense" in unknown.err) == (3, True)
    finally:
        down = machine.run("down", "--json").json
    assert (down["stopped"], down["pid"]) == (True, up["pid"])
    assert not is_running(up["pid"])
    gone = machine.run("status")
    assert gone.status == 5
    assert "mycelium up" in gone.err


@requirement("hub:up:two")
def test_two_hubs_run_side_by_side(hub: Hub, own_hub: Hub) -> None:
    """With two homes they share nothing."""
    own_hub.api.post(path("rooms"), {"name": "only here"}).ok(201)
    hub.api.get(path("rooms", "only here")).refused(404, "room.not_found")
    assert hub.url != own_hub.url
    assert hub.nats() != own_hub.nats()
    listed = own_hub.machine.run("room", "ls", "--json").json["items"]
    assert [row["name"] for row in listed] == ["only here"]


@requirement("hub:up:port")
def test_a_port_in_use_is_said(tmp_path: Path) -> None:
    """With who has it and what to do; nothing is left behind."""
    machine = Machine(tmp_path / "home")
    with socket.create_server(("127.0.0.1", free_port())) as taken:
        port = taken.getsockname()[1]
        for words in (["up", "--port", str(port)], ["up", "--detach", "--port", str(port)]):
            refused = machine.run(*words)
            assert refused.status == 1
            assert f"port {port} is in use (pid {os.getpid()}" in refused.err
            assert "--port 0" in refused.err
    assert not (machine.home / "run" / "hub.json").exists()


@requirement("hub:up:exposed")
def test_an_open_address_without_sign_in_is_refused(tmp_path: Path) -> None:
    """Unless the settings insist; /health then repeats it."""
    machine = Machine(tmp_path / "home")
    refused = machine.run("up", "--port", "0", env={"MYCELIUM_BIND_ADDR": "0.0.0.0"})
    assert refused.status == 1
    assert "auth.insecure" in refused.err
    env = {"MYCELIUM_BIND_ADDR": "0.0.0.0", "MYCELIUM_AUTH_INSECURE": "true"}
    up = machine.run("up", "--detach", "--port", "0", "--json", env=env).json
    try:
        assert up["url"].startswith("http://127.0.0.1:")
        health = Api(up["url"]).get("/health").ok(200).json
        assert any("auth.insecure" in warning for warning in health["warnings"]), health
    finally:
        machine.run("down").ok()


@requirement("hub:killed:nothing-left", "hub:up:stale", "messages:post:survives-kill")
def test_a_killed_hub_leaves_nothing_that_owns_its_data(own_hub: Hub, own_room: Room) -> None:
    """Its children go with it, the file it left is replaced, and everything acknowledged is there."""
    own_room.post("before the kill")
    left = children(own_hub.pid)
    assert any("nats-server" in command for command in left.values())
    own_hub.kill()
    until(lambda: not [pid for pid in left if is_running(pid)], f"the children end: {left}")
    assert own_hub.hub_file.exists()
    asked = own_hub.machine.run("status")
    assert asked.status == 5
    old = own_hub.pid
    own_hub.start()
    assert own_hub.pid != old
    assert own_room.contents() == ["before the kill"]


@requirement("hub:child:back", "messages:post:survives-kill")
def test_a_killed_nats_comes_back_with_everything(own_hub: Hub, own_room: Room) -> None:
    """Whoever posts meanwhile gets an answer that is true."""
    own_room.post("before the kill")
    nats = own_hub.nats()
    with own_room.api.stream(own_room.at("stream"), within_s=20) as stream:
        os.kill(nats, signal.SIGKILL)
        own_room.machine.run("room", "send", "after the kill", handle="avery", room="demo").ok()
        assert stream.next("message").data["content"] == "after the kill"
    assert own_room.contents() == ["before the kill", "after the kill"]
    assert own_hub.nats() != nats
    assert own_hub.alive
    until(lambda: own_hub.machine.run("status").status == 0, "all is well again")


@requirement("hub:status")
def test_status_asks_a_hub_elsewhere_too(machine: Machine, hub: Hub) -> None:
    """It goes by the address in use."""
    assert f"hub {hub.url}: ok" in machine.run("status").ok().out
    assert machine.run("status", "--json").json["version"] == hub.version


@requirement("hub:down:volumes")
def test_down_with_volumes_deletes_everything_but_the_settings(own_hub: Hub, own_room: Room) -> None:
    """Without a terminal to ask on, it wants --yes."""
    own_room.post("hello")
    machine = own_hub.machine
    machine.run("config", "set", "log.level", "warning").ok()
    refused = machine.run("down", "--volumes")
    assert (refused.status, "--yes" in refused.err) == (2, True)
    assert own_room.contents() == ["hello"]
    machine.run("down", "--volumes", "--yes").ok()
    own_hub.start()
    assert machine.run("room", "ls", "--json").json["items"] == []
    assert machine.run("config", "get", "log.level").ok().out == "warning\n"
