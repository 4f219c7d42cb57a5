"""Documents: versions, expectations, what stays, what is refused, and how it was at another time."""

from __future__ import annotations

import json

import pytest

from mycelium.memory.v1 import service_pb2 as pb
from mycelium_kernel import clock
from mycelium_memory import commands_content
from services.memory.tests.hub import Hub


def test_each_write_is_a_version_that_says_what_it_replaced(demo: Hub) -> None:
    """Who wrote first stays known; the thread is the first version's; nothing was replaced by the first."""
    first = demo.write("decisions/storage", "folders")
    demo.later(minutes=1)
    second = demo.write("decisions/storage", "files", by="engineer")

    assert (first.version, first.HasField("replaced"), first.created_by) == (1, False, "avery")
    assert (second.version, second.created_by, second.updated_by) == (2, "avery", "engineer")
    assert (second.replaced.version, second.replaced.updated_by) == (1, "avery")
    assert second.replaced.updated_at == first.updated_at == second.created_at
    assert second.thread == first.thread != ""
    assert demo.get("decisions/storage").content.body == "files"


def test_a_write_that_expects_another_version_is_refused_and_told_what_is_there(demo: Hub) -> None:
    """Two writers from one base: the second learns the version and its author; nothing is lost."""
    base = demo.write("work/api", "base").version
    demo.write("work/api", "one", by="kim", expect=base)
    refusal = demo.refused("memory.stale", pb.WriteDocumentRequest(room="demo", key="work/api", body="b", expect=base))

    assert refusal.extras["version"] == ["2"]
    assert refusal.extras["updated_by"] == ["kim"]
    assert "version 2" in refusal.detail
    assert "@kim" in refusal.detail
    assert demo.get("work/api").content.body == "one"


def test_zero_expects_that_there_is_nothing(demo: Hub) -> None:
    """A create that must not replace; also after a removal, which leaves nothing."""
    assert demo.write("a", "x", expect=0).version == 1
    demo.refused("memory.stale", pb.WriteDocumentRequest(room="demo", key="a", body="y", expect=0))
    demo.remove("a")
    refusal = demo.refused("memory.stale", pb.WriteDocumentRequest(room="demo", key="a", body="y", expect=1))
    assert "@avery removed it (version 2)" in refusal.detail
    assert demo.write("a", "y", expect=0).version == 3


def test_a_removal_ends_a_document_and_keeps_its_versions_and_thread(demo: Hub) -> None:
    """The next write under the key goes on."""
    thread = demo.write("a", "one").thread
    demo.later(seconds=1)
    assert demo.remove("a", by="kim") == 2
    for request in (pb.GetDocumentRequest(room="demo", key="A"), pb.RemoveDocumentRequest(room="demo", key="a")):
        refusal = demo.refused("memory.not_found", request)
        assert refusal.detail == "@kim removed 'a' in 'demo' (version 2)"
        assert refusal.next == "mycelium memory history a --room demo"
    assert demo.was("a", version=1).content.body == "one"
    assert [(one.version, one.removed, one.updated_by) for one in demo.versions("a")] == [
        (2, True, "kim"), (1, False, "avery"),
    ]  # fmt: skip
    again = demo.write("a", "two", by="kim")
    assert (again.version, again.thread, again.created_by, again.HasField("replaced")) == (3, thread, "kim", False)


def test_a_removal_that_expects_another_version_is_refused(demo: Hub) -> None:
    """What somebody wrote meanwhile is not removed unread."""
    demo.write("a", "one")
    demo.write("a", "two", by="kim")
    demo.refused("memory.stale", pb.RemoveDocumentRequest(room="demo", key="a", expect=1))
    assert demo.remove("a", expect=2) == 3


def test_what_a_write_does_not_say_stays(demo: Hub) -> None:
    """Fields, tags and marks outlive a new text; null removes a field; no text keeps the text."""
    fields = json.dumps({"status": "open", "owner": "@julia", "n": 1.5})
    demo.write("work/api", "text", fields_json=fields, tags=["One", "two"], expandable=True, unsearched=True)
    kept = demo.write("work/api", "other").content
    assert json.loads(kept.fields_json) == json.loads(fields)
    assert (list(kept.tags), kept.expandable, kept.unsearched) == (["One", "two"], True, True)

    changed = demo.write("work/api", fields_json='{"status": "resolved", "owner": null}', tags=[]).content
    assert (changed.body, json.loads(changed.fields_json)) == ("other", {"status": "resolved", "n": 1.5})
    assert list(changed.tags) == []


def test_a_value_replaces_a_text_and_a_text_a_value(demo: Hub) -> None:
    """A document holds one of them."""
    demo.write("decision/api-style", "REST")
    held = demo.write("decision/api-style", value_json='{"choice": "REST", "n": [1, 2.0, null, true]}').content
    assert (held.body, json.loads(held.value_json)) == ("", {"choice": "REST", "n": [1, 2.0, None, True]})
    assert demo.get("decision/api-style").content == held
    assert demo.write("decision/api-style", "").content.value_json == ""


