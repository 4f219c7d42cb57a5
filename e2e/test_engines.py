"""Engines: added, listed, asked, removed; what a room reads when the model fails."""

import json
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from e2e.disk import content, files
from e2e.engines import ANSWER_S, answered, answers, engine_room, health, hub_with_engines, settings
from e2e.harness import Hub, Machine
from e2e.model import KEY, Model, Question
from e2e.requirements import requirement
from e2e.room import Room, states
from e2e.waiting import until

pytestmark = pytest.mark.timeout(240)


class World(NamedTuple):
    """A hub with engines, its model, a machine that uses it."""

    hub: Hub
    model: Model
    machine: Machine


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """One for all tests of this file; each has a room of its own, and says what the model does."""
    folder = tmp_path_factory.mktemp("engines")
    with Model() as model, hub_with_engines(folder / "home", settings(model)) as hub:
        machine = Machine(folder / "client", hub.url)
        yield World(hub, model, machine)
        machine.close()


@pytest.fixture
def model(world: World) -> Iterator[Model]:
    """The model, which does again what it does by default when the test is over."""
    world.model.asked.clear()
    yield world.model
    world.model.fault, world.model.text = "", "Hello from the script."
    world.model.on_asked = lambda _question: None


@pytest.fixture
def room(world: World, request: pytest.FixtureRequest) -> Room:
    """A room with @greeter in it."""
    return engine_room(world.hub, world.machine, request.node.name[:80].replace("[", " ").replace("]", ""))


@requirement("engines:hello:answers")
def test_a_mention_of_hello_is_answered_once_in_its_thread_of_talk(room: Room, model: Model) -> None:
    """The reply stands under its handle, says what it answers, and came of one call of the model."""
    message = room.post("@greeter say hello")
    reply = answered(room, message)
    assert reply["content"] == "Hello from the script."
    assert reply["sender_handle"] == "greeter"
    assert states(message) == {"greeter": "queued"}
    assert len(model.asked) == 1
    assert "@greeter say hello" in model.asked[0].text
    assert until(lambda: room.state(message, "greeter") == "acknowledged", "its delivery is acknowledged")


@requirement("engines:commands")
def test_an_engine_is_created_listed_shown_asked_and_removed_on_the_command_line(
    world: World, room: Room, model: Model
) -> None:
    """The commands of the manual, as they are written there."""
    run = world.machine.run
    listed = run("engine", "ls", "-r", room.name, handle="avery").ok().out
    assert "@greeter" in listed
    assert "hello" in listed
    said = run("engine", "invoke", "greeter", "say hello", "-r", room.name, handle="avery", within_s=90)
    assert "Hello from the script." in said.ok().out
    shown = run("engine", "show", "greeter", "-r", room.name, "--json", handle="avery").json
    assert (shown["kind"], shown["unread"]) == ("hello", 0)
    run("engine", "rm", "greeter", "-r", room.name, handle="avery").ok()
    gone = run("engine", "invoke", "greeter", "there?", "-r", room.name, handle="avery")
    assert (gone.status, f"Next: mycelium engine ls --room {room.name}\n" in gone.err) == (3, True)
    assert states(room.post("@greeter there?")) == {"greeter": "left"}
    assert len(model.asked) == 1


@requirement("engines:members")
def test_an_engine_is_a_member_like_any_other(room: Room) -> None:
    """Listed among the members; no agent is turned into one or removed as one."""
    room.join("sec")
    kinds = {row["handle"]: row["kind"] for row in room.api.get(room.at("members"), handle="avery").json["items"]}
    assert kinds == {"greeter": "engine", "sec": "agent"}
    body = {"handle": "sec", "kind": "hello"}
    room.api.post(room.at("engines"), body, handle="avery").refused(409, "handle.taken")
    room.api.delete(room.at("engines", "sec"), handle="avery").refused(404, "engine.not_found")
    assert room.member("sec")["kind"] == "agent"


