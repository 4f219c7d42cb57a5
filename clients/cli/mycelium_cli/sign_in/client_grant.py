"""One token by the client_credentials grant: the issuer's document, then its token endpoint.

Written on the command's own connections, which know proxies and time-outs: two small requests, for which a library of
OAuth would take longer to load than they take. Nothing that an issuer says is shown but its error code, so a secret
that it repeats goes nowhere.
"""

import json
import re
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode, urlsplit

from mycelium_cli.output import clean_line
from mycelium_cli.transport import Cut, Line, Request, Unreached

_ANSWER_S = 10.0
_WHOLE_S = 15.0
_LARGEST = 1_000_000
_LONGEST_TOKEN = 16_000
_UNSAID_S = 60.0  # how long a token is taken to last whose issuer doesn't say
_LONGEST_S = 86_400.0
_BASIC, _POST = "client_secret_basic", "client_secret_post"
_TOKEN = re.compile(r"[\x21-\x7e]+")
_CODE = re.compile(r"[a-z_]{1,64}")


class Grant(NamedTuple):
    """What an agent signs in with, and where that was found."""

    issuer: str
    client_id: str
    secret: str
    scopes: str
    audience: str
    source: str


class NoToken(Exception):
    """There is none, and why in one line."""


class Issued(NamedTuple):
    """A token, and for how many seconds from now it is good."""

    token: str
    lasts_s: float


def ask(grant: Grant) -> Issued:
    """A new token from the issuer, or `NoToken`."""
    about = _document(grant.issuer)
    endpoint = str(about.get("token_endpoint") or "")
    _check_endpoint(grant.issuer, endpoint)
    offered = about.get("token_endpoint_auth_methods_supported")
    ways = [way for way in (_BASIC, _POST) if not isinstance(offered, list) or way in offered] or [_BASIC]
    status = 0
    answer: dict[str, Any] = {}
    for way in ways:
        status, answer = _post(grant, endpoint, way)
        if answer.get("error") not in {"invalid_client", "unauthorized_client"}:
            break
    return _issued(grant, status, answer)


def _issued(grant: Grant, status: int, answer: dict[str, Any]) -> Issued:
    if status != 200:
        code = str(answer.get("error") or "")
        said = code if _CODE.fullmatch(code) else f"status {status}"
        raise NoToken(f"{grant.issuer} gives {clean_line(grant.client_id)} no token ({said})")
    token = answer.get("access_token")
    kind = str(answer.get("token_type") or "bearer").lower()
    if not isinstance(token, str) or not _TOKEN.fullmatch(token) or len(token) > _LONGEST_TOKEN or kind != "bearer":
        raise NoToken(f"{grant.issuer} answered with something that is no bearer token")
    try:
        lasts_s = float(answer.get("expires_in") or _UNSAID_S)
    except (TypeError, ValueError):
        lasts_s = _UNSAID_S
    return Issued(token, min(max(lasts_s, 1.0), _LONGEST_S))


def _document(issuer: str) -> dict[str, Any]:
    """What the issuer says of itself; it must be the one that was asked for."""
    status, about = _exchange(issuer, f"{issuer.rstrip('/')}/.well-known/openid-configuration")
    named = str(about.get("issuer") or "")
    if status != 200 or not named:
        raise NoToken(f"{issuer} does not answer as an OIDC issuer (status {status})")
    if named.rstrip("/") != issuer.rstrip("/"):
        raise NoToken(f"{issuer} calls itself {clean_line(named)[:200]}: use that as agent_auth.issuer")
    return about


def _check_endpoint(issuer: str, endpoint: str) -> None:
    """A secret goes to an http or https address only, and never from https to http."""
    scheme = endpoint.partition("://")[0]
    if scheme not in {"http", "https"} or (issuer.startswith("https:") and scheme != "https"):
        raise NoToken(f"{issuer} names no token endpoint that a secret may be sent to")


def _post(grant: Grant, endpoint: str, way: str) -> tuple[int, dict[str, Any]]:
    from base64 import b64encode

    form = {"grant_type": "client_credentials", "scope": grant.scopes, "audience": grant.audience}
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    if way == _BASIC:  # each part in the form's own encoding first (RFC 6749, 2.3.1)
        pair = f"{quote(grant.client_id, safe='')}:{quote(grant.secret, safe='')}"
        headers["Authorization"] = f"Basic {b64encode(pair.encode()).decode()}"
    else:
        form |= {"client_id": grant.client_id, "client_secret": grant.secret}
    body = urlencode({name: value for name, value in form.items() if value}).encode()
    return _exchange(grant.issuer, endpoint, headers, body)


def _exchange(
    issuer: str, url: str, headers: dict[str, str] | None = None, body: bytes | None = None
) -> tuple[int, dict[str, Any]]:
    """One request, no redirects: the status, and the answer's object."""
    from http.client import HTTPException

    place = urlsplit(url)
    target = place.path + (f"?{place.query}" if place.query else "")
    line = Line(f"{place.scheme}://{place.netloc}")
    request = Request("POST" if body is not None else "GET", target or "/", _ACCEPT | (headers or {}), body)
    try:
        response = line.ask(request, _ANSWER_S, _WHOLE_S)
        content = response.read(_LARGEST)
    except (Unreached, Cut, OSError, HTTPException) as error:
        raise NoToken(f"{issuer} can't be reached ({line.too_slow or error})") from None
    finally:
        line.close()
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        found = None
    return response.status, found if isinstance(found, dict) else {}


_ACCEPT = {"Accept": "application/json", "User-Agent": "mycelium-cli"}
