"""Reservations: who works on which paths, by command, over HTTP, and in a hook of git."""

import json
import os
import re
import stat
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from e2e import bundle
from e2e.harness import MYCELIUM, Hub, Machine
from e2e.processes import Result
from e2e.requirements import requirement
from e2e.room import Document, Room
from e2e.waiting import until

CLOCK = r"(?:20\d\d-\d\d-\d\d )?\d\d:\d\d(?::\d\d)?"  # on the reader's; with the day when that is not today
PAGE = Path(__file__).parent.parent / "docs/how-to/keep-out-of-each-others-files.md"
Run = Callable[..., Result]


def runner(room: Room, machine: Machine) -> Run:
    """`mycelium board reserve …` in that room."""

    def run(handle: str, *words: str, stdin: bytes = b"") -> Result:
        return machine.run("board", "reserve", *words, "-r", room.name, handle=handle, stdin=stdin)

    return run


def reserved(room: Room) -> list[tuple[str, str]]:
    """Holder and pattern of what is reserved."""
    items = room.api.get(room.at("reservations"), handle=room.owner).ok(200).json["items"]
    return [(one["holder"], one["pattern"]) for one in items]


def told(room: Room) -> list[Document]:
    """What the room's channel says of reservations, oldest first."""
    messages = room.page(limit=100)["items"][::-1]
    return [one for one in messages if one["metadata"].get("row_kind") == "reservation"]


@requirement("board:reserve")
def test_no_path_has_two_holders(room: Room, machine: Machine) -> None:
    """Twelve at once with patterns that overlap in many ways: one has them, the others are told who, what, how long."""
    handles = [f"agent-{number}" for number in range(12)]
    room.join(*handles)
    patterns = ["src/auth/**", "src/auth/login.py", "src/*/login.py", "{src,docs}/auth/l[a-z]*.py"]

    def reserve(number: int) -> tuple[int, Document]:
        body = {"patterns": [patterns[number % 4], f"of-{number}"]}
        reply = room.api.post(room.at("reservations"), body, handle=handles[number])
        return reply.status, reply.json

    with ThreadPoolExecutor(len(handles)) as pool:
        said = list(pool.map(reserve, range(12)))
    (winner,) = [number for number, (status, _) in enumerate(said) if status == 201]
    assert reserved(room) == sorted((f"agent-{winner}", one) for one in (patterns[winner % 4], f"of-{winner}"))
    losers = [problem for status, problem in said if status == 409]
    assert len(losers) == 11
    assert {(one["holder"], one["pattern"]) for one in losers} == {(f"agent-{winner}", patterns[winner % 4])}
    refused = runner(room, machine)(handles[winner - 1], "src/auth/**").failed(1)
    assert re.search(rf"is reserved by @agent-{winner} .*until 20\d\d-", refused.err)


@requirement("board:reserve", "board:reserve:token")
def test_reservations_by_command(room: Room, machine: Machine) -> None:
    """Taken, shown, renewed, taken by force, lost, given back; what proves them is readable by their owner alone."""
    room.join("sec", "bob")
    run = runner(room, machine)
    assert run("sec").ok().out == f"nothing is reserved in {room.name}\n"
    given = run("sec", "src/auth/**", "port 8080", "--ttl", "30").ok().out
    assert re.search(rf"✓ src/auth/\*\* — yours until {CLOCK}", given)
    kept = list((machine.home / "reservations").rglob("*"))
    assert {stat.S_IMODE(path.stat().st_mode) for path in kept} == {0o600, 0o700}
    assert run("bob", "./src//auth/x").failed(1).err.startswith("error: src/auth/x is reserved by @sec as src/auth/** ")
    first = run("sec", "src/auth/**", "--json").ok().json["items"][0]
    assert run("sec", "--renew", "--ttl", "2h", "--json").ok().json["items"][0]["ttl_s"] == 7200
    assert [line.split("  ")[0] for line in run("bob").ok().out.splitlines()] == ["PATTERN", "port 8080", "src/auth/**"]
    assert "taken from @sec: src/auth/**" in run("bob", "src", "--force").ok().out
    lost = json.loads(run("sec", "--renew", "--json").failed(1).err)
    assert (lost["slug"], lost["lost"], lost["holder"]) == ("lease.lost", ["src/auth/**"], "bob")
    held = {"reservations": [{"pattern": "src/auth/**", "token": first["token"]}]}
    for verb in ("renew", "release"):
        room.api.post(room.at("reservations", verb), held, handle="sec").refused(409, "lease.lost")
    assert run("sec", "--renew").ok().out.startswith("✓ port 8080"), "what was lost is told once"
    assert run("sec", "--release", "--note", "done").ok().out == "✓ released port 8080\n"
    assert "has reserved nothing" in run("sec", "--release").failed(1).err
    assert reserved(room) == [("bob", "src")]
    for words in (["--check"], ["--renew", "--release"], ["a", "--note", "x"], ["--renew", "--task", "x"], ["--stdin"]):
        run("sec", *words).failed(2)


