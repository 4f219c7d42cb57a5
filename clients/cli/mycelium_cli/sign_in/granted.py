"""A sign-in under way: with which issuer, as which program, asking for what; and what the issuer granted."""

from typing import Any, NamedTuple, TypeGuard

from mycelium_cli import config
from mycelium_cli.errors import FORBIDDEN, Failure
from mycelium_cli.sign_in.asking import Program, Said
from mycelium_cli.sign_in.discovery import Issuer
from mycelium_cli.sign_in.token_file import Person

_LONGEST_TOKEN = 50_000


class Attempt(NamedTuple):
    """What both flows need."""

    at: Issuer
    program: Program
    scopes: str
    audience: str

    @property
    def wants_identity(self) -> bool:
        """Whether an identity token must come."""
        return "openid" in self.scopes.split()


def attempt(at: Issuer) -> Attempt:
    """With the settings of this machine."""
    told = {name: str(config.effective(f"login.{name}").value).strip() for name in
            ("client_id", "client_secret", "scopes", "audience")}  # fmt: skip
    program = Program(told["client_id"], told["client_secret"], at.by_basic)
    return Attempt(at, program, told["scopes"], told["audience"])


def person(trying: Attempt, tokens: dict[str, Any], now_s: float) -> Person:
    """What is kept of an issuer's answer, before the hub says who that is."""
    return renewed(
        Person(
            issuer=trying.at.issuer,
            client_id=trying.program.client_id,
            handle="",
            access_token="",
            expires_at=0.0,
            lifetime_s=0.0,
            token_endpoint=trying.at.token_endpoint,
            revocation_endpoint=trying.at.revocation_endpoint,
            by_basic=trying.at.by_basic,
        ),
        tokens,
        now_s,
    )


def renewed(before: Person, tokens: dict[str, Any], now_s: float) -> Person:
    """The same person with the tokens of an answer. A refresh token that is not replaced stays good."""
    access, refresh = tokens.get("access_token"), tokens.get("refresh_token")
    kind = str(tokens.get("token_type") or "bearer").lower()
    if not _travels(access) or kind != "bearer":
        cause = f"the issuer {before.issuer} answered with something that is no bearer token"
        raise Failure(cause, exit_status=FORBIDDEN, hint="tell who runs it")
    try:
        lifetime_s = max(0.0, float(tokens.get("expires_in") or 0))
    except (TypeError, ValueError):
        lifetime_s = 0.0
    return before._replace(
        access_token=access,
        refresh_token=refresh if _travels(refresh) else before.refresh_token,
        lifetime_s=lifetime_s,
        expires_at=now_s + lifetime_s if lifetime_s else 0.0,
        failed_at=0.0,
        ended="",
    )


def _travels(token: object) -> TypeGuard[str]:
    return isinstance(token, str) and 0 < len(token) <= _LONGEST_TOKEN and all("!" <= char <= "~" for char in token)


def tokens_of(said: Said, refused: str) -> dict[str, Any]:
    """The tokens of an answer, or why there are none."""
    if said.status != 200:
        raise Failure(f"not signed in: {refused}", exit_status=FORBIDDEN, hint="mycelium login")
    return said.document
