"""The notices of one task: what who waits for it is shown, from where on, and what that costs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mycelium.rooms.v1 import leases_pb2, notices_pb2, service_pb2
from mycelium_rooms.queries_leases import WAKING
from services.rooms.tests.hub import Hub, demo_hub

THREAD = "01900000-0000-7000-8000-00000000abcd"
OTHER = "01900000-0000-7000-8000-00000000abce"
NOT_WAKING = ("filed", "blocked", "floor")


@pytest.fixture
def demo() -> Hub:
    return demo_hub()


def tell(hub: Hub, move: Any, kind: str = "released", thread: str = THREAD, **fields: Any) -> str:
    """A notice of the board; returns the id of its message."""
    row = hub.tables.one("SELECT room_id FROM room WHERE name = 'demo'")
    assert row
    told = {"task": "work/x", "kind": kind, "thread": thread, "by": "avery", "sequence": move, "title": "x"}
    request = notices_pb2.PostNoticeRequest(
        room_id=row[0], message_type="notice", kind=kind, sender_handle="avery", content=f"x: {kind}",
        metadata_json=json.dumps(told), **fields,
    )  # fmt: skip
    return str(hub.ask(request).message_id)


def find(hub: Hub, since: int = 0, after: int = 0, handle: str = "engineer") -> leases_pb2.FindNoticeResponse:
    request = leases_pb2.FindNoticeRequest(room="demo", thread=THREAD, since=since, after=after)
    found: leases_pb2.FindNoticeResponse = hub.ask(request, handle)
    return found


def test_the_next_move_of_the_task_is_found(demo: Hub) -> None:
    """After the place that was said, whatever was done before, and to other tasks."""
    assert not find(demo).HasField("message")
    first, second, last = (len(demo.facts) + number for number in range(3))
    tell(demo, first, "claimed")
    tell(demo, first, thread=OTHER)
    wanted = tell(demo, second)
    tell(demo, last, "resolved")
    found = find(demo, since=first)
    assert (found.message.id, found.move, found.message.message_type) == (wanted, second, "notice")
    assert find(demo, since=second).move == last
    assert not find(demo, since=last).HasField("message")


def test_two_moves_that_were_told_the_other_way_round_are_both_found(demo: Hub) -> None:
    """Two replicas of the board may: the second wait looks behind the notice that it had, of the same moves."""
    early, late = len(demo.facts), len(demo.facts) + 1
    demo.post("between")
    tell(demo, late)
    tell(demo, early, "claimed")
    first = find(demo, since=early - 1)
    second = find(demo, since=early - 1, after=first.message.sequence)
    assert (first.move, second.move) == (late, early)
    assert not find(demo, since=early - 1, after=second.message.sequence).HasField("message")


@pytest.mark.parametrize("kind", [*WAKING, *NOT_WAKING])
def test_only_what_lets_the_task_change_hands_is_found(demo: Hub, kind: str) -> None:
    """That it was filed or is blocked does not."""
    tell(demo, 3, kind)
    assert find(demo).HasField("message") == (kind in WAKING)


@pytest.mark.parametrize("move", [10**6, "3", 2.5, 10**30, None])
def test_a_notice_that_a_bundle_brought_wakes_nobody(demo: Hub, move: Any) -> None:
    """It tells of a place in another log, or of none."""
    tell(demo, move)
    assert not find(demo).HasField("message")


def test_a_notice_without_metadata_stands_in_nobodys_way(demo: Hub) -> None:
    """It is stored and shown like any other."""
    row = demo.tables.one("SELECT room_id FROM room WHERE name = 'demo'")
    assert row
    demo.ask(notices_pb2.PostNoticeRequest(room_id=row[0], message_type="notice", kind="filed", content="x"))
    assert not find(demo).HasField("message")
    assert demo.ask(service_pb2.ListMessagesRequest(room="demo"), "avery").messages[0].message_type == "notice"


def test_who_may_not_wait_there_is_refused(demo: Hub) -> None:
    """Nobody, somebody who is not registered, and a stranger to a private room."""
    request = leases_pb2.FindNoticeRequest(room="demo", thread=THREAD)
    demo.refused("handle.missing", request)
    demo.refused("handle.unregistered", request, "ghost")
    demo.ask(service_pb2.ChangeRoomRequest(room="demo", private=True), "avery")
    demo.refused("room.not_found", request, "ghost")
    assert not find(demo).HasField("message")


def test_many_notices_of_other_tasks_cost_a_wait_nothing(demo: Hub) -> None:
    """Nor those of the same task from before, counted by SQLite's own steps."""
    for number in range(300):
        tell(demo, number + 1)
        tell(demo, number + 1, thread=OTHER)
    last = len(demo.facts)
    assert demo.cost(lambda: find(demo, since=last)) < 1_000
