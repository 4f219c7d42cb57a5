"""Why a task can't be begun: the one answer that rows, claims, `board ready` and the end of waiting go by.

A task waits for the open tasks that its `depends-on` names. A task that is a part of another makes nobody wait. Where
waiting leads back to where it began, through parts too, nobody of that cycle waits for another of it: they would wait
for ever. Only open tasks are looked at, and of them those that are reached from the one that is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from datetime import datetime

from mycelium.board.v1 import views_pb2
from mycelium_board import lookup
from mycelium_board.edges import DEPENDS_ON, PART_OF
from mycelium_board.model import CLOSED, Task
from mycelium_kernel import clock
from mycelium_kernel.tables import Tables

READY, DONE, BLOCKED, WAITING, HELD = "", "closed", "blocked", "waiting", "held"
NAMED = 3  # keys in one line
PARTS = 500  # keys of parts that are shown of one task
Next = Callable[[Task], list[Task]]


@dataclass(frozen=True)
class Why:
    """Why a task is not ready: the reason in one word, empty when it is; and the same in one line.

    `waits_for` and `cycle` are said of every open task, whatever the reason is.
    """

    reason: str
    waits_for: tuple[str, ...] = ()
    cycle: tuple[str, ...] = ()
    line: str = ""


def why_not_ready(tables: Tables, room_id: str, task: Task, now: datetime, graph: Graph | None = None) -> Why:
    """Why nobody can begin with a task at this moment. `graph`: what was found out for others of the same answer."""
    sql = "SELECT holder, expires_at FROM claim WHERE room_id = ? AND document_id = ? AND expires_at > ?"
    held = tables.one(sql, room_id, task.document_id, clock.millis(now)) or ("", 0)
    return judge(graph or Graph(tables, room_id), task, *held)


def judge(graph: Graph, task: Task, holder: str, expires_at: int) -> Why:
    """The same, of a task whose holder and the end of whose claim are known."""
    if task.is_closed:
        return Why(DONE, line=task.status)
    waits_for, cycle = graph.waiting(task)
    if task.is_blocked:
        line = f"waiting on {task.blocked_by}" if task.blocked_by else "blocked"
        return Why(BLOCKED, waits_for, cycle, line)
    if waits_for:
        more = f" and {len(waits_for) - NAMED} more" if len(waits_for) > NAMED else ""
        return Why(WAITING, waits_for, cycle, f"after {', '.join(waits_for[:NAMED])}{more}")
    if holder:
        return Why(HELD, waits_for, cycle, f"held by @{holder} until {clock.rfc3339(expires_at)}")
    return Why(READY, waits_for, cycle)


def waited(tables: Tables, room_id: str, task: Task, closed: int) -> list[Task]:
    """The open tasks that waited for one that was closed, or removed, at that place in the log."""
    graph = Graph(tables, room_id, as_open={task.document_id})
    found = graph.dependents(task, closed)
    return [one for one in found if task.document_id not in graph.around(one)]


def fill(graph: Graph, row: views_pb2.Row) -> None:
    """Say in a row whether it is ready, why not, and which tasks it has to do with."""
    task = Task(
        lookup.document_of(row.key), row.key, row.thread, row.title, row.status, row.kind, row.assignee, row.blocked_by
    )
    why = judge(graph, task, row.holder, clock.to_millis(row.expires_at) if row.holder else 0)
    row.ready, row.reason = why.reason == READY, why.line
    row.waits_for.extend(why.waits_for)
    row.cycle.extend(why.cycle)
    parent = graph.parent(task)
    row.parent = parent.key if parent else ""
    row.parts.extend(part.key for part in graph.parts(task)[:PARTS])


class Graph:
    """What the tasks of one room have to do with each other, as far as somebody has asked; for one answer.

    `as_open`: documents of tasks that are taken for open, though they are closed by now.
    """

    def __init__(self, tables: Tables, room_id: str, as_open: Collection[str] = ()) -> None:
        self._tables, self._room_id, self._as_open = tables, room_id, as_open
        self._named: dict[str, Task | None] = {}
        self._onward: dict[str, list[Task]] = {}
        self._back: dict[str, list[Task]] = {}

    def waiting(self, task: Task) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The keys of what an open task waits for, and those of the cycle that it is in."""
        around = self.around(task)
        waits_for = tuple(one.key for one in self.needed(task) if one.document_id not in around)
        return waits_for, self._cycle(task, around) if around else ()

    def needed(self, task: Task) -> list[Task]:
        """The open tasks that its document names as those it depends on."""
        found = (self.named(target) for target in self._targets(task, DEPENDS_ON))
        return _once(one for one in found if one and self._is_open(one))

    def parent(self, task: Task) -> Task | None:
        """The task that it is a part of, if that is there."""
        return next((self.named(target) for target in self._targets(task, PART_OF)), None)

    def parts(self, task: Task) -> list[Task]:
        """The tasks that are a part of it, by key."""
        return sorted(self._naming(task, PART_OF), key=lambda part: part.key)

    def dependents(self, task: Task, before: int) -> list[Task]:
        """The open tasks that depend on it since before a place in the log."""
        return [one for one in self._naming(task, DEPENDS_ON, before) if self._is_open(one)]

    def around(self, task: Task) -> Collection[str]:
        """The documents of those from which waiting leads to a task and to which it leads from it; without it, none.

        Two searches go side by side, onward and back: the one that ends first has seen enough, and whole boards hang
        on one task in one direction only.
        """
        onward, back = _Search(self.onward), _Search(self.back)
        if not back.look(task) or not onward.look(task):
            return ()
        while onward.waiting and back.waiting:
            back.step()
            onward.step()
        over, other = (onward, self.back) if not onward.waiting else (back, self.onward)
        if task.document_id not in over.seen:
            return ()
        within = _Search(other, over.seen)
        within.look(task)
        while within.waiting:
            within.step()
        return within.seen

    def onward(self, task: Task) -> list[Task]:
        """What it needs, and the open tasks that are its parts."""
        known = self._onward.get(task.document_id)
        if known is None:
            parts = [part for part in self.parts(task) if self._is_open(part)]
            known = self._onward[task.document_id] = _once([*self.needed(task), *parts])
        return known

    def back(self, task: Task) -> list[Task]:
        """The open tasks that need it, and the one that it is a part of."""
        known = self._back.get(task.document_id)
        if known is None:
            parent = self.parent(task)
            above = [parent] if parent and self._is_open(parent) else []
            needing = [one for one in self._naming(task, DEPENDS_ON) if self._is_open(one)]
            known = self._back[task.document_id] = _once([*above, *needing])
        return known

    def named(self, target: str) -> Task | None:
        """The task that a document means by a name."""
        if target not in self._named:
            found = lookup.named(self._tables, self._room_id, target)
            self._named[target] = found[0] if found else None
        return self._named[target]

    def _cycle(self, task: Task, around: Collection[str]) -> tuple[str, ...]:
        """The shortest way from a task back to itself, without its end."""
        came_from: dict[str, Task] = {}
        waiting = [task]
        while task.document_id not in came_from:
            reached: list[Task] = []
            for one in waiting:
                for other in self.onward(one):
                    if other.document_id in around and other.document_id not in came_from:
                        came_from[other.document_id] = one
                        reached.append(other)
            waiting = reached
        way = [came_from[task.document_id]]
        while way[-1].document_id != task.document_id:
            way.append(came_from[way[-1].document_id])
        return tuple(one.key for one in reversed(way))

    def _targets(self, task: Task, field: str) -> list[str]:
        sql = "SELECT target FROM edge WHERE room_id = ? AND document_id = ? AND field = ? ORDER BY number"
        return [row[0] for row in self._tables.all(sql, self._room_id, task.document_id, field)]

    def _naming(self, task: Task, field: str, before: int = 2**63 - 1) -> list[Task]:
        """The tasks whose documents mean this one in a field."""
        sql = f"""SELECT DISTINCT {lookup.COLUMNS}, target FROM edge JOIN task USING (room_id, document_id)
          WHERE room_id = ? AND field = ? AND target IN (?, ?, ?, ?) AND since < ? ORDER BY key"""  # noqa: S608
        found = self._tables.all(sql, self._room_id, field, *lookup.names_of(task), before)
        return _once(Task(*row) for *row, target in found if self._means(target, task))

    def _means(self, target: str, task: Task) -> bool:
        """Whether a name is this task's; one that is gone had all its names."""
        meant = self.named(target)
        return meant is None or meant.document_id == task.document_id or task.document_id in self._as_open

    def _is_open(self, task: Task) -> bool:
        return task.status not in CLOSED or task.document_id in self._as_open


class _Search:
    """The tasks that are reached from one, step by step; within some, when that is said.

    The one that it begins at counts as reached only when a way leads back to it.
    """

    def __init__(self, next_: Next, within: Collection[str] | None = None) -> None:
        self.seen: set[str] = set()
        self.waiting: list[Task] = []
        self._next, self._within = next_, within

    def look(self, task: Task) -> bool:
        """Note what comes right after a task; whether there is anything to look at."""
        for one in self._next(task):
            if one.document_id not in self.seen and (self._within is None or one.document_id in self._within):
                self.seen.add(one.document_id)
                self.waiting.append(one)
        return bool(self.waiting)

    def step(self) -> None:
        """One task further."""
        self.look(self.waiting.pop())


def _once(tasks: Iterable[Task]) -> list[Task]:
    return list({task.document_id: task for task in tasks}.values())