@pytest.mark.parametrize(
    ("slug", "fields"),
    [
        ("content.invalid", {"body": "a\0b"}),
        ("content.too_large", {"body": "x" * (512 * 1024 + 1)}),
        ("content.too_large", {"value_json": json.dumps(["x" * (512 * 1024)])}),
        ("request.invalid", {"value_json": "{"}),
        ("request.invalid", {"value_json": "NaN"}),
        ("request.invalid", {"value_json": "[" * 60 + "]" * 60}),
        ("request.invalid", {"body": "a", "value_json": "1"}),
        ("request.invalid", {"body": "a", "fields_json": "[]"}),
        ("memory.field_managed", {"body": "a", "fields_json": '{"version": 3}'}),
        ("memory.field_managed", {"body": "a", "fields_json": '{"thread": "x"}'}),
        ("memory.field_invalid", {"body": "a", "fields_json": '{"": 3}'}),
        ("memory.field_invalid", {"body": "a", "fields_json": '{"a\\nb": 3}'}),
        ("memory.field_invalid", {"body": "a", "fields_json": json.dumps({"a": "x" * 65536})}),
        ("memory.field_invalid", {"body": "a", "fields_json": json.dumps({"a": [1] * 1_000_000})}),
        ("memory.links_too_many", {"body": "[[a]]" * 1001}),
        ("memory.tag_invalid", {"body": "a", "tags": pb.Tags(tags=["a,b"])}),
        ("memory.tag_invalid", {"body": "a", "tags": pb.Tags(tags=[""])}),
        ("memory.tag_invalid", {"body": "a", "tags": pb.Tags(tags=[str(n) for n in range(101)])}),
        ("memory.key_invalid", {"key": "a//b", "body": "a"}),
        ("memory.key_invalid", {"key": "../a", "body": "a"}),
        ("memory.not_found", {"fields_json": '{"a": 1}'}),
        ("room.not_found", {"room": "nowhere", "body": "a"}),
    ],
)  # fmt: skip
def test_what_can_t_be_kept_is_refused_and_nothing_is_stored(demo: Hub, slug: str, fields: dict[str, object]) -> None:
    """Never dropped, never mended in silence."""
    before = len(demo.facts)
    request = pb.WriteDocumentRequest(**{"room": "demo", "key": "a", **fields})  # type: ignore[arg-type]
    demo.refused(slug, request)
    assert len(demo.facts) == before


def test_a_thread_is_found_by_its_document_s_key(demo: Hub) -> None:
    """Also without the prefix of what is filed as work, if only one is called so; not of one that was removed."""

    def thread(key: str) -> str:
        return str(demo.ask(pb.FindThreadRequest(room="demo", key=key)).thread)

    api, note = demo.write("work/api", "x").thread, demo.write("notes/api", "x").thread
    assert (thread("work/API"), thread("notes/api"), thread("api")) == (api, note, api)
    demo.write("failed/api", "x")
    refusal = demo.refused("id.ambiguous", pb.FindThreadRequest(room="demo", key="api"))
    assert refusal.extras["candidates"] == ["work/api", "failed/api"]
    demo.remove("notes/api")
    for key in ("notes/api", "nothing", "No Such/Key"):
        demo.refused("memory.not_found", pb.FindThreadRequest(room="demo", key=key))


def test_links_are_found_when_they_are_written(demo: Hub) -> None:
    """In the text and in the fields; a change of either finds them anew."""
    demo.write("a", "see [[b#part|there]] and `[[code]]`", fields_json='{"depends-on": "c"}')
    found = [(link.target, link.section, link.text, link.type) for link in demo.get("a").content.links]
    assert found == [("c", "", "", "depends-on"), ("b", "part", "there", "")]
    assert [link.target for link in demo.write("a", fields_json='{"depends-on": null}').content.links] == ["b"]


def test_at_the_limits_it_is_kept(demo: Hub) -> None:
    """512 KiB, 100 tags, 50 levels, 1,000 links."""
    assert len(demo.write("links", "[[a]] " * 1000).content.links) == 1000
    body, tags = "é" * (256 * 1024), [f"tag {n}" for n in range(100)]
    assert demo.write("a", body, tags=tags).content.body == body
    assert list(demo.get("a").content.tags) == tags
    value = "[" * commands_content.DEEPEST + "]" * commands_content.DEEPEST
    assert demo.write("b", value_json=value).content.value_json == value


def test_a_write_needs_somebody(demo: Hub) -> None:
    """Who wrote it is part of every version; registered need nobody be."""
    request = pb.WriteDocumentRequest(room="demo", key="a", body="x")
    demo.refused("handle.missing", request, "")
    assert demo.ask(request, "stranger").document.updated_by == "stranger"


