"""Reading history: pages, times, ages, cursors; receipts; the feed for a watcher's gap."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mycelium.rooms.v1 import events_pb2
from mycelium.rooms.v1 import service_pb2 as pb
from mycelium_kernel import clock, events, subjects
from mycelium_kernel.errors import Refusal
from mycelium_kernel.tables import KEPT_FACTS
from mycelium_rooms import times
from services.rooms.tests.hub import START, Hub, demo_hub

THREAD = "0190aaaa-0000-7000-8000-00000000beef"


def page(hub: Hub, **fields: Any) -> tuple[list[str], str]:
    answer = hub.ask(pb.ListMessagesRequest(room="demo", **fields))
    return [message.content for message in answer.messages], answer.older_before


def test_history_is_newest_first_in_pages_that_a_new_message_does_not_shift(demo: Hub) -> None:
    """Also when many share a millisecond."""
    for number in range(7):
        demo.post(str(number))
    first, cursor = page(demo, limit=3)
    assert cursor == f"2026-01-05T12:00:00.000Z~{demo.ask(pb.ListMessagesRequest(room='demo')).messages[2].sequence}"
    demo.post("new")
    second, cursor = page(demo, limit=3, before=cursor)
    third, end = page(demo, limit=3, before=cursor)
    assert (first, second, third, end) == (["6", "5", "4"], ["3", "2", "1"], ["0"], "")


def test_the_channel_and_each_thread_are_read_by_themselves(demo: Hub) -> None:
    """By full or short id of the thread."""
    demo.post("channel")
    demo.post("thread", thread=THREAD)
    assert page(demo) == (["channel"], "")
    assert page(demo, thread="0000beef") == page(demo, thread=THREAD) == (["thread"], "")
    demo.refused("thread.not_found", pb.ListMessagesRequest(room="demo", thread="12345678"))


def test_a_window_of_time_is_read_by_ages_times_and_cursors(demo: Hub) -> None:
    """From `since` on, strictly older than `before`."""
    for minute in range(5):
        demo.post(str(minute))
        demo.later(minutes=1)
    assert page(demo, since="4m", before="2m")[0] == ["2", "1"]
    assert page(demo, since="2026-01-05T12:03:00Z")[0] == ["4", "3"]
    assert page(demo, before="2026-01-05T12:03:00.000+00:00")[0] == ["2", "1", "0"]
    assert page(demo, since="1d", before="today")[0] == []
    assert page(demo, since="today", limit=2) == (["4", "3"], page(demo, limit=2)[1])
    middle = demo.ask(pb.ListMessagesRequest(room="demo")).messages[2]
    cursor = times.cursor(clock.to_millis(middle.created_at), middle.sequence)
    assert page(demo, since=cursor)[0] == ["4", "3", "2"]
    assert page(demo, since=cursor, before=cursor) == ([], "")
    assert page(demo, since="2m", before="1h") == ([], "")


def test_nothing_older_in_the_window_is_no_cursor(demo: Hub) -> None:
    """The cursor promises a message."""
    for minute in range(3):
        demo.post(str(minute))
        demo.later(minutes=1)
    assert page(demo, since="2m", limit=2) == (["2", "1"], "")
    assert page(demo, limit=2)[1] != ""


def test_order_is_that_of_the_log_also_when_clocks_differ(demo: Hub) -> None:
    """Promise 2: one order for every reader; times are cut where the order is."""
    demo.later(minutes=2)
    demo.post("ahead")
    demo.later(minutes=-1)
    demo.post("behind")
    demo.later(minutes=5)
    demo.post("later")
    assert page(demo)[0] == ["later", "behind", "ahead"]
    assert page(demo, before="2m")[0] == ["behind", "ahead"]
    assert page(demo, since="2026-01-05T12:02:00Z")[0] == ["later", "behind", "ahead"]


def test_a_page_ends_at_half_a_megabyte(demo: Hub) -> None:
    """But holds at least one message."""
    for number in range(3):
        demo.post(str(number) * 262_144)
    first, cursor = page(demo)
    assert [text[0] for text in first] == ["2"]
    assert [text[0] for text in page(demo, before=cursor)[0]] == ["1"]


@pytest.mark.parametrize("field", ["before", "since"])
@pytest.mark.parametrize(
    "text", ["tomorrow", "2x", "99999999999d", "999999999d", "2026-13-01", "x~1", "1~", "1~x", "1~" + "9" * 19]
)
def test_a_time_that_can_not_be_read_is_refused_with_the_forms(demo: Hub, field: str, text: str) -> None:
    """What was given, and what can be."""
    if text == "x~1":
        assert page(demo, **{field: text})[0] == []  # the sequence is what counts
        return
    refusal = demo.refused("request.invalid", pb.ListMessagesRequest(room="demo", **{field: text}))  # type: ignore[arg-type]
    assert refusal.detail.startswith(f"{field} is {text!r}: use a time such as")


def at(moment: str) -> datetime:
    return datetime.fromisoformat(moment)


@pytest.mark.parametrize(
    ("text", "now", "zone", "expected"),
    [
        ("today", "2026-01-05T12:00:00Z", "", "2026-01-05T00:00:00Z"),
        ("yesterday", "2026-01-05T12:00:00Z", "", "2026-01-04T00:00:00Z"),
        ("today", "2026-01-05T02:00:00Z", "America/New_York", "2026-01-04T05:00:00Z"),
        ("today", "2026-01-05T20:00:00Z", "Asia/Tokyo", "2026-01-05T15:00:00Z"),
        ("today", "2026-03-29T10:00:00Z", "Europe/Paris", "2026-03-28T23:00:00Z"),  # clocks go forward at 01:00Z
        ("today", "2026-10-25T10:00:00Z", "Europe/Paris", "2026-10-24T22:00:00Z"),  # and back
        ("yesterday", "2026-03-30T10:00:00Z", "Europe/Paris", "2026-03-28T23:00:00Z"),
        ("1d", "2026-03-29T10:00:00Z", "Europe/Paris", "2026-03-28T10:00:00Z"),
        ("2026-03-29T12:00:00", "2026-03-29T12:00:00Z", "Europe/Paris", "2026-03-29T10:00:00Z"),
        ("2026-03-29", "2026-03-29T12:00:00Z", "Europe/Paris", "2026-03-28T23:00:00Z"),
        ("2026-03-29T12:00:00+05:30", "2026-03-29T12:00:00Z", "Europe/Paris", "2026-03-29T06:30:00Z"),
        ("2026-03-29T12:00:00", "2026-03-29T12:00:00Z", "", "2026-03-29T12:00:00Z"),
    ],
)
def test_days_and_times_without_an_offset_are_those_of_the_zone(text: str, now: str, zone: str, expected: str) -> None:
    """Also on the days on which clocks change; an age is elapsed time."""
    place = times.place("since", text, at(now).astimezone(UTC), times.zone(zone))
    assert place == times.Place(0, round(at(expected).timestamp() * 1000))


def test_history_is_read_by_the_days_of_a_zone(demo: Hub) -> None:
    """The window of yesterday, as somebody in Tokyo sees it."""
    for hour in range(0, 48, 6):
        demo.post(str(hour))
        demo.later(hours=6)
    tokyo = page(demo, since="yesterday", before="today", zone="Asia/Tokyo")[0]
    assert tokyo == ["24", "18", "12", "6"]  # midnights at 15:00 UTC, three hours after noon
    assert page(demo, since="yesterday", before="today")[0] == ["30", "24", "18", "12"]


@pytest.mark.parametrize("zone", ["Europe/Nowhere", "../etc/passwd", "/etc/localtime", "Europe", "x" * 300, "a\0b"])
def test_an_unknown_zone_is_refused(demo: Hub, zone: str) -> None:
    """With what to write instead."""
    refusal = demo.refused("request.invalid", pb.ListMessagesRequest(room="demo", zone=zone))
    assert refusal.detail.endswith("use a name such as Europe/Paris or UTC")


def test_more_than_five_hundred_messages_a_page_are_refused(demo: Hub) -> None:
    """Zero means fifty."""
    demo.refused("request.invalid", pb.ListMessagesRequest(room="demo", limit=501))
    for number in range(52):
        demo.post(str(number))
    assert len(page(demo)[0]) == 50
    assert len(page(demo, limit=500)[0]) == 52


def test_names_are_those_of_now(demo: Hub) -> None:
    """A change of name applies to everything said before."""
    demo.post("hello")
    demo.user("avery", name="Avery Q.")
    assert demo.ask(pb.ListMessagesRequest(room="demo")).messages[0].sender_name == "Avery Q."


@given(st.integers(0, 4_000_000_000_000), st.integers(1, 10**18 - 1))
def test_a_cursor_is_read_as_the_place_it_was_made_of(millis: int, sequence: int) -> None:
    """Law: parse is the opposite of print."""
    assert times.place("before", times.cursor(millis, sequence), START) == times.Place(sequence, 0)
    assert times.place("before", clock.rfc3339(millis), START) == times.Place(0, millis)


@given(st.integers(1, 999), st.sampled_from("smhd"))
def test_an_age_is_counted_back_from_now(count: int, unit: str) -> None:
    """In whole seconds, minutes, hours or days."""
    seconds = count * {"s": 1, "m": 60, "h": 3600, "d": 86_400}[unit]
    expected = round((START - timedelta(seconds=seconds) - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() * 1000)
    assert times.place("since", f"{count}{unit}", START) == times.Place(0, expected)


@given(st.text(max_size=30))
def test_any_other_text_is_a_time_or_refused(text: str) -> None:
    """Never another error."""
    refusal = None
    try:
        times.place("since", text, START)
    except Refusal as caught:
        refusal = caught
    assert refusal is None or refusal.slug == "request.invalid"


@given(st.lists(st.integers(1, 3), min_size=1, max_size=12), st.integers(1, 4))
def test_the_pages_together_are_the_history(gaps: list[int], limit: int) -> None:
    """Law: no message twice, none missing, whatever the limit."""
    hub = demo_hub()
    for number, gap in enumerate(gaps):
        hub.later(milliseconds=gap - 1)
        hub.post(str(number))
    read, cursor = page(hub, limit=limit)
    while cursor:
        more, cursor = page(hub, limit=limit, before=cursor)
        read += more
    assert read == [str(number) for number in reversed(range(len(gaps)))]


# --- receipts and the feed --------------------------------------------------------------------------------------------


def test_receipts_say_how_far_each_delivery_has_come(demo: Hub) -> None:
    """R9: by handle and seat."""
    message = demo.post("@engineer @reviewer @engineer#2")
    demo.later(seconds=1)
    demo.receive("engineer", "s1")
    receipts = demo.ask(pb.ListReceiptsRequest(room="demo", message=message.id[-8:])).receipts
    assert [(receipt.handle, receipt.attempts, receipt.session) for receipt in receipts] == [
        ("engineer", 1, "s1"), ("engineer#2", 0, ""), ("reviewer", 0, ""),
    ]  # fmt: skip
    assert receipts[0].delivered_at == clock.to_timestamp(demo.now)
    assert not receipts[0].HasField("ended_at")
    assert not receipts[1].HasField("delivered_at")
    demo.refused("message.not_found", pb.ListReceiptsRequest(room="demo", message=THREAD))
    demo.refused("message.not_found", pb.GetMessageRequest(room="demo", message=THREAD))


def test_the_feed_gives_the_facts_of_rooms_in_order(demo: Hub) -> None:
    """From a place, up to a place, of these rooms only."""
    demo.room("other")
    demo.post("one")
    demo.post("elsewhere", room="other")
    demo.post("two")
    last = len(demo.facts)

    def feed(*rooms: str, **fields: Any) -> list[int]:
        return [fact.sequence for fact in demo.ask(pb.ReadFeedRequest(rooms=rooms, **fields)).facts]

    assert feed("demo", after=last - 3) == [last - 2, last]
    assert feed("demo", "other", after=last - 3) == [last - 2, last - 1, last]
    assert feed("demo", after=last - 3, until=last - 1) == [last - 2]
    assert feed() == feed("demo", after=2**64 - 1) == []
    assert feed("demo", after=last - 1, until=2**64 - 1) == [last]
    everything = demo.ask(pb.ReadFeedRequest(rooms=["demo"]))
    assert not everything.more
    assert everything.facts[0].type == events.type_name(events_pb2.RoomCreated)
    assert everything.facts[-1].data == demo.facts[-1].data
    demo.refused("room.not_found", pb.ReadFeedRequest(rooms=["demo", "nope"]))
    demo.refused("request.invalid", pb.ReadFeedRequest(rooms=["demo"] * 501))


def test_the_feed_says_when_it_does_not_go_back_far_enough(demo: Hub) -> None:
    """R9: a watcher that was away for a million facts is told that it has missed some; nobody else is."""
    demo.post("one")
    places = [fact.sequence for fact in demo.ask(pb.ReadFeedRequest(rooms=["demo"])).facts]
    begins = places[1] - 1
    demo.tables.position = KEPT_FACTS + begins
    for after, truncated in ((0, True), (begins - 1, True), (begins, False), (begins + 1, False)):
        answer = demo.ask(pb.ReadFeedRequest(rooms=["demo"], after=after))
        assert answer.truncated is truncated
        assert answer.facts[0].sequence == next(place for place in places if place > max(after, begins))


def test_the_feed_comes_in_pages(demo: Hub) -> None:
    """By count and by size; `more` says that there is more."""
    for number in range(60):
        demo.post(str(number))
    for number in range(3):
        demo.post(str(number) * 200_000)
    last = len(demo.facts)
    first = demo.ask(pb.ReadFeedRequest(rooms=["demo"], limit=2))
    assert (len(first.facts), first.more) == (2, True)
    read, after = 0, 0
    while True:
        answer = demo.ask(pb.ReadFeedRequest(rooms=["demo"], after=after))
        assert answer.ByteSize() < 600_000
        read, after = read + len(answer.facts), answer.facts[-1].sequence
        if not answer.more:
            break
    assert after == last
    assert read == sum(f".{subjects.HUB}." not in fact.subject for fact in demo.facts)  # all but the hub's own
