"""A folder that is joined: what is written there and read from it, by whom, and what is left when it fails."""

from __future__ import annotations

import json
import os
import resource
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from clients.cli.tests.conftest import Run
from clients.cli.tests.scripted import CUT, ScriptedHub, answer
from mycelium_cli import config, config_writing, context, joining
from mycelium_cli.errors import Failure
from mycelium_cli.people import joined_folder

TOKEN = "myc_" + "t" * 43
SCOUT = {"room": "design review", "room_id": "0199f2a0-4a51-7c3e-9d20-0c5b3a77e101", "handle": "scout", "token": None}
REFUSED = {"slug": "join.refused", "detail": "the code is wrong, was used, or is too old: ask for a new one"}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, in which commands run."""
    found = tmp_path / "work"
    found.mkdir()
    monkeypatch.chdir(found)
    return found


@pytest.fixture
def hub(scripted: ScriptedHub, folder: Path, monkeypatch: pytest.MonkeyPatch) -> ScriptedHub:
    """A hub that no setting names."""
    assert folder
    for name in ("MYCELIUM_API_URL", "MYCELIUM_ACTIVE_ROOM", "MYCELIUM_AGENT_HANDLE"):
        monkeypatch.delenv(name)
    return scripted


def member(hub: str = "http://localhost:8000", **changes: str) -> str:
    return json.dumps({"hub": hub, "room": "demo", "handle": "scout", "token": TOKEN, **changes})


def pipe(place: Path) -> Path:
    """A pipe beside a file, to which nobody writes."""
    made = place.with_name("pipe")
    os.mkfifo(made, 0o600)
    return made


def write(folder: Path, text: str) -> Path:
    """A membership that is there already."""
    (folder / ".mycelium").mkdir(mode=0o700)
    place = folder / ".mycelium" / "member.json"
    place.write_text(text, encoding="utf-8")
    place.chmod(0o600)
    return place


def test_a_folder_is_joined_and_every_command_below_acts_as_the_member(
    hub: ScriptedHub, folder: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """identity: hub, handle, room and token are the folder's, and the file is its owner's alone."""
    hub.play(answer(200, {**SCOUT, "token": TOKEN}))
    ran = run("join", "abcd-efgh-jkmn", "--hub", f"{hub.url}/")
    assert (ran.status, ran.err) == (0, "")
    assert (
        ran.out
        == f"joined design review as @scout\n  every command in {folder} and below it acts as @scout from now on\n"
    )
    asked = hub.received[0]
    assert asked.line == "POST /api/join HTTP/1.1"
    assert asked.document() == {"code": "abcd-efgh-jkmn"}
    assert not {"authorization", "mycelium-handle"} & set(asked.headers)
    place = folder / ".mycelium" / "member.json"
    assert stat.S_IMODE(place.stat().st_mode) == 0o600
    assert stat.S_IMODE(place.parent.stat().st_mode) == 0o700
    assert sorted(one.name for one in place.parent.iterdir()) == [".gitignore", "member.json"]
    below = folder / "deep" / "er"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    assert context.hub_url() == (hub.url, str(place))
    assert context.handle(None) == ("scout", str(place))
    assert context.room(None) == ("design review", str(place))
    assert context.token() == (TOKEN, str(place))
    hub.play(answer(200, {"items": [], "next": None}))
    run("room", "messages")
    assert hub.received[1].line.startswith("GET /api/rooms/design%20review/messages")
    assert hub.received[1].headers["authorization"] == f"Bearer {TOKEN}"
    assert hub.received[1].headers["mycelium-handle"] == "scout"


def test_flag_and_environment_win_over_the_folder_and_it_over_the_machine(
    hub: ScriptedHub, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The order that `whoami --sources` shows."""
    place = write(folder, member(hub.url))
    for key, value in (("server.api_url", "http://elsewhere:8000"), ("identity.name", "casey"), ("rooms.active", "x")):
        config_writing.write(key, value)
    assert context.hub_url().value == hub.url
    assert (context.handle(None), context.room(None)) == (("scout", str(place)), ("demo", str(place)))
    monkeypatch.setenv("MYCELIUM_ACTIVE_ROOM", "other")
    monkeypatch.setenv("MYCELIUM_AGENT_HANDLE", "ops")
    assert (context.handle(None), context.room(None)) == (
        ("ops", "MYCELIUM_AGENT_HANDLE"),
        ("other", "MYCELIUM_ACTIVE_ROOM"),
    )
    assert (context.handle("sec"), context.room("this")) == (("sec", "--handle"), ("this", "--room"))
    assert context.token() is None


