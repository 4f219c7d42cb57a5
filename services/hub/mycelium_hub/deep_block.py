"""Reads a block of a NATS store: records one after the other, each sealed with a hash of its own.

A record is length (four bytes; the highest bit says that there are headers), sequence (8), time (8), length of the
subject (2), subject, length of the headers (4, only with headers), headers, data, hash (8): as nats-server 2.15 writes
them. Neither length is under the hash. What was deleted stays as a record of noise whose sequence has the highest bit
set; the one after that marks a note that a sequence was deleted.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from mycelium_hub import highway

HEADER = struct.Struct("<IQqH")
HEADERS_LENGTH = 4
SMALLEST = HEADER.size + highway.SIZE
LARGEST = 32 * 1024 * 1024
HAS_HEADERS = 1 << 31
ERASED, NOTE = 1 << 63, 1 << 62
MENDED_BYTES = 4096  # of a record at most: what is searched for the one bit grows with the square of it
HEADERS_BEGIN, HEADERS_END = b"NATS/1.0", b"\r\n\r\n"


@dataclass(frozen=True)
class Record:
    """One record, and where it stands in its block."""

    place: int
    length: int
    marked: int  # sequence, with its marks
    time: int
    subject: bytes
    headers: bytes
    data: bytes
    hashed: bytes  # what is under the hash
    seal: bytes

    @property
    def sequence(self) -> int:
        return self.marked & ~(ERASED | NOTE)

    @property
    def is_fact(self) -> bool:
        return not self.marked & (ERASED | NOTE)


@dataclass(frozen=True)
class Broken:
    """Bytes that are no whole record. `mended` are the same when one bit alone was wrong, else nothing."""

    place: int
    length: int
    mended: bytes
    after: int  # the sequence of the fact before them

    def describe(self, block: bytes) -> str:
        """What is wrong with them."""
        if not self.mended:
            return f"{self.length} bytes from byte {self.place} on are no record that its checksum confirms"
        at = next(at for at, byte in enumerate(self.mended) if byte != block[self.place + at])
        bit = (self.mended[at] ^ block[self.place + at]).bit_length() - 1
        return f"bit {bit} of byte {self.place + at} is wrong"


def parse(block: bytes, place: int, end: int) -> Record | None:
    """The record that begins at a place, if its form is right; its hash is not looked at."""
    if end - place < SMALLEST:
        return None
    length, marked, time, subject_length = HEADER.unpack_from(block, place)
    has_headers = bool(length & HAS_HEADERS)
    length &= ~HAS_HEADERS
    if not SMALLEST <= length <= min(LARGEST, end - place) or subject_length > length - SMALLEST:
        return None
    begin, stop = place + HEADER.size, place + length - highway.SIZE
    body = begin + subject_length
    headers = b""
    if has_headers:
        if body + HEADERS_LENGTH > stop:
            return None
        headers_end = body + HEADERS_LENGTH + int.from_bytes(block[body : body + HEADERS_LENGTH], "little")
        headers = block[body + HEADERS_LENGTH : headers_end]
        if headers_end > stop or not headers.startswith(HEADERS_BEGIN) or not headers.endswith(HEADERS_END):
            return None
        body = headers_end
    subject, data = block[begin : begin + subject_length], block[body:stop]
    hashed = b"".join((block[place + 4 : place + 20], subject, headers, data))
    return Record(place, length, marked, time, subject, headers, data, hashed, block[stop : stop + highway.SIZE])


def read(block: bytes, key: bytes) -> tuple[list[Record], list[Broken]]:
    """Every record whose hash is right, in their order, and what lies between them."""
    records = list(_sealed(_walk(block), key))
    broken: list[Broken] = []
    reached, sequence = 0, 0
    for record in [*records, None]:
        begin = record.place if record else len(block)
        if begin > reached:
            found, left = _search(block, key, reached, begin, sequence)
            records += found
            broken += left
        if record:
            reached, sequence = record.place + record.length, record.sequence
    records.sort(key=lambda record: record.place)
    return records, broken


def _walk(block: bytes) -> Iterator[Record]:
    """The records as their lengths tell, up to the first whose form is wrong."""
    place = 0
    while record := parse(block, place, len(block)):
        yield record
        place += record.length


def _sealed(records: Iterator[Record], key: bytes) -> Iterator[Record]:
    seen = list(records)
    hashes = highway.hashes([(key, record.hashed) for record in seen])
    return (record for record, found in zip(seen, hashes, strict=True) if record.seal == found)


def _is_sealed(record: Record | None, key: bytes) -> bool:
    return record is not None and highway.digest(key, record.hashed) == record.seal


def _search(block: bytes, key: bytes, begin: int, end: int, after: int) -> tuple[list[Record], list[Broken]]:
    """Look for whole records in bytes that a wrong length has hidden, and mend what lies between them."""
    found: list[Record] = []
    broken: list[Broken] = []
    place = bad = begin
    while place < end:
        record = parse(block, place, end)
        if record is None or not _is_near(record, after) or not _is_sealed(record, key):
            place += 1
            continue
        if bad < place:
            broken += _parted(block, key, bad, place, after)
        found.append(record)
        place = bad = place + record.length
        after = record.sequence
    if bad < end:
        broken += _parted(block, key, bad, end, after)
    return found, broken


def _is_near(record: Record, after: int) -> bool:
    """Whether a sequence could follow another one: saves hashing what only looks like a record."""
    return not record.is_fact or not after or abs(record.sequence - after) < 1 << 24


def _parted(block: bytes, key: bytes, begin: int, end: int, after: int) -> Iterator[Broken]:
    """Bytes that are no whole record, parted by the length that they begin with when that can be right."""
    while begin < end:
        record = parse(block, begin, end)
        stop = begin + record.length if record else end
        mended = mend(block[begin:stop], key)
        if not mended and stop < end:
            stop, mended = end, mend(block[begin:end], key)
        yield Broken(begin, stop - begin, mended, after)
        begin = stop


def mend(record: bytes, key: bytes) -> bytes:
    """The record of which these bytes differ in one bit; nothing if there is none, or it is too large to be sought."""
    if not SMALLEST <= len(record) <= MENDED_BYTES:
        return b""
    unsealed = [changed for changed in _flipped(record, (0, 4)) if parse(changed, 0, len(record))]
    body = HEADER.size + int.from_bytes(record[20:22], "little")
    unsealed += _flipped(record, (20, 22), (body, body + HEADERS_LENGTH))
    for changed in unsealed:
        if _is_sealed(whole := parse(changed, 0, len(record)), key) and whole and whole.length == len(record):
            return changed
    parsed = parse(record, 0, len(record))
    if parsed is None or parsed.length != len(record):
        return _mend_form(record, key)
    return _mend_sealed(record, key)


def _mend_form(record: bytes, key: bytes) -> bytes:
    """When the flipped bit lies in what shows the form of the headers."""
    for changed in _flipped(record, (HEADER.size, len(record) - highway.SIZE)):
        whole = parse(changed, 0, len(record))
        if whole and whole.length == len(record) and _is_sealed(whole, key):
            return changed
    return b""


def _mend_sealed(record: bytes, key: bytes) -> bytes:
    """When the form is right: flip each bit and see whether the hash agrees."""
    candidates: list[tuple[bytes, Record]] = []
    for changed in _flipped(record, (4, len(record))):
        whole = parse(changed, 0, len(record))
        if whole and whole.length == len(record):
            candidates.append((changed, whole))
    hashes = highway.hashes([(key, whole.hashed) for _changed, whole in candidates])
    for (changed, whole), found in zip(candidates, hashes, strict=True):
        if whole.seal == found:
            return changed
    return b""


def _flipped(record: bytes, *parts: tuple[int, int]) -> Iterator[bytes]:
    """The record with one bit of these parts flipped, for each bit."""
    for begin, end in parts:
        for at in range(begin, min(end, len(record))):
            for bit in range(8):
                yield record[:at] + bytes([record[at] ^ (1 << bit)]) + record[at + 1 :]
