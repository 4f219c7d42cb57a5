"""More than the hub can take: a reader who does not read, many times the usual load, streams by the hundred."""

import json
import os
import shutil
import socket
import struct
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from e2e.crowd import ask_all, request
from e2e.harness import Hub, Machine
from e2e.processes import children
from e2e.requirements import requirement
from e2e.room import Room
from e2e.waiting import until

STREAMS = 500
CROWD = 2000
LARGE = "x" * 250_000


@requirement("load:slow-reader")
def test_a_watcher_that_does_not_read_is_closed_and_can_come_back(room: Room) -> None:
    """Others see everything meanwhile; it resumes from the last thing that it read, and has all of it."""
    count = 80
    with room.api.stream(room.at("stream")) as slow, room.api.stream(room.at("stream")) as quick:
        for number in range(count):
            room.post(f"{number} {LARGE}")
            assert quick.next("message").data["content"].startswith(f"{number} ")
        events = slow.rest()
    read, last_id = [event.data["content"].split()[0] for event in events], events[-1].id
    assert 0 < len(read) < count
    with room.api.stream(room.at("stream"), last_id) as stream:
        read += [stream.next("message").data["content"].split()[0] for _ in range(count - len(read))]
    assert read == [str(number) for number in range(count)]


@requirement("load:many")
def test_a_crowd_of_one_caller_leaves_room_for_others(own_hub: Hub, own_room: Room) -> None:
    """Whoever floods the hub is refused alone: everybody else is served in the middle of it."""
    target = own_room.at("messages")
    flood = [request(own_hub.url, "POST", target, {"content": "flood"}, handle="flood") for _ in range(CROWD // 2)]
    others = [request(own_hub.url, "POST", target, {"content": f"{n}"}, handle=f"other-{n}") for n in range(50)]
    answers = ask_all(own_hub.url, [*flood, *others])
    assert {answer.status for answer in answers[: len(flood)]} == {201, 429}
    assert {answer.status for answer in answers[len(flood) :]} == {201}


@requirement("load:many")
def test_a_crowd_is_served_or_told_when_to_come_back(own_hub: Hub, own_room: Room) -> None:
    """All at once: nothing acknowledged is lost, a refusal says when to try again, and trying again does it.

    1. more posts at the same moment than the hub takes on
    2. every answer is 201, 429 or 503, the latter with Retry-After
    3. what was refused is sent again under its key until everything is there, once
    4. the hub is well
    """
    target = own_room.at("messages")
    left = {f"{n}": request(own_hub.url, "POST", target, {"content": f"{n}"}, key=f"k{n}") for n in range(CROWD)}
    acknowledged: dict[str, str] = {}
    told: Counter[int] = Counter()
    while left:
        assert told.total() < 20 * CROWD, told
        answers = dict(zip(left, ask_all(own_hub.url, list(left.values())), strict=True))
        for text, answer in answers.items():
            told[answer.status] += 1
            assert answer.status in {201, 429, 503}, answer
            if answer.status == 201:
                acknowledged[text] = json.loads(answer.body)["id"]
                del left[text]
            else:
                assert int(answer.headers["retry-after"]) > 0
                assert answer.headers["content-type"].startswith("application/problem+json")
    stored = own_room.contents()
    assert sorted(stored, key=int) == [f"{n}" for n in range(CROWD)]
    assert len(set(acknowledged.values())) == CROWD
    assert told[201] == CROWD
    assert told[429] + told[503] > 0, "the crowd was too small to prove anything"
    assert own_room.api.get("/health").ok(200).json["status"] == "ok"
    assert own_hub.stop().status == 0
    assert not own_hub.errors()


@pytest.fixture
def small_hub(tmp_path: Path) -> Iterator[Hub]:
    """A hub whose home is a disk of 64 MB."""
    home = tmp_path / "small"
    home.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "none", home], capture_output=True, check=False)
    if mounted.returncode:
        pytest.skip("no disk can be mounted here; root can")
    hub = Hub(home)
    try:
        yield hub.start()
    finally:
        hub.close()
        subprocess.run(["umount", home], check=True)


@requirement("load:disk")
def test_a_full_disk_is_told_and_passes(small_hub: Hub, tmp_path: Path) -> None:
    """What was acknowledged stays and can be read; the command line says what is wrong; with room, posts go on."""
    room = Room(small_hub.api, Machine(tmp_path / "client", small_hub.url), "demo").create()
    filler = small_hub.home / "filler"
    free = shutil.disk_usage(small_hub.home).free
    filler.write_bytes(b"\0" * (free - 12 * 1024 * 1024))
    kept = list[str]()
    reply = room.try_post(f"{len(kept)} {LARGE}")
    while reply.status == 201:
        kept.append(reply.json["content"])
        assert len(kept) < 100
        reply = room.try_post(f"{len(kept)} {LARGE}")
    reply.refused(507, "store.full")
    assert int(reply.headers["retry-after"]) > 0
    sent = room.machine.run("room", "send", LARGE[:100_000], handle="avery", room="demo")
    assert (sent.status, "disk is nearly full" in sent.err, len(sent.err.splitlines())) == (5, True, 1), sent
    assert room.contents() == kept
    filler.unlink()
    until(lambda: room.try_post("after").status == 201, "there is room again")
    assert room.contents() == [*kept, "after"]


def handles(hub: Hub) -> int:
    """How many files the hub and everything it started hold open."""
    return sum(len(os.listdir(f"/proc/{pid}/fd")) for pid in (hub.pid, *children(hub.pid)))


@requirement("load:streams")
@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="open files are counted in /proc")
def test_500_streams_opened_and_killed_leave_nothing_open(own_hub: Hub, own_room: Room) -> None:
    """Killed without a farewell, half of them in the middle of a message; the next stream works."""
    there = urlsplit(own_hub.url)
    own_room.post("a first one, for whatever is opened once")
    own_room.api.stream(own_room.at("stream")).close()
    before = until(lambda: handles(own_hub), "the hub's files")
    lines = [socket.create_connection((str(there.hostname), there.port or 80)) for _ in range(STREAMS)]
    head = f"GET {own_room.at('stream')} HTTP/1.1\r\nHost: {there.netloc}\r\n\r\n".encode()
    for line in lines:
        line.settimeout(20)
        line.sendall(head)
    for line in lines:
        found = b""
        while b": connected" not in found:
            found += line.recv(4096)
    assert handles(own_hub) >= before + STREAMS
    own_room.post(LARGE)
    for number, line in enumerate(lines):
        if number % 2:
            line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # a reset
        line.close()
    until(lambda: handles(own_hub) <= before, f"no more than {before} files are open", 15)
    with own_room.api.stream(own_room.at("stream")) as stream:
        own_room.post("still here")
        assert stream.next("message").data["content"] == "still here"
