"""Rooms that have grown: a million messages page like ten, a hundred thousand unread ones cost a wake nothing."""

import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection
from statistics import median
from typing import Any

import pytest

from e2e import bundle
from e2e.harness import Hub
from e2e.requirements import requirement
from e2e.room import Room
from e2e.web import path

MESSAGES, UNREAD = 1_000_000, 100_000
TRIES = 30
# A page of a large room may take so much longer than one of a small room, and so many seconds whatever the small took.
FACTOR, FLOOR_S = 3.0, 0.02
BEGIN = datetime(2024, 1, 1, tzinfo=UTC)


def posts(count: int, to: str = "") -> Iterator[dict[str, Any]]:
    """So many messages, ten seconds apart, of seven senders."""
    for number in range(1, count + 1):
        at = BEGIN + timedelta(seconds=10 * number)
        word = "needle" if number % 100_000 == 5 else "hay"
        yield bundle.post(number, at, f"@sec {word} {number}" if to else f"{word} {number}", f"s{number % 7}", to)


def grown(hub: Hub, documents: Iterator[dict[str, Any]], room: str) -> None:
    """A room made of a bundle that is too large to be held: written to a file, and sent from it."""
    with tempfile.TemporaryFile() as file:
        file.writelines(bundle.sealed(documents))
        size = file.tell()
        file.seek(0)
        line = HTTPConnection(hub.api.host, hub.api.port, timeout=900)
        headers = {"Content-Length": str(size), "Content-Type": "application/x-ndjson", "Mycelium-Handle": "avery"}
        line.request("POST", path("rooms", "import", name=room), file, headers)
        answer = line.getresponse()
        assert answer.status == 201, answer.read()
        line.close()


def typical_s(ask: Callable[..., Any], *args: Any, **said: Any) -> float:
    """How long something takes, usually."""

    def once() -> float:
        begin_s = time.perf_counter()
        ask(*args, **said)
        return time.perf_counter() - begin_s

    once()
    return median(once() for _ in range(TRIES))


@pytest.mark.long
@pytest.mark.timeout(1800)
@requirement("messages:history:large")
def test_a_room_of_a_million_messages_pages_like_a_small_one(own_hub: Hub, own_room: Room) -> None:
    """At the newest end, in the middle, at the oldest; by time, sender, and words; while others post."""
    small, large = (Room(own_hub.api, own_room.machine, name) for name in ("small", "large"))
    for room, count in ((small, 1_000), (large, MESSAGES)):
        grown(own_hub, (row for rows in ([bundle.manifest(room.name)], posts(count)) for row in rows), room.name)
    middle = (BEGIN + timedelta(seconds=10 * MESSAGES // 2)).isoformat()
    asked: dict[str, dict[str, str]] = {
        "the newest": {},
        "the middle": {"before": middle},
        "the oldest": {"before": (BEGIN + timedelta(seconds=600)).isoformat()},
        "a sender": {"sender": "s3"},
        "words": {"q": "hay"},
        "rare words": {"q": "needle"},
        "everything": {"all": "true"},
    }
    assert large.page(limit=1)["items"][0]["content"] == f"hay {MESSAGES}"
    assert large.page(limit=1, before=middle)["items"][0]["content"] == f"hay {MESSAGES // 2 - 1}"
    assert len(large.found(q="needle")) == MESSAGES // 100_000
    slow = {}
    for what, query in asked.items():
        here, there = (typical_s(room.page, limit=50, **query) for room in (small, large))
        if there > max(FACTOR * here, FLOOR_S):
            slow[what] = f"{there * 1000:.1f} ms, {here * 1000:.1f} ms in a small room"
    assert not slow, slow
    posting = [typical_s(room.post, "now") for room in (small, large)]
    assert posting[1] <= max(FACTOR * posting[0], FLOOR_S), posting


@pytest.mark.long
@pytest.mark.timeout(900)
@requirement("await:unread")
def test_a_hundred_thousand_unread_messages_cost_a_wake_nothing(own_hub: Hub, own_room: Room) -> None:
    """The oldest comes first, with thirty at most before it; posting and counting are as quick as ever."""
    own_room.join("sec")
    own_room.post("@sec one")
    first, *facts, _ = bundle.lines(own_room.api.get(own_room.at("export"), handle="avery").ok(200).body)
    joined = [{**fact, "sequence": 0} for fact in facts if fact["type"].endswith("MemberSaved")]
    assert len(joined) == 1
    joined[0]["sequence"] = 1
    later = ({**row, "sequence": row["sequence"] + 1} for row in posts(UNREAD, to="sec"))
    grown(own_hub, (row for rows in ([first], joined, later) for row in rows), "busy")
    busy = Room(own_hub.api, own_room.machine, "busy")
    assert busy.member("sec")["unread"] == UNREAD
    turns = [busy.take("sec") for _ in range(40)]
    assert [turn and turn["message"]["content"] for turn in turns] == [
        f"@sec {'needle' if number == 5 else 'hay'} {number}" for number in range(1, 41)
    ]
    assert all(turn is None or len(turn["earlier"]) <= 30 for turn in turns)
    for _ in range(TRIES + 5):
        own_room.post("@sec another")
    quiet_s, busy_s = typical_s(own_room.take, "sec"), typical_s(busy.take, "sec")
    assert busy_s <= max(FACTOR * quiet_s, FLOOR_S), (busy_s, quiet_s)
    quiet_s, busy_s = (typical_s(room.post, "@sec more") for room in (own_room, busy))
    assert busy_s <= max(FACTOR * quiet_s, FLOOR_S), (busy_s, quiet_s)
    own_hub.restart()
    assert busy.take("sec", session="another") is not None
