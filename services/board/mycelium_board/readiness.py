"""Why a task can't be begun: the one answer that rows, claims, `board ready` and the end of waiting go by.

A task waits for the open tasks that its `depends-on` names. A task that is a part of another makes nobody wait. Where
waiting leads back to where it began, through parts too, nobody of that cycle waits for another of it: they would wait
for ever. Only open tasks are looked at, and of them those that are reached from the one that is asked for; so many at
most for one answer: in a tangle that is larger than that nobody is excused. A status that is a word of the room's own
is a stage that only the room knows: nobody is told to begin such a task.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

from mycelium.board.v1 import views_pb2
from mycelium_board import lookup
from mycelium_board.edges import DEPENDS_ON, PART_OF
from mycelium_board.model import BEGUN, CLOSED, REVIEW, Task
from mycelium_board.tangles import Tangles
from mycelium_kernel import clock
from mycelium_kernel.tables import Tables

READY, DONE, BLOCKED, WAITING, HELD, STAGE = "", "closed", "blocked", "waiting", "held", "stage"
NAMED = 3  # keys in one line
CYCLE = 20  # keys of a cycle that are shown
PARTS = 500  # keys of parts that are shown of one task
MOST_WORK = 40_000  # links that are looked at for one answer; what takes longer counts for several
STATEMENT, LIGHT = 4, 8  # links that take as long as one statement; keys of a cycle that take as long as one link


@dataclass(frozen=True)
class Why:
    """Why a task is not ready: the reason in one word, empty when it is; and the same in one line.

    `waits_for` and `cycle` are said of every open task, whatever the reason is.
    """

    reason: str
    waits_for: tuple[str, ...] = ()
    cycle: tuple[str, ...] = ()
    line: str = ""
    cycle_more: int = 0  # how many of the cycle are not named


def why_not_ready(tables: Tables, room_id: str, task: Task, now: datetime, graph: Graph | None = None) -> Why:
    """Why nobody can begin with a task at this moment. `graph`: what was found out for others of the same answer."""
    sql = "SELECT holder, expires_at FROM claim WHERE room_id = ? AND document_id = ? AND expires_at > ?"
    held = tables.one(sql, room_id, task.document_id, clock.millis(now)) or ("", 0)
    return judge(graph or Graph(tables, room_id), task, *held)


def judge(graph: Graph, task: Task, holder: str, expires_at: int) -> Why:
    """The same, of a task whose holder and the end of whose claim are known."""
    if task.is_closed:
        return Why(DONE, line=task.status)
    waits_for, whole = graph.waiting(task)
    cycle, more_around = whole[:CYCLE], len(whole[CYCLE:])
    if task.is_blocked:
        line = f"waiting on {task.blocked_by}" if task.blocked_by else "blocked"
        return Why(BLOCKED, waits_for, cycle, line, more_around)
    if waits_for:
        more = f" and {len(waits_for) - NAMED} more" if len(waits_for) > NAMED else ""
        return Why(WAITING, waits_for, cycle, f"after {', '.join(waits_for[:NAMED])}{more}", more_around)
    if holder:
        return Why(HELD, waits_for, cycle, f"held by @{holder} until {clock.rfc3339(expires_at)}", more_around)
    if task.status not in BEGUN:
        line = "in review" if task.status == REVIEW else f"its status is {task.status}"
        return Why(STAGE, waits_for, cycle, line, more_around)
    return Why(READY, waits_for, cycle, "", more_around)


def waited(tables: Tables, room_id: str, task: Task, closed: int) -> list[Task]:
    """The open tasks that waited for one that was closed, or removed, at that place in the log."""
    graph = Graph(tables, room_id, as_open={task.document_id})
    around = graph.around(task)
    return [one for one in graph.dependents(task, closed) if one.document_id not in around]


def fill(graph: Graph, row: views_pb2.Row) -> None:
    """Say in a row whether it is ready, why not, and which tasks it has to do with."""
    task = Task(
        lookup.document_of(row.key), row.key, row.thread, row.title, row.status, row.kind, row.assignee, row.blocked_by
    )
    why = judge(graph, task, row.holder, clock.to_millis(row.expires_at) if row.holder else 0)
    row.ready, row.reason = why.reason == READY, why.line
    row.waits_for.extend(why.waits_for)
    row.cycle.extend(why.cycle)
    row.cycle_more = why.cycle_more
    parent = graph.parent(task)
    row.parent = parent.key if parent else ""
    row.parts.extend(part.key for part in graph.parts(task))


class Graph:
    """What the tasks of one room have to do with each other, as far as somebody has asked; for one answer.

    `as_open`: documents of tasks that are taken for open, though they are closed by now.
    """

    def __init__(self, tables: Tables, room_id: str, as_open: Collection[str] = ()) -> None:
        self._tables, self._room_id, self._as_open = tables, room_id, as_open
        self._named: dict[str, Task | None] = {}
        self._written: dict[tuple[str, str], list[str]] = {}
        self._of: dict[str, Task | None] = {}
        self._met: dict[str, Task] = {}
        self._work = 0
        self._tangles = Tangles(self._onward, self._back, lambda: self.is_spent)

    @property
    def is_spent(self) -> bool:
        """Whether so much was looked at that this answer has to end."""
        return self._work > MOST_WORK

    def waiting(self, task: Task) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The keys of what an open task waits for, and those of the cycle that it is in."""
        around = self.around(task)
        waits_for = tuple(one.key for one in self.needed(task) if one.document_id not in around)
        return waits_for, self._cycle(task) if around else ()

    def needed(self, task: Task) -> list[Task]:
        """The open tasks that its document names as those it depends on."""
        return _once(self._needed(task))

    def parent(self, task: Task) -> Task | None:
        """The task that it is a part of, if that is there."""
        return next((self.named(target) for target in self._targets(task, PART_OF)), None)

    def parts(self, task: Task) -> list[Task]:
        """The tasks that are a part of it, by key; so many as are shown."""
        return sorted(islice(self._naming(task, PART_OF), PARTS), key=lambda part: part.key)

    def dependents(self, task: Task, before: int) -> list[Task]:
        """The open tasks that depend on it since before a place in the log, by key."""
        found = _once(one for one in self._naming(task, DEPENDS_ON, before) if self._is_open(one))
        return sorted(found, key=lambda one: one.key)

    def around(self, task: Task) -> Collection[str]:
        """The documents of those from which waiting leads to a task and to which it leads from it; without it, none."""
        self._met[task.document_id] = task
        return self._tangles.of(task.document_id).within

    def _onward(self, document_id: str) -> Iterator[str]:
        """What it needs, and the open tasks that are its parts."""
        task = self._met[document_id]
        yield from self._meet(self._needed(task))
        yield from self._meet(self._naming(task, PART_OF))

    def _back(self, document_id: str) -> Iterator[str]:
        """The open tasks that need it, and the one that it is a part of."""
        task = self._met[document_id]
        parent = self.parent(task)
        yield from self._meet([parent] if parent else [])
        yield from self._meet(self._naming(task, DEPENDS_ON))

    def _meet(self, tasks: Iterable[Task]) -> Iterator[str]:
        """The documents of those that are open, while more may be looked at."""
        self._work += STATEMENT
        for task in tasks:
            if self.is_spent:
                return
            if self._is_open(task):
                self._met[task.document_id] = task
                yield task.document_id

    def _needed(self, task: Task) -> Iterator[Task]:
        for target in self._targets(task, DEPENDS_ON):
            self._work += 1
            found = self.named(target)
            if found and self._is_open(found):
                yield found

    def named(self, target: str) -> Task | None:
        """The task that a document means by a name."""
        if target not in self._named:
            self._work += STATEMENT
            found = lookup.named(self._tables, self._room_id, target)
            self._named[target] = found[0] if found else None
        return self._named[target]

    def _cycle(self, task: Task) -> tuple[str, ...]:
        """The keys of a cycle that it is in, from itself on."""
        found = self._tangles.of(task.document_id).cycle(task.document_id)
        self._work += len(found) // LIGHT
        return tuple(self._met[one].key for one in found)

    def _targets(self, task: Task, field: str) -> list[str]:
        """The names that its document has in a field."""
        known = self._written.get((task.document_id, field))
        if known is None:
            sql = "SELECT target FROM edge WHERE room_id = ? AND document_id = ? AND field = ? ORDER BY number"
            known = [row[0] for row in self._tables.all(sql, self._room_id, task.document_id, field)]
            self._written[task.document_id, field] = known
        return known

    def _naming(self, task: Task, field: str, before: int = 2**63 - 1) -> Iterator[Task]:
        """The tasks whose documents mean this one in a field; one may come twice."""
        sql = """SELECT document_id, target FROM edge INDEXED BY edge_target
          WHERE room_id = ? AND field = ? AND target IN (?, ?, ?, ?) AND since < ?"""
        for document_id, target in self._tables.iterate(sql, self._room_id, field, *lookup.names_of(task), before):
            self._work += 1
            if self._means(target, task) and (found := self._task(document_id)):
                yield found

    def _task(self, document_id: str) -> Task | None:
        if document_id not in self._of:
            self._of[document_id] = lookup.by_document(self._tables, self._room_id, document_id)
        return self._of[document_id]

    def _means(self, target: str, task: Task) -> bool:
        """Whether a name is this task's; one that is gone had all its names."""
        meant = self.named(target)
        return meant is None or meant.document_id == task.document_id or task.document_id in self._as_open

    def _is_open(self, task: Task) -> bool:
        return task.status not in CLOSED or task.document_id in self._as_open


def _once(tasks: Iterable[Task]) -> list[Task]:
    return list({task.document_id: task for task in tasks}.values())
