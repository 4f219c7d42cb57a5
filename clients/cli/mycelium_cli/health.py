"""What a hub says of signing in, by its `/health`, which it tells everybody: each reader of it asks here."""

from typing import Any, NamedTuple

from mycelium_cli.output import clean_line


class SignIn(NamedTuple):
    """Whether callers sign in, with whose tokens, and what else lets them in."""

    enabled: bool = False
    issuers: tuple[str, ...] = ()
    audience: str = ""
    localhost_bypass: bool = False
    web: bool = False

    def named(self, issuer: str) -> str:
        """The trusted issuer that is this one but for a last slash, as the hub writes it; empty for none."""
        return next((one for one in self.issuers if one.rstrip("/") == issuer.rstrip("/")), "")

    @property
    def listed(self) -> str:
        """The issuers as one reads them."""
        return ", ".join(map(clean_line, self.issuers))


def sign_in_of(health: Any) -> SignIn | None:
    """What it says; `None` when that is no hub's answer."""
    auth = health.get("auth") if isinstance(health, dict) else None
    rows = (auth.get("issuers") or []) if isinstance(auth, dict) and "enabled" in auth else None
    if not isinstance(auth, dict) or not isinstance(rows, list):
        return None
    return SignIn(
        enabled=bool(auth.get("enabled")),
        issuers=tuple(str(row.get("issuer") if isinstance(row, dict) else row) for row in rows),
        audience=str(auth.get("audience") or ""),
        localhost_bypass=bool(auth.get("localhost_bypass")),
        web=bool(auth.get("web")),
    )
