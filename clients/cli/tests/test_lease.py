"""Waiting for a task, and keeping claims: what is asked, remembered and said. Real hubs are in `e2e/`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from clients.cli.tests.conftest import Run
from clients.cli.tests.scripted import CUT, MESSAGE, ScriptedHub, answer
from mycelium_cli.api import Caller, Hub
from mycelium_cli.board import tokens
from mycelium_cli.room.watch import completed
from mycelium_cli.turn.mailbox import Address, Mailbox
from mycelium_cli.turn.renewing import Renewer

KEY, THREAD = "work/auth-spike", "01990000-0000-7000-8000-00000000beef"
TOLD = {"task": KEY, "kind": "released", "thread": THREAD, "by": "bob", "sequence": 12, "title": "Auth spike"}
NOTICE = {**MESSAGE, "seq": 15, "message_type": "notice", "sender_handle": "bob", "metadata": TOLD}
TURN = {"message": NOTICE, "earlier": [], "redelivered": False, "reason": "lease", "ack": "lease-12", "sequence": 12}
HELD = {
    "slug": "claim.held",
    "detail": f"{KEY} is held by @bob",
    "status": 409,
    "task": KEY,
    "thread": THREAD,
    "sequence": 9,
}
CLAIM = {
    "task": KEY,
    "thread": THREAD,
    "holder": "avery",
    "token": 21,
    "expires_at": "x",
    "ttl_s": 30,
    "taken_from": None,
}


def asked(scripted: ScriptedHub) -> list[dict[str, Any]]:
    return [request.document() for request in scripted.received]


def wait(scripted: ScriptedHub, **known: Any) -> Mailbox:
    address = Address("demo", "sec", lease=KEY)
    return Mailbox(
        Hub(scripted.url, Caller("sec", "s1", "")), address, on_lost=lambda _: None, pause=lambda _: None, **known
    )


def test_a_wait_knows_where_it_begins_before_it_waits(scripted: ScriptedHub) -> None:
    """So a line that is cut loses nothing, and the next wait goes on behind what has come; nothing is reported."""
    scripted.play(answer(204, None, "Mycelium-Sequence: 7"), CUT, answer(200, TURN), answer(204))
    mailbox = wait(scripted)
    assert mailbox.next(None) == TURN
    mailbox.report("lease-12", "acknowledged")
    assert mailbox.next(0) is None
    base = {"handle": "sec", "lease": KEY, "confirm": True}
    assert asked(scripted) == [
        {**base, "timeout_s": 0.0},
        {**base, "timeout_s": 300.0, "since": 7},
        {**base, "timeout_s": 300.0, "since": 7},
        {**base, "timeout_s": 0.0, "since": 7, "after": 15},
    ]


def test_a_wait_after_a_refused_claim_goes_on_from_there(scripted: ScriptedHub, run: Run) -> None:
    """However the task is named; when it has woken, the next wait goes on behind that, in another process too."""
    scripted.play(answer(409, HELD), answer(200, TURN), answer(204))
    assert run("board", "claim", "auth-spike").status == 1
    woken = run("await", "--lease", THREAD[-8:], "--timeout", "5")
    assert woken.out.splitlines()[0].startswith("Handed back  Auth spike  ")
    assert woken.out.splitlines()[-1] == "take it: mycelium board claim work/auth-spike --room demo --handle avery"
    quiet = run("await", "--lease", KEY, "--timeout", "0")
    assert (quiet.status, quiet.err) == (6, f"{KEY} did not change hands in demo within 0 s\n")
    assert [(body.get("since"), body.get("after")) for body in asked(scripted)[1:]] == [(9, None), (9, 15)]


def test_a_wait_goes_on_where_the_one_before_was_answered(scripted: ScriptedHub, run: Run) -> None:
    """Nothing between the two is missed; a claim that was made, or a task that is over, ends that."""
    begins = answer(204, None, "Mycelium-Sequence: 7")
    over = {**TURN, "message": {**NOTICE, "seq": 18, "metadata": {**TOLD, "kind": "resolved"}}}
    scripted.play(begins, answer(200, TURN), answer(200, over), begins, answer(200, TURN))
    for _ in range(3):
        assert run("await", "--lease", "auth-spike", "--timeout", "5").status == 0
    scripted.play(answer(200, CLAIM), begins, answer(204))
    assert run("board", "claim", KEY).status == 0
    assert run("await", "--lease", KEY, "--timeout", "0").status == 6
    places = [(body.get("since"), body.get("after")) for body in asked(scripted) if "lease" in body]
    assert places == [(None, None), (7, None), (7, 15), (None, None), (7, None), (None, None)]


LOOK = "look at it: mycelium board messages work/auth-spike --room demo"
RESERVED = {"task": KEY, "title": "src/**", "row_kind": "reservation", "patterns": ["src/**"], "holder": "avery"}


@pytest.mark.parametrize(
    ("told", "last"),
    [
        ({"kind": "unblocked", "holder": "bob"}, f"still held by @bob; {LOOK}"),
        ({"kind": "unblocked", "holder": "avery"}, f"you hold it; {LOOK}"),
        (
            {"kind": "unblocked", "holder": ""},
            "take it: mycelium board claim work/auth-spike --room demo --handle avery",
        ),
        ({"kind": "claimed", "holder": "bob"}, LOOK),
        (
            {**RESERVED, "kind": "expired", "task": ""},
            "reserve it again: mycelium board reserve 'src/**' --room demo --handle avery",
        ),
        (
            {**RESERVED, "kind": "expired"},
            f"reserve it again: mycelium board reserve 'src/**' --task {KEY} --room demo --handle avery",
        ),
        ({**RESERVED, "kind": "released"}, "see what is reserved: mycelium board reserve --room demo"),
        ({**RESERVED, "kind": "claimed", "task": ""}, "see what is reserved: mycelium board reserve --room demo"),
    ],
)
def test_a_notice_ends_with_what_can_be_done(told: dict[str, Any], last: str, scripted: ScriptedHub, run: Run) -> None:
    """Nothing is offered that would be refused."""
    scripted.play(answer(200, {**TURN, "message": {**NOTICE, "metadata": {**TOLD, **told}}}), answer(204))
    assert run("await", "--timeout", "5").out.splitlines()[-1] == last


def test_who_watches_is_told_how_a_task_was_closed(scripted: ScriptedHub) -> None:
    """It stands in the notice's message, as what a blocked one waits for does; of one that is gone by now the kind."""
    hub = Hub(scripted.url, Caller("sec", "s1", ""))
    blocked = {"kind": "blocked", "by": "bob", "room": "demo", "message_id": MESSAGE["id"], "note": "#502"}
    closed, claimed = {**blocked, "kind": "resolved", "note": ""}, {**blocked, "kind": "claimed"}
    said = {**TOLD, "kind": "blocked", "move": "blocked", "on": "#502"}
    scripted.play(
        answer(200, {**NOTICE, "metadata": said}),
        answer(200, {**NOTICE, "metadata": {**TOLD, "kind": "resolved", "move": "dismissed"}}),
        answer(404, {"slug": "message.not_found", "detail": "gone"}),
    )
    whole = completed(hub, "notice", blocked)
    assert (whole["on"], whole.get("note"), whole["title"]) == ("#502", None, "Auth spike")
    assert completed(hub, "notice", closed)["move"] == "dismissed"
    assert completed(hub, "notice", closed) == closed
    assert completed(hub, "notice", claimed) == claimed
    assert len(scripted.received) == 3


