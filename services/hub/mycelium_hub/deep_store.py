"""Reads every file of a NATS store and checks it against the hash that the server has put beside it or into it.

Where each lies, as nats-server 2.15 has it: a stream's or a raft group's folder holds `meta.inf` with its hash in
`meta.sum`, `msgs/N.blk` (`deep_block`), `msgs/index.db` that ends with its hash, and for each consumer `obs/NAME` with
`meta.inf`, `meta.sum` and `o.dat`, which has no hash but a form; a group's `snapshots/` end with theirs. The key of
every hash is the SHA-256 of a name.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from pathlib import Path

from mycelium_hub import deep_block, highway
from mycelium_hub.deep_block import Record
from mycelium_hub.examine_log import micros
from mycelium_kernel import headers, subjects
from mycelium_kernel.tail import RawFact

FACTS = Path("jetstream/APP/streams") / subjects.STREAM
GROUPS = Path("jetstream/SYS/_js_")  # what servers agree on among each other; not there where one is alone
UNSEALED = ("tav.idx", "peers.idx")  # of a raft group: what it voted, and who is in it
STATE_MAGIC = b"\x16\x02"
STATE_SMALLEST = 6
KEPT = "damaged"  # the folder, beside the server's own, for blocks as they were before a record was taken out


@dataclass(frozen=True)
class Damage:
    """What is wrong with a file.

    `patch` are bytes as they should be and their place, None when nobody knows. With `removable` the server makes the
    file again when it is not there.
    """

    path: Path
    what: str
    patch: tuple[int, bytes] | None = None
    removable: bool = False

    @property
    def is_mendable(self) -> bool:
        """Whether it can be put right without another copy."""
        return self.patch is not None or self.removable


@dataclass
class Store:
    """A server's store while it is read: what was found so far."""

    path: Path
    damage: list[Damage] = field(default_factory=list)
    unsealed: int = 0  # files that have no hash
    facts: int = 0
    size: int = 0
    last: int = 0
    is_read: bool = False

    @property
    def epoch(self) -> str:
        """What tells this log from every other, as the kernel has it; empty when it can't be read."""
        path = self.path / FACTS / "meta.inf"
        mended = next((one.patch[1] for one in _meta(path, FACTS.name) if one.path == path and one.patch), None)
        try:
            created = json.loads(mended or path.read_bytes())["Created"]
            return f"{int(datetime.fromisoformat(micros(created)).timestamp() * 1_000_000):x}"
        except (OSError, ValueError, KeyError, TypeError):
            return ""

    @property
    def kept(self) -> list[Path]:
        """Blocks as they were before a record was taken out of them (`guard`)."""
        return sorted((self.path / KEPT).glob("*"))

    @property
    def is_lossy(self) -> bool:
        """Whether facts may be missing that nobody can mend here."""
        return any(
            not damage.is_mendable and damage.path.parent == self.path / FACTS / "msgs" for damage in self.damage
        )

    def read(self) -> Iterator[RawFact]:
        """Check every file, and give the facts in their order, those with one wrong bit as they should be.

        Also those that are only noted as erased: they come before the tombstone of their room.
        """
        self.is_read = True
        groups = self.path / GROUPS
        self.unsealed += sum(len(list(groups.glob(f"*/{name}"))) for name in UNSEALED)
        for path in sorted([*groups.glob("*/snapshots/*"), *groups.glob("*/commit.idx")]):
            name = path.parent.parent.name if path.name != "commit.idx" else path.parent.name
            self.damage += _ended(path, name)
        for meta in sorted(self.path.glob("jetstream/**/meta.inf")):
            folder = meta.parent
            if folder.parent.name == "obs":
                self.damage += _meta(meta, f"{folder.parent.parent.name}/{folder.name}")
                self.damage += _state(folder / "o.dat", is_only=not groups.exists())
                self.unsealed += (folder / "o.dat").exists()
                continue
            self.damage += _meta(meta, folder.name)
            self.damage += _ended(folder / "msgs" / "index.db", folder.name, removable=True)
            if folder != self.path / FACTS:
                for block in blocks(folder):
                    self._block(folder, block)
        for block in blocks(self.path / FACTS):
            for record in self._block(self.path / FACTS, block):
                if record.is_fact and record.sequence > self.last:
                    self.last = record.sequence
                    self.facts += 1
                    yield fact(record)

    def _block(self, folder: Path, path: Path) -> list[Record]:
        content = _read(path) or b""  # compacted meanwhile
        self.size += len(content)
        records, broken = records_of(folder, path, content)
        for one in broken:
            patch = (one.place, one.mended) if one.mended else None
            record = deep_block.parse(one.mended, 0, len(one.mended))
            self.damage.append(Damage(path, f"{one.describe(content)} ({_whose(record, one.after)})", patch))
            if record:
                records.append(dataclasses.replace(record, place=one.place))
        return sorted(records, key=lambda record: record.place)


def records_of(folder: Path, path: Path, content: bytes) -> tuple[list[Record], list[deep_block.Broken]]:
    """The whole records of a block of a stream, and what is none."""
    return deep_block.read(content, _key(f"{folder.name}-{path.stem}"))


