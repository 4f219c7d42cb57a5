"""Requests to a person's issuer: bounded, on the command's own connections, without redirects.

What an issuer says of a failure is shown as one line, without what was sent to it.
"""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode, urlsplit

from mycelium_cli.errors import UNREACHABLE, Failure
from mycelium_cli.output import clean_line
from mycelium_cli.transport import Cut, Line, Request, Unreached

ANSWER_S = 10.0
BASIC, POST = "client_secret_basic", "client_secret_post"
_LARGEST = 1_000_000
_LONGEST_SAID = 200
_SECRET = {"code", "code_verifier", "device_code", "refresh_token"}
_HEADERS = {"Accept": "application/json", "User-Agent": "mycelium-cli"}


class Said(NamedTuple):
    """An issuer's answer: its status, and its object (empty when it was none)."""

    status: int
    document: dict[str, Any]

    @property
    def error(self) -> str:
        """Its code for what went wrong, or the status."""
        code = self.document.get("error")
        return clean_line(code)[:_LONGEST_SAID] if isinstance(code, str) and code else f"status {self.status}"


class Silent(Failure):
    """The issuer could not be asked, or had no answer now: later it may."""

    def __init__(self, url: str, cause: str) -> None:
        place = urlsplit(url)
        hint = "the same again when it can be reached"
        cause = f"the issuer at {place.scheme}://{place.netloc} can't be reached ({clean_line(cause)})"
        super().__init__(cause, exit_status=UNREACHABLE, hint=hint, slug="cli.issuer_unreachable")


class Program(NamedTuple):
    """The CLI as issuers know it: a public client, unless a secret is set."""

    client_id: str
    secret: str = ""
    by_basic: bool = True

    def proven(self, form: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
        """A form with who sends it, and the headers that prove it."""
        filled = {name: value for name, value in form.items() if value}
        if not self.secret:
            return filled | {"client_id": self.client_id}, {}
        if not self.by_basic:
            return filled | {"client_id": self.client_id, "client_secret": self.secret}, {}
        from base64 import b64encode

        # Each part in the form's own encoding first: RFC 6749, 2.3.1.
        pair = f"{quote(self.client_id, safe='')}:{quote(self.secret, safe='')}"
        return filled, {"Authorization": f"Basic {b64encode(pair.encode()).decode()}"}


def is_address(url: object) -> bool:
    """Whether an issuer can be asked there. What a hub or an issuer names may be anything."""
    if not isinstance(url, str) or not all("!" <= char <= "~" for char in url) or "\\" in url:
        return False
    try:
        place = urlsplit(url)
        told = place.scheme in {"http", "https"} and bool(place.hostname) and place.port != 0
    except ValueError:  # brackets or a port that can't be
        return False
    return told and "@" not in place.netloc


def document(issuer: str) -> Said:
    """What an issuer says of itself (OpenID Connect Discovery)."""
    return get(f"{issuer.rstrip('/')}/.well-known/openid-configuration")


def ways(told: Mapping[str, Any]) -> list[str]:
    """How a program may prove itself at the issuer's token endpoint, the better way first: `BASIC`, `POST`."""
    offered = told.get("token_endpoint_auth_methods_supported")
    return [way for way in (BASIC, POST) if not isinstance(offered, list) or way in offered] or [BASIC]


def get(url: str) -> Said:
    """Read a document."""
    return _exchange(url, {}, None, ANSWER_S)


def post(url: str, form: Mapping[str, str], program: Program, answer_s: float = ANSWER_S) -> Said:
    """Send a form as this program; what is empty is left out."""
    filled, proof = program.proven(form)
    headers = {"Content-Type": "application/x-www-form-urlencoded"} | proof
    return _exchange(url, headers, urlencode(filled).encode(), answer_s)


def refusal(said: Said, form: Mapping[str, str]) -> str:
    """Why the issuer refused, in its own words; what is secret of the form does not come back in them."""
    told = said.document.get("error_description")
    text = f"{said.error}: {clean_line(told)[:_LONGEST_SAID]}" if isinstance(told, str) and told else said.error
    for name, value in form.items():
        if name in _SECRET and value:
            text = text.replace(value, "…")
    return text


def _exchange(url: str, headers: dict[str, str], body: bytes | None, answer_s: float) -> Said:
    if not is_address(url):
        cause = f"the issuer can't be asked at {clean_line(url)[:_LONGEST_SAID]}, which is no address"
        raise Failure(cause, hint="mycelium doctor")
    place = urlsplit(url)
    target = (place.path or "/") + (f"?{place.query}" if place.query else "")
    line = Line(f"{place.scheme}://{place.netloc}")
    request = Request("GET" if body is None else "POST", target, _HEADERS | headers, body)
    try:
        response = line.ask(request, answer_s, answer_s + 5)
        content = response.read(_LARGEST)
    except (Unreached, Cut, OSError) as error:
        raise Silent(url, line.too_slow or str(error)) from None
    except Exception as error:
        from http.client import HTTPException

        if not isinstance(error, HTTPException):
            raise
        raise Silent(url, line.too_slow or type(error).__name__) from None
    finally:
        line.close()
    if response.status >= 500 or response.status == 429:
        raise Silent(url, f"status {response.status}")
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        found = None
    return Said(response.status, found if isinstance(found, dict) else {})