def test_a_claim_that_was_made_ends_the_memory_of_one_that_was_refused(home: Path) -> None:
    """And a newer refusal is not forgotten with an older one."""
    place = str(home / "claims" / "x")
    tokens.keep_refusal(place, KEY, THREAD, 9)
    old = tokens.refused(place, KEY)
    tokens.keep_refusal(place, KEY, THREAD, 11)
    tokens.forget_refusal(old)
    for named in (KEY, "auth-spike", "AUTH-SPIKE", THREAD, THREAD[-8:]):
        found = tokens.refused(place, named)
        assert found is not None
        assert found.sequence == 11
    assert tokens.refused(place, "th-spike") is None
    tokens.keep(place, KEY, THREAD, 12)
    assert tokens.refused(place, KEY) is None
    assert [one.token for one in tokens.kept(place)] == [12]


@pytest.mark.parametrize("others", [["--task", "x"], ["--seat", "night"]])
def test_a_wait_for_a_task_is_for_nothing_else(others: list[str], run: Run) -> None:
    """What is said in its thread is another wait."""
    ran = run("await", "--lease", KEY, *others)
    assert (ran.status, ran.out) == (2, "")
    assert "--lease names a task and goes with neither --task nor --seat" in ran.err


class Keeping:
    """A renewer at a scripted hub, its clock, and what it said."""

    def __init__(self, scripted: ScriptedHub) -> None:
        self.now_s = 100.0
        self.said: list[str] = []
        hub = Hub(scripted.url, Caller("sec", "s1", ""))
        self.place = tokens.folder(hub.url, "demo", "sec")
        self.renewer = Renewer(hub, "demo", "sec", say=self.said.append, clock=lambda: self.now_s)

    def look(self, after_s: float = 0.0) -> None:
        self.now_s += after_s
        self.renewer.look()


