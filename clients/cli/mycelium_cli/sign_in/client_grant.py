"""One token by the client_credentials grant: the issuer's document, then its token endpoint.

Nothing that an issuer says is shown but its error code, so a secret that it repeats goes nowhere.
"""

import re
from typing import NamedTuple

from mycelium_cli.errors import Failure
from mycelium_cli.output import clean_line
from mycelium_cli.sign_in import asking, bearer

_UNSAID_S = 60.0  # how long a token is taken to last whose issuer doesn't say
_LONGEST_S = 86_400.0
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
    try:
        endpoint, first, *rest = _endpoint(grant.issuer)
        said = _post(grant, endpoint, first)
        if said.document.get("error") in {"invalid_client", "unauthorized_client"} and rest:
            said = _post(grant, endpoint, *rest)  # it may take the secret in one of the two ways alone
    except Failure as failure:
        raise NoToken(failure.cause) from None
    return _issued(grant, said)


def _post(grant: Grant, endpoint: str, way: str) -> asking.Said:
    form = {"grant_type": "client_credentials", "scope": grant.scopes, "audience": grant.audience}
    return asking.post(endpoint, form, asking.Program(grant.client_id, grant.secret, by_basic=way == asking.BASIC))


def _issued(grant: Grant, said: asking.Said) -> Issued:
    answer = said.document
    if said.status != 200:
        code = str(answer.get("error") or "")
        told = code if _CODE.fullmatch(code) else f"status {said.status}"
        raise NoToken(f"{grant.issuer} gives the client {clean_line(grant.client_id)} none ({told})")
    token = bearer.token_of(answer)
    if not token:
        raise NoToken(f"{grant.issuer} answered with something that is no bearer token")
    return Issued(token, min(bearer.lasts_s(answer) or _UNSAID_S, _LONGEST_S))


def _endpoint(issuer: str) -> list[str]:
    """Where the issuer gives tokens, then how a client may prove itself there, one way or two.

    The issuer must be the one that was asked for.
    """
    said = asking.document(issuer)
    named = str(said.document.get("issuer") or "")
    if said.status != 200 or not named:
        raise NoToken(f"{issuer} does not answer as an OIDC issuer (status {said.status})")
    if named.rstrip("/") != issuer.rstrip("/"):
        raise NoToken(f"{issuer} calls itself {clean_line(named)[:200]}: that belongs in agent_auth.issuer")
    endpoint = str(said.document.get("token_endpoint") or "")
    if not asking.is_address(endpoint) or (issuer.startswith("https:") and not endpoint.startswith("https:")):
        raise NoToken(f"{issuer} names no token endpoint that a secret may be sent to")
    return [endpoint, *asking.ways(said.document)]
