"""Letting people and agents into a room, and out of it."""

from __future__ import annotations

from clients.cli.tests.conftest import Run
from clients.cli.tests.scripted import ScriptedHub, answer

NO_USER = answer(404, {"slug": "user.not_found", "detail": "there is no user @sec"})


def test_a_user_is_added_as_one(scripted: ScriptedHub, run: Run) -> None:
    """As the hub knows them; who is in it already is told."""
    user = answer(200, {"handle": "casey"})
    scripted.play(user, answer(201, {"handle": "casey"}), user, answer(200, {"handle": "casey"}))
    assert run("room", "add", "@Casey", "--room", "board-only").out == "added @casey to board-only\n"
    assert scripted.received[1].line == "POST /api/rooms/board-only/members HTTP/1.1"
    assert scripted.received[1].document() == {"handle": "casey", "kind": "user"}
    assert run("room", "add", "casey").out == "@casey is already in demo\n"


def test_an_agent_of_another_room_is_added_as_one(scripted: ScriptedHub, run: Run) -> None:
    """The hub tells what a handle is to whoever has it."""
    scripted.play(NO_USER, answer(200, {"handle": "sec", "kind": "agent"}), answer(201, {"handle": "sec"}))
    assert run("room", "add", "sec").out == "added @sec to demo\n"
    assert [request.headers["mycelium-handle"] for request in scripted.received] == ["avery", "sec", "avery"]
    assert scripted.received[2].document() == {"handle": "sec", "kind": "agent"}


def test_whom_the_hub_does_not_know_is_not_made_up(scripted: ScriptedHub, run: Run) -> None:
    """A slip must not become a member."""
    scripted.play(NO_USER, answer(200, {"handle": "sec", "kind": None}))
    ran = run("room", "add", "sec")
    assert ran.status == 3
    assert ran.err == (
        "error: the hub knows nobody called @sec. Next: mycelium user create sec, for a person; "
        "mycelium agent create sec, for an agent\n"
    )
    assert len(scripted.received) == 2


def test_somebody_is_taken_out(scripted: ScriptedHub, run: Run) -> None:
    """By the same address."""
    scripted.play(answer(204))
    assert run("room", "remove", "casey").out == "removed @casey from demo\n"
    assert scripted.received[0].line == "DELETE /api/rooms/demo/members/casey HTTP/1.1"