@pytest.fixture
def keeping(scripted: ScriptedHub, home: Path) -> Keeping:
    assert home
    found = Keeping(scripted)
    tokens.keep(found.place, KEY, THREAD, 21)
    return found


def test_a_claim_is_renewed_when_it_is_found_and_at_a_third_of_its_length(
    keeping: Keeping, scripted: ScriptedHub
) -> None:
    """One that another process makes meanwhile too, when the folder has changed."""
    scripted.play(*[answer(200, CLAIM)] * 3)
    keeping.look()
    keeping.look(9.0)
    assert len(scripted.received) == 1
    keeping.look(1.0)
    assert len(scripted.received) == 2
    tokens.keep(keeping.place, "work/other", THREAD[:-1] + "0", 30)
    keeping.look(0.5)
    assert [request.line.split()[1] for request in scripted.received] == [
        "/api/rooms/demo/tasks/work/auth-spike/renew",
        "/api/rooms/demo/tasks/work/auth-spike/renew",
        "/api/rooms/demo/tasks/work/other/renew",
    ]
    assert [body["token"] for body in asked(scripted)] == [21, 21, 30]
    assert keeping.said == []


def test_a_reservation_is_renewed_like_a_claim(keeping: Keeping, scripted: ScriptedHub) -> None:
    """By its own pattern and token; one that was lost is said once, and forgotten."""
    place = tokens.folder(scripted.url, "demo", "sec", "reservations")
    tokens.keep(place, "src/**", "", 40)
    scripted.play(answer(200, CLAIM), answer(200, {"items": [{"pattern": "src/**", "ttl_s": 60}]}))
    keeping.look()
    scripted.play(answer(200, CLAIM), answer(409, {"slug": "lease.lost", "detail": "src/** has ended"}))
    keeping.look(19.0)
    keeping.look(1.0)
    keeping.look(0.5)
    reserved = [request for request in scripted.received if "reservations" in request.line]
    assert [request.line.split()[1] for request in reserved] == ["/api/rooms/demo/reservations/renew"] * 2
    assert [request.document() for request in reserved] == [{"reservations": [{"pattern": "src/**", "token": 40}]}] * 2
    assert keeping.said == ["src/** has ended; it is not renewed any more"]
    assert (tokens.kept(place), len(tokens.kept(keeping.place))) == ([], 1)


def test_a_lost_claim_is_said_once_and_its_token_forgotten(keeping: Keeping, scripted: ScriptedHub) -> None:
    """Another of the same task stays."""
    scripted.play(answer(409, {"slug": "lease.lost", "detail": f"the claim of {KEY} has ended; @bob holds it now"}))
    keeping.look()
    keeping.look(0.5)
    keeping.look(100.0)
    assert keeping.said == [f"the claim of {KEY} has ended; @bob holds it now; it is not renewed any more"]
    assert tokens.kept(keeping.place) == []
    assert len(scripted.received) == 1


def test_a_claim_that_was_given_back_is_not_said_to_be_lost(keeping: Keeping, scripted: ScriptedHub) -> None:
    """The command that gives it back forgets the token a moment after the hub has ended the claim."""
    scripted.play(answer(409, {"slug": "lease.lost", "detail": "ended"}))
    keeping.look()
    tokens.forget(tokens.find(keeping.place, KEY))
    keeping.look(0.5)
    assert keeping.said == []


def test_a_hub_that_is_away_is_asked_again_soon(keeping: Keeping, scripted: ScriptedHub) -> None:
    """Nothing is said: the wait itself says that the hub is away."""
    scripted.play(CUT, answer(503, {"slug": "unavailable", "detail": "x"}), answer(403, {"slug": "auth.refused"}))
    for _ in range(3):
        keeping.look(1.0)
    keeping.look(59.0)
    assert len(scripted.received) == 3
    scripted.play(answer(200, CLAIM))
    keeping.look(2.0)
    assert len(scripted.received) == 4
    assert keeping.said == []


def test_what_is_half_written_or_broken_is_no_claim(keeping: Keeping) -> None:
    """Whatever lies in the folder."""
    folder = Path(keeping.place)
    kept = tokens.kept(keeping.place)
    (folder / f"{'a' * 32}.77.new").write_text(json.dumps({"task": "work/x", "thread": "t", "token": 1}))
    (folder / ("b" * 32)).write_text('{"task": ')
    (folder / ("c" * 32)).write_text("[]")
    (folder / ("d" * 32)).write_text('{"task": "work/x"}')
    assert tokens.kept(keeping.place) == kept
