"""What engines may spend on models in a room: counted exactly, said when it is used up, set by whoever is there."""

import contextlib
import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from e2e.engines import answered, engine_room, health, hub_with_engines, members, settings
from e2e.harness import Hub, Machine
from e2e.model import Model, Question
from e2e.requirements import requirement
from e2e.room import Document, Room
from e2e.waiting import until

pytestmark = pytest.mark.timeout(240)
PRICED = {
    "MYCELIUM_LLM_USD_PER_MILLION_INPUT_TOKENS": "3",
    "MYCELIUM_LLM_USD_PER_MILLION_OUTPUT_TOKENS": "15",
}
USAGE = (1000, 200)  # 0.003 + 0.003 dollars


class World(NamedTuple):
    """A hub with engines, its model, a machine that uses it."""

    hub: Hub
    model: Model
    machine: Machine


@contextlib.contextmanager
def world_with(folder: Path, **env: str) -> Iterator[World]:
    """One whose model costs what `PRICED` says, or what `env` does."""
    with Model() as model, hub_with_engines(folder / "home", settings(model) | env) as hub:
        machine = Machine(folder / "client", hub.url)
        yield World(hub, model, machine)
        machine.close()


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """One for most tests of this file; each has a room of its own."""
    with world_with(tmp_path_factory.mktemp("budget"), **PRICED) as found:
        yield found


@pytest.fixture
def model(world: World) -> Iterator[Model]:
    """The model, which tells what it took unless a test says otherwise."""
    world.model.asked.clear()
    world.model.usage = USAGE
    yield world.model
    world.model.on_asked, world.model.fault = (lambda _question: None), ""


@pytest.fixture
def room(world: World, request: pytest.FixtureRequest) -> Room:
    """A room with @greeter in it."""
    return engine_room(world.hub, world.machine, request.node.name[:80].replace("[", " ").replace("]", ""))


def budget(room: Room) -> dict[str, Any]:
    """A room's budget."""
    found: dict[str, Any] = room.api.get(room.at("budget"), handle="avery").ok(200).json
    return found


def limited(room: Room, **body: Any) -> dict[str, Any]:
    """A room's budget after a change."""
    found: dict[str, Any] = room.api.patch(room.at("budget"), body, handle="avery").ok(200).json
    return found


def asks(room: Room, text: str = "@greeter hello") -> Document:
    """One question and its answer."""
    return answered(room, room.post(text))


def error(reply: Document) -> str:
    """The slug of what went wrong."""
    return str(reply["metadata"]["engine"].get("error", ""))


@requirement("budget:turns")
def test_turns_are_never_more_than_their_limit_also_when_all_ask_at_once(room: Room, model: Model) -> None:
    """Six mentions for three turns: three answers, three that say what is used up, three calls of the model."""
    limited(room, turns=3)
    messages = [room.post(f"@greeter number {number}") for number in range(6)]
    replies = [answered(room, message) for message in messages]
    over = [reply for reply in replies if error(reply)]
    assert [error(reply) for reply in over] == ["model.over_budget"] * 3
    assert len(model.asked) == 3
    for reply in over:
        assert "engines have used 3 of the 3 turns of this room (its own limit) since" in reply["content"]
        assert f"mycelium engine budget -r {room.name} --renew" in reply["content"]
        assert "usage" not in reply["metadata"]["engine"]
    assert budget(room)["turns"] == {"used": 3, "limit": 3, "set_by": "room"}


@requirement("budget:commands")
def test_a_budget_is_shown_set_and_renewed_on_the_command_line(world: World, room: Room, model: Model) -> None:
    """As `--help` says it; `engine show` has it in a line."""

    def run(*words: str) -> Any:
        return world.machine.run("engine", "budget", "-r", room.name, *words, handle="avery")

    shown = run().ok().out
    assert "turns" in shown
    assert "none" in shown
    limited_by = run("--turns", "1", "--tokens", "none", "--usd", "2.50", "--json").json
    assert [limited_by[name]["limit"] for name in ("turns", "tokens", "usd")] == [1, None, 2.5]
    assert [limited_by[name]["set_by"] for name in ("turns", "tokens", "usd")] == ["room"] * 3
    asks(room)
    until(lambda: budget(room)["tokens"]["used"], "what it took is counted")
    assert error(asks(room)) == "model.over_budget"
    shown = run().ok().out
    assert "$0.006" in shown
    assert "1,000 read, 200 written" in shown
    line = world.machine.run("engine", "show", "greeter", "-r", room.name, handle="avery").ok().out
    assert "1 of 1 turns, $0.006 of $2.50 used in this room" in line
    run("--turns", "hub", "--usd", "hub", "--renew").ok()
    assert budget(room)["turns"] == {"used": 0, "limit": None, "set_by": "hub"}
    assert not error(asks(room))
    assert len(model.asked) == 2
    assert run("--turns", "0").status == 2
    assert run("--usd", "much").status == 2


