"""The text of a signed token, read strictly: what is in it, before anybody believes it.

`tokens.py` calls it. A text that two readers could read differently is refused here: names that come twice, encodings
that are not the only one, numbers that are none. Nothing of the token stands in a refusal.
"""

from __future__ import annotations

import base64
import json
import re
from dataclasses import dataclass
from typing import Any

from mycelium_kernel.errors import Refusal

LONGEST = 16 * 1024  # characters; the servers' own limit for a head is not far above
LONGEST_KID = 1_024
# Asymmetric only, so that a public key can never serve as a shared secret.
ALGORITHMS = frozenset(f"{family}{bits}" for family in ("RS", "PS", "ES") for bits in (256, 384, 512))
# What would let a token bring its own key, ask for rules that are not known here, or hide what was signed.
UNWANTED = ("jwk", "jku", "x5u", "x5c", "crit", "b64", "enc", "zip")
TYPES = frozenset({"jwt", "at+jwt"})
COMPACT = re.compile(r"([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)")


@dataclass(frozen=True)
class TokenText:
    """The parts of a token. `signed` is what its signature is over."""

    algorithm: str
    kid: str
    claims: dict[str, Any]
    signed: bytes
    signature: bytes


def rejected(why: str) -> Refusal:
    """The refusal of a token, in one line."""
    return Refusal("token.refused", f"token rejected: {why}")


def read(token: str) -> TokenText:
    """The parts of a token whose header is acceptable."""
    if len(token) > LONGEST:
        raise rejected(f"it has more than {LONGEST} characters")
    parts = COMPACT.fullmatch(token)
    if parts is None:
        raise rejected("it is not three parts of base64url, as a signed JWT is")
    header = _object(parts[1], "header")
    _check_header(header)
    claims = _object(parts[2], "claims")
    return TokenText(
        header["alg"], header.get("kid", ""), claims, f"{parts[1]}.{parts[2]}".encode(), _decoded(parts[3], "signature")
    )


def _check_header(header: dict[str, Any]) -> None:
    algorithm = header.get("alg")
    if not isinstance(algorithm, str) or algorithm not in ALGORITHMS:
        raise rejected("its algorithm is not accepted: RS, PS or ES with 256, 384 or 512 are")
    for name in UNWANTED:
        if name in header:
            raise rejected(f"its header has `{name}`, which is not accepted")
    kind = header.get("typ", "JWT")
    if not isinstance(kind, str) or kind.lower().removeprefix("application/") not in TYPES:
        raise rejected("its header's `typ` is not that of an access token (JWT or at+jwt)")
    kid = header.get("kid", "none")
    if not isinstance(kid, str) or not 0 < len(kid) <= LONGEST_KID:
        raise rejected("its header's `kid` is no name of a key")


def _decoded(part: str, what: str) -> bytes:
    """The bytes of a part. The last character may carry bits that count for nothing: they must be zero."""
    try:
        data = base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
    except ValueError:
        data = b""
    if base64.urlsafe_b64encode(data).rstrip(b"=") != part.encode():
        raise rejected(f"its {what} is no base64url")
    return data


def _object(part: str, what: str) -> dict[str, Any]:
    try:
        found = json.loads(_decoded(part, what).decode("utf-8"), object_pairs_hook=_unique, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise rejected(f"its {what} can't be read: it must be one JSON object that names nothing twice") from None
    if not isinstance(found, dict):
        raise rejected(f"its {what} is no JSON object")
    return found


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError
    return found


def _no_constant(_text: str) -> None:
    raise ValueError
