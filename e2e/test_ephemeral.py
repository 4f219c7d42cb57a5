"""Agents that run for one job: everything from the environment, nothing kept, errors that a log can be read by."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from e2e.harness import MYCELIUM, Machine, free_port
from e2e.processes import Result
from e2e.requirements import requirement
from e2e.room import Room
from e2e.standin import StandIn, problem

Unique = Callable[[str], str]

# Makes everything that is mounted read-only in a mount namespace of its own, shows that it is, and goes on.
READ_ONLY = """
for place in "$HOME" /tmp /var/tmp; do
  mount --bind "$place" "$place" && mount -o remount,bind,ro "$place" || exit 97
done
mount --bind / / ; mount -o remount,bind,ro / 2>/dev/null
touch "$HOME/written" 2>/dev/null && exit 98
cd "$HOME" && exec "$@"
"""


def namespaces() -> list[str]:
    """How a mount namespace is made here; empty where that is not allowed."""
    for words in (["unshare", "--mount"], ["unshare", "--map-root-user", "--mount"]):
        asked = [*words, "sh", "-c", "mount --bind /tmp /tmp"]
        if shutil.which("unshare") and subprocess.run(asked, capture_output=True, check=False).returncode == 0:
            return words
    return []


def files(place: Path) -> set[Path]:
    """Everything below a folder."""
    return set(place.rglob("*"))


@pytest.fixture
def job(machine: Machine) -> Machine:
    """A container: a home that is there and empty, and no `.mycelium` in it."""
    machine.home.parent.mkdir(exist_ok=True)
    machine.home = machine.home.parent / "job" / ".mycelium"
    machine.home.parent.mkdir()
    return machine


@requirement("ephemeral:read-only")
def test_a_job_works_on_a_read_only_home_and_file_system(job: Machine, room: Room) -> None:
    """Posting, reading, waiting, answering: every write of the operating system would fail."""
    isolated = namespaces()
    if not isolated:
        pytest.skip("no mount namespaces here")
    room.join("ci-runner")

    def run(*words: str) -> Result:
        environment = job.environment("ci-runner", room=room.name)
        command = [*isolated, "sh", "-c", READ_ONLY, "sh", str(MYCELIUM), *words]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=30)
        return Result(done.returncode, done.stdout, done.stderr)

    assert run("room", "send", "Moved the session store to Redis.").ok().out.startswith("sent ")
    room.post("@ci-runner can you hold the deploy?")
    assert "hold the deploy" in run("await", "--timeout", "5").ok().out
    run("respond", "I can hold the deploy until the bench lands.").ok()
    run("presence", "idle").ok()
    assert "until the bench lands" in run("room", "messages", "--limit", "10").ok().out
    looked = run("doctor", "--mode", "spoke")
    assert "Traceback" not in looked.err
    assert looked.status == 0, looked
    assert files(job.home.parent) == set()


@requirement("ephemeral:read-only", "ephemeral:token")
def test_a_job_writes_nothing(job: Machine, room: Room) -> None:
    """A token changes nothing of that; the hub, which asks for none, takes it."""
    room.join("ci-runner")
    env = {"MYCELIUM_AGENT_AUTH_TOKEN": "a-secret-token"}
    for words in (
        ["room", "send", "@ci-runner hello"], ["room", "messages"], ["await", "--timeout", "0"], ["room", "ls"],
        ["whoami", "--sources"], ["agent", "ls"],
    ):  # fmt: skip
        told = job.run(*words, handle="ci-runner", room=room.name, env=env, cwd=job.home.parent)
        assert told.status in {0, 6}, told
        assert "a-secret-token" not in told.out + told.err
    assert files(job.home.parent) == set()


@requirement("ephemeral:hub-down")
def test_a_job_whose_hub_is_down_gets_one_line_and_a_status(job: Machine) -> None:
    """Not a traceback, not a file, and at once; `doctor` says it too."""
    job.url = f"http://127.0.0.1:{free_port()}"
    for words in (["room", "send", "hello"], ["room", "messages"], ["await"], ["respond", "hi"], ["agent", "ls"]):
        failed = job.run(*words, handle="ci", room="build", within_s=5, cwd=job.home.parent)
        assert (failed.status, failed.out, len(failed.err.splitlines())) == (5, "", 1), failed
        assert failed.err.startswith(f"error: Failed to connect to the Mycelium API at {job.url}"), failed
    looked = job.run("doctor", "--mode", "spoke", handle="ci", room="build", within_s=10)
    assert (looked.status, "Failed to connect to the Mycelium API" in looked.out) == (1, True), looked
    assert files(job.home.parent) == set()


@requirement("ephemeral:errors")
def test_the_documented_errors_word_for_word(job: Machine, room: Room, unique: Unique) -> None:
    """Each in one line, with its exit status."""
    absent = unique("absent")

    def failed(*words: str, place: str, env: dict[str, str] | None = None) -> tuple[int, str]:
        told = job.run(*words, handle="ci-runner", room=place, env=env)
        assert len(told.err.splitlines()) == 1, told
        return told.status, told.err

    status, line = failed("room", "send", "hello", place="")
    assert (status, "No room context found" in line) == (2, True), line
    status, line = failed("respond", "hello", place=room.name)
    assert (status, line.startswith("error: 403 "), "is not a registered agent or user" in line) == (4, True, True)
    assert f"mycelium agent create ci-runner --room {room.name}" in line
    status, line = failed("room", "send", "hello", place=absent)
    assert (status, line.startswith("error: 404 Room not found")) == (3, True), line
    assert f"mycelium room create {absent}" in line
    job.url = "http://mycelium.example.invalid"
    status, line = failed("room", "send", "hello", place="build")
    assert (status, "Failed to connect to the Mycelium API" in line) == (5, True), line


@requirement("ephemeral:errors")
def test_a_proxys_refusal_is_told_from_the_hubs(job: Machine) -> None:
    """`502 Bad Gateway` or `ProxyError`, and that the hub's domain has to be allowed."""
    with StandIn(502, b"<html>blocked</html>", "text/html") as proxy:
        job.url = "http://hub.example"
        blocked = job.run("room", "send", "hello", handle="ci", room="build", env={"http_proxy": proxy.url})
        assert (blocked.status, "502 Bad Gateway" in blocked.err) == (5, True), blocked
        assert "Allowed domains" in blocked.err
        assert proxy.asked[0].target.startswith("http://hub.example/")
        job.url = "https://hub.example"
        blocked = job.run("room", "send", "hello", handle="ci", room="build", env={"https_proxy": proxy.url})
        assert (blocked.status, "ProxyError" in blocked.err) == (5, True), blocked
        assert "Allowed domains" in blocked.err


