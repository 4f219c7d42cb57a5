"""Documents as files: what is shown is what is read back; edits by hand become versions, and nothing is lost."""

from __future__ import annotations

import json

import pytest

from mycelium.memory.v1 import files_pb2, views_pb2
from mycelium.memory.v1 import service_pb2 as pb
from services.memory.tests.hub import Hub

BY_HAND = "filesystem"


def raw(hub: Hub, key: str) -> str:
    """The text of a document's file."""
    return str(hub.ask(pb.GetDocumentRequest(room="demo", key=key, as_file=True)).file)


def take(hub: Hub, key: str, file: str | None = None, **fields: object) -> files_pb2.TakeFileResponse:
    """A file as it was found; None: it is gone."""
    (room_id,) = hub.tables.one("SELECT room_id FROM room WHERE name = 'demo'") or ("",)
    request = files_pb2.TakeFileRequest(room_id=room_id, key=key, file=file, **fields)  # type: ignore[arg-type]
    answer: files_pb2.TakeFileResponse = hub.ask(request, BY_HAND)
    return answer


def test_a_file_says_everything_and_is_read_back_without_a_change(demo: Hub) -> None:
    """The hub's fields first, then the user's as they are; a value on a line of its own."""
    demo.write(
        "work/api", "# API\n\ntext", tags=["a b", "2"], expandable=True, fields_json='{"title": "Re: plan: 2", "n": 1}'
    )
    text = raw(demo, "work/api")
    assert text.splitlines()[:3] == ["---", "key: work/api", "version: 1"]
    assert text.endswith("---\n\n# API\n\ntext\n")
    assert "timestamp: 2026-01-05T12:00:00.000Z" in text
    answer = take(demo, "work/api", text, seen=1)
    assert (answer.version, answer.changed, answer.conflicted) == (1, False, False)
    demo.write("v", value_json='{"choice": "REST", "n": [1, null]}')
    assert 'value: {"choice": "REST", "n": [1, null]}' in raw(demo, "v")
    assert not take(demo, "v", raw(demo, "v")).changed


def test_a_version_has_its_own_file(demo: Hub) -> None:
    """As it was, with the version that it was."""
    demo.write("a", "one")
    demo.write("a", "two")
    request = pb.GetVersionRequest(room="demo", key="a", version=1, as_file=True)
    assert "version: 1\n" in demo.ask(request).file
    assert demo.ask(request).file.endswith("\none\n")


def test_an_edit_by_hand_is_a_version_that_says_so(demo: Hub) -> None:
    """Text, the user's fields with their comments, tags; what the hub's fields say is not believed."""
    first = demo.write("work/api", "one", fields_json='{"status": "open"}')
    edited = raw(demo, "work/api").replace("one", "two").replace("status: open", "status: done  # at last\ntags: [x]")
    edited = edited.replace("version: 1", "version: 9").replace("created_by: avery", "created_by: kim")
    assert take(demo, "work/api", edited, seen=1).version == 2
    shown = demo.get("work/api")
    assert (shown.content.body, shown.updated_by, shown.created_by) == ("two", BY_HAND, "avery")
    assert (shown.thread, list(shown.content.tags)) == (first.thread, ["x"])
    assert json.loads(shown.content.fields_json) == {"status": "done"}
    assert "# at last" in raw(demo, "work/api")
    assert demo.versions("work/api")[0].origin == views_pb2.ORIGIN_FILE
    later = demo.write("work/api", fields_json='{"owner": "kim"}')
    assert "# at last" in later.content.fields_yaml


def test_a_new_file_is_a_document(demo: Hub) -> None:
    """With a thread from its first write; a plain text has no fields; one that was moved says from where."""
    assert take(demo, "notes/new", "just text\n", moved_from="notes/old").changed
    shown = demo.get("notes/new")
    assert (shown.content.body, shown.created_by, shown.thread != "") == ("just text", BY_HAND, True)
    assert demo.versions("notes/new")[0].moved_from == "notes/old"


def test_an_edit_that_meets_a_write_keeps_both(demo: Hub) -> None:
    """The file's text is the newer version, the other can be read, and the answer says that they met."""
    demo.write("a", "base")
    demo.write("a", "by call", by="kim")
    answer = take(demo, "a", "by hand\n", seen=1)
    assert (answer.version, answer.changed, answer.conflicted) == (3, True, True)
    assert (demo.get("a").content.body, demo.was("a", version=2).content.body) == ("by hand", "by call")
    assert demo.get("a").updated_by == BY_HAND
    demo.write("a", "settled")
    assert [version.conflicted for version in demo.versions("a")] == [False, True, False, False]


def test_a_file_that_is_gone_removes_what_was_in_it_and_no_more(demo: Hub) -> None:
    """What was written since stays, and is told."""
    demo.write("a", "one")
    demo.write("a", "two")
    answer = take(demo, "a", seen=1)
    assert (answer.version, answer.changed, answer.conflicted) == (2, False, True)
    assert take(demo, "a", seen=2).version == 3
    demo.refused("memory.not_found", pb.GetDocumentRequest(room="demo", key="a"))
    assert demo.versions("a")[0].updated_by == BY_HAND
    assert not take(demo, "a", seen=2).changed
    assert take(demo, "never").version == 0


@pytest.mark.parametrize(
    ("slug", "key", "file"),
    [
        ("memory.file_invalid", "a", "---\na: [\n---\ntext\n"),
        ("memory.file_invalid", "a", "---\na: 1\na: 2\n---\ntext\n"),
        ("memory.file_invalid", "a", "---\nvalue: 1\n---\ntext\n"),
        ("memory.file_invalid", "a", "---\na: " + "x" * 65536 + "\n---\n"),
        ("memory.tag_invalid", "a", "---\ntags: " + json.dumps([str(n) for n in range(101)]) + "\n---\n"),
        ("content.too_large", "a", "x" * (512 * 1024 + 1)),
        ("content.invalid", "a", "a\0b"),
        ("memory.key_invalid", "../a", "text"),
        ("memory.key_taken", "Notes", "text"),
        ("room.not_found", "a", "text"),
    ],
)
def test_a_file_that_is_no_document_is_refused(demo: Hub, slug: str, key: str, file: str) -> None:
    """With the reason, and nothing is written."""
    demo.write("notes", "x")
    (room_id,) = demo.tables.one("SELECT room_id FROM room") or ("",)
    if slug == "room.not_found":
        room_id = demo.new_id()
    before = len(demo.facts)
    demo.refused(slug, files_pb2.TakeFileRequest(room_id=room_id, key=key, file=file), BY_HAND)
    assert len(demo.facts) == before
