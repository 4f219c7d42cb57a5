"""The daily log: what is told, once; by whom and on which day; who may read it, and how it is paged."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from mycelium.board.v1 import events_pb2, service_pb2, views_pb2
from mycelium.memory.v1 import events_pb2 as memory_pb2
from mycelium.memory.v1 import views_pb2 as memory_views_pb2
from mycelium.rooms.v1 import events_pb2 as rooms_pb2
from mycelium_board import notices, queries_log
from mycelium_board.model import OF_ITSELF
from mycelium_board.service import PROJECTION
from mycelium_kernel import clock, names, subjects
from mycelium_kernel.callers import RoomRow
from mycelium_kernel.errors import Refusal
from mycelium_kernel.sweeping import Sweeper
from services.board.tests.hub import START, moving, rebuilt
from services.board.tests.logged import WHAT, Logged

KEY = "work/ship-passkey-login"


@pytest.fixture
def board() -> Logged:
    """With nothing in it."""
    return Logged()


def test_messages_of_a_member_are_one_entry_a_day_with_their_number(board: Logged) -> None:
    """With the time of the last one; an event is said as a message is."""
    for minutes in (0, 5, 50):
        board.post(at=START + timedelta(minutes=minutes))
    board.post("builder", message_type="event", kind="concern")
    board.later(hours=1)
    day = board.read().days[0]
    assert [(entry.by, entry.count, entry.time) for entry in day.entries] == [
        ("sec", 3, "12:50"),
        ("builder", 1, "12:00"),
    ]
    assert (day.date, day.counts.total, day.counts.messages) == ("2026-01-05", 4, 4)


def test_what_tells_of_something_else_is_not_told_again(board: Logged) -> None:
    """Notices, changes, amendments, deliveries, and what engines keep among the messages for themselves."""
    message = board.post()
    board.post("", message_type="notice", kind="filed")
    board.post("sec", message_type="change", kind="written")
    board.post("sec", message_type="prompt")
    amended = rooms_pb2.MessageAmended(room_id=board.room_id, message_id=message, content="hello again")
    board.append(subjects.posts(board.room_id), amended)
    offered = rooms_pb2.DeliveryOffered(room_id=board.room_id, queue="sec", message_id=message)
    board.append(subjects.fact("rooms", board.room_id, "queue", "sec"), offered)
    assert board.told() == ["sec messages"]
    assert board.read().days[0].counts.total == 1


def test_documents_are_told_by_what_became_of_them(board: Logged) -> None:
    """Written, changed, removed; filed when they are tasks."""
    board.write("context/stack")
    board.later(minutes=1)
    board.write("context/stack", "builder", after=1)
    board.later(minutes=1)
    board.removed("context/stack", "avery")
    board.later(minutes=1)
    board.write(KEY)
    (day,) = board.read(since="today").days
    assert board.told() == [
        f"sec filed {KEY}", "avery removed context/stack", "builder changed context/stack", "sec written context/stack",
    ]  # fmt: skip
    assert {(entry.title, entry.thread) for entry in day.entries[1:]} == {
        ("About context/stack", board.thread("context/stack"))
    }
    assert (day.counts.total, day.counts.changes, day.counts.resolved) == (4, 4, 0)


def test_a_move_and_what_follows_from_it_in_the_document_are_one(board: Logged) -> None:
    """Under the name of who moved it, also when another move came before the document had the first."""
    board.write(KEY)
    moves = (moving(views_pb2.MOVE_BLOCKED, KEY, on="#502"), moving(views_pb2.MOVE_RESOLVED, KEY))
    places = []
    for move in moves:
        board.later(minutes=1)
        board.ask(move, "builder")
        places.append(len(board.facts))
    for number, place in enumerate(places):
        board.write(KEY, "builder", after=1 + number, moved=memory_views_pb2.Moved(sequence=place))
    assert board.told() == [f"builder resolved {KEY}", f"builder blocked {KEY}", f"sec filed {KEY}"]
    counts = board.read().days[0].counts
    assert (counts.total, counts.changes, counts.resolved) == (3, 2, 1)


def test_a_decision_is_told_with_its_answer(board: Logged) -> None:
    """Once, with what was answered; a task that was only resolved has none, nor has one that was brought closed."""
    decision = "decisions/ttl"
    board.write(decision)
    board.ask(moving(views_pb2.MOVE_ANSWERED, decision, answer="15m"), "builder")
    moved = memory_views_pb2.Moved(sequence=len(board.facts))
    board.write(decision, "builder", after=1, moved=moved)
    board.write(KEY)
    board.ask(moving(views_pb2.MOVE_RESOLVED, KEY), "builder")
    brought = memory_views_pb2.Moved(sequence=1, move="answered", by="sec", at=clock.to_timestamp(board.now))
    content = memory_views_pb2.Content(fields_json='{"answer": ["a", "b"], "status": "resolved"}')
    event = memory_pb2.DocumentWritten(room_id=board.room_id, room="demo", key="decisions/old", version=2)
    event.MergeFrom(
        memory_pb2.DocumentWritten(content=content, moved=brought, updated_at=brought.at, created_at=brought.at)
    )
    event.origin, event.replaced.version = memory_views_pb2.ORIGIN_IMPORT, 1
    board.append(board.document("decisions/old"), event)
    entries = [entry for day in board.read().days for entry in day.entries]
    told = {entry.key: (entry.answer, entry.outcome) for entry in entries if WHAT[entry.what] != "filed"}
    assert told == {decision: ("15m", ""), KEY: ("", ""), "decisions/old": ('["a", "b"]', "")}


def test_a_claim_is_nothing_that_was_done_unless_it_changes_the_document(board: Logged) -> None:
    """Neither are its renewal and its release; of a blocked task it says that it goes on."""
    board.write(KEY)
    board.claim(KEY)
    board.renew(KEY)
    board.release(KEY)
    assert board.told() == [f"sec filed {KEY}"]
    board.ask(moving(views_pb2.MOVE_BLOCKED, KEY, on="#502"))
    board.claim(KEY, "builder")
    board.write(KEY, "builder", after=1, moved=memory_views_pb2.Moved(sequence=len(board.facts)))
    assert sorted(board.told()) == [f"builder unblocked {KEY}", f"sec blocked {KEY}", f"sec filed {KEY}"]


def test_an_edit_that_the_board_tells_as_a_move_is_that_move(board: Logged) -> None:
    """Filed, closed by hand, assigned, removed: one entry each, at the time of the edit."""
    board.edited(views_pb2.MOVE_FILED, KEY, board.write(KEY))
    board.later(minutes=1)
    closed = board.write(KEY, "builder", after=1)
    board.later(minutes=1)
    assert board.told() == [f"builder changed {KEY}", f"sec filed {KEY}"]
    board.edited(views_pb2.MOVE_ASSIGNED, KEY, closed, "builder")
    board.edited(views_pb2.MOVE_RESOLVED, KEY, closed, "builder")
    assert board.told() == [f"builder resolved {KEY}", f"sec filed {KEY}"]
    assert board.read().days[0].entries[0].time == "12:01"
    assert board.read().days[0].counts.resolved == 1
    board.removed(KEY)
    board.edited(views_pb2.MOVE_REMOVED, KEY, len(board.facts))
    assert board.told()[0] == f"sec removed {KEY}"
    assert len(board.told()) == 3


def test_what_the_hub_does_itself_has_no_name_and_is_not_told(board: Logged) -> None:
    """Neither the end of a concern nor the change of its document, in whoever's name that has to be made."""
    board.write(KEY)
    event = events_pb2.TaskMoved(room_id=board.room_id, key=KEY, move=views_pb2.MOVE_EXPIRED, fields_json="{}")
    event.at.CopyFrom(clock.to_timestamp(board.now))
    place = board.append(board.task_subject(KEY), event)
    board.write(KEY, "avery", after=1, moved=memory_views_pb2.Moved(sequence=place))
    assert board.told() == [f"sec filed {KEY}"]
    assert board.read().days[0].counts.total == 1