@requirement("ephemeral:room-id")
def test_mycelium_room_id_names_the_room(job: Machine, room: Room) -> None:
    """Also with await and respond; MYCELIUM_ACTIVE_ROOM wins over it."""
    room.join("ci-runner")
    env = {"MYCELIUM_ROOM_ID": room.name}
    job.run("room", "send", "@ci-runner hello", handle="avery", env=env).ok()
    turn = job.run("await", "--timeout", "5", "--json", handle="ci-runner", env=env).json
    assert turn["message"]["content"] == "@ci-runner hello"
    job.run("respond", "hello", handle="ci-runner", env=env).ok()
    assert room.contents() == ["@ci-runner hello", "hello"]
    other = job.run("room", "send", "lost", handle="avery", room="absent-room", env=env)
    assert (other.status, "absent-room" in other.err) == (3, True)
    shown = job.run("whoami", "--sources", "--json", handle="ci-runner", env=env).json
    assert (shown["room"], shown["sources"]["room"]) == (room.name, "MYCELIUM_ROOM_ID")


@requirement("ephemeral:token")
def test_the_token_goes_to_the_hub_and_nowhere_else(job: Machine, tmp_path: Path) -> None:
    """As a bearer token with every request; not to another hub that a room is copied from, not to what is run."""
    env = {"MYCELIUM_AGENT_AUTH_TOKEN": "a-secret-token"}
    with problem(403, "auth.refused", "nobody may") as hub, problem(403, "auth.refused", "nobody may") as other:
        job.url = hub.url
        for words in (["room", "send", "hi"], ["room", "messages"], ["await", "--timeout", "1"], ["room", "watch"]):
            refused = job.run(*words, handle="ci", room="build", env=env)
            assert (refused.status, "a-secret-token" in refused.err) == (4, False), refused
        assert {one.headers.get("authorization") for one in hub.asked} == {"Bearer a-secret-token"}
        job.run("room", "clone", "build", str(tmp_path / "copy"), "--from", other.url, handle="ci", env=env)
        assert other.asked
        assert [one.headers for one in other.asked if "authorization" in one.headers] == []


@requirement("await:stops")
@pytest.mark.parametrize(("status", "slug"), [(401, "auth.required"), (403, "auth.refused")])
def test_a_loop_stops_when_it_may_not_wait(job: Machine, status: int, slug: str) -> None:
    """It is told once, and says so; it does not ask for ever."""
    with problem(status, slug, "sign in first") as hub:
        job.url = hub.url
        for words in (["await", "--loop"], ["await", "--loop", "--exec", "true"], ["await", "--timeout", "60"]):
            ended = job.run(*words, handle="ci", room="build", within_s=10)
            assert (ended.status, "sign in first" in ended.err, len(ended.err.splitlines())) == (4, True, 1), ended
        assert len(hub.asked) == 3


@requirement("await:stops")
def test_a_loop_that_was_let_in_before_stops_too(room: Room) -> None:
    """Removed while it waits: the answer is a refusal, and the end."""
    room.join("sec")
    looping = room.wait("sec", "--loop")
    room.api.delete(room.at("members", "sec"), handle="avery").ok(204)
    ended = looping.ended(10)
    assert (ended.status, "is not a registered agent or user" in ended.err) == (4, True), ended
