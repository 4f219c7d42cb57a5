"""Whether a hub is one that an issuer's tokens are for: its `/health` names the issuers that it trusts.

An agent's token goes to no other hub. The answer is kept beside the token, so it is asked once a hub.
"""

import json
from enum import Enum, auto

from mycelium_cli.health import sign_in_of
from mycelium_cli.transport import Cut, Line, Request, Unreached

_ANSWER_S = 5.0
_LARGEST = 1_000_000


class Trust(Enum):
    """What a hub says of an issuer."""

    YES = auto()
    NO = auto()
    NOBODY_SIGNS_IN = auto()
    AWAY = auto()  # no answer
    STRANGER = auto()  # something else than a hub answers there


def asked(hub: str, issuer: str) -> Trust:
    """Ask the hub, without any token."""
    from http.client import HTTPException

    line = Line(hub)
    try:
        response = line.ask(Request("GET", "/health", {"Accept": "application/json"}), _ANSWER_S, _ANSWER_S)
        content = response.read(_LARGEST)
    except (Unreached, Cut, OSError, HTTPException):
        return Trust.AWAY
    finally:
        line.close()
    return _said(content, issuer)


def _said(content: bytes, issuer: str) -> Trust:
    try:
        said = sign_in_of(json.loads(content))
    except (ValueError, RecursionError):
        said = None
    if said is None:
        return Trust.STRANGER
    if not said.enabled:
        return Trust.NOBODY_SIGNS_IN
    return Trust.YES if said.named(issuer) else Trust.NO