def test_a_key_that_only_looks_like_a_moves_hides_nothing(board: Logged) -> None:
    """Whoever writes chooses the key of the request."""
    board.write(KEY, command="move-1")
    board.write("context/stack", command="move-2")
    assert len(board.told()) == 2


@pytest.mark.parametrize("is_removal_first", [True, False])
def test_a_renaming_by_hand_is_one_thing(board: Logged, is_removal_first: bool) -> None:
    """Told as a removal and a new document, whichever is seen first. A removal later on is another thing."""
    board.write("context/old")
    board.later(minutes=1)
    if is_removal_first:
        board.removed("context/old")
    board.write("context/new", moved_from="context/old")
    if not is_removal_first:
        board.removed("context/old")
    assert board.told() == ["sec renamed context/new", "sec written context/old"]
    board.later(days=1)
    board.write("context/old")
    board.removed("context/old")
    assert sorted(board.told(since="today")) == ["sec removed context/old", "sec written context/old"]


def test_what_was_brought_from_another_hub_is_told_at_its_own_time(board: Logged) -> None:
    """Messages and documents of a room that was exported years ago; each once."""
    long_ago = datetime(2024, 2, 29, 23, 30, tzinfo=UTC)
    board.post(at=long_ago)
    now, board.now = board.now, long_ago
    board.write("context/stack", origin=memory_views_pb2.ORIGIN_IMPORT)
    board.write("context/stack", after=1, origin=memory_views_pb2.ORIGIN_IMPORT, command="")
    board.now = now
    assert board.told() == []
    assert len(board.told(day="2024-02-29")) == 3
    assert len(board.told(day="2024-03-01", zone="Asia/Kathmandu")) == 3