@requirement("engines:silent")
def test_an_engines_words_wake_no_engine(world: World, room: Room, model: Model) -> None:
    """Two of them that name each other say one thing each."""
    world.machine.run("engine", "create", "other", "--kind", "hello", "-r", room.name, handle="avery").ok()
    model.text = "Ask @other and @greeter about it."
    message = room.post("@greeter who knows?")
    reply = answered(room, message)
    assert states(reply) == {"other": "silent", "greeter": "self"}
    second = room.post("@other and you?")
    answered(room, second, "other")
    assert len(model.asked) == 2


@requirement("engines:threads")
def test_two_engines_named_by_one_message_both_answer_in_its_thread(world: World, room: Room, model: Model) -> None:
    """Each once, where they were asked."""
    world.machine.run("engine", "create", "other", "--kind", "hello", "-r", room.name, handle="avery").ok()
    first = room.post("a thread begins")
    message = room.post("@greeter @other hello", thread=first["id"])
    assert {answered(room, message, handle)["thread"] for handle in ("greeter", "other")} == {message["thread"]}
    assert len(model.asked) == 2


def runs(room: Room) -> list[dict[str, Any]]:
    """The rows of engines at work."""
    page = room.api.get(room.at("board", filter="all", group="engine"), handle="avery").ok(200).json
    return [row for row in page["items"] if row["source"]["kind"] == "run"]


@requirement("board:runs", "board:floor")
def test_a_run_is_a_row_a_turn_and_then_an_entry_of_the_log(world: World, room: Room, model: Model) -> None:
    """Which engine, in which task, for whom; it is told once, its answer not beside it, and wakes nobody."""

    def run(*words: str) -> str:
        return world.machine.run(*words, "-r", room.name, handle="avery").ok().out

    may_answer = threading.Event()

    def hold(_question: Question) -> None:
        may_answer.wait(ANSWER_S)

    model.on_asked = hold
    room.join("sec", "avery")
    run("board", "new", "Pick storage")
    watching = room.watch("sec")
    message = json.loads(run("board", "coordinate", "pick-storage", "greeter", "what is there?", "--json"))
    (row,) = until(lambda: runs(room), "the run is a row")
    assert row["title"] == "@greeter answers @avery in work/pick-storage"
    assert (row["thread"], row["group"], row["status"]) == (message["thread"], ["greeter"], "running")
    assert f" ▸ {row['thread'][-8:]}  @greeter answers @avery in work/pick-storage" in run("board", "--filter", "all")
    refused = world.machine.run("board", "claim", row["key"], "-r", room.name, handle="avery")
    assert (refused.status, "is a run of @greeter, no task" in refused.err) == (1, True)
    may_answer.set()
    answered(room, message)
    until(lambda: not runs(room), "the run is over")
    watching.line(lambda line: line.startswith("Turn of") and "@avery" in line, "the turn is given back")
    turns = [line for line in watching.out if line.startswith("Turn of")]
    assert ["Pick storage" in line and "@greeter" in line for line in turns] == [True, False]
    assert (room.member("sec")["unread"], room.member("avery")["unread"]) == (0, 0)
    (day,) = json.loads(run("board", "log", "--since", "today", "--by", "greeter", "--json"))["items"]
    assert (day["total"], day["runs"], day["messages"]) == (1, 1, 0)
    (entry,) = day["entries"]
    assert (entry["what"], entry["key"], entry["outcome"]) == ("run", "work/pick-storage", "done")
    assert "@greeter  run       work/pick-storage — Pick storage → done" in run("board", "log")


@requirement("board:runs")
def test_a_run_outside_tasks_is_told_by_how_it_ended_and_gives_no_turn(room: Room, model: Model) -> None:
    """What the model failed by is no success."""
    model.fault = "auth"
    answered(room, room.post("@greeter hello"))
    until(lambda: not runs(room), "the run is over")
    (day,) = room.api.get(room.at("board", "log", by="greeter", since="today"), handle="avery").ok(200).json["items"]
    assert [(entry["what"], entry["key"], entry["outcome"]) for entry in day["entries"]] == [("run", None, "failed")]
    assert [item for item in room.page(limit=500)["items"] if item["message_type"] == "notice"] == []