def test_iam_in_a_joined_folder_says_who_commands_act_as(hub: ScriptedHub, folder: Path, run: Run) -> None:
    """It is written down, and the folder goes before it."""
    place = write(folder, member(hub.url))
    hub.play(answer(200, {"handle": "avery", "name": "Avery Quinn"}))
    ran = run("iam", "avery")
    assert ran.out == "kept for later: Avery Quinn (@avery); commands here still act as @scout\n"
    said = f"warning: {place} goes first here: commands in its folder act as @scout, not as @avery."
    assert ran.err == f"{said} Next: mycelium leave, or another folder\n"
    assert config.lookup("identity.name") == ("avery", config.path())


def test_nobody_signs_in_at_a_hub_that_a_folder_alone_names(hub: ScriptedHub, folder: Path, run: Run) -> None:
    """The file may have come with a repository: its hub could name the person's issuer, and be sent their token."""
    place = write(folder, member(hub.url))
    ran = run("login", "--device")
    assert ran.status == 2
    assert ran.err.startswith(f"error: {place} alone names the hub at {hub.url}, and would have your token sent there.")
    assert hub.received == []


def test_a_folders_token_goes_to_its_hub_alone(
    hub: ScriptedHub, folder: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the environment names another hub, the folder says nothing; nor is its token another handle's."""
    write(folder, member("http://hub.example.com:8000"))
    monkeypatch.setenv("MYCELIUM_API_URL", hub.url)
    monkeypatch.setenv("MYCELIUM_ACTIVE_ROOM", "demo")
    hub.play(answer(200, {"items": [], "next": None}))
    run("room", "messages")
    assert not {"authorization", "mycelium-handle"} & set(hub.received[0].headers)
    monkeypatch.delenv("MYCELIUM_API_URL")
    assert context.token("scout", "http://hub.example.com:8000") is not None
    assert context.token("scout", hub.url) is None
    assert context.token("ops", "http://hub.example.com:8000") is None


def test_a_folder_holds_one_member(hub: ScriptedHub, folder: Path, run: Run) -> None:
    """The hub is told whose folder it is, and spends no code of another member; --replace takes any."""
    place = write(folder, member(hub.url))
    before = place.read_text(encoding="utf-8")
    hub.play(answer(409, {"slug": "join.other_member", "detail": "the code is another member's"}))
    ran = run("join", "abcd-efgh-jkmn")
    assert hub.received[0].document() == {"code": "abcd-efgh-jkmn", "room": "demo", "handle": "scout"}
    assert (ran.status, ran.err) == (
        1,
        "error: this folder is @scout's, in demo, and the code is another's. Next: --replace, or mycelium leave\n",
    )
    assert place.read_text(encoding="utf-8") == before
    ran = run("join", "abcd-efgh-jkmn", "--hub", "http://127.0.0.1:9")
    assert ran.status == 1
    assert ran.err.startswith(f"error: this folder is @scout's, in demo at {hub.url} ({place}). Next: --replace")
    assert len(hub.received) == 1
    hub.play(answer(200, SCOUT))
    assert run("join", "abcd-efgh-jkmn", "--replace").status == 0
    assert hub.received[1].document() == {"code": "abcd-efgh-jkmn"}
    assert joining.read(str(place)) == (hub.url, "design review", "scout", "", str(place))


def test_a_code_that_lets_nobody_in_leaves_nothing(hub: ScriptedHub, folder: Path, run: Run) -> None:
    """Neither a folder, nor a change of what was there."""
    hub.play(answer(403, REFUSED))
    ran = run("join", "abcd-efgh-jkmn", "--hub", hub.url)
    assert ran.status == 4
    assert "the code is wrong, was used, or is too old" in ran.err
    assert list(folder.iterdir()) == []
    (folder / ".mycelium").mkdir(mode=0o700)
    hub.play(answer(403, REFUSED))
    run("join", "abcd-efgh-jkmn", "--hub", hub.url)
    assert list((folder / ".mycelium").iterdir()) == []


def test_a_cut_line_is_tried_again_under_the_same_key(hub: ScriptedHub, run: Run) -> None:
    """The hub may have spent the code, and answers the same request again."""
    hub.play(CUT, answer(200, SCOUT))
    assert run("join", "abcd-efgh-jkmn", "--hub", hub.url).status == 0
    assert len(set(hub.keys())) == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_end_while_the_code_is_spent_waits_for_the_membership(
    number: signal.Signals, hub: ScriptedHub, folder: Path
) -> None:
    """Ctrl-C after the hub was asked: the folder is joined, then the program ends."""
    hub.hold()
    words = [sys.executable, "-m", "mycelium_cli", "join", "abcd-efgh-jkmn", "--hub", hub.url]
    with subprocess.Popen(words, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        while not hub.received:
            threading.Event().wait(0.01)
        process.send_signal(number)
        hub.answer_held(answer(200, SCOUT))
        process.communicate(timeout=90)
    assert process.returncode in {130, -number, 128 + number}
    assert (folder / ".mycelium" / "member.json").exists()
    assert not list((folder / ".mycelium").glob("*.new"))


def test_nothing_is_asked_where_nothing_can_be_written(hub: ScriptedHub, folder: Path, run: Run) -> None:
    """A code is not spent for a folder that can't keep it."""
    (folder / ".mycelium").write_text("a file", encoding="utf-8")
    ran = run("join", "abcd-efgh-jkmn", "--hub", hub.url)
    assert (ran.status, ran.err) == (
        1,
        f"error: cannot write {folder}/.mycelium: Not a directory. Next: join in a folder of yours\n",
    )

    (folder / ".mycelium").unlink()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    try:
        ran = run("join", "abcd-efgh-jkmn", "--hub", hub.url)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert "File too large" in ran.err
    assert list(folder.iterdir()) == []
    assert hub.received == []


def test_a_second_join_in_the_folder_waits_for_nobody(hub: ScriptedHub, folder: Path, run: Run) -> None:
    """One at a time, or two codes would be spent for one file."""
    with joined_folder.Folder(str(folder)):
        ran = run("join", "abcd-efgh-jkmn", "--hub", hub.url)
    assert ran.err.startswith(f"error: another join is at work in {folder}")
    assert hub.received == []


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda place: place.chmod(0o660), "can be written by others"),
        (lambda place: place.parent.chmod(0o777), "can be written by others"),
        (lambda place: os.chown(place, 12345, 12345), "belongs to another user (uid 12345)"),
        (lambda place: (place.rename(place.with_name("m")), place.symlink_to("m")), "is a link"),
        (lambda place: os.replace(pipe(place), place), "is no regular file"),
    ],
)
def test_a_file_that_others_could_have_written_is_refused(
    spoil: object, reason: str, hub: ScriptedHub, folder: Path, run: Run
) -> None:
    """By every command; `leave` takes it away."""
    place = write(folder, member(hub.url))
    assert callable(spoil)
    if "uid" in reason and os.geteuid() != 0:
        place.parent.chmod(0o777)  # only root gives files away: refused all the same
        reason = "can be written by others"
    else:
        spoil(place)
    ran = run("room", "ls")
    assert ran.status == 2
    assert reason in ran.err
    assert ran.err.count("\n") == 1
    assert hub.received == []
    assert run("leave").status == 0
    assert context.handle(None) is None


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "[" * 100_000, '{"hub": "http://x"}', member(room=""), member(hub="x")]
)
def test_a_file_that_is_none_of_ours_is_refused(text: str, folder: Path) -> None:
    """Never half believed."""
    write(folder, text)
    with pytest.raises(Failure, match=r"member\.json"):
        joining.joined()