def test_people_and_agents_stand_side_by_side(board: Logged) -> None:
    """Those who did most first; what is asked of one member is theirs alone, streaks too."""
    for _ in range(6):
        board.post("builder")
    board.write(KEY, "avery")
    board.resolve(KEY, "builder")
    (day,) = board.read(since="today").days
    assert [(one.handle, one.counts.total, one.counts.messages) for one in day.people] == [
        ("builder", 7, 6),
        ("avery", 1, 0),
    ]
    page = board.read(since="today", by="@Avery")
    assert [entry.by for entry in page.days[0].entries] == ["avery"]
    assert (page.by, page.days[0].counts.total, page.streak.current, page.calendar[-1].total) == ("avery", 1, 0, 1)
    page = board.read(since="today")
    assert (page.streak.current, page.own_streak.current, page.target) == (1, 0, 5)
    assert not board.read("").HasField("own_streak")


def test_a_handle_that_nobody_has_is_no_empty_log(board: Logged) -> None:
    """Of a member it is empty, of somebody who has left it is what they did."""
    board.post("gone")
    assert board.told(by="gone") == ["gone messages"]
    assert board.told(by="builder") == []
    with pytest.raises(Refusal) as caught:
        board.read(by="bulider")
    assert (caught.value.slug, caught.value.extras["near"]) == ("member.not_found", ["builder"])
    assert caught.value.detail == "@bulider is not in 'demo', and did nothing there; did you mean @builder?"
    with pytest.raises(Refusal, match="can't be a handle"):
        board.read(by="No body")


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ({"zone": "Mars/Olympus"}, "tz is 'Mars/Olympus'"),
        ({"week": True, "day": "2026-01-05"}, "week and day are two periods"),
        ({"before": "yesterday"}, "before is 'yesterday': use `next` of the page before"),
        ({"before": "2026-13-05T00:00:00.000Z~1"}, "before is"),
    ],
)
def test_what_can_not_be_read_is_refused_in_a_line(board: Logged, wanted: dict[str, Any], said: str) -> None:
    """Zones, periods, places."""
    with pytest.raises(Refusal) as caught:
        board.read(**wanted)
    assert caught.value.slug == "request.invalid"
    assert said in caught.value.detail
    assert "\n" not in caught.value.detail


def test_the_calendar_is_ten_weeks_up_to_today(board: Logged) -> None:
    """From a Monday on, whichever period is asked for."""
    board.post(at=START - timedelta(days=63))
    board.post(at=START - timedelta(days=64))
    calendar = board.read(day="2026-01-01").calendar
    assert START.weekday() == 0
    assert (calendar[0].date, calendar[0].total, calendar[-1].date, len(calendar)) == (
        "2025-11-03",
        1,
        "2026-01-05",
        64,
    )


def test_a_private_rooms_log_is_its_members_alone() -> None:
    """A stranger is told what is told of a room that there is not."""
    board = Logged(private=True)
    board.post()
    assert board.read("sec").days[0].counts.total == 1
    for stranger in ("kim", ""):
        with pytest.raises(Refusal, match="Room not found: 'demo'"):
            board.read(stranger)


def test_a_deleted_room_leaves_nothing(board: Logged) -> None:
    """Neither rows that count nor rows that don't, once they are swept."""
    board.post()
    board.write(KEY)
    board.append(subjects.room_name(names.fold_room_name("demo")), rooms_pb2.RoomDeleted(room_id=board.room_id))
    board.post()
    board.write("context/stack")
    assert board.tables.dump()["log_count"] == board.tables.dump()["log_entry"] == []
    sweeper = Sweeper(PROJECTION, board.tables)
    while sweeper.step():
        pass
    for table in ("log_count", "log_entry"):
        assert board.tables.all(f"SELECT * FROM {table}") == []