FAULTS = {
    "auth": ("model.auth", "refuses the key", "mycelium config set llm.api_key"),
    "unknown": ("model.unknown", "does not know openai/scripted", "mycelium config set llm.model"),
    "refused": ("model.refused", "status 400: max_tokens is too large", "mycelium doctor"),
    "limited": ("model.rate_limited", "Rate limit reached", "mycelium doctor"),
    "failed": ("model.failed", "status 500", "mycelium doctor"),
    "empty": ("model.empty", "gave an empty answer", "mycelium doctor"),
    "garbled": ("model.unreadable", "can't be read", "mycelium doctor"),
}


@requirement("engines:errors")
@pytest.mark.parametrize("fault", list(FAULTS))
def test_what_went_wrong_is_posted_once_with_the_next_command(room: Room, model: Model, fault: str) -> None:
    """In the room, in words and for programs; the model is not asked again, and no text holds the key."""
    model.fault = fault
    slug, words, command = FAULTS[fault]
    message = room.post("@greeter say hello")
    reply = answered(room, message)
    assert words in reply["content"]
    assert command in reply["content"]
    assert (reply["metadata"]["engine"]["kind"], reply["metadata"]["engine"]["error"]) == ("hello", slug)
    assert KEY not in reply["content"]
    assert len(model.asked) == 1


@requirement("engines:secret")
def test_the_models_key_is_sent_to_the_model_and_is_nowhere_else(world: World, room: Room, model: Model) -> None:
    """Not in Temporal's file, the log, logs, run files, the environment or command line of another process."""
    model.fault = "auth"
    message = room.post("@greeter what is violet-hippopotamus?")
    answered(room, message)
    assert model.asked[0].headers["authorization"] == f"Bearer {KEY}"
    home = world.hub.home
    holding = [path for path in files(home) if KEY.encode() in (content(path) or b"")]
    assert all(path.name == "llm_api_key" and path.stat().st_mode & 0o077 == 0 for path in holding)
    database = b"".join(content(path) or b"" for path in files(home / "temporal"))
    assert b"HelloRun" in database
    assert b"violet-hippopotamus" not in database
    for pid in _family(world.hub.pid):
        assert KEY not in _read(pid, "cmdline"), _read(pid, "cmdline")
        assert KEY not in _read(pid, "environ"), _read(pid, "cmdline")


def _family(pid: int) -> list[int]:
    """The hub's children; the hub's own environment as it was started with can't be taken back."""
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _read(pid: int, name: str) -> str:
    return Path(f"/proc/{pid}/{name}").read_bytes().decode(errors="replace")


@requirement("engines:temporal:loopback")
def test_temporal_listens_on_loopback_only(world: World) -> None:
    """All of its ports, whatever they are for."""
    pid = next(pid for pid in _family(world.hub.pid) if "temporal" in _read(pid, "cmdline").split("\0")[0])
    sockets = {os.readlink(entry) for entry in Path(f"/proc/{pid}/fd").iterdir() if entry.is_symlink()}
    listening = []
    for table in ("tcp", "tcp6"):
        for row in _read(pid, f"net/{table}").splitlines()[1:]:
            fields = row.split()
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in sockets:
                listening.append(fields[1].split(":")[0])
    assert listening
    assert set(listening) <= {"0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000"}


@requirement("engines:without-model")
def test_a_hub_without_a_model_is_whole_but_for_engines(tmp_path: Path) -> None:
    """Health is ok; a mention reads what to set; rooms answer before Temporal is there."""
    env = {"MYCELIUM_RUNTIME_ENGINES": "true"}
    with hub_with_engines(tmp_path / "home", env) as hub:
        machine = Machine(tmp_path / "client", hub.url)
        room = engine_room(hub, machine)
        assert hub.api.get("/health").json["status"] == "ok"
        reply = answered(room, room.post("@greeter say hello"))
        assert "no model is set" in reply["content"]
        assert "mycelium config set llm.model" in reply["content"]
        invoked = machine.run("engine", "invoke", "greeter", "hm?", "-r", room.name, handle="avery", within_s=90)
        assert invoked.status == 1


