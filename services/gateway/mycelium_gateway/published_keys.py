"""What an issuer publishes: its discovery document and its keys, fetched within bounds and read with distrust.

`signing_keys.py` calls it. Redirects are not followed: the setting says where the keys are, or the issuer's own
document does.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import ssl
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

import httpx
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, RSAKey
from joserfc.jws import JWSRegistry

from mycelium_gateway.token_text import ALGORITHMS
from mycelium_kernel.names import is_loopback
from mycelium_kernel.settings import is_web_address

WITHIN_S = 5.0
LARGEST = 256 * 1024  # bytes of a document
MOST = 100  # keys of an issuer
RSA_BITS = range(2_048, 16_385)
EXPONENTS = range(3, 2**32)
CURVES = {"P-256": "ES256", "P-384": "ES384", "P-521": "ES512"}
WELL_KNOWN = "/.well-known/openid-configuration"


class Unusable(Exception):
    """What was fetched can't be used, or could not be fetched. Says why in words for people, without addresses."""


@dataclass(frozen=True)
class SigningKey:
    """A public key: its name (may be empty), the algorithms that it may sign with, its digest (RFC 7638)."""

    kid: str
    algorithms: frozenset[str]
    thumbprint: str
    key: RSAKey | ECKey = field(compare=False)

    def fits(self, algorithm: str) -> bool:
        """Whether a signature by this algorithm can be by this key."""
        return algorithm in self.algorithms

    def signed(self, algorithm: str, signed: bytes, signature: bytes) -> bool:
        """Whether this key made the signature."""
        verifier = JWSRegistry.algorithms[algorithm]
        verifier.check_key(self.key)
        return verifier.verify(signed, signature, self.key)


async def discover(issuer: str, within_s: float = WITHIN_S) -> str:
    """Where an issuer's keys are, by its own document, which must be about this issuer and no other."""
    document = await fetch_object(issuer.rstrip("/") + WELL_KNOWN, within_s)
    if document.get("issuer") != issuer:
        raise Unusable("its discovery document is about another issuer; auth.issuers must hold the exact `iss`")
    found = named(document, "jwks_uri")
    if not found:
        raise Unusable("its discovery document names no address of keys")
    if urlsplit(issuer).scheme == "https" != urlsplit(found).scheme:
        raise Unusable("its discovery document sends to an address without TLS for the keys")
    return found


def named(document: dict[str, Any], name: str) -> str:
    """The address that a discovery document has under a name; empty when it is none that can be asked, or sent on."""
    found = document.get(name)
    if not isinstance(found, str) or not all("!" <= character <= "~" for character in found):
        return ""
    return found if is_web_address(found) else ""


async def fetch(url: str, within_s: float = WITHIN_S) -> tuple[SigningKey, ...]:
    """The keys of an issuer that can verify a token. Others are passed over; none at all is a fault."""
    listed = (await fetch_object(url, within_s)).get("keys")
    if not isinstance(listed, list) or len(listed) > MOST:
        raise Unusable(f"what it publishes is no list of at most {MOST} keys")
    found = tuple(key for key in map(read, listed) if key is not None)
    if not found:
        raise Unusable("it publishes no key that can verify a token (RSA from 2048 bits, or EC of P-256, -384, -521)")
    return found


def read(jwk: object) -> SigningKey | None:
    """One key of a list, by its public parts alone; None when it is not for verifying tokens, or too weak."""
    if not isinstance(jwk, dict) or jwk.get("use", "sig") != "sig":
        return None
    kid, algorithm, uses = jwk.get("kid", ""), jwk.get("alg", ""), jwk.get("key_ops", ["verify"])
    if not isinstance(kid, str) or not isinstance(algorithm, str) or not isinstance(uses, list) or "verify" not in uses:
        return None
    try:
        key, algorithms = _imported(jwk)
    except (JoseError, ValueError, TypeError, KeyError):
        return None
    if algorithm:
        algorithms &= {algorithm}
    return SigningKey(kid, algorithms, key.thumbprint(), key) if algorithms else None


def _imported(jwk: dict[str, Any]) -> tuple[RSAKey | ECKey, frozenset[str]]:
    if jwk["kty"] == "RSA":
        if _number(jwk["n"]).bit_length() not in RSA_BITS or _number(jwk["e"]) not in EXPONENTS:
            raise ValueError
        rsa = RSAKey.import_key({"kty": "RSA", "n": jwk["n"], "e": jwk["e"]})
        return rsa, frozenset(name for name in ALGORITHMS if name[:2] in {"RS", "PS"})
    if jwk["kty"] == "EC":
        ec = ECKey.import_key({"kty": "EC", "crv": jwk["crv"], "x": jwk["x"], "y": jwk["y"]})
        return ec, frozenset({CURVES[jwk["crv"]]})
    raise ValueError


def _number(encoded: str) -> int:
    return int.from_bytes(base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)))


async def fetch_object(url: str, within_s: float) -> dict[str, Any]:
    """A JSON object from an address."""
    try:
        async with asyncio.timeout(within_s), client(url, within_s) as http, http.stream("GET", url) as answer:
            if answer.status_code != HTTPStatus.OK:
                raise Unusable(f"it answered with status {answer.status_code}")
            return _object(answer, await read_body(answer))
    except (TimeoutError, httpx.TimeoutException):
        raise Unusable(f"it did not answer within {within_s:g} seconds") from None
    except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:  # the last for a host that can't be
        raise Unusable(f"it can't be asked ({type(error).__name__})") from None


def client(url: str, within_s: float = WITHIN_S) -> httpx.AsyncClient:
    """What asks an issuer. One of this machine is asked without the proxy that the environment may name."""
    own = is_loopback(urlsplit(url).hostname or "")
    headers = {"Accept": "application/json", "Accept-Encoding": "identity"}
    return httpx.AsyncClient(timeout=within_s, trust_env=not own, headers=headers, verify=_authorities())


def _authorities() -> ssl.SSLContext:
    """Whose certificates are believed: those that this machine trusts, as commands do, and the library's own list."""
    context = httpx.create_ssl_context()
    if not (os.environ.get("SSL_CERT_FILE") or os.environ.get("SSL_CERT_DIR")):
        context.load_default_certs()
    return context


async def read_body(answer: httpx.Response) -> bytes:
    """The body of an answer, as long as it is not longer than `LARGEST`."""
    if answer.headers.get("content-encoding", "identity") != "identity":
        raise Unusable("it answered compressed, though it was asked not to")
    body = b""
    async for part in answer.aiter_raw():
        body += part
        if len(body) > LARGEST:
            raise Unusable(f"its answer is larger than {LARGEST} bytes")
    return body


def _object(answer: httpx.Response, body: bytes) -> dict[str, Any]:
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        raise Unusable(f"its answer ({answer.url.path}) is no JSON") from None
    if not isinstance(found, dict):
        raise Unusable(f"its answer ({answer.url.path}) is no JSON object")
    return found
