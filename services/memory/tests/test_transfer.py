"""Documents on their way to another hub: every version as it was, and nothing let in that could not be written here."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mycelium.memory.v1 import events_pb2, transfer_pb2, views_pb2
from services.memory.tests.hub import Hub, rebuilt, rows_of


def exported(hub: Hub, **fields: int) -> list[transfer_pb2.DocumentFact]:
    """Every fact, page after page."""
    found: list[transfer_pb2.DocumentFact] = []
    request = transfer_pb2.ExportDocumentsRequest(room="demo", **fields)
    while True:
        page = hub.ask(request)
        found += page.facts
        if not page.more:
            return found
        request.after, request.until = page.facts[-1].sequence, page.until


def bring(hub: Hub, facts: list[transfer_pb2.DocumentFact], name: str = "copy") -> transfer_pb2.ImportDocumentsResponse:
    """Into a hidden room, which is made when it is not there."""
    row = hub.tables.one("SELECT room_id FROM room WHERE name = ?", name)
    room_id = row[0] if row else hub.room(name, importing=True)
    answer: transfer_pb2.ImportDocumentsResponse = hub.ask(
        transfer_pb2.ImportDocumentsRequest(room_id=room_id, facts=facts)
    )
    return answer


@pytest.fixture
def full(demo: Hub) -> Hub:
    """A room with versions, a value, fields with a comment, a removal."""
    demo.write("work/api", "see [[notes/b]]", tags=["t"], fields_json='{"status": "open"}')
    demo.later(hours=1)
    demo.write("work/api", value_json='{"a": 1}', by="kim")
    demo.write("notes/b", "x" * 400_000)
    demo.write("notes/c", "y" * 400_000, expandable=True)
    demo.remove("notes/b", by="kim")
    return demo


@pytest.mark.parametrize("limit", [1, 2, 500])
def test_every_version_arrives_as_it_was(full: Hub, limit: int) -> None:
    """On a hub with other sequences; a repeat brings nothing twice, and the rest follows."""
    facts = exported(full, limit=limit)
    assert len(facts) == 5
    other = Hub()
    other.room("something-else")
    assert bring(other, facts[:2]).facts == 2
    assert bring(other, facts).facts == bring(other, facts).facts == 5
    other.finish_import(str((other.tables.one("SELECT room_id FROM room WHERE name = 'copy'") or ("",))[0]))
    for key in ("work/api", "notes/c"):
        here, there = full.get(key), other.get(key, room="copy")
        for own in ("room_id", "room", "sequence"):
            here.ClearField(own)
            there.ClearField(own)
        assert here == there
    assert other.listed(room="copy") == ["notes/c", "work/api"]
    origins = {row[0] for row in other.tables.all("SELECT origin FROM version")}
    assert origins == {views_pb2.ORIGIN_IMPORT}
    assert rows_of(other.tables) == rows_of(rebuilt(other.facts))


def altered(change: Callable[[events_pb2.DocumentWritten], object], fact: transfer_pb2.DocumentFact) -> None:
    event = events_pb2.DocumentWritten.FromString(fact.data)
    change(event)
    fact.data = event.SerializeToString()


@pytest.mark.parametrize(
    "change",
    [
        lambda event: setattr(event, "key", "../etc/passwd"),
        lambda event: setattr(event, "key", "WORK/api"),
        lambda event: setattr(event, "version", 0),
        lambda event: setattr(event, "version", 2**63),  # which no table takes, so that nothing would follow the log
        lambda event: setattr(event, "version", 2**53),
        lambda event: event.replaced.MergeFrom(
            views_pb2.Replaced(version=2**64 - 1, updated_by="kim", updated_at=event.updated_at)
        ),
        lambda event: setattr(event, "thread", "x"),
        lambda event: setattr(event, "updated_by", "Not A Handle"),
        lambda event: setattr(event, "created_by", ""),
        lambda event: setattr(event, "moved_from", "a//b"),
        lambda event: setattr(event.updated_at, "seconds", 10**15),
        lambda event: setattr(event.content, "body", "a\0b"),
        lambda event: setattr(event.content, "body", "x" * (512 * 1024 + 1)),
        lambda event: setattr(event.content, "value_json", "{"),
        lambda event: setattr(event.content, "fields_yaml", "a: ["),
        lambda event: setattr(event.content, "fields_yaml", "version: 3\n"),
        lambda event: event.content.tags.append("a,b"),
    ],
)
def test_what_could_not_be_written_here_is_not_let_in(
    full: Hub, change: Callable[[events_pb2.DocumentWritten], object]
) -> None:
    """The whole step is refused, and nothing is stored."""
    facts = exported(full)
    altered(change, facts[0])
    _refused(full, facts)


def test_what_is_no_fact_of_documents_is_not_let_in(full: Hub) -> None:
    """Another type, bytes that are none, versions out of order, the removal of nothing, two threads of one document."""
    for change in (
        lambda facts: setattr(facts[0], "type", "mycelium.rooms.v1.MemberSaved"),
        lambda facts: setattr(facts[0], "data", b"\xff\xff"),
        lambda facts: altered(lambda event: setattr(event, "version", 1), facts[1]),
        lambda facts: facts.pop(2),
        lambda facts: _removed_at(2**63, facts[4]),
        lambda facts: altered(lambda event: setattr(event, "thread", full.new_id()), facts[1]),
    ):
        facts = exported(full)
        change(facts)
        _refused(full, facts)


def _removed_at(version: int, fact: transfer_pb2.DocumentFact) -> None:
    event = events_pb2.DocumentRemoved.FromString(fact.data)
    event.version = version
    fact.data = event.SerializeToString()


def _refused(hub: Hub, facts: list[transfer_pb2.DocumentFact]) -> None:
    room_id = hub.room(hub.new_id()[-6:], importing=True)
    before = len(hub.facts)
    hub.refused("room.import_refused", transfer_pb2.ImportDocumentsRequest(room_id=room_id, facts=facts))
    assert len(hub.facts) == before


def test_links_are_found_anew(full: Hub) -> None:
    """What a bundle claims that a document links to is not believed."""
    facts = exported(full)
    altered(lambda event: setattr(event.content.links[0], "target", "elsewhere"), facts[0])
    room_id = full.room("copy", importing=True)
    full.ask(transfer_pb2.ImportDocumentsRequest(room_id=room_id, facts=facts))
    brought = [events_pb2.DocumentWritten.FromString(fact.data) for fact in full.facts if fact.type == facts[0].type]
    links = [[link.target for link in event.content.links] for event in brought if event.room_id == room_id]
    assert links[0] == ["notes/b"]


def test_a_room_that_is_not_being_imported_takes_none(full: Hub) -> None:
    """Neither one that is there nor one that is not."""
    facts = exported(full)
    (room_id,) = full.tables.one("SELECT room_id FROM room") or ("",)
    for each in (room_id, full.new_id()):
        full.refused("room.not_found", transfer_pb2.ImportDocumentsRequest(room_id=each, facts=facts))
