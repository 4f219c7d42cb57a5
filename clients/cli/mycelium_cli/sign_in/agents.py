"""An agent's token: from the environment as it is, or asked of its issuer and kept until it has expired.

`context.token` asks here before each request. Whoever started the agent, its own token goes before theirs. Without
one the request goes out as it is, so a hub with sign-in off answers; why there is none is told once.
"""

import os
import time
from typing import TYPE_CHECKING, NamedTuple

from mycelium_cli import config, setting_values, warnings_once
from mycelium_cli.config import Value
from mycelium_cli.errors import usage
from mycelium_cli.sign_in import agent_credentials
from mycelium_cli.sign_in.agent_credentials import Credential
from mycelium_cli.sign_in.client_grant import Grant, NoToken

if TYPE_CHECKING:
    from mycelium_cli.sign_in.agent_tokens import Kept

TOKEN = "MYCELIUM_AGENT_AUTH_TOKEN"  # noqa: S105 - the variable's name
CLIENT_ID = "MYCELIUM_AGENT_AUTH_CLIENT_ID"
CLIENT_SECRET = "MYCELIUM_AGENT_AUTH_CLIENT_SECRET"  # noqa: S105 - the variable's name
HANDLE = "MYCELIUM_AGENT_HANDLE"
_AGAIN_S = 30.0  # a loop that got none asks again after this long


class _Tried(NamedTuple):
    """That there was no token for a hub: when to ask again, and why; `elsewhere`: it is not for that hub at all."""

    again_s: float
    why: str = ""
    elsewhere: bool = False


class _Elsewhere(NoToken):
    """The hub is none that the agent signs in at."""


_tried: dict[tuple[str, str], _Tried] = {}


def token(handle: str, hub: str, refused: str | None = None) -> Value | None:
    """The agent's token for a hub, or nothing when it has none to use there; empty when its issuer gave it none.

    `refused` is one that the hub would not have (empty: it wants one, and none was sent): another is asked for.
    """
    found = os.environ.get(TOKEN, "").strip()
    if found:
        return Value(setting_values.plain(found, TOKEN), TOKEN)
    who = handle or own_handle()
    grant = grant_of(who) if who else None
    if grant is None:
        return None
    return _obtained(who, grant, refused, hub)


def grant_of(handle: str) -> Grant | None:
    """What an agent signs in with; `None` without a credential, or without an issuer to use it at."""
    found = credential_of(handle)
    if found is None:
        return None
    credential, source = found
    issuer, scopes, audience = asked_for(credential)
    return Grant(issuer, credential.client_id, credential.client_secret, scopes, audience, source) if issuer else None


def credential_of(handle: str) -> tuple[Credential, str] | None:
    """The environment's credential when it is that agent's, else the one kept here; and where it was found."""
    return _from_environment(handle) or _kept_here(handle)


def asked_for(credential: Credential) -> tuple[str, str, str]:
    """Where a token is asked for, with which scopes, and for whom."""
    issuer, scopes, audience = (
        str(config.effective(f"agent_auth.{name}").value) for name in ("issuer", "scopes", "audience")
    )
    return credential.issuer or issuer, scopes, audience


def own_handle() -> str:
    """Whose credential the environment holds: the handle that it names, else its client id; empty without one."""
    if not os.environ.get(CLIENT_SECRET):
        return ""
    return (os.environ.get(HANDLE) or os.environ.get(CLIENT_ID) or "").strip().removeprefix("@").lower()


def _from_environment(handle: str) -> tuple[Credential, str] | None:
    if not handle or handle != own_handle():
        return None
    client_id = os.environ.get(CLIENT_ID, "").strip() or handle
    return Credential(client_id, os.environ[CLIENT_SECRET].strip()), CLIENT_SECRET


def _kept_here(handle: str) -> tuple[Credential, str] | None:
    found = agent_credentials.read().get(handle)
    return (found, agent_credentials.path()) if found else None


def _obtained(handle: str, grant: Grant, refused: str | None, hub: str) -> Value | None:
    from mycelium_cli.sign_in import agent_tokens

    asked_as = [grant.issuer, grant.client_id, grant.scopes, grant.audience]
    kept = agent_tokens.read(handle, asked_as)
    if _serves(kept, hub, refused):
        return Value(kept.token, grant.source)
    tried = _tried.get((handle, hub), _Tried(0.0))
    if refused is not None or time.monotonic() >= tried.again_s:
        try:
            return Value(_renewed(handle, grant, asked_as, refused, hub), grant.source)
        except NoToken as why:
            tried = _Tried(time.monotonic() + _AGAIN_S, str(why), elsewhere=isinstance(why, _Elsewhere))
            _tried[handle, hub] = tried
    usable = kept.token != refused and hub in kept.hubs and time.time() < kept.expires_at
    if usable and tried.why and not tried.elsewhere:  # the issuer gave no other: its last seconds are better than none
        return Value(kept.token, grant.source)
    if tried.why:
        warnings_once.warn(
            f"@{handle} has no token: {tried.why}. Going on without. Next: mycelium agent credential show {handle}"
        )
    return None if tried.elsewhere else Value("", grant.source)


def _serves(kept: "Kept", hub: str, refused: str | None) -> bool:
    return kept.is_good(time.time()) and kept.token != refused and hub in kept.hubs


def _renewed(handle: str, grant: Grant, asked_as: list[str], refused: str | None, hub: str) -> str:
    """A token for a hub that trusts its issuer: one of all who wait asks, the rest take what it got."""
    from mycelium_cli.sign_in import agent_tokens, client_grant

    with agent_tokens.locked(handle) as since_s:
        kept = agent_tokens.read(handle, asked_as)
        if _serves(kept, hub, refused):
            return kept.token
        _check_trust(hub, grant.issuer, known=hub in kept.hubs)
        if not kept.is_good(time.time()) or kept.token == refused:
            if kept.failed_at >= since_s:
                raise NoToken(kept.why)
            try:
                issued = client_grant.ask(grant)
            except NoToken as why:
                agent_tokens.write(handle, kept._replace(failed_at=time.time(), why=str(why)))
                raise
            # Every hub says anew whether it trusts the issuer: another one may answer at that address by now.
            kept = agent_tokens.Kept(asked_as, issued.token, time.time() + issued.lasts_s, issued.lasts_s)
        agent_tokens.write(handle, kept.and_hub(hub))
        return kept.token


def _check_trust(hub: str, issuer: str, *, known: bool) -> None:
    """Fails unless the hub trusts the issuer. Where nobody has to sign in it gets no token either; nothing is told."""
    from mycelium_cli.sign_in.trust import Trust, asked

    said = asked(hub, issuer)
    if said is Trust.NO:
        raise _Elsewhere(f"the hub at {hub} does not trust {issuer}")
    if said is not Trust.YES and not (known and said is Trust.AWAY):
        raise NoToken


def checked_secret(value: str) -> str:
    """A client's secret as it can be sent, or a refusal that does not repeat it."""
    if not value:
        raise usage("the secret is empty", "type it when asked, or --secret-stdin < secret.txt")
    if not value.isascii() or not value.isprintable():
        raise usage("the secret holds a character that is not printable ASCII; what came is not shown")
    return value
