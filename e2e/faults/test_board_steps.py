"""Somebody dies at each step of a claim and of a resolve: the move and what its document says happen both, once."""

import contextlib
import json
from itertools import product
from pathlib import Path

import pytest

from e2e.faults.builds import STEP, switched_on
from e2e.faults.conftest import MakeHub
from e2e.faults.havoc import LONG
from e2e.harness import Hub
from e2e.processes import is_running
from e2e.requirements import requirement
from e2e.room import Room
from e2e.tasks import Tasks
from e2e.waiting import until

pytestmark = [pytest.mark.faults, pytest.mark.timeout(900 if LONG else 240)]
ROUNDS = 10 if LONG else 1
STEPS = ("stored", "asks", "asked")  # the fact is on disk; the document is about to be changed; it was
FOLLOWS_S = 60.0  # what a process had begun that died is begun again after a while
VICTIMS = ("board", "nats", "memory")


class Trap:
    """Kills somebody at a step, once."""

    def __init__(self, hub: Hub, path: Path) -> None:
        self.hub, self.path = hub, path

    def set(self, step: str, *victims: str) -> None:
        """The next board that comes to that step kills those, the last of which may be `board`: itself."""
        for victim in victims:
            until(lambda victim=victim: is_running(self.hub.processes().get(victim, 0)), f"{victim} runs")  # type: ignore[misc]
        pids = [0 if victim == "board" else self.hub.processes()[victim] for victim in victims]
        self.path.write_text(json.dumps({"step": step, "pids": pids}))

    @property
    def was_sprung(self) -> bool:
        """Whether somebody came there."""
        return not self.path.exists()


def check_claimed(tasks: Tasks, key: str, token: int) -> None:
    """It is held, its document waits no more, both once."""
    until(lambda: tasks.document(key)["version"] > 1, f"the document of {key} follows")
    document = tasks.document(key)
    assert (document["meta"]["status"], document["meta"].get("blocked_by"), document["version"]) == ("open", None, 2)
    assert tasks.row(key)["holder"] == "sec"
    assert json.loads(tasks.insist("renew", key, "sec", token=token).body)["token"] == token
    until_told(tasks, key, "claimed", "filed")


def check_resolved(tasks: Tasks, key: str, token: int) -> None:
    """It is held no more, its document is resolved, both once."""
    until(lambda: tasks.document(key)["version"] > 1, f"the document of {key} follows", FOLLOWS_S)
    document, row = tasks.document(key), tasks.row(key)
    assert (document["meta"]["status"], document["version"]) == ("resolved", 2)
    assert (row["status"], row["holder"]) == ("resolved", None)
    assert tasks.refused_under(token, key, "sec") == ["lease.lost"] * 3
    until_told(tasks, key, "claimed", "filed", "resolved")


def until_told(tasks: Tasks, key: str, *told: str) -> None:
    """Each once; that a task was filed may be told after what was done to it at once."""
    until(lambda: sorted(tasks.notices(key)) == sorted(told), f"{told} of {key}: {tasks.notices(key)}", FOLLOWS_S)


def answers(hub: Hub) -> bool:
    """Whether its gateways are back."""
    with contextlib.suppress(OSError):
        return bool(hub.api.get("/health").json["status"] == "ok")
    return False


@requirement("board:steps")
def test_whoever_dies_at_a_step_a_move_and_its_document_happen_both_and_once(make_hub: MakeHub, tmp_path: Path) -> None:
    """The board, NATS or memory; then board, client and gateways at once, so that nobody ever asks again."""
    path = tmp_path / "step.json"
    hub = make_hub(switched_on(STEP) | {"E2E_STEP": str(path)})
    room = Room(hub.api, hub.machine, "steps").create()
    room.join("sec")
    tasks, trap = Tasks(room), Trap(hub, path)
    for number, (_, step, victim) in enumerate(product(range(ROUNDS), STEPS, VICTIMS)):
        blocked, held = f"work/blocked-{number}", f"work/held-{number}"
        tasks.write(blocked, status="blocked", blocked_by="#502")
        tasks.write(held, status="open")
        token = json.loads(tasks.insist("claim", held, "sec").body)["token"]
        trap.set(step, victim)
        claimed = tasks.insist("claim", blocked, "sec")
        assert trap.was_sprung, (step, victim)
        check_claimed(tasks, blocked, json.loads(claimed.body)["token"])
        trap.set(step, victim)
        resolved = tasks.insist("resolve", held, "sec", token=token)
        assert trap.was_sprung, (step, victim)
        assert json.loads(resolved.body)["held_by"] == "sec"
        check_resolved(tasks, held, token)
    for step in STEPS:
        key = f"work/left-{step}"
        tasks.write(key, status="open")
        token = json.loads(tasks.insist("claim", key, "sec").body)["token"]
        trap.set(step, "gateway", "gateway-2", "board")
        tasks.send_and_die("resolve", key, "sec", token=token)
        until(lambda: trap.was_sprung, f"a board came to {step}")
        until(lambda: answers(hub), "the hub answers again", FOLLOWS_S)
        check_resolved(tasks, key, token)