def test_keys_that_a_disk_takes_for_one_never_overwrite_each_other(demo: Hub) -> None:
    """`Alpha` and `alpha`, `café` in two forms: the second is told of the first; once that is gone, it may come."""
    demo.write("Alpha", "one")
    refusal = demo.refused("memory.key_taken", pb.WriteDocumentRequest(room="demo", key="alpha", body="two"))
    assert refusal.extras["near"] == ["Alpha"]
    demo.write("café", "one")
    assert demo.write("cafe\u0301", "two").version == 2
    demo.remove("Alpha")
    assert demo.write("alpha", "two").key == demo.get("ALPHA").key == "alpha"


def test_a_document_is_read_as_it_was(demo: Hub) -> None:
    """By version and by time; never there yet, removed then, or unknown is said as that."""
    start = clock.rfc3339(clock.millis(demo.now))
    demo.later(hours=1)
    demo.write("a", "one")
    demo.later(hours=1)
    demo.write("a", value_json="[2]")
    demo.later(hours=1)
    demo.remove("a")
    demo.later(hours=1)

    assert demo.was("a", version=1).content.body == "one"
    assert demo.was("a", at="2h").content.value_json == "[2]"
    assert (demo.was("a", at="2h").version, demo.was("a", at="3h").version) == (2, 1)
    for which in ({"version": 3}, {"version": 4}, {"at": "1h"}, {"at": start}):
        demo.refused("memory.version_not_found", pb.GetVersionRequest(room="demo", key="a", **which))
    early = demo.refused("memory.version_not_found", pb.GetVersionRequest(room="demo", key="a", at=start))
    assert early.detail == f"'a' was not there at {start}: its first version is later"
    demo.refused("memory.not_found", pb.GetVersionRequest(room="demo", key="b", version=1))
    demo.refused("request.invalid", pb.GetVersionRequest(room="demo", key="a", at="soon"))


def test_time_never_goes_back_within_a_document(demo: Hub) -> None:
    """Two machines' clocks differ: what was written later was later."""
    first = demo.write("a", "one")
    demo.later(minutes=-5)
    assert demo.write("a", "two").updated_at == first.updated_at
    demo.later(minutes=4)
    assert demo.remove("a") == 3
    assert [one.updated_at for one in demo.versions("a")] == [first.updated_at] * 3


def test_a_room_is_listed_by_key_prefix_and_tag(demo: Hub) -> None:
    """`work/a` is not the beginning of a path but of a key; what was removed is not there."""
    for key in ("work/ab", "work/a", "Notes/B", "notes/a", "gone"):
        demo.write(key, key, tags=["Odd"] if "a" in key else [])
    demo.remove("gone")

    assert demo.listed() == ["notes/a", "Notes/B", "work/a", "work/ab"]
    assert demo.listed(prefix="work/") == demo.listed(prefix="WORK/a") == ["work/a", "work/ab"]
    assert demo.listed(prefix="work/a/") == []
    assert demo.listed(tag="odd") == ["notes/a", "work/a", "work/ab"]
    assert demo.listed(tag="odd", prefix="w") == ["work/a", "work/ab"]


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_a_list_is_walked_without_gap_or_repeat(demo: Hub, limit: int) -> None:
    """As it is, by tag, and as it was."""
    keys = [f"k{n}" for n in range(5)]
    for key in keys:
        demo.write(key, "x", tags=["t"])
    assert demo.listed(limit=limit) == demo.listed(limit=limit, tag="t") == keys
    demo.later(minutes=1)
    demo.remove("k2")
    assert demo.listed(limit=limit) == ["k0", "k1", "k3", "k4"]
    assert demo.listed(limit=limit, at="1m") == keys


def test_a_page_ends_at_its_size(demo: Hub) -> None:
    """Large texts make small pages; headlines stay short."""
    for n in range(4):
        demo.write(f"k{n}", "x" * 300_000)
    page = demo.ask(pb.ListDocumentsRequest(room="demo"))
    assert (len(page.documents), page.next) == (1, "k0")
    assert demo.listed() == ["k0", "k1", "k2", "k3"]
    brief = demo.ask(pb.ListDocumentsRequest(room="demo", brief=True))
    assert len(brief.documents) == 4
    assert brief.documents[0].content.body == ""
    assert brief.documents[0].summary == "x" * 199 + "…"


def test_versions_are_walked(demo: Hub) -> None:
    """The newest first, a page at a time."""
    for n in range(5):
        demo.write("a", str(n))
    page = demo.ask(pb.ListVersionsRequest(room="demo", key="a", limit=2))
    assert [one.summary for one in page.versions] == ["4", "3"]
    assert page.next == 4
    assert [one.summary for one in demo.versions("a", before=page.next, limit=5)] == ["2", "1", "0"]


def test_a_key_that_is_not_there_is_refused_with_those_like_it(demo: Hub) -> None:
    """A slip, and the same name under another prefix."""
    for key in ("decisions/storage", "status/storage", "zebra"):
        demo.write(key, "x")
    refusal = demo.refused("memory.not_found", pb.GetDocumentRequest(room="demo", key="decisions/storge"))
    assert refusal.extras["near"] == ["decisions/storage"]
    refusal = demo.refused("memory.not_found", pb.GetDocumentRequest(room="demo", key="work/storage"))
    assert "status/storage" in refusal.extras["near"]