def test_a_page_ends_and_the_next_goes_on_in_the_same_day(board: Logged, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every entry is on one page; how much a day has is told on each."""
    monkeypatch.setattr(queries_log, "PAGE_BYTES", 2_000)
    for number in range(60):
        board.now = START - timedelta(hours=number)
        board.write(f"context/{number:02}")
        board.post("builder")
    board.now = START
    whole: list[str] = []
    place, pages = "", 0
    totals: dict[str, int] = {}
    while True:
        page = board.read(since="7d", before=place)
        pages += 1
        assert page.ByteSize() < 7_000
        whole += [f"{day.date} {entry.by} {entry.key}" for day in page.days for entry in day.entries]
        for day in page.days:
            assert totals.setdefault(day.date, day.counts.total) == day.counts.total
        if not page.next:
            break
        place = page.next
    assert pages > 5
    assert len(whole) == len(set(whole)) == 60 + 3
    assert len(totals) == 7
    assert sum(totals.values()) == 120


def test_a_page_after_the_end_of_a_day_begins_with_the_day_before(board: Logged) -> None:
    """What was left of a day may have gone to its top meanwhile: the messages of a member stand at the last of them."""
    board.write("context/stack")
    end = queries_log.Place(clock.millis(board.now), len(board.facts))
    place = queries_log.cursor(end, RoomRow(board.room_id, "demo"), "")
    assert [day.date for day in board.read(since="2d", before=place).days] == ["2026-01-04"]


def test_a_million_messages_are_few_rows(board: Logged) -> None:
    """As many as there are quarters of an hour in which a member said something."""
    for number in range(3_000):
        board.post(("sec", "builder")[number % 2], at=START + timedelta(seconds=number))
    assert len(board.tables.dump()["log_count"]) == 8
    assert sum(row[3] for row in board.tables.dump()["log_count"]) == 3_000


def test_tables_are_the_same_from_zero(board: Logged) -> None:
    """After each fact of every kind that the log looks at: applied to the tables before it, or read with all others."""
    board.post()
    board.post("builder")
    board.post("sec", at=START - timedelta(days=1))
    first = board.write(KEY)
    board.edited(views_pb2.MOVE_FILED, KEY, first)
    board.edited(views_pb2.MOVE_RESOLVED, KEY, board.write(KEY, after=1))
    board.write("work/other")
    board.ask(moving(views_pb2.MOVE_BLOCKED, "work/other", on="#502"))
    board.write("work/other", after=1, moved=memory_views_pb2.Moved(sequence=len(board.facts)))
    board.resolve("work/other", "builder")
    board.removed("work/other")
    board.write("context/one")
    board.write("context/two", moved_from="context/one")
    board.removed("context/one")
    board.removed("context/two")
    board.write("context/three", moved_from="context/two")
    for count in range(1, len(board.facts) + 1):
        tables = rebuilt(board.facts[: count - 1])
        board.applier.apply(tables, board.facts[count - 1])
        assert tables.dump() == rebuilt(board.facts[:count]).dump()
    assert board.tables.dump() == rebuilt(board.facts).dump()


def test_a_place_is_one_of_the_same_log(board: Logged) -> None:
    """One of another member's log, or one that was damaged, is refused in a line: else entries would be left out."""
    board.write(KEY)
    end = queries_log.Place(clock.millis(board.now), len(board.facts))
    place = queries_log.cursor(end, RoomRow(board.room_id, "demo"), "")
    board.read(before=place)
    for fields in ({"before": f"{place}0"}, {"before": place.replace("~", "~1", 1)}, {"before": place, "by": "sec"}):
        with pytest.raises(Refusal, match="of the same room and --by"):
            board.read(**fields)


def test_a_removal_says_where_the_task_went(board: Logged) -> None:
    """When its file was renamed by hand; otherwise nothing."""
    board.write("work/old")
    board.write("work/new", moved_from="work/old")
    board.removed("work/old")
    board.removed("work/new")
    sql = "SELECT sequence, document_id, key, blocked_by FROM edit WHERE move = ? ORDER BY sequence"
    rows = board.tables.all(sql, views_pb2.MOVE_REMOVED)
    assert [row[2:] for row in rows] == [("work/old", "renamed to work/new"), ("work/new", "")]
    sequence, document_id, *_ = rows[0]
    request = service_pb2.RecordEditRequest(
        room_id=board.room_id, document_id=document_id, edit=sequence, move=views_pb2.MOVE_REMOVED
    )
    assert board.ask(request, OF_ITSELF.handle).recorded
    moved = events_pb2.TaskMoved.FromString(board.facts[-1].data)
    assert notices.line(moved) == "@sec removed work/old — About work/old · renamed to work/new"