def blocks(folder: Path) -> list[Path]:
    """The blocks of a stream, in their order."""
    return sorted(folder.glob("msgs/*.blk"), key=lambda path: int(path.stem))


def fact(record: Record) -> RawFact:
    """A record as the kernel reads it from the server."""
    stored = parse_headers(record.headers)
    return RawFact(
        record.sequence, record.subject.decode(), stored.get(headers.TYPE, ""), record.data, stored, record.time
    )


def parse_headers(block: bytes) -> dict[str, str]:
    """Headers as the client reads them: a name and a value a line, bare of blanks."""
    pairs = (line.partition(b":") for line in block.split(b"\r\n")[1:] if b":" in line)
    return {name.strip().decode(): value.strip().decode(errors="replace") for name, _, value in pairs}


def _key(name: str) -> bytes:
    return sha256(name.encode()).digest()


def _whose(record: Record | None, after: int) -> str:
    if record is None:
        return f"after fact {after}"
    if not record.is_fact:
        return f"a note about the erased fact {record.sequence}"
    subject = record.subject.decode(errors="replace")
    return f"fact {record.sequence}" + (
        f" of room {subjects.room_of(subject)}" if subject.startswith(subjects.ALL_FACTS[:-1]) else ""
    )


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def _meta(path: Path, name: str) -> Iterator[Damage]:
    """A description and its hash, in letters, in a file beside it."""
    content, stored = _read(path), _read(path.with_suffix(".sum"))
    if content is None or stored is None:
        if content is not None:
            seal = highway.digest(_key(name), content).hex().encode()
            yield Damage(path.with_suffix(".sum"), "is missing", (0, seal))
        return
    key = _key(name)
    wanted = highway.digest(key, content).hex().encode()
    if stored == wanted:
        return
    if _differ_in_a_bit(stored, wanted):
        yield Damage(path.with_suffix(".sum"), f"is {stored!r}, and {path.name} says {wanted!r}", (0, wanted))
        return
    changes = [content[:at] + bytes([content[at] ^ 1 << bit]) + content[at + 1 :] for at, bit in _bits(content)]
    found = highway.hashes([(key, changed) for changed in changes])
    mended = next(
        (changed for changed, seal in zip(changes, found, strict=True) if seal.hex().encode() == stored), None
    )
    where = next((at for at in range(len(content)) if mended and mended[at] != content[at]), None)
    place = "one of its bytes" if where is None else f"byte {where}"
    yield Damage(
        path, f"does not have the checksum of {path.stem}.sum: {place} is wrong", (0, mended) if mended else None
    )


def _bits(content: bytes) -> Iterator[tuple[int, int]]:
    limit = deep_block.MENDED_BYTES
    return ((at, bit) for at in range(len(content) if len(content) <= limit else 0) for bit in range(8))


def _differ_in_a_bit(one: bytes, other: bytes) -> bool:
    if len(one) != len(other):
        return False
    return (int.from_bytes(one, "big") ^ int.from_bytes(other, "big")).bit_count() == 1


def _ended(path: Path, name: str, *, removable: bool = False) -> Iterator[Damage]:
    """A file that ends with its hash."""
    content = _read(path)
    if content is None:
        return
    body, seal = content[: -highway.SIZE], content[-highway.SIZE :]
    if highway.digest(_key(name), body) != seal:
        yield Damage(path, "does not have the checksum that it ends with", removable=removable)


def _state(path: Path, *, is_only: bool) -> Iterator[Damage]:
    """Where a consumer is. It has no hash; but its numbers tell how many they are, and repeat each other."""
    content = _read(path)
    if content is None:
        return
    numbers, rest = _numbers(content)
    if content[:2] != STATE_MAGIC or rest or not _is_state(numbers, is_only=is_only):
        yield Damage(path, "does not have the form of a consumer's state", removable=True)


def _is_state(numbers: list[int], *, is_only: bool) -> bool:
    """Two numbers of what is acknowledged, two of what was given out; then what is in work, then what was repeated.

    When nothing is in work, all that was given out is acknowledged. Of several servers, each notes also how far it has
    looked for more to give out.
    """
    if len(numbers) < STATE_SMALLEST:
        return False
    acknowledged, given, in_work = numbers[:2], numbers[2:4], numbers[4]
    begin = 5 + (1 + 3 * in_work if in_work else 0)
    if len(numbers) <= begin or len(numbers) != begin + 1 + 2 * numbers[begin]:
        return False
    if not in_work:
        looked_on = not is_only and acknowledged[0] == given[0] and acknowledged[1] <= given[1]
        return acknowledged == given or not any(acknowledged) or looked_on
    reach = [their - mine for mine, their in zip(reversed(acknowledged), reversed(given), strict=True)]
    pairs = [numbers[at : at + 2] for at in range(6, begin, 3)]
    return all(0 < one <= most for pair in pairs for one, most in zip(pair, reach, strict=True))


def _numbers(content: bytes) -> tuple[list[int], bytes]:
    """The varints of a state, and what is left after the last."""
    numbers: list[int] = []
    rest, value, shift = content, 0, 0
    for at, byte in enumerate(content[2:], 3):
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            numbers.append(value)
            value = shift = 0
            rest = content[at:]
    return numbers, rest
