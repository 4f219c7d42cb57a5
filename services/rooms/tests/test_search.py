"""Search by words: what is a word, what is quoted, what stays in step; filters, places and pages of history."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mycelium.rooms.v1 import service_pb2 as pb
from mycelium_kernel.errors import Refusal
from mycelium_kernel.tables import LAST_SEQUENCE, Tables
from mycelium_rooms import queries_history, search
from mycelium_rooms.model import RoomRow
from services.rooms.tests.hub import Hub, demo_hub, rebuilt, words_of

THREAD = "0190aaaa-0000-7000-8000-00000000beef"


def listed(hub: Hub, **fields: Any) -> list[str]:
    return [message.content for message in hub.ask(pb.ListMessagesRequest(room="demo", **fields), "avery").messages]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("redis", True), ("REDIS store", True), ("store redis", True), ("sess", False), ("redis nothing", False),
        ('"session store"', True), ('"store session"', False), ('"session', True), ("café", True), ("CAFE", True),
        ("it's", True), ("org/repo#48", True), ("fix: -x", True), ("a AND b", False), ("NOT redis", False),
        ("redis*", True), ("content:redis", False), ("^redis", True), ("部署", True), ("署部", False), ("速", True),
    ],
)  # fmt: skip
def test_a_text_is_found_by_its_words_and_phrases(demo: Hub, query: str, found: bool) -> None:
    """Whatever their case, accents and order; signs of the index's own language are plain signs."""
    demo.post("Moved the session store to Redis: it's in the Café, org/repo#48, fix -x 快速部署。")
    assert bool(listed(demo, query=query)) is found


@pytest.mark.parametrize("query", ["!!!", '""', "🎉", "-", " ", "\0", "x" * 501, "a " * 21])
def test_a_query_without_words_or_with_too_many_is_refused(demo: Hub, query: str) -> None:
    """Not answered with everything, or nothing."""
    assert demo.refused("request.invalid", pb.ListMessagesRequest(room="demo", query=query)).detail.startswith("q ")


@given(st.text(min_size=1, max_size=40))
def test_any_query_is_answered_or_refused(query: str) -> None:
    """Nothing that is typed reaches the index as its language."""
    hub = demo_hub()
    hub.post("hello")
    refusal = None
    try:
        listed(hub, query=query)
    except Refusal as caught:
        refusal = caught
    assert refusal is None or refusal.slug == "request.invalid"


@given(st.lists(st.sampled_from(["alpha", "beta", "gamma", "δέλτα"]), min_size=1, max_size=4).map(" ".join))
def test_every_text_is_found_by_each_of_its_words(text: str) -> None:
    """Law: and by all of them, and by itself as a phrase."""
    hub = demo_hub()
    hub.post(text)
    for query in (*text.split(), text, f'"{text}"'):
        assert listed(hub, query=query) == [text]


def test_the_index_follows_amendments(demo: Hub) -> None:
    """The old words are not found any more."""
    message = demo.post("the TTL is 30s 缓存").id
    demo.ask(pb.AmendMessageRequest(room="demo", message=message, content="the limit is 300s"), "avery")
    assert (listed(demo, query="TTL"), listed(demo, query="缓存"), len(listed(demo, query="limit"))) == ([], [], 1)


def test_the_index_forgets_a_deleted_room(demo: Hub) -> None:
    """And nothing of its neighbour."""
    demo.room("other")
    demo.post("shared word", room="other")
    demo.post("shared word")
    demo.ask(pb.DeleteRoomRequest(room="other"), "avery")
    demo.sweep()
    assert len({row[1] for row in words_of(demo.tables)}) == 1
    assert listed(demo, query="shared") == ["shared word"]


def test_search_stays_in_its_room_and_place(demo: Hub) -> None:
    """The channel by default, one thread, or all; by sender and kind."""
    demo.room("other")
    demo.post("word elsewhere", room="other")
    demo.post("word channel")
    demo.post("word thread", thread=THREAD)
    demo.post("word engineer", "engineer")
    demo.post("word event", message_type="event", metadata_json=json.dumps({"kind": "note"}))
    assert listed(demo, query="word") == ["word event", "word engineer", "word channel"]
    assert listed(demo, query="word", thread=THREAD) == ["word thread"]
    assert listed(demo, query="word", all=True) == ["word event", "word engineer", "word thread", "word channel"]
    assert listed(demo, query="word", sender="@Engineer") == ["word engineer"]
    assert listed(demo, query="word", kind="note") == ["word event"]
    assert listed(demo, query="word", kind="not") == []


def test_history_is_filtered_by_sender_and_read_everywhere(demo: Hub) -> None:
    """Handles with signs in them too."""
    demo.post("a", "dot.ted-x_1")
    demo.post("b", "dot.ted-x_1", thread=THREAD)
    demo.post("c")
    assert listed(demo, sender="dot.ted-x_1") == ["a"]
    assert listed(demo, sender="dot.ted-x_1", all=True) == ["b", "a"]
    assert listed(demo, all=True) == ["c", "b", "a"]
    assert listed(demo, sender="dot.ted", all=True) == []
    demo.refused("handle.invalid", pb.ListMessagesRequest(room="demo", sender="no handle"))


def test_pages_of_a_search_are_stable(demo: Hub) -> None:
    """A new hit does not shift them."""
    for number in range(7):
        demo.post(f"hit {number}")
        demo.post("miss")
    read, cursor = [], ""
    while True:
        page = demo.ask(pb.ListMessagesRequest(room="demo", query="hit", limit=3, before=cursor))
        read += [message.content for message in page.messages]
        demo.post("hit new")
        cursor = page.older_before
        if not cursor:
            break
    assert read == [f"hit {number}" for number in reversed(range(7))]


