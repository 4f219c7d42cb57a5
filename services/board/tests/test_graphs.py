"""Boards of two hundred tasks, drawn at random: every way to ask why a task is not ready gives the same reason.

And it is the one that an independent, slow look finds (`oracle`).
"""

from __future__ import annotations

import json
import os
import random
from typing import Any

import pytest

from mycelium.board.v1 import events_pb2, service_pb2, views_pb2
from mycelium_board import lookup, queries, readiness
from mycelium_board.service import service
from mycelium_kernel import clock
from mycelium_kernel.callers import RoomRow
from mycelium_kernel.errors import Refusal
from mycelium_kernel.service import Fact
from services.board.tests.hub import Hub
from services.board.tests.oracle import OVER, PREFIXES, Oracle

TASKS = 200
SEEDS = range(200 if os.environ.get("LONG") else 4)
GATED = next(one for one in service(is_gated=True).commands if one.request is service_pb2.ClaimTaskRequest)


class Board:
    """A board, and the oracle that is told the same."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.hub, self.oracle = Hub(), Oracle()
        self.keys = [f"{self.chance.choice(PREFIXES)}t{number}" for number in range(TASKS)]
        self.notes = [f"context/n{number}" for number in range(10)]
        # Few links make long chains, many make cycles.
        self.links = self.chance.choice([0.3, 0.7, 1.2])

    def draw(self) -> None:
        """Tasks, notes, removals, some made again; closed, blocked and held ones."""
        for note in self.notes:
            self.hub.task(note)
        for key in self.keys:
            self.write(key)
        for key in self.chance.sample(self.keys, 20):
            self.hub.remove(key)
            del self.oracle.documents[key]
        for key in self.chance.sample(self.keys, 40):
            self.write(key)
        for key in self.chance.sample(sorted(self.oracle.documents), 20):
            if self.oracle.is_open(key):
                claim = self.hub.claim(key, ttl_s=self.chance.choice([60, 3600]))
                self.oracle.held[key] = claim.holder, clock.to_millis(claim.expires_at)
                self.follow(key)
        self.hub.later(minutes=5)

    def follow(self, key: str) -> None:
        """The document gets what the last move asks of it."""
        move = self.hub.facts[-1]
        asked = json.loads(events_pb2.TaskMoved.FromString(move.data).fields_json or "{}")
        if asked:
            fields = {name: value for name, value in (self.oracle.documents[key] | asked).items() if value is not None}
            self.hub.task(key, move=move.sequence, **fields)
            self.oracle.documents[key] = fields

    def write(self, key: str) -> None:
        fields: dict[str, Any] = {"status": self.chance.choice(["open"] * 8 + ["in_progress", "resolved", "blocked"])}
        names_ = [self.name() for _ in range(self.chance.choices([0, 1, 2, 5], [1, self.links, 0.3, 0.1])[0])]
        if names_:
            fields["depends-on"] = self.chance.choice([names_, ", ".join(names_)])
        if self.chance.random() < 0.2:
            fields["part-of"] = self.name()
        if self.chance.random() < 0.05:
            fields["blocked_by"] = "#502"
        self.oracle.threads[key] = self.hub.task(key, **fields)
        self.oracle.documents[key] = fields

    def name(self) -> str:
        """Some task, named in any way; or a note, or what never was."""
        key = self.chance.choice([*self.keys, *self.notes, "work/never"])
        thread = self.oracle.threads.get(key, key)
        return self.chance.choice([key, key, key.upper(), f"[[{key}]]", key.split("/")[1], thread, thread[-8:]])

    # Every way to ask.

    @property
    def now(self) -> int:
        return clock.millis(self.hub.now)

    def listed(self, wanted: service_pb2.Filter.ValueType) -> dict[str, Any]:
        """Rows by key, of all pages."""
        request = service_pb2.ListTasksRequest(room="demo", filter=wanted, limit=70)
        found: dict[str, Any] = {}
        while True:
            page = queries.list_tasks(self.hub.tables, request, self.hub.context("avery"))
            found |= {row.key: row for row in page.rows}
            if not page.next:
                return found
            request.cursor = page.next

    def agree(self) -> None:
        """Rows of a list, single ones, those that are ready, the function itself, the gate; and the oracle."""
        lines, reached = self.oracle.lines(self.now), self.oracle.reached()
        waits_for = self.oracle.waits_for(reached)
        rows = self.listed(service_pb2.FILTER_ALL)
        assert {key: row.reason for key, row in rows.items()} == lines
        assert {key for key, row in rows.items() if row.ready} == {key for key, line in lines.items() if not line}
        assert self.listed(service_pb2.FILTER_READY).keys() == {key for key, line in lines.items() if not line}
        for key, row in rows.items():
            assert list(row.waits_for) == waits_for.get(key, []), key
            self.is_cycle(key, row, reached)
            assert queries.row(self.hub.tables, RoomRow(self.hub.room_id, "demo"), key, self.hub.now) == row
            task = lookup.find_task(self.hub.tables, RoomRow(self.hub.room_id, "demo"), key)
            why = readiness.why_not_ready(self.hub.tables, self.hub.room_id, task, self.hub.now)
            assert (why.line, list(why.waits_for)) == (row.reason, list(row.waits_for))
            assert self.gate(key) == self.expected_gate(key, waits_for.get(key, []))

    def is_cycle(self, key: str, row: views_pb2.Row, reached: dict[str, set[str]]) -> None:
        """It is named where there is one, and each of it leads to the next, as far as it is shown."""
        cycle = list(row.cycle)
        if key not in reached.get(key, set()):
            assert not cycle
            return
        assert (cycle[0], len(set(cycle))) == (key, len(cycle))
        onward, end = self.oracle.onward(), [] if row.cycle_more else [key]
        assert all(after in onward[one] for one, after in zip(cycle, [*cycle[1:], *end], strict=False)), cycle

    def gate(self, key: str) -> list[str]:
        """What a claim under the gate is refused with; nothing when it is given."""
        request, context = service_pb2.ClaimTaskRequest(room="demo", task=key), self.hub.context("builder")
        try:
            decided = GATED.decide(GATED.load(self.hub.tables, request, context), request, context)
        except Refusal as refusal:
            return [refusal.slug, *refusal.extras.get("waits_for", [])]
        assert isinstance(decided, Fact)
        return []

    def expected_gate(self, key: str, waits_for: list[str]) -> list[str]:
        if not self.oracle.is_open(key):
            return ["task.closed"]
        if self.oracle.held.get(key, ("", 0))[1] > self.now:
            return ["claim.held"]
        return ["task.waiting", *waits_for[:100]] if waits_for else []

    def close(self, key: str) -> None:
        """Who waited for it and waits for nothing else is told so, and nobody else."""
        before = self.oracle.waits_for(self.oracle.reached())
        task = lookup.find_task(self.hub.tables, RoomRow(self.hub.room_id, "demo"), key)
        self.hub.resolve(key, "builder")
        closed = self.hub.facts[-1].sequence
        self.oracle.documents[key]["status"] = "resolved"
        if self.chance.random() < 0.5:
            self.follow(key)
        self.oracle.held.pop(key, None)
        after, lines = self.oracle.waits_for(self.oracle.reached()), self.oracle.lines(self.now)
        expected = {
            one for one, waited in before.items()
            if key in waited and not after[one] and (not lines[one] or lines[one].startswith("held"))
        }  # fmt: skip
        told = set()
        for one in readiness.waited(self.hub.tables, self.hub.room_id, task, closed):
            request = service_pb2.UnblockTaskRequest(
                room_id=self.hub.room_id, document_id=one.document_id, cause=key, closed=closed
            )
            if self.hub.ask(request, "").unblocked:
                told.add(one.key)
        assert told == expected, key


@pytest.mark.parametrize("seed", SEEDS)
def test_every_way_to_ask_gives_the_same_reason(seed: int) -> None:
    """Chains, cycles through parts, notes, what is gone or came back; tasks are closed, and who is free is told."""
    board = Board(seed)
    board.draw()
    board.agree()
    waited_for = {one for waits in board.oracle.waits_for(board.oracle.reached()).values() for one in waits}
    for key in sorted(waited_for)[:30]:
        if board.oracle.documents[key].get("status") not in OVER:
            board.close(key)
    board.agree()


def test_the_boards_that_are_drawn_have_everything() -> None:
    """Or nothing would be tried."""
    seen: set[str] = set()
    for seed in SEEDS:
        board = Board(seed)
        board.draw()
        reached = board.oracle.reached()
        seen |= {line.split(" ")[0] for line in board.oracle.lines(board.now).values()}
        seen |= {"cycle" for key, ways in reached.items() if key in ways}
        seen |= {"gone" for fields in board.oracle.documents.values() if _is_gone(board, fields.get("depends-on", []))}
    assert seen == {"", "resolved", "blocked", "waiting", "after", "held", "cycle", "gone"}


def _is_gone(board: Board, said: str | list[str]) -> bool:
    found = said.split(", ") if isinstance(said, str) else said
    return any(board.oracle.means(name) is None for name in found)


def test_a_way_of_its_own_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """A look that knows of no cycle, and one for which what is closed is still to be waited for."""
    board = Board(1)
    board.draw()
    board.agree()
    with monkeypatch.context() as patch:
        patch.setattr(readiness.Graph, "around", lambda *_: ())
        with pytest.raises(AssertionError):
            board.agree()
    with monkeypatch.context() as patch:
        patch.setattr(readiness.Graph, "_is_open", lambda *_: True)
        with pytest.raises(AssertionError):
            board.agree()