def test_a_file_that_others_can_read_is_made_private(folder: Path) -> None:
    """It was copied, or came from a backup."""
    place = write(folder, member())
    place.chmod(0o644)
    assert joining.joined() is not None
    assert stat.S_IMODE(place.stat().st_mode) == 0o600


def test_leaving_takes_away_what_joining_made(
    hub: ScriptedHub, folder: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also from below; what somebody else keeps there stays."""
    hub.play(answer(200, SCOUT))
    run("join", "abcd-efgh-jkmn", "--hub", hub.url)
    (folder / "below").mkdir()
    monkeypatch.chdir(folder / "below")
    assert run("leave").out == f"{folder} has left design review, and is @scout's no more\n"
    assert [one.name for one in folder.iterdir()] == ["below"]
    ran = run("leave")
    assert (ran.status, ran.err) == (
        3,
        "error: neither this folder nor one above it has joined a room. Next: mycelium whoami --sources\n",
    )
    hub.play(answer(200, SCOUT))
    run("join", "abcd-efgh-jkmn", "--hub", hub.url)
    mine = folder / "below" / ".mycelium" / "mine"
    mine.write_text("x", encoding="utf-8")
    run("leave")
    assert sorted(one.name for one in mine.parent.iterdir()) == [".gitignore", "mine"]


def test_git_sees_nothing_of_a_joined_folder(hub: ScriptedHub, folder: Path, run: Run) -> None:
    """In a real repository, with no change to its own .gitignore."""
    git = ["git", "-C", str(folder)]
    subprocess.run([*git, "init", "-q"], check=True)
    hub.play(answer(200, SCOUT))
    run("join", "abcd-efgh-jkmn", "--hub", hub.url)
    assert (folder / ".mycelium" / "member.json").exists()
    shown = subprocess.run([*git, "status", "--porcelain", "-uall"], check=True, capture_output=True, text=True)
    assert shown.stdout == ""
    ignored = folder / ".mycelium" / ".gitignore"
    ignored.write_text("member.txt\n", encoding="utf-8")
    ran = run("join", "abcd-efgh-jkmn", "--hub", hub.url)
    assert ran.err == f"error: git would see {folder}/.mycelium/member.json. Next: a line `*` in {ignored}\n"


def test_a_code_is_shown_with_what_is_typed_where_it_is_used(scripted: ScriptedHub, run: Run) -> None:
    """For whom, where, until when."""
    made = {**SCOUT, "code": "abcd-efgh-jkmn", "expires_at": "2026-09-03T16:50:01.000Z"}
    del made["token"]
    scripted.play(answer(201, made), answer(201, made))
    ran = run("agent", "code", "@Scout", "-r", "design review")
    assert ran.out == (
        "abcd-efgh-jkmn\n  lets @scout into design review, once, until 2026-09-03T16:50:01.000Z\n"
        f"  mycelium join abcd-efgh-jkmn --hub {scripted.url}\n"
    )
    assert scripted.received[0].line == "POST /api/rooms/design%20review/join-codes HTTP/1.1"
    assert scripted.received[0].document() == {"handle": "scout"}
    said = json.loads(run("agent", "code", "scout", "--json").out)
    assert said == {**made, "command": f"mycelium join abcd-efgh-jkmn --hub {scripted.url}"}


def test_the_token_is_never_shown(hub: ScriptedHub, folder: Path, run: Run) -> None:
    """Not by join, not with --json or --verbose, not by whoami but for its end."""
    shown = ""
    for words in (("join", "c"), ("join", "c", "--json", "--verbose", "--replace")):
        hub.play(answer(200, {**SCOUT, "token": TOKEN}))
        ran = run(*words, "--hub", hub.url)
        assert ran.status == 0
        shown += ran.out + ran.err
    hub.play(answer(200, {"handle": "scout", "registered": True, "kind": "agent", "name": ""}))
    ran = run("whoami", "--sources", "--verbose")
    assert "…tttt" in ran.out
    assert str(folder / ".mycelium" / "member.json") in ran.out
    assert TOKEN[:12] not in shown + ran.out + ran.err
