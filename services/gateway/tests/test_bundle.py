"""The form of a bundle: written, read in pieces of any size, refused when it was cut or altered anywhere. Pure."""

from __future__ import annotations

import gzip
import itertools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mycelium.rooms.v1 import transfer_pb2, views_pb2
from mycelium_gateway import bundle
from mycelium_kernel.clock import from_millis
from mycelium_kernel.errors import Refusal

MOMENT = from_millis(1_756_917_667_250)
LIMIT = 10_000
ROOM = views_pb2.Room(id="r", name="Café", private=True, created_by="avery", created_at=MOMENT)
FACTS = [
    transfer_pb2.PortableFact(sequence=number, type="t", entity="message", data=b"\x00\xff" * number, at=MOMENT)
    for number in (3, 5, 8)
]


def written() -> bytes:
    writer = bundle.Writer()
    page = transfer_pb2.ExportRoomResponse(room=ROOM, members=["bob", "eve"], until=9)
    head = writer.begin(page, "hub", "2026-09-03T16:41:07.250Z")
    return head + writer.facts(FACTS[:2]) + writer.facts(FACTS[2:]) + writer.end()


WHOLE = written()


def read(chunks: list[bytes], limit: int = LIMIT) -> tuple[bundle.Manifest, list[transfer_pb2.PortableFact]]:
    lines, reader = bundle.Lines(limit), bundle.Reader()
    facts = [fact for chunk in chunks for line in lines.take(chunk) if (fact := reader.take(line))]
    lines.end()
    reader.finish()
    assert reader.manifest is not None
    return reader.manifest, facts


def refusal(*chunks: bytes, limit: int = LIMIT, slug: str = "room.import_refused") -> str:
    with pytest.raises(Refusal) as raised:
        read(list(chunks), limit)
    assert raised.value.slug == slug
    return raised.value.detail


@pytest.mark.parametrize("packed", [False, True])
@given(cuts=st.lists(st.integers(0, 700), max_size=8))
def test_a_bundle_is_read_as_it_was_written_whatever_pieces_it_comes_in(packed: bool, cuts: list[int]) -> None:
    """Packed or not, cut anywhere, also within a character."""
    data = gzip.compress(WHOLE) if packed else WHOLE
    places = [0, *sorted(cuts), len(data)]
    manifest, facts = read([data[start:end] for start, end in itertools.pairwise(places)])

    assert facts == FACTS
    assert (manifest.room.name, manifest.room.private, manifest.members) == ("Café", True, ["bob", "eve"])


@pytest.mark.parametrize("packed", [False, True])
def test_a_bundle_that_was_cut_is_refused_wherever_it_was(packed: bool) -> None:
    """Also where a line ends, and just before the last byte."""
    data = gzip.compress(WHOLE, mtime=0) if packed else WHOLE
    for place in range(len(data)):
        refusal(data[:place])


def test_a_bundle_that_was_altered_is_refused_wherever_it_was() -> None:
    """Every byte counts."""
    for place in range(len(WHOLE) - 1):
        altered = bytearray(WHOLE)
        altered[place] ^= 1
        refusal(bytes(altered))


def test_a_bundle_with_lines_left_out_or_added_is_refused() -> None:
    """Its end counts them, and nothing follows it."""
    lines = WHOLE.splitlines(keepends=True)
    assert "altered" in refusal(b"".join(lines[:2] + lines[3:]))
    assert "out of order" in refusal(b"".join([lines[0], lines[2], lines[1], *lines[3:]]))
    assert "follows its end" in refusal(WHOLE, lines[1])
    assert "follows its end" in refusal(gzip.compress(WHOLE) + b"more")
    assert "follows its end" in refusal(gzip.compress(WHOLE), b"more")


@pytest.mark.parametrize(
    "change",
    [
        {"format": "zip"},
        {"version": 2},
        {"members": "bob"},
        {"room": {}},
        {"room": {"name": 7, "private": False, "created_at": "x"}},
    ],
)
def test_a_first_line_that_is_of_something_else_is_refused(change: dict[str, Any]) -> None:
    """With what is wrong with it."""
    head = {**json.loads(WHOLE.splitlines()[0]), **change}
    assert f"({next(iter(change))}" in refusal(json.dumps(head).encode() + b"\n")


@pytest.mark.parametrize(
    "line",
    [
        b"[]",
        b"{}",
        b"x",
        b"[" * 100_000,
        b'{"sequence": "1", "type": "t", "data": "", "at": "2026-09-03T16:41:07Z"}',
        b'{"sequence": -1, "type": "t", "data": "", "at": "2026-09-03T16:41:07Z"}',
        b'{"sequence": 1, "type": "t", "data": "*", "at": "2026-09-03T16:41:07Z"}',
        b'{"sequence": 1, "type": "t", "data": "", "at": "yesterday"}',
        b'{"sequence": 1, "type": "t", "data": "", "at": null}',
        b'{"end": 0, "sha256": null}',
    ],
)
def test_a_line_that_is_no_fact_is_refused(line: bytes) -> None:
    """Whoever wrote it."""
    refusal(WHOLE.splitlines(keepends=True)[0], line + b"\n", limit=2 * LIMIT + len(line))


def test_what_unpacks_to_too_much_is_refused_while_it_does() -> None:
    """A small file may be a large one packed."""
    assert "larger than 10000 bytes" not in refusal(gzip.compress(b" " * LIMIT))
    for data in (gzip.compress(b" " * 50_000_000), b"x" * 10_000):
        assert "larger than 9999 bytes" in refusal(data, limit=9_999, slug="content.too_large")


def test_a_line_without_an_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would be held whole."""
    monkeypatch.setattr(bundle, "LINE_BYTES", 100)
    assert "no room can have written" in refusal(b"x" * 101)
