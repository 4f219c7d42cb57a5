"""An issuer that answers from a script: what a certified one never says, or says only to who waits for minutes.

What a real one answers is tested against a real one, in `e2e/test_login.py`.
"""

from __future__ import annotations

import base64
import hmac
import json
import time
from typing import Any
from urllib.parse import parse_qs

from joserfc import jwt
from joserfc.jwk import RSAKey

from clients.cli.tests.scripted import Received, ScriptedHub, answer
from mycelium_cli.sign_in.asking import Program
from mycelium_cli.sign_in.discovery import Issuer
from mycelium_cli.sign_in.granted import Attempt
from mycelium_cli.sign_in.token_file import Person

CLIENT = "mycelium-cli"
SECRETS = ("access-secret-1", "refresh-secret-1", "access-secret-2", "refresh-secret-2")
KEY = RSAKey.generate_key(2048, {"kid": "one"})
OTHER_KEY = RSAKey.generate_key(2048, {"kid": "two"})


def issuer_at(url: str, **changed: Any) -> Issuer:
    """What discovery finds there."""
    told: dict[str, Any] = {
        "issuer": url,
        "authorization_endpoint": f"{url}/auth",
        "token_endpoint": f"{url}/token",
        "device_endpoint": f"{url}/device",
        "revocation_endpoint": f"{url}/revoke",
        "jwks_uri": f"{url}/jwks",
        "by_basic": True,
        "names_itself": False,
    }
    return Issuer(**(told | changed))


def attempt_at(url: str, **changed: Any) -> Attempt:
    """A sign-in there that wants no identity token."""
    return Attempt(issuer_at(url, **changed), Program(CLIENT), "profile offline_access", "mycelium")


def document(url: str, **changed: Any) -> bytes:
    """The issuer's own document."""
    told = issuer_at(url)._asdict()
    told["device_authorization_endpoint"] = told.pop("device_endpoint")
    return answer(200, told | changed)


def granted(number: int = 1, lasts_s: int = 3600, **more: Any) -> bytes:
    """Tokens, the first pair of them or the second."""
    access, refresh = SECRETS[2 * number - 2 : 2 * number]
    told = {"access_token": access, "refresh_token": refresh, "token_type": "Bearer", "expires_in": lasts_s}
    return answer(200, told | more)


def refused(error: str, **more: Any) -> bytes:
    """The issuer's no."""
    return answer(400, {"error": error} | more)


def keys(*listed: RSAKey) -> bytes:
    """The issuer's public keys."""
    return answer(200, {"keys": [key.as_dict(private=False) | {"use": "sig"} for key in listed]})


def identity(url: str, key: RSAKey = KEY, alg: str = "RS256", **changed: Any) -> str:
    """An identity token."""
    now_s = int(time.time())
    claims = {"iss": url, "aud": CLIENT, "sub": "avery", "nonce": "n1", "iat": now_s, "exp": now_s + 600}
    chosen = {name: value for name, value in (claims | changed).items() if value is not None}
    return jwt.encode({"alg": alg, "kid": key.kid}, chosen, key, algorithms=[alg])


def unsigned(token: str) -> str:
    """The same without a signature, which says that it needs none."""
    return f"{_part(json.dumps({'alg': 'none'}).encode())}.{token.split('.')[1]}."


def by_shared_secret(token: str) -> str:
    """The same, signed with the issuer's public key as if it were a secret that both sides share."""
    begun = f"{_part(json.dumps({'alg': 'HS256', 'kid': 'one'}).encode())}.{token.split('.')[1]}"
    return f"{begun}.{_part(hmac.digest(KEY.as_pem(private=False), begun.encode(), 'sha256'))}"


def _part(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


def form(request: Received) -> dict[str, str]:
    """What was sent to the issuer."""
    return {name: values[0] for name, values in parse_qs(request.body.decode()).items()}


def person_at(issuer: str, **changed: Any) -> Person:
    """Somebody who is signed in there for an hour."""
    now_s = time.time()
    told: dict[str, Any] = {
        "issuer": issuer,
        "client_id": CLIENT,
        "handle": "avery",
        "access_token": SECRETS[0],
        "expires_at": now_s + 3600,
        "lifetime_s": 3600.0,
        "refresh_token": SECRETS[1],
        "token_endpoint": f"{issuer}/token",
        "revocation_endpoint": f"{issuer}/revoke",
    }
    return Person(**(told | changed))


def served(script: list[bytes]) -> ScriptedHub:
    """An issuer with these answers, to be entered with `with`."""
    server = ScriptedHub()
    server.script = script
    return server
