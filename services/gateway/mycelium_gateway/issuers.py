"""Whose tokens the hub believes, and what it asks of them: the settings of `auth`, frozen."""

from __future__ import annotations

from dataclasses import dataclass

HANDLE_CLAIM = "sub"
ROLE_CLAIM = "mycelium_role"


@dataclass(frozen=True)
class Issuer:
    """One trusted issuer. What is empty is taken from the settings of all, or looked up at the issuer (`jwks_url`)."""

    issuer: str
    jwks_url: str = ""
    audience: str = ""
    role: str = ""
    handle_claim: str = ""
    role_claim: str = ""


@dataclass(frozen=True)
class AuthSettings:
    """Whether callers must sign in, and with what."""

    enabled: bool = False
    issuers: tuple[Issuer, ...] = ()
    audience: str = ""
    localhost_bypass: bool = True
    handle_claim: str = HANDLE_CLAIM
    role_claim: str = ROLE_CLAIM
    leeway_s: float = 60.0
    jwks_ttl_s: float = 300.0

    def warnings(self) -> list[str]:
        """What is set and should not stay so, a line each; `/health` and the hub's log say it."""
        return []