@requirement("budget:tokens")
@pytest.mark.parametrize(
    ("limit", "said"),
    [({"tokens": 1200}, "1200 of the 1200 tokens"), ({"usd": 0.006}, "$0.006 of the $0.006 of this room")],
)
def test_tokens_and_money_are_counted_and_end_a_budget(
    room: Room, model: Model, limit: dict[str, float], said: str
) -> None:
    """As the provider tells them, at the prices of the settings; the message carries both."""
    limited(room, **limit)
    told = asks(room)["metadata"]["engine"]
    assert told["usage"] == {"input_tokens": 1000, "output_tokens": 200, "usd": 0.006}
    assert told["model"] == "openai/scripted"
    found = budget(room)
    assert (found["turns"]["used"], found["tokens"]["used"], found["usd"]["used"]) == (1, 1200, 0.006)
    over = asks(room)
    assert error(over) == "model.over_budget"
    assert said in over["content"]
    assert len(model.asked) == 1


@requirement("budget:unknown")
def test_tokens_that_nobody_told_are_said_to_be_unknown(room: Room, model: Model) -> None:
    """Not guessed: a budget in tokens ends there, one in turns goes on."""
    model.usage = None
    limited(room, tokens=100_000)
    assert asks(room)["metadata"]["engine"]["usage"] is None
    assert budget(room)["unreported"] == 1
    refused = asks(room)
    assert error(refused) == "model.unmetered"
    assert "--turns 20 --tokens none --usd none --renew" in refused["content"]
    limited(room, turns=20, tokens="none", usd="none", renew=True)
    assert not error(asks(room))
    assert len(model.asked) == 2


@requirement("budget:kill")
def test_a_turn_is_counted_once_however_often_the_engine_dies_on_it(world: World, room: Room, model: Model) -> None:
    """Killed after the turn was taken and before it was recorded; what was answered then is nobody's knowledge."""
    limited(room, turns=1)

    def kill(_question: Question) -> None:
        model.on_asked = lambda _another: None
        for member in members(world.hub):
            if member["service"] == "engine":
                os.kill(member["pid"], signal.SIGKILL)

    model.on_asked = kill
    assert not error(asks(room))
    until(lambda: health(world.hub)["engine"]["status"] == "ok", "engines are well again", 60)
    found = budget(room)
    assert (found["turns"]["used"], found["lost"], found["tokens"]["used"]) == (1, 1, 1200)
    assert error(asks(room)) == "model.over_budget"
    assert len(model.asked) == 2


@requirement("budget:hub")
def test_the_hubs_limits_hold_in_every_room_until_the_room_has_its_own(tmp_path: Path) -> None:
    """A limit in money needs a price: without one no model is asked, and the setting is named."""
    env = {"MYCELIUM_LLM_MAX_TURNS_PER_ROOM": "1", "MYCELIUM_LLM_MAX_USD_PER_ROOM": "2.5"}
    with world_with(tmp_path, **env) as world:
        room = engine_room(world.hub, world.machine)
        assert [budget(room)[name]["limit"] for name in ("turns", "tokens", "usd")] == [1, None, 2.5]
        refused = asks(room)
        assert error(refused) == "model.price_unknown"
        assert "mycelium config set llm.usd_per_million_input_tokens" in refused["content"]
        assert not world.model.asked
        doctor = Machine(tmp_path / "home").run("doctor", "--json", env=settings(world.model) | env, within_s=90)
        (found,) = [row for row in json.loads(doctor.out)["items"] if row["part"] == "model"]
        assert (found["state"], "llm.max_usd_per_room needs its price" in found["seen"]) == ("wrong", True)
        world.model.asked.clear()
        limited(room, usd="none")
        assert "usd" not in asks(room)["metadata"]["engine"]["usage"]
        over = asks(room)
        assert "1 of the 1 turns of this room (the hub's llm.max_turns_per_room)" in over["content"]
        assert len(world.model.asked) == 1
        assert budget(room)["unpriced"] == 1


@requirement("budget:away")
def test_a_hub_without_engines_says_that_it_knows_no_budget(tmp_path: Path) -> None:
    """503, in words; strangers of a private room learn nothing, and wrong limits are refused before."""
    hub = Hub(tmp_path / "home", 0, {"MYCELIUM_RUNTIME_ENGINES": "false"}).start()
    try:
        room = Room(hub.api, Machine(tmp_path / "client", hub.url), "sprint-plan").create(private=True)
        away = room.api.get(room.at("budget"), handle="avery").refused(503, "unavailable")
        assert "mycelium status" in away["detail"]
        room.api.get(room.at("budget"), handle="stranger").refused(404, "room.not_found")
        room.api.patch(room.at("budget"), {"turns": 5}, handle="stranger").refused(404, "room.not_found")
        for body in ({}, {"turns": 0}, {"turns": "some"}, {"usd": -1}, {"tokens": 1.5}, {"euros": 3}):
            room.api.patch(room.at("budget"), body, handle="avery").refused(422, "request.invalid")
    finally:
        hub.close()


@requirement("budget:copies")
def test_a_copy_of_a_room_has_a_budget_of_its_own(world: World, room: Room, model: Model, tmp_path: Path) -> None:
    """What was spent stays with the room it was spent in; a deleted one leaves nothing behind."""
    limited(room, turns=5)
    asks(room)
    bundle = tmp_path / "room.bundle"
    world.machine.run("room", "export", room.name, "-o", str(bundle), handle="avery").ok()
    world.machine.run("room", "import", str(bundle), "--name", f"{room.name} again", handle="avery").ok()
    copy = Room(room.api, world.machine, f"{room.name} again")
    found = budget(copy)
    assert (found["turns"]["used"], found["turns"]["limit"], found["since"]) == (0, None, None)
    assert budget(room)["turns"]["used"] == 1
    assert len(model.asked) == 1
