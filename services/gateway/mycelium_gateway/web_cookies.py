"""The cookies of the web app: sealed, so that a browser keeps what only the hub can read.

A cookie holds at most some 4 KB and tokens are longer, so a sealed text is laid into several, numbered. RFC 6265bis:
`HttpOnly`, `SameSite`, and over TLS `Secure` with the prefix `__Host-`, which binds it to this very host. Cookies know
no ports, so the port that the browser called is in the name: two hubs of one machine keep theirs apart.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from typing import Any

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from joserfc import jwe
from joserfc.errors import JoseError
from joserfc.jwk import OctKey
from starlette.types import Scope

from mycelium_gateway.origin import place

PIECE = 3_600  # characters of one cookie, its name and attributes aside
MOST = 6
HEADER = {"alg": "dir", "enc": "A256GCM"}
SESSION = "mycelium_session"
STEP = "mycelium_sign_in"  # from the way out to the issuer until the way back
STEP_S = 600
STEPS = 5  # sign-ins that one browser may have begun at once; more are forgotten, so that its requests stay short
LAX, STRICT = "Lax", "Strict"


class Sealer:
    """Seals with a key made from the session secret; what another secret sealed is as if it were not there."""

    def __init__(self, secret: str) -> None:
        self._key = cache(lambda purpose: _derived(secret.encode(), purpose))

    def seal(self, purpose: str, content: dict[str, Any]) -> str:
        """A text that only `unseal` with the same secret and purpose reads."""
        key = self._key(purpose)
        return jwe.encrypt_compact(dict(HEADER), json.dumps(content), key, algorithms=list(HEADER.values()))

    def unseal(self, purpose: str, text: str) -> dict[str, Any] | None:
        """What was sealed; None when it was not, or by somebody else."""
        try:
            opened = jwe.decrypt_compact(text, self._key(purpose), algorithms=list(HEADER.values()))
            found = json.loads(opened.plaintext or b"")
        except (JoseError, ValueError, TypeError, KeyError):
            return None
        return found if isinstance(found, dict) else None


def _derived(secret: bytes, purpose: str) -> OctKey:
    """A key for one purpose, so that a cookie of one kind is never taken for another."""
    derived = HKDF(SHA256(), length=32, salt=None, info=f"mycelium cookie {purpose}".encode()).derive(secret)
    return OctKey.import_key(derived)


def sent(scope: Scope) -> dict[str, str]:
    """The cookies of a request. Of a name that comes twice the first counts, as browsers send the closest first."""
    found: dict[str, str] = {}
    for name, value in scope["headers"]:
        if name == b"cookie":
            for pair in value.decode("latin-1").split(";"):
                key, equals, content = pair.strip().partition("=")
                if equals:
                    found.setdefault(key, content)
    return found


def read(scope: Scope, name: str) -> str:
    """A text that `setting` laid into cookies; empty when none is there."""
    cookies, full = sent(scope), _full(scope, name)
    pieces = []
    for number in range(MOST):
        piece = cookies.get(f"{full}_{number}")
        if piece is None:
            break
        pieces.append(piece)
    return "".join(pieces)


def setting(scope: Scope, name: str, text: str, *, same_site: str, lasts_s: int) -> list[tuple[str, str]]:
    """The headers that lay a text into cookies, and take away what a longer one left. Too long: ValueError."""
    pieces = [text[start : start + PIECE] for start in range(0, len(text), PIECE)]
    if len(pieces) > MOST:
        raise ValueError(f"{len(text)} characters do not fit into {MOST} cookies")
    full, there = _full(scope, name), sent(scope)
    headers = [_header(scope, f"{full}_{n}", piece, same_site, lasts_s) for n, piece in enumerate(pieces)]
    left = (f"{full}_{n}" for n in range(len(pieces), MOST) if f"{full}_{n}" in there)
    return headers + [_header(scope, one, "", same_site, 0) for one in left]


def forgetting(scope: Scope, name: str) -> Iterator[tuple[str, str]]:
    """The headers that take away what `setting` left, under this name or one that goes on from it."""
    full = _full(scope, name)
    for one in sent(scope):
        if one.startswith(f"{full}_"):
            yield _header(scope, one, "", LAX, 0)


def crowded(scope: Scope) -> Iterator[tuple[str, str]]:
    """The headers that take away sign-ins which were begun and left, once there are many."""
    full = _full(scope, STEP)
    if sum(1 for one in sent(scope) if one.startswith(f"{full}_")) >= STEPS:
        yield from forgetting(scope, STEP)


def _header(scope: Scope, full: str, value: str, same_site: str, lasts_s: int) -> tuple[str, str]:
    secure = "; Secure" if scope["scheme"] == "https" else ""
    return "Set-Cookie", f"{full}={value}; Path=/; Max-Age={lasts_s}; HttpOnly; SameSite={same_site}{secure}"


def _full(scope: Scope, name: str) -> str:
    """The name as browsers know it."""
    host = next((value.decode("latin-1") for header, value in scope["headers"] if header == b"host"), "")
    called = place(host)
    port = f"{called.port}_" if called and called.port else ""
    return f"{'__Host-' if scope['scheme'] == 'https' else ''}{port}{name}"
