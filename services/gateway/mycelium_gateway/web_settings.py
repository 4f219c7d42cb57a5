"""The settings by which people sign in to the web app, as they stand in `config.toml` or the environment.

The hub reads them and hands them on; a gateway in a process of its own is told them by its environment.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from mycelium_gateway.issuers import AuthSettings, is_unprotected
from mycelium_kernel.settings import Setting, Value, is_web_address

CLIENT_ID = "mycelium-web"
SCOPES = "openid profile email offline_access"  # as the command line asks; most renew only with the last of them
SHORTEST_SECRET = 32


@dataclass(frozen=True)
class WebSettings:
    """At which issuer people sign in, and as which client of it.

    `internal_issuer` is where the gateway itself reaches the issuer, when that is another address than the browser's.
    `session_secret` seals the cookies; every gateway of a hub has the same.
    """

    issuer: str = ""
    internal_issuer: str = ""
    client_id: str = CLIENT_ID
    client_secret: str = field(default="", repr=False)
    audience: str = ""
    scopes: str = SCOPES
    session_secret: str = field(default="", repr=False)

    @property
    def is_on(self) -> bool:
        """Whether people can sign in by a browser at all."""
        return bool(self.issuer and self.session_secret)

    def warnings(self, auth: AuthSettings) -> list[str]:
        """What is set and does not work so, a line each; `/health` and the hub's log say it."""
        if self.issuer and not self.session_secret:
            return ["oidc.issuer is set and auth.session_secret is not: nobody can sign in to the web app"]
        if not self.is_on:
            return []
        if not auth.enabled:
            return ["oidc.issuer is set and auth.enabled is off: the web app does not ask anybody to sign in"]
        found = []
        if self.issuer not in {issuer.issuer for issuer in auth.issuers}:
            found.append(
                f"oidc.issuer is {self.issuer}, which auth.issuers does not trust: who signs in there is refused"
            )
        asked = self.internal_issuer or self.issuer
        if is_unprotected(asked):
            found.append(f"people sign in at {asked} without TLS: use https outside of tests")
        return found


def _address(written: str) -> str:
    address = written.strip()
    return f"{written!r} is no http:// or https:// address" if address and not is_web_address(address) else ""


def _secret(written: str) -> str:
    """What is wrong with a secret, which is not repeated."""
    length = len(written.strip())  # a blank says that there is none, whatever the file has
    if not length or length >= SHORTEST_SECRET:
        return ""
    return f"it has {length} characters: use {SHORTEST_SECRET} or more, such as `openssl rand -hex 32` prints"


SESSION_SECRET = Setting(
    "auth.session_secret", "str", "",
    "What the cookies of the web app are sealed with, the same for every gateway; kept in a file of its own.",
    unit="secret", aliases=("AUTH_SESSION_SECRET",), secret=True, fault=_secret,
)  # fmt: skip
CLIENT_SECRET = Setting(
    "oidc.client_secret", "str", "",
    "The secret of the web app's client, for issuers that want one; kept in a file of its own.",
    unit="secret", secret=True,
)  # fmt: skip
WEB_SETTINGS = (
    Setting(
        "oidc.issuer", "str", "",
        "The issuer at which people sign in to the web app; without it the app has no sign-in.",
        unit="url", fault=_address,
    ),
    Setting(
        "oidc.internal_issuer", "str", "",
        "Where the hub itself reaches that issuer, when the browser's address does not lead there.",
        unit="url", fault=_address,
    ),
    Setting("oidc.client_id", "str", CLIENT_ID, "The client id under which the issuer knows the web app."),
    CLIENT_SECRET,
    Setting(
        "oidc.audience", "str", "", "The audience that the web app asks for; the same as auth.audience."
    ),
    Setting("oidc.scopes", "str", SCOPES, "What the web app asks for.", unit="scopes"),
    SESSION_SECRET,
)  # fmt: skip


def web_settings(values: Mapping[str, Value]) -> WebSettings:
    """The settings by their keys, as the gateway uses them."""
    return WebSettings(
        issuer=str(values["oidc.issuer"]).strip(),
        internal_issuer=str(values["oidc.internal_issuer"]).strip(),
        client_id=str(values["oidc.client_id"]).strip() or CLIENT_ID,
        client_secret=str(values["oidc.client_secret"]).strip(),
        audience=str(values["oidc.audience"]).strip(),
        scopes=str(values["oidc.scopes"]).strip() or SCOPES,
        session_secret=str(values["auth.session_secret"]).strip(),
    )
