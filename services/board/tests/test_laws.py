"""Whatever is done to a task, in whatever order and by whatever clock: it has one holder, and only grows its tokens.

What each answer has to be is said by `e2e.lease`, the model that histories of real hubs are judged by.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest
from google.protobuf.message import Message
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from e2e.lease import Answer, Asked, State, step
from mycelium.board.v1 import events_pb2, service_pb2, views_pb2
from mycelium_board import commands_claims, model
from mycelium_board.service import PROJECTION
from mycelium_kernel import clock, events
from mycelium_kernel.errors import Refusal
from mycelium_kernel.service import Context, Done, Entity, Evolution, Fact
from services.board.tests.hub import Hub, moving, rebuilt

KEY = "work/ship-it"
HANDLES = st.sampled_from(["sec", "builder", "avery"])
TTLS = st.sampled_from([60, 600, 3600])
EXAMPLES = 3000 if os.environ.get("LONG") else 60
SAID = {"claim.held": "held", "lease.lost": "lost", "claim.none": "none", "task.closed": "closed"}


class Claims(RuleBasedStateMachine):
    """One task, three who want it, and a clock that anybody may set."""

    def __init__(self) -> None:
        super().__init__()
        self.board = Hub()
        self.fields: dict[str, Any] = {}
        self.state = State()
        self.tokens: list[int] = []  # that were given out, the oldest first
        self.pending: list[tuple[int, dict[str, Any]]] = []  # moves that the document does not have yet
        self.moved = (0, "")  # the last of those, and what it made of the status
        self.there = False
        self.write()

    # What is done.

    @rule(by=HANDLES, to=st.none() | HANDLES, ttl_s=TTLS, force=st.booleans())
    def claim(self, by: str, to: str | None, ttl_s: int, force: bool) -> None:
        request = service_pb2.ClaimTaskRequest(room="demo", task=KEY, to=to or "", ttl_s=ttl_s, force=force)
        self.ask(request, Asked("claim", by, to=to or "", ttl_s=ttl_s, force=force))

    @rule(by=HANDLES, data=st.data(), ttl_s=st.just(0) | TTLS)
    def renew(self, by: str, data: st.DataObject, ttl_s: int) -> None:
        token = self.any_token(data)
        request = service_pb2.RenewClaimRequest(room="demo", task=KEY, token=token, ttl_s=ttl_s)
        self.ask(request, Asked("renew", by, token=token, ttl_s=ttl_s))

    @rule(by=HANDLES, data=st.data())
    def release(self, by: str, data: st.DataObject) -> None:
        token = self.any_token(data)
        self.ask(service_pb2.ReleaseTaskRequest(room="demo", task=KEY, token=token), Asked("release", by, token=token))

    @rule(
        by=HANDLES,
        data=st.data(),
        move=st.sampled_from([views_pb2.MOVE_RESOLVED, views_pb2.MOVE_DISMISSED, views_pb2.MOVE_PROMOTED]),
    )
    def close(self, by: str, data: st.DataObject, move: views_pb2.Move.ValueType) -> None:
        token = self.any_token(data)
        self.ask(moving(move, KEY, token=token), Asked("resolve", by, token=token))

    @rule(by=HANDLES, data=st.data())
    def block(self, by: str, data: st.DataObject) -> None:
        token = self.any_token(data)
        self.ask(moving(views_pb2.MOVE_BLOCKED, KEY, token=token, on="#502"), Asked("block", by, token=token))

    @rule(data=st.data())
    def expire(self, data: st.DataObject) -> None:
        """The board says that a claim is over, perhaps of the wrong one, or too early."""
        token = self.any_token(data)
        request = service_pb2.ExpireClaimRequest(room_id=self.board.room_id, key=KEY, token=token)
        if self.state.holder:
            self.ask(request, Asked("expire", "", token=token))
        else:
            self.board.refused("claim.none", request, "")

    @rule(status=st.sampled_from(["open", "in_progress", "resolved", "dismissed", "blocked"]))
    def edit(self, status: str) -> None:
        """By hand, in the document; or the document is made again."""
        self.fields["status"] = status
        self.write()

    @precondition(lambda self: self.there)
    @rule()
    def remove(self) -> None:
        self.board.remove(KEY)
        self.there, self.fields, self.pending, self.moved = False, {}, [], (0, "")

    @precondition(lambda self: self.pending)
    @rule()
    def follow(self) -> None:
        """The document gets what a move asks of it."""
        sequence, changes = self.pending.pop(0)
        self.fields |= changes
        self.write(sequence)

    @rule(minutes=st.sampled_from([1, 9, 10, 60, -60]))
    def set_the_clock(self, minutes: int) -> None:
        """Time passes, or the clock jumps."""
        self.board.later(minutes=minutes)

    # What must be.

    @invariant()
    def one_token_counts(self) -> None:
        """Of all that were ever given out; and it is the newest."""
        said = [self.tried(token) for token in self.tokens]
        assert set(said[:-1]) <= {self.refused_as}, f"{self.tokens}: {said}"
        assert set(said[-1:]) <= {self.refused_as, ""}, f"{self.tokens}: {said}"

    @invariant()
    def the_table_has_that_claim(self) -> None:
        """And none when nobody has held it since."""
        rows = self.board.tables.all("SELECT holder, token, expires_at FROM claim")
        held = self.state
        assert rows == ([(held.holder, held.token, held.ends[0])] if held.holder else [])

    def teardown(self) -> None:
        """All is the same from zero."""
        assert rebuilt(self.board.facts).dump() == self.board.tables.dump()

    # How.

    @property
    def now(self) -> int:
        return round(self.board.now.timestamp() * 1000)

    def any_token(self, data: st.DataObject) -> int:
        """One that was given out, the newest most often; 0 for none."""
        return data.draw(st.sampled_from([0, *self.tokens, *self.tokens[-1:] * 3]), "token")

    @property
    def refused_as(self) -> str:
        """What a token that is not current is told."""
        return "lease.lost" if self.there else "task.not_found"

    def tried(self, token: int) -> str:
        """As what a renewal under it would be refused; empty when it would be done."""
        request = service_pb2.RenewClaimRequest(room="demo", task=KEY, token=token)
        command, context = self.board.commands[type(request)], self.board.context("sec")
        try:
            command.decide(command.load(self.board.tables, request, context), request, context)
        except Refusal as refusal:
            return refusal.slug
        return ""

    def write(self, move: int = 0) -> None:
        self.board.task(KEY, move=move, **{name: value for name, value in self.fields.items() if value is not None})
        self.there = True
        if move == self.moved[0]:
            self.moved = (0, "")

    def ask(self, request: Message, asked: Asked) -> None:
        """Do it, and judge the answer."""
        seen = len(self.board.facts)
        answer = self.answer(request, asked.by)
        if answer is None:
            assert not self.there
            return
        before = self.state._replace(closed=self.status in model.CLOSED)
        after = step(before, asked._replace(answer=answer, since=self.now, until=self.now))
        assert after is not None, f"{asked} of {before} at {self.now} was answered {answer}"
        self.state = after
        for fact in self.board.facts[seen:]:
            if fact.type == events.type_name(events_pb2.TaskMoved):
                self.note(events_pb2.TaskMoved.FromString(fact.data), fact.sequence)

    def answer(self, request: Message, handle: str) -> Answer | None:
        """What it was answered, in the words of the model; None when there is no such task."""
        try:
            said = self.board.ask(request, handle)
        except Refusal as refusal:
            if refusal.slug == "task.not_found":
                return None
            holder = "".join(refusal.extras.get("holder", ()))
            ends = "".join(refusal.extras.get("expires_at", ()))
            return Answer(SAID[refusal.slug], holder, ends=millis(ends) if ends else 0)
        if isinstance(said, service_pb2.ExpireClaimResponse):
            return Answer("done", self.state.holder) if said.expired else Answer("none")
        if isinstance(said, service_pb2.MoveTaskResponse):
            return Answer("done", said.held_by)
        if isinstance(said, service_pb2.ReleaseTaskResponse):
            return Answer("done")
        return Answer("claim", said.claim.holder, said.claim.token, clock.to_millis(said.claim.expires_at))

    def note(self, event: events_pb2.TaskMoved, sequence: int) -> None:
        """What a fact makes: a token, work for the document, another status."""
        if event.move == views_pb2.MOVE_CLAIMED:
            assert sequence > max(self.tokens, default=0)
            self.tokens.append(sequence)
            self.state = self.state._replace(token=sequence, newest=sequence)
        changes = json.loads(event.fields_json or "{}")
        if changes:
            self.pending.append((sequence, changes))
            self.moved = (sequence, changes.get("status", ""))

    @property
    def status(self) -> str:
        """As a move left it until the document has that, else as the document says."""
        return str(self.moved[1] or self.fields.get("status") or model.OPEN)


def millis(moment: str) -> int:
    return round(datetime.fromisoformat(moment).timestamp() * 1000)


def check(examples: int) -> None:
    """Many histories; the first that is wrong fails."""
    run_state_machine_as_test(
        Claims,
        settings=settings(
            max_examples=examples,
            stateful_step_count=40,
            deadline=None,
            derandomize=True,
            database=None,
            report_multiple_bugs=False,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_whatever_is_done_a_task_has_one_holder() -> None:
    """Claimed, renewed, given back, closed, blocked, ended, edited, removed and made again, by a clock that jumps."""
    check(EXAMPLES)


def renews_without_a_look_at_the_token(patch: pytest.MonkeyPatch) -> None:
    def proven(loaded: commands_claims.Holding, _token: int, _by: str, now: datetime) -> views_pb2.Lease | None:
        return model.live(loaded.entity, now)

    patch.setattr(commands_claims, "proven", proven)


def expires_what_was_renewed(patch: pytest.MonkeyPatch) -> None:
    def expire(loaded: commands_claims.Holding, request: service_pb2.ExpireClaimRequest, context: Context) -> object:
        last = model.latest(loaded.entity)
        if last is None or last.token != request.token:
            return Done(service_pb2.ExpireClaimResponse())
        return Fact(commands_claims.moved(loaded, views_pb2.MOVE_EXPIRED, "", context.now), on=loaded.entity)

    patch.setattr(commands_claims, "expire_claim", expire)


def holds_until_somebody_says_that_it_is_over(patch: pytest.MonkeyPatch) -> None:
    def live(entity: Entity[model.State], _now: datetime) -> views_pb2.Lease | None:
        return model.latest(entity)

    patch.setattr(commands_claims, "live", live)


def shows_the_token_to_everybody(patch: pytest.MonkeyPatch) -> None:
    shown = commands_claims._shown

    def shows(key: str, thread: str, lease: views_pb2.Lease, _to: str) -> views_pb2.Claim:
        return shown(key, thread, lease, lease.holder)

    patch.setattr(commands_claims, "_shown", shows)


def forgets_the_token_when_renewed(patch: pytest.MonkeyPatch) -> None:
    def renewed(before: model.State | None, event: events_pb2.ClaimRenewed) -> model.State:
        state = model.renew(before, event)
        state.lease.token = 0
        return state

    patch.setitem(PROJECTION.entities, events_pb2.ClaimRenewed, (Evolution(events_pb2.TaskState, renewed),))


def leaves_the_end_in_the_table(patch: pytest.MonkeyPatch) -> None:
    patch.setitem(PROJECTION.apply, events_pb2.ClaimRenewed, lambda *_: None)


@pytest.mark.parametrize(
    "bug",
    [
        renews_without_a_look_at_the_token,
        expires_what_was_renewed,
        holds_until_somebody_says_that_it_is_over,
        shows_the_token_to_everybody,
        forgets_the_token_when_renewed,
        leaves_the_end_in_the_table,
    ],
)
def test_a_seeded_bug_is_caught(bug: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch) -> None:
    """A judge that passes everything would pass the product too."""
    bug(monkeypatch)
    with pytest.raises(AssertionError):
        check(200)
