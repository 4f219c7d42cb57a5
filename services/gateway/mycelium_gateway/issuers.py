"""Whose tokens the hub believes, and what it asks of them: the settings of `auth`, frozen."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

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
    names_of: str = ""  # another issuer that gives the same handles to the same people


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
    # Who may do from anywhere what else only whoever calls on the hub's own machine may.
    operators: frozenset[str] = frozenset()

    def warnings(self) -> list[str]:
        """What is set and should not stay so, a line each; `/health` and the hub's log say it."""
        if not self.enabled:
            return []
        if not self.issuers:
            return ["auth.enabled is on and no issuer is trusted: nobody can sign in; add one to auth.issuers"]
        return [line for issuer in self.issuers for line in self._warnings_of(issuer)]

    def _warnings_of(self, issuer: Issuer) -> list[str]:
        found = []
        if not (issuer.audience or self.audience):
            found.append(
                f"auth.audience is not set: tokens that {issuer.issuer} gave out for other applications are taken too"
            )
        keys = issuer.jwks_url or issuer.issuer
        if is_unprotected(keys):
            found.append(f"the keys of {issuer.issuer} are fetched without TLS from {keys}: use https outside of tests")
        return found


def is_unprotected(url: str) -> bool:
    """Whether what comes from an address can be changed on its way."""
    from mycelium_kernel.names import is_loopback  # settings are read by programs that start in no time

    parts = urlsplit(url)
    return parts.scheme == "http" and not is_loopback(parts.hostname or "")
