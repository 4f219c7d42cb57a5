"""`await --loop`, alone and with `--exec`: agents that nobody sits beside."""

import json
import os
import signal
from pathlib import Path

from e2e.harness import Hub, Machine
from e2e.requirements import requirement
from e2e.room import Room
from e2e.waiting import until


def texts(lines: list[str]) -> list[str]:
    """The texts that a `--loop --json` has printed so far."""
    return [json.loads(line)["message"]["content"] for line in lines]


@requirement("await:loop")
def test_a_loop_prints_every_message_as_a_line(room: Room) -> None:
    """Each acknowledged by the next wait."""
    room.join("sec")
    first = room.post("@sec one")
    looping = room.wait("sec", "--loop", "--json")
    room.post("@sec two")
    until(lambda: texts(looping.out) == ["@sec one", "@sec two"], "both lines")
    until(lambda: room.state(first, "sec") == "acknowledged", "the first is acknowledged")
    assert looping.alive


@requirement("await:loop")
def test_a_loop_goes_on_through_kill_and_restart_of_the_hub(own_hub: Hub, own_room: Room) -> None:
    """Also one to whom nothing had come before; what was printed is not printed again."""
    own_room.join("sec", "planner")
    busy = own_room.wait("sec", "--loop", "--json")
    quiet = own_room.wait("planner", "--loop", "--json")
    own_room.post("@sec one")
    until(lambda: texts(busy.out) == ["@sec one"], "the first line")
    own_room.until_waiting("sec")
    own_hub.restart()
    own_room.post("@sec two @planner one")
    until(lambda: texts(busy.out) == ["@sec one", "@sec two @planner one"], "the line after", 20)
    until(lambda: texts(quiet.out) == ["@sec two @planner one"], "the first line of the quiet one", 20)


@requirement("await:loop", "cli:interrupted")
def test_a_loop_ends_when_told(room: Room) -> None:
    """By Ctrl-C and by SIGTERM, at once and without a traceback."""
    room.join("sec")
    for number, status in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
        looping = room.wait("sec", "--loop")
        looping.signal(number)
        ended = looping.ended(5)
        assert (ended.status, ended.out) in {(status, ""), (-number, ""), (130, "")}, ended
        assert "Traceback" not in ended.err
        room.until_idle("sec")


def script(place: Path, text: str) -> str:
    """A program to hand messages to."""
    place.write_text(f"#!/bin/sh\n{text}")
    place.chmod(0o755)
    return str(place)


@requirement("await:exec:environment")
def test_exec_gets_the_message_and_its_context(machine: Machine, room: Room, tmp_path: Path) -> None:
    """JSON on stdin; room, handle, sender, name and text in the environment, also when the text is a trap."""
    room.join("sec")
    machine.run("iam", "dana-exec", "--name", "Dana Exec").ok()
    trap = "@sec $(touch pwned) `id` \"quotes\" 'and' ; rm -rf *\nsecond line"
    message = room.post(trap, sender="dana-exec")
    seen = tmp_path / "seen"
    program = script(
        tmp_path / "turn.sh",
        f"cat > {seen}.json\nenv -0 > {seen}.env\n",
    )
    done = machine.run("await", "--exec", program, "--timeout", "10", handle="sec", session="s1", room=room.name)
    assert done.status == 0, done
    pairs = [line.partition("=") for line in seen.with_suffix(".env").read_text().split("\0")]
    found = {name: value for name, _, value in pairs if name.startswith("MYCELIUM_")}
    assert found == found | {
        "MYCELIUM_ROOM": room.name,
        "MYCELIUM_ACTIVE_ROOM": room.name,
        "MYCELIUM_HANDLE": "sec",
        "MYCELIUM_AGENT_HANDLE": "sec",
        "MYCELIUM_SENDER": "dana-exec",
        "MYCELIUM_SENDER_NAME": "Dana Exec",
        "MYCELIUM_PROMPT": trap,
        "MYCELIUM_REPLY_TO": message["id"],
        "MYCELIUM_THREAD": "",
        "MYCELIUM_API_URL": machine.url,
        "MYCELIUM_SESSION": "s1.exec",
    }
    turn = json.loads(seen.with_suffix(".json").read_text())
    assert (turn["message"]["content"], turn["redelivered"], turn["earlier"]) == (trap, False, [])
    assert room.state(message, "sec") == "acknowledged"


@requirement("await:exec:acknowledges")
def test_exit_0_acknowledges_and_a_respond_inside_does_not(room: Room, tmp_path: Path) -> None:
    """The reply goes where the message was; the delivery is done when the command is."""
    room.join("sec")
    gate = tmp_path / "gate"
    program = script(
        tmp_path / "turn.sh",
        f'mycelium respond "got: $MYCELIUM_PROMPT" || exit 1\nwhile [ ! -e {gate} ]; do sleep 0.05; done\n',
    )
    root = room.post("a task")
    message = room.post("@sec one", thread=root["id"])
    looping = room.machine.start("await", "--loop", "--exec", program, handle="sec", session="s1", room=room.name)

    def reply() -> bool:
        found = room.api.get(room.at("messages", thread=root["id"])).ok(200).json["items"][0]
        return bool(found["content"] == "got: @sec one" and found["reply_to"] == message["id"])

    until(reply, "the reply in the thread")
    receipt = room.receipts(message)["sec"]
    assert (receipt["state"] != "acknowledged", receipt["deliveries"], receipt["session"]) == (True, 1, "s1")
    assert "not given to anybody" not in room.machine.run("receipts", message["id"], room=room.name).ok().out
    gate.touch()
    until(lambda: room.state(message, "sec") == "acknowledged", "exit 0 acknowledges")
    assert looping.alive


@requirement("await:exec:parks")
def test_three_failures_park_the_message_and_the_loop_goes_on(room: Room, tmp_path: Path) -> None:
    """One line on stderr says which; the next message is handed over as usual."""
    room.join("sec")
    tries = tmp_path / "tries"
    program = script(
        tmp_path / "turn.sh", f'echo "$MYCELIUM_PROMPT" >> {tries}\ncase "$MYCELIUM_PROMPT" in *bad*) exit 7;; esac\n'
    )
    bad, good = room.post("@sec bad"), room.post("@sec good")
    looping = room.machine.start("await", "--loop", "--exec", program, handle="sec", room=room.name)
    until(lambda: room.state(good, "sec") == "acknowledged", "the good one is done", 20)
    assert tries.read_text().splitlines() == ["@sec bad"] * 3 + ["@sec good"]
    assert room.state(bad, "sec") == "parked"
    parked = [line for line in looping.err if "parked" in line]
    assert len(parked) == 1
    assert bad["id"][-8:] in parked[0]
    assert looping.alive
    assert room.take("sec", session="another") is None


@requirement("await:exec:acknowledges", "await:killed-after")
def test_a_loop_killed_while_its_command_runs_gets_the_message_again(room: Room, tmp_path: Path) -> None:
    """Marked, by a loop that is another session."""
    room.join("sec")
    started = tmp_path / "started"
    program = script(tmp_path / "turn.sh", f"echo $$ > {started}.new\nmv {started}.new {started}\nexec sleep 30\n")
    message = room.post("@sec one")
    looping = room.machine.start("await", "--loop", "--exec", program, handle="sec", session="s1", room=room.name)
    until(started.exists, "the command runs")
    looping.signal(signal.SIGKILL)
    os.kill(int(started.read_text()), signal.SIGKILL)
    turn = room.take("sec", session="s2", timeout_s=5)
    assert turn is not None
    assert (turn["message"]["id"], turn["redelivered"]) == (message["id"], True)
