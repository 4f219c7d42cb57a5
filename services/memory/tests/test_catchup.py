"""What has changed in a room's memory, since its synthesis or a moment."""

from __future__ import annotations

import json
from typing import Any

from mycelium.memory.v1 import catchup_pb2 as pb
from mycelium_kernel import clock
from mycelium_memory import queries_catchup
from services.memory.tests.hub import Hub


def caught_up(hub: Hub, handle: str = "avery", **fields: Any) -> pb.CatchUpResponse:
    """What the service answers."""
    found: pb.CatchUpResponse = hub.ask(pb.CatchUpRequest(room="demo", **fields), handle)
    return found


def told(found: pb.CatchUpResponse) -> list[tuple[str, int, str, bool]]:
    """What there is to tell of each."""
    return [(one.key, one.version, one.updated_by, one.removed) for one in found.documents]


def test_without_a_synthesis_it_is_the_last_week(demo: Hub) -> None:
    """And the answer says so; what is older is not told."""
    demo.write("notes/old", "x")
    demo.later(days=7, seconds=1)
    demo.write("notes/new", "New.\n\nAnd more", by="kim")
    found = caught_up(demo)

    assert told(found) == [("notes/new", 1, "kim", False)]
    assert found.documents[0].summary == "New. And more"
    assert found.since_what == pb.SINCE_WHAT_LAST_DAYS
    assert not found.HasField("synthesis")
    assert clock.to_millis(found.since) == round((demo.now.timestamp() - 7 * 86_400) * 1000)


def test_with_a_synthesis_it_is_what_changed_since(demo: Hub) -> None:
    """Each document once, the last change first, as it is now; a removal says who; the synthesis is no change."""
    demo.write("status/early", "x")
    demo.write("failed/x", "x")
    demo.later(days=30)
    demo.write("context/Synthesis", "what we know", by="summarizer")
    demo.later(seconds=1)
    demo.write("status/api", "one")
    demo.later(seconds=1)
    demo.remove("failed/x", by="kim")
    demo.later(seconds=1)
    thread = demo.write("status/api", "two", by="engineer").thread
    found = caught_up(demo)

    assert told(found) == [("status/api", 2, "engineer", False), ("failed/x", 2, "kim", True)]
    assert (found.documents[0].summary, found.documents[0].thread) == ("two", thread)
    assert (found.since_what, found.more, found.cut) == (pb.SINCE_WHAT_SYNTHESIS, False, False)
    assert (found.synthesis.content.body, found.synthesis.updated_by) == ("what we know", "summarizer")
    assert found.since == found.synthesis.updated_at


def test_a_document_without_text_is_told_by_its_title(demo: Hub) -> None:
    """A task that has but a title; lists and versions show it, too. With a text, the text is shown."""
    demo.write("work/ship", "", fields_json='{"title": "Ship  passkey\\nlogin", "status": "open"}')
    demo.write("work/plain", " \n", fields_json='{"status": "open"}')
    demo.write("work/number", "", fields_json='{"title": 502}')
    found = caught_up(demo)

    assert {one.key: one.summary for one in found.documents} == {
        "work/ship": "Ship passkey login", "work/plain": "", "work/number": "502",
    }  # fmt: skip
    assert [one.summary for one in demo.versions("work/ship")] == ["Ship passkey login"]
    demo.write("work/ship", "by Friday")
    assert demo.get("work/ship").summary == "by Friday"


def test_a_moment_may_be_asked_for(demo: Hub) -> None:
    """The synthesis is shown beside it; a time that is none is refused."""
    demo.write("a", "x")
    demo.later(hours=3)
    demo.write("b", "x")
    demo.write("context/synthesis", "all")
    assert told(caught_up(demo, since="2h")) == [("b", 1, "avery", False)]
    assert [one.key for one in caught_up(demo, since="today").documents] == ["b", "a"]
    assert caught_up(demo, since="1d").since_what == pb.SINCE_WHAT_ASKED
    assert caught_up(demo, since="1d").synthesis.content.body == "all"
    refusal = demo.refused("request.invalid", pb.CatchUpRequest(room="demo", since="soon"))
    assert refusal.detail.startswith("since is 'soon': use a time such as ")


def test_the_answer_is_bounded(demo: Hub) -> None:
    """So many changes, so much of a synthesis; it says that there is more."""
    for number in range(queries_catchup.CHANGES + 1):
        demo.write(f"notes/{number}", "x")
    assert len(caught_up(demo).documents) == queries_catchup.CHANGES
    assert caught_up(demo).more
    assert not caught_up(demo, limit=queries_catchup.CHANGES + 1).more
    demo.refused("request.invalid", pb.CatchUpRequest(room="demo", limit=queries_catchup.CHANGES_MOST + 1))

    demo.write("context/synthesis", "[[a]] " * 900 + "x" * queries_catchup.TEXT_CHARACTERS)
    found = caught_up(demo)
    assert found.cut
    assert len(found.synthesis.content.body) == queries_catchup.TEXT_CHARACTERS
    assert not found.synthesis.content.links
    demo.write("context/synthesis", value_json=json.dumps({"known": "x" * queries_catchup.TEXT_CHARACTERS}))
    found = caught_up(demo)
    assert found.cut
    assert found.synthesis.content.body.startswith('{"known"')
    assert not found.synthesis.content.value_json


def test_a_removed_synthesis_is_none(demo: Hub) -> None:
    """It is neither shown nor counted as a change."""
    demo.write("context/synthesis", "all")
    demo.remove("context/synthesis")
    found = caught_up(demo)
    assert (found.since_what, told(found)) == (pb.SINCE_WHAT_LAST_DAYS, [])
    assert not found.HasField("synthesis")


def test_a_private_room_is_none_to_a_stranger(demo: Hub) -> None:
    """Its changes are told to its members alone."""
    demo.room("board-only", private=True)
    request = pb.CatchUpRequest(room="board-only")
    demo.refused("room.not_found", request, "eve")
    assert not demo.ask(request).documents


def test_the_changes_are_found_by_an_index(demo: Hub) -> None:
    """A room of many documents costs what is shown of it."""
    plan = demo.tables.all(f"EXPLAIN QUERY PLAN {queries_catchup.NEWEST}", "r", 0, "x", 20)
    assert "document_changed" in plan[0][3]
    assert not any("TEMP B-TREE FOR ORDER BY" in row[3] for row in plan)
