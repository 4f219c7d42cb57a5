"""HighwayHash-64, with which the NATS server seals its files: of many messages at once, in plain Python.

No maintained package has it. The four 64-bit lanes of every message lie side by side in one large integer, so that one
operation of Python's works on hundreds of messages. Checked against the algorithm's own vectors and the server's files.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Sequence
from operator import mul

SIZE = 8
PACKET = 32
TOGETHER = 512  # messages at once; more do not make it faster
_MUL0 = (0xDBE6D5D5FE4CCE2F, 0xA4093822299F31D0, 0x13198A2E03707344, 0x243F6A8885A308D3)
_MUL1 = (0x3BD39E10CB0EF593, 0xC0ACF169B5F18A8C, 0xBE5466CF34E90C6C, 0x452821E638D01377)
_ZIPPER = (3, 12, 2, 5, 14, 1, 15, 0, 11, 4, 10, 13, 9, 6, 8, 7)  # which byte of sixteen comes where
_PERMUTE = (5, 4, 7, 6, 1, 0, 3, 2)  # which half lane of eight comes where
_ROUNDS = 4


def hashes(messages: Sequence[tuple[bytes, bytes]]) -> list[bytes]:
    """The hash of each message, given with its key of 32 bytes, as the eight bytes that stand in a file."""
    by_length: dict[int, list[int]] = defaultdict(list)
    for place, (_key, message) in enumerate(messages):
        by_length[len(message)].append(place)
    found = [b""] * len(messages)
    for length, places in by_length.items():
        for begin in range(0, len(places), TOGETHER):
            some = places[begin : begin + TOGETHER]
            lanes = _Lanes([messages[place][0] for place in some])
            digests = lanes.digest([messages[place][1] for place in some], length)
            for place, digest in zip(some, digests, strict=True):
                found[place] = digest
    return found


def digest(key: bytes, message: bytes) -> bytes:
    """The hash of one message."""
    return hashes([(key, message)])[0]


def _int(data: bytes) -> int:
    return int.from_bytes(data, "little")


class _Lanes:
    """The state of some messages of one length while it is hashed."""

    def __init__(self, keys: list[bytes]) -> None:
        self._count = len(keys)
        self._bytes = PACKET * self._count
        self._low = self._every(8, (1 << 63) - 1)
        self._high = self._every(8, 1 << 63)
        key = b"".join(keys)
        self._mul0, self._mul1 = self._each(_MUL0), self._each(_MUL1)
        self._v0 = self._mul0 ^ _int(key)
        self._v1 = self._mul1 ^ _int(_shuffled(key, 8, (4, 5, 6, 7, 0, 1, 2, 3)))

    def _every(self, size: int, value: int) -> int:
        """A value in every so many bytes."""
        return _int(value.to_bytes(size, "little") * (self._bytes // size))

    def _each(self, lanes: tuple[int, ...]) -> int:
        """The same four lanes for every message."""
        return _int(b"".join(lane.to_bytes(8, "little") for lane in lanes) * self._count)

    def digest(self, messages: list[bytes], length: int) -> list[bytes]:
        whole = length - length % PACKET
        for place in range(0, whole, PACKET):
            self._update(b"".join([message[place : place + PACKET] for message in messages]))
        if length > whole:
            self._update_rest([message[whole:] for message in messages], length - whole)
        for _ in range(_ROUNDS):
            self._update(_permuted(self._out(self._v0)))
        total = self._add(self._add(self._v0, self._v1), self._add(self._mul0, self._mul1))
        said = self._out(total)
        return [said[place : place + SIZE] for place in range(0, self._bytes, PACKET)]

    def _update(self, packets: bytes) -> None:
        add = self._add
        self._v1 = add(self._v1, add(self._mul0, _int(packets)))
        self._mul0 ^= self._product(self._v1, self._v0)
        self._v0 = add(self._v0, self._mul1)
        self._mul1 ^= self._product(self._v0, self._v1)
        self._v0 = add(self._v0, self._zipped(self._v1))
        self._v1 = add(self._v1, self._zipped(self._v0))

    def _update_rest(self, rests: list[bytes], size: int) -> None:
        self._v0 = self._add(self._v0, self._every(4, size))
        left = self._every(4, (0xFFFFFFFF << size) & 0xFFFFFFFF)
        self._v1 = ((self._v1 << size) & left) | ((self._v1 >> (32 - size)) & ~left & self._every(4, 0xFFFFFFFF))
        self._update(b"".join([_padded(rest, size) for rest in rests]))

    def _add(self, one: int, other: int) -> int:
        """Lane by lane, without a carry from one into the next."""
        return ((one & self._low) + (other & self._low)) ^ ((one ^ other) & self._high)

    def _product(self, low: int, high: int) -> int:
        """Lane by lane, the lower half of one times the upper half of the other."""
        lows, highs = array("I", self._out(low))[::2], array("I", self._out(high))[1::2]
        return _int(array("Q", map(mul, lows, highs)).tobytes())

    def _zipped(self, lanes: int) -> int:
        return _int(_shuffled(self._out(lanes), 16, _ZIPPER))

    def _out(self, lanes: int) -> bytes:
        return lanes.to_bytes(self._bytes, "little")


def _shuffled(data: bytes, size: int, order: tuple[int, ...]) -> bytes:
    """Every so many bytes in another order."""
    made = bytearray(len(data))
    for place, source in enumerate(order):
        made[place::size] = data[source::size]
    return bytes(made)


def _permuted(data: bytes) -> bytes:
    halves = array("I", data)
    made = array("I", bytes(len(data)))
    for place, source in enumerate(_PERMUTE):
        made[place::8] = halves[source::8]
    return made.tobytes()


def _padded(rest: bytes, size: int) -> bytes:
    """The last packet of a message that does not end with a whole one."""
    packet = bytearray(PACKET)
    words, tail = size & ~3, size & 3
    packet[:words] = rest[:words]
    if size & 16:
        packet[28:] = rest[size - 4 :]
    elif tail:
        packet[16] = rest[words]
        packet[17] = rest[words + (tail >> 1)]
        packet[18] = rest[size - 1]
    return bytes(packet)