@requirement("engines:anthropic")
def test_an_anthropic_model_is_asked_in_its_own_protocol(tmp_path: Path) -> None:
    """The other of the two protocols; a time-out is told like the rest."""
    with Model() as model:
        env = settings(model, "anthropic/claude-sonnet-4-6") | {"MYCELIUM_LLM_TIMEOUT_S": "3"}
        with hub_with_engines(tmp_path / "home", env) as hub:
            room = engine_room(hub, Machine(tmp_path / "client", hub.url))
            assert answered(room, room.post("@greeter hello"))["content"] == "Hello from the script."
            assert model.asked[0].path == "/v1/messages"
            assert KEY in str(model.asked[0].headers)
            model.fault = "silent"
            reply = answered(room, room.post("@greeter hello?"))
            assert "did not answer within 3 s" in reply["content"]
            assert len(model.asked) == 2


@requirement("engines:late")
def test_a_mention_while_temporal_is_away_is_answered_when_it_is_back(world: World, room: Room, model: Model) -> None:
    """Rooms go on meanwhile; one answer comes of it."""
    answered(room, room.post("@greeter warm up"))
    pid = next(pid for pid in _family(world.hub.pid) if "temporal" in _read(pid, "cmdline").split("\0")[0])
    os.kill(pid, signal.SIGKILL)
    message = room.post("@greeter are you there?")
    assert room.post("rooms go on")["content"] == "rooms go on"
    answered(room, message)
    assert len(answers(room, message)) == 1
    assert len(model.asked) == 2
    until(lambda: health(world.hub)["engine"]["status"] == "ok", "engines are well again", 60)


@requirement("models:key")
def test_the_key_is_set_from_a_pipe_and_shown_by_its_end(tmp_path: Path) -> None:
    """In a file of its own that nobody else reads; never in config.toml, never whole on a screen."""
    machine = Machine(tmp_path / "home")
    done = machine.run("config", "set", "llm.api_key", stdin=f"{KEY}\n".encode()).ok()
    shown = machine.run("config", "show", "--json").ok().out + machine.run("config", "get", "llm.api_key").ok().out
    for text in (done.out, done.err, shown):
        assert KEY not in text
    assert "…WXYZ" in shown
    kept = machine.home / "secrets" / "llm_api_key"
    assert kept.read_text().strip() == KEY
    assert kept.stat().st_mode & 0o077 == 0
    assert not (machine.home / "config.toml").exists()
    assert machine.run("config", "set", "llm.api_key", stdin=b"two words\n").status == 2
    machine.run("config", "unset", "llm.api_key").ok()
    assert not kept.exists()


@requirement("models:doctor")
@pytest.mark.parametrize(
    ("name", "fault", "state", "words"),
    [
        ("", "", "note", "not configured"),
        ("openai/scripted", "", "ok", "openai/scripted answered"),
        ("openai/scripted", "auth", "wrong", "auth failed"),
    ],
)
def test_doctor_asks_the_model_for_a_reply(tmp_path: Path, name: str, fault: str, state: str, words: str) -> None:
    """And says what is wrong, with what to type."""
    with Model() as model:
        model.fault = fault
        machine = Machine(tmp_path / "home")
        env = settings(model, name)
        done = machine.run("doctor", "--json", env=env, within_s=90)
    (found,) = [row for row in json.loads(done.out)["items"] if row["part"] == "model"]
    assert found["state"] == state
    assert words in found["seen"]
    assert bool(found["next"]) == (state != "ok")
    assert KEY not in done.out
    assert len(model.asked) == bool(name)
