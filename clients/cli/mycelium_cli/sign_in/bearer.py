"""What an issuer's answer must be for its token to be sent, and how long that token lasts."""

import math
from collections.abc import Mapping
from typing import Any

_LONGEST = 50_000  # what is too long for a hub, the hub says


def token_of(answer: Mapping[str, Any]) -> str:
    """The bearer token of an answer; empty when there is none that could be sent."""
    kind = str(answer.get("token_type") or "bearer").lower()
    return travelling(answer.get("access_token")) if kind == "bearer" else ""


def travelling(token: object) -> str:
    """A token as it is, when it can travel in a header or a form; else empty."""
    fits = isinstance(token, str) and len(token) <= _LONGEST and all("!" <= letter <= "~" for letter in token)
    return str(token) if fits else ""


def lasts_s(answer: Mapping[str, Any]) -> float:
    """For how many seconds from now it is good, as the issuer says; 0 when it doesn't."""
    try:
        said_s = float(answer.get("expires_in") or 0)
    except (TypeError, ValueError, OverflowError):
        return 0.0
    return said_s if math.isfinite(said_s) and said_s > 0 else 0.0