def test_a_page_that_finds_little_says_where_to_go_on(demo: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    """It looks at so many messages and no more."""
    monkeypatch.setattr(queries_history, "LOOKED_AT", 10)
    first = demo.post("old", message_type="event", metadata_json='{"kind": "action"}', thread=THREAD)
    for number in range(25):
        demo.post(f"{number}", message_type="event", metadata_json='{"kind": "action"}')
    read: list[Any] = []
    cursor, pages = "", 0
    while True:
        request = pb.ListMessagesRequest(room="demo", kind="action", thread=THREAD, before=cursor)
        page = demo.ask(request)
        read, cursor, pages = [*read, *page.messages], page.older_before, pages + 1
        if not cursor:
            break
    assert (read, pages) == ([first], 3)


def test_earlier_texts_of_a_message_are_shown_on_demand(demo: Hub) -> None:
    """R3: the original first; nothing of it in the list."""
    message = demo.post("one").id
    for text in ("two", "three"):
        demo.later(seconds=1)
        demo.ask(pb.AmendMessageRequest(room="demo", message=message, content=text), "avery")
    answer = demo.ask(pb.GetMessageRequest(room="demo", message=message, history=True))
    assert [revision.content for revision in answer.history] == ["one", "two", "three"]
    assert answer.history[0].at == answer.message.created_at
    assert answer.history[2].at == answer.message.edited_at
    assert not demo.ask(pb.GetMessageRequest(room="demo", message=message)).history
    assert listed(demo) == ["three"]
    untouched = demo.ask(pb.GetMessageRequest(room="demo", message=demo.post("x").id, history=True))
    assert [revision.content for revision in untouched.history] == ["x"]


def test_of_very_many_texts_the_original_and_the_latest_are_shown(demo: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer has a size."""
    monkeypatch.setattr("mycelium_rooms.queries_messages.HISTORY_BYTES", 1_000)
    message = demo.post("first").id
    for number in range(50):
        demo.ask(pb.AmendMessageRequest(room="demo", message=message, content=f"{number}".rjust(100)), "avery")
    answer = demo.ask(pb.GetMessageRequest(room="demo", message=message, history=True))
    texts = [revision.content.strip() for revision in answer.history]
    assert (texts[0], texts[-1], 5 < len(texts) < 15) == ("first", "49", True)


# --- what each walk costs ---------------------------------------------------------------------------------------------


def wanted(walk: str) -> queries_history.Wanted:
    room = RoomRow("r", "r", private=False)
    filters: dict[str, dict[str, Any]] = {
        "place": {}, "room": {"everywhere": True}, "sender": {"sender": "a"}, "kind": {"kind": "k"},
        "status": {"status": "open"}, "expired": {"status": "expired"}, "words": {"phrases": ["x"]},
    }  # fmt: skip
    empty: dict[str, Any] = {"thread": "", "everywhere": False, "sender": "", "kind": "", "status": "", "phrases": []}
    found = queries_history.Wanted(room=room, **{**empty, **filters[walk]})
    assert found.walk == walk
    return found


def plan(tables: Tables, sql: str, *values: object) -> list[str]:
    return [row[3] for row in tables.all(f"EXPLAIN QUERY PLAN {sql}", *values)]


@pytest.mark.parametrize("walk", [*queries_history.WALKS, "words"])
def test_no_walk_reads_a_whole_room_or_sorts(demo: Hub, walk: str) -> None:
    """R3: it goes down one index from its end, so that a page of a million messages costs what one of a few does."""
    sql, values = queries_history.statement(wanted(walk), LAST_SEQUENCE, 0, 0)
    steps = plan(demo.tables, sql, *values)
    assert not [step for step in steps if "TEMP B-TREE" in step], steps
    assert not [step for step in steps if step.startswith("SCAN message") and "VIRTUAL TABLE" not in step], steps
    if walk != "words":
        assert "USING" in steps[0]
        assert "sequence" in steps[0] or "rowid" in steps[0], steps


def test_a_common_word_in_a_large_room_is_found_without_reading_it_all(demo: Hub) -> None:
    """The newest hits come first and the rest is not read: counted by SQLite's own steps."""
    room_id = demo.ask(pb.GetRoomRequest(room="demo")).room.id
    demo.tables.execute(
        """WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 50000)
           INSERT INTO message SELECT 1000 + i, ?, printf('0190aaaa-0000-7000-8000-%012x', i), 'avery',
             CASE i % 10000 WHEN 0 THEN 'common rare' ELSE 'common' END,
             'message', '', '', '', x'', i, 0, i, '', '', 0, '' FROM n""",
        room_id,
    )
    assert cost(demo, query="common") < 20_000
    assert cost(demo, query="common rare") < 20_000
    assert cost(demo, query="common", sender="engineer") < 20_000
    assert cost(demo, sender="avery", all=True) < 20_000
    assert cost(demo) < 20_000
    assert cost(demo, since="2026-01-01T00:00:00Z") < 20_000
    assert len(listed(demo, query="rare")) == 5


def cost(hub: Hub, **fields: Any) -> int:
    return hub.cost(lambda: listed(hub, **fields))


def test_a_rebuilt_index_has_the_same_words(demo: Hub) -> None:
    """Promise 8, for the index."""
    message = demo.post("one two 三四").id
    demo.ask(pb.AmendMessageRequest(room="demo", message=message, content="two three"), "avery")
    assert words_of(rebuilt(demo.facts)) == words_of(demo.tables)


def test_ideographs_are_words_of_their_own() -> None:
    """Other texts go into the index as they are."""
    assert search.words("plain text") == ""
    assert search.words("部署x").split() == ["部", "署", "x"]
