"""The hash with which the server seals its files: against the vectors that its makers published."""

from __future__ import annotations

import pytest

from mycelium_hub import highway

KEY = bytes(range(32))
# Of the texts of 0, 1, 2, ... bytes that count up from 0, as published with the algorithm (highwayhash_test.cc).
VECTORS = bytes.fromhex("""
907A56DE22C26E53 7EAB43AAC7CDDD78 B8D0569AB0B53D62 5C6BEFAB8A463D80 F205A46893007EDA 2B8A1668E4A94541 BD4CCC325BEFCA6F
4D02AE1738F59482 E1205108E55F3171 32D2644EC77A1584 F6E10ACDB103A90B C3BBF4615B415C15 243CC2040063FA9C A89A58CE65E641FF
24B031A348455A23 40793F86A449F33B CFAB3489F97EB832 19FE67D2C8C5C0E2 04DD90A69C565CC2 75D9518E2371C504 38AD9B1141D3DD16
0264432CCD8A70E0 A9DB5A6288683390 D7B05492003F028C 205F615AEA59E51E EEE0C89621052884 1BFC1A93A7284F4F 512175B5B70DA91D
F71F8976A0A2C639 AE093FEF1F84E3E7 22CA92B01161860F 9FC7007CCF035A68 A0C964D9ECD580FC 2C90F73CA03181FC 185CF84E5691EB9E
""")


@pytest.mark.parametrize("length", range(len(VECTORS) // highway.SIZE))
def test_a_hash_is_the_published_one(length: int) -> None:
    """For every length of the last packet, also that of none."""
    expected = VECTORS[length * highway.SIZE : (length + 1) * highway.SIZE]
    assert highway.digest(KEY, bytes(range(length)))[::-1] == expected


def test_many_at_once_are_what_each_is_alone() -> None:
    """Of different lengths and under different keys."""
    messages = [(bytes([place]) * 32, bytes(range(place % 80))) for place in range(200)]
    assert highway.hashes(messages) == [highway.digest(*message) for message in messages]
    assert highway.hashes([]) == []
