"""The token by which a client names a delivery."""

from __future__ import annotations

import pytest

from mycelium_gateway.delivery import read_token, write_token
from mycelium_kernel.errors import Refusal

MESSAGE = "0199f2a1-5b7c-7a10-8f42-3d1e9c04b7aa"


@pytest.mark.parametrize("seat", ["", "review"])
def test_a_token_is_read_as_it_was_written(seat: str) -> None:
    """It holds the seat, so that a client needs to keep nothing else."""
    assert read_token(write_token(MESSAGE, seat), "") == (MESSAGE, seat)
    assert read_token(write_token(MESSAGE, seat), seat) == (MESSAGE, seat)


@pytest.mark.parametrize(
    ("token", "seat"),
    [
        ("", ""),
        ("9c04b7aa", ""),
        (f"{MESSAGE}#", ""),
        (MESSAGE, "review"),
        (f"{MESSAGE}#a", "b"),
        ("x" * 500, ""),
        (f"{MESSAGE}#" + "x" * 4100, ""),
    ],
)
def test_anything_else_is_refused(token: str, seat: str) -> None:
    """A token of another queue would acknowledge what nobody has seen."""
    with pytest.raises(Refusal, match=r"body\.ack"):
        read_token(token, seat)