@requirement("board:reserve:check")
def test_the_check_says_which_paths_others_have(room: Room, machine: Machine) -> None:
    """Given as words, by lines, with NUL between; a line each and status 1; one's own is in nobody's way."""
    room.join("sec", "bob")
    run = runner(room, machine)
    run("sec", "src/**/*.py", "docs").ok()
    run("bob", "mine").ok()
    assert run("bob", "--check", "src/Makefile", "mine/a", "README.md").ok().out == ""
    found = run("bob", "--check", "src/a.py", "mine/a", "docs").failed(1)
    assert re.fullmatch(
        rf"src/a\.py is reserved by @sec as src/\*\*/\*\.py until {CLOCK}\ndocs is reserved by @sec until {CLOCK}\n",
        found.out,
    )
    assert run("sec", "--check", "src/a.py", "mine").failed(1).out.startswith("mine is reserved by @bob until")
    assert run("bob", "--check", "-", stdin=b"x\nsrc/new\nname.py\n").ok().out == ""
    for stdin in (b"x\0src/new\nname.py\0", rb'"src/new\nname.py"' + b"\n"):
        (one,) = json.loads(run("bob", "--check", "-", "--json", stdin=stdin).failed(1).out)["items"]
        assert one["path"] == "src/new\nname.py"
    many = b"".join(b"src/%d.py\0" % number for number in range(1_500))
    assert len(json.loads(run("bob", "--check", "--stdin", "--json", stdin=many).failed(1).out)["items"]) == 1_500
    assert run("bob", "--check", "--stdin").ok().out == ""
    run("", "--check", "docs/x").failed(1)


@requirement("board:reserve:check")
def test_an_absolute_path_is_one_of_its_repository(room: Room, machine: Machine, tmp_path: Path) -> None:
    """As hooks of agents hand them over; in a folder of work trees, whose `.git` is a file; outside, as it is typed."""
    room.join("sec", "bob")
    run = runner(room, machine)
    for repository in ("one", "two"):
        (tmp_path / repository / "src").mkdir(parents=True)
    (tmp_path / "one" / ".git").mkdir()
    (tmp_path / "two" / ".git").write_text("gitdir: elsewhere")
    run("sec", str(tmp_path / "one" / "src" / "auth" / "**")).ok()
    for repository in ("one", "two"):
        path = tmp_path / repository / "src" / "auth" / "login.py"
        for stdin, words in ((b"", [str(path)]), (f"{path}\n".encode(), ["--stdin"])):
            said = run("bob", "--check", *words, stdin=stdin).failed(1).out
            assert said.startswith("src/auth/login.py is reserved by @sec as src/auth/** until")
    run("bob", "--check", str(tmp_path / "src" / "auth" / "login.py")).ok()


@requirement("board:reserve:ends")
def test_what_is_reserved_ends(room: Room, machine: Machine) -> None:
    """By its time and with its task; the room is told in its channel, who had it is woken."""
    room.join("sec", "bob")
    run = runner(room, machine)
    machine.run("board", "new", "Login", "-r", room.name, handle="avery").ok()
    run("sec", "src/auth/**", "--task", "login").ok()
    run("sec", "soon", "--ttl", "1s").ok()
    machine.run("board", "resolve", "login", "-r", room.name, handle="bob").ok()
    until(lambda: reserved(room) == [], "both are over")
    kinds = until(lambda: len(told(room)) >= 4 and sorted(one["metadata"]["kind"] for one in told(room)), "it is told")
    assert kinds == ["claimed", "claimed", "expired", "released"]
    assert {one["content"].partition(" until")[0] for one in told(room)} == {
        "@sec reserved src/auth/**",
        "@sec reserved soon",
        "@sec's reservation of soon is over",
        "@sec's reservation of src/auth/** ended with its task",
    }
    reasons = [turn["reason"] for turn in iter(lambda: room.take("sec"), None)]
    assert reasons == ["lease", "lease"]
    assert room.take("bob") is None
    run("bob", "src", "soon").ok()


