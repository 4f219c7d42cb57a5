"""A sign-in under way: with which issuer, as which program, asking for what; and what the issuer granted."""

from typing import Any, NamedTuple

from mycelium_cli import config
from mycelium_cli.errors import FORBIDDEN, Failure
from mycelium_cli.sign_in import bearer
from mycelium_cli.sign_in.asking import Program, Said
from mycelium_cli.sign_in.discovery import Issuer
from mycelium_cli.sign_in.token_file import Person


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
    access = bearer.token_of(tokens)
    if not access:
        cause = f"the issuer {before.issuer} answered with something that is no bearer token"
        raise Failure(cause, exit_status=FORBIDDEN, hint="tell who runs it")
    lifetime_s = bearer.lasts_s(tokens)
    return before._replace(
        access_token=access,
        refresh_token=bearer.travelling(tokens.get("refresh_token")) or before.refresh_token,
        lifetime_s=lifetime_s,
        expires_at=now_s + lifetime_s if lifetime_s else 0.0,
        failed_at=0.0,
        ended="",
    )


def tokens_of(said: Said, refused: str) -> dict[str, Any]:
    """The tokens of an answer, or why there are none."""
    if said.status != 200:
        raise Failure(f"not signed in: {refused}", exit_status=FORBIDDEN, hint="mycelium login")
    return said.document