@requirement("board:reserve:room")
def test_reservations_stay_with_their_room(room: Room, machine: Machine) -> None:
    """A copy of the room has none, nor has the next room of its name."""
    room.join("sec")
    run = runner(room, machine)
    run("sec", "src").ok()
    body = room.api.get(room.at("export"), handle=room.owner).ok(200).body
    copy = Room(room.api, machine, f"{room.name}-copy")
    bundle.bring(room.api, body, copy.name)
    assert reserved(copy) == []
    machine.run("room", "delete", room.name, "--yes", handle=room.owner).ok()
    run("sec").failed(3)
    room.create()
    assert reserved(room) == []


@requirement("board:reserve:hook")
def test_the_hook_of_the_page_keeps_others_out(room: Room, machine: Machine, tmp_path: Path) -> None:
    """Exactly the lines of the page, in a repository of git: new, changed, renamed and deleted files."""
    found = re.search(r"<<'HOOK'\n(.*?)^HOOK$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert found
    assert len(found[1].splitlines()) == 3
    room.join("sec", "bob")
    run = runner(room, machine)

    def git(handle: str, *words: str) -> subprocess.CompletedProcess[str]:
        made = machine.environment(handle, room=room.name)
        made |= {"PATH": f"{MYCELIUM.parent}:{os.environ['PATH']}", "HOME": str(tmp_path)}
        named = ["-c", f"user.name={handle}", "-c", f"user.email={handle}@example.com"]
        done = subprocess.run(
            ["git", *named, *words], cwd=tmp_path, env=made, capture_output=True, text=True, check=False
        )
        assert done.returncode in {0, 1}, done.stderr
        return done

    git("bob", "init", "--quiet", ".")
    hook = tmp_path / ".git/hooks/pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(found[1])
    hook.chmod(0o755)
    for name in ("auth/é x.py", "auth/old.py", "free.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    git("bob", "add", "auth", "free.py")
    run("sec", "auth/*.py").ok()
    refused = git("bob", "commit", "-m", "All")
    assert refused.returncode == 1
    lines = (refused.stdout + refused.stderr).splitlines()
    assert [line.partition(" is reserved by @sec as auth/*.py until")[0] for line in lines] == [
        "auth/old.py",
        "auth/é x.py",
    ]
    assert git("sec", "commit", "-m", "All").returncode == 0
    git("bob", "mv", "auth/old.py", "moved.py")
    assert git("bob", "commit", "-m", "Out of it").returncode == 1
    git("bob", "reset", "--quiet", "--hard")
    (tmp_path / "free.py").write_text("changed")
    assert git("bob", "commit", "-am", "Free").returncode == 0
    git("bob", "rm", "--quiet", "auth/old.py")
    assert git("bob", "commit", "-m", "Gone").returncode == 1
    run("sec", "--release").ok()
    assert git("bob", "commit", "-m", "Gone").returncode == 0


@requirement("board:reserve:token")
def test_reservations_outlive_the_hub(own_hub: Hub, tmp_path: Path) -> None:
    """Every process starts again: holder, end and token stand."""
    machine = Machine(tmp_path / "client", own_hub.url)
    room = Room(own_hub.api, machine, "demo").create()
    room.join("sec", "bob")
    run = runner(room, machine)
    run("sec", "src").ok()
    before = room.api.get(room.at("reservations"), handle="sec").ok(200).json
    own_hub.restart()
    assert room.api.get(room.at("reservations"), handle="sec").ok(200).json == before
    run("bob", "src/a").failed(1)
    assert run("sec", "--renew").ok().out.startswith("✓ src — yours until")
