"""Looks at signing in: what the hub asks for, what requests from here are sent with, and whether the two fit."""

import base64
import json
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

from mycelium_cli import config, context
from mycelium_cli.config import Value
from mycelium_cli.doctor.finding import NOTE, OK, WRONG, Finding
from mycelium_cli.errors import Failure
from mycelium_cli.handles import handle_of
from mycelium_cli.health import SignIn, sign_in_of
from mycelium_cli.output import clean_line, shell_word
from mycelium_cli.sign_in import agents, token_file
from mycelium_cli.sign_in.token_file import Person
from mycelium_cli.wording import Document

_PART = "sign-in"
_SKEW_S = 60.0
WARNING = "sign-in: "  # how the hub begins what it warns of
_SIGN_IN = "mycelium login, or for an agent: mycelium agent credential set <handle>"


class Held(NamedTuple):
    """What requests are sent with: where it is from, and what is known of it here."""

    source: str
    claims: dict[str, Any]
    person: Person | None

    @property
    def issuer(self) -> str:
        """Who gave it; empty when that can't be told, as of a token of the hub's own."""
        issuer = self.claims.get("iss")
        return issuer if isinstance(issuer, str) else self.person.issuer if self.person else ""


def check(health: Document, *, own: bool) -> Iterator[Finding]:
    """With sign-in off, that nobody is asked; with it on, everything between here and there."""
    auth = sign_in_of(health) or SignIn()
    if not auth.enabled:
        yield _off(own=own)
        return
    yield from _of_the_hub(health, auth, own=own)
    url = str(context.hub_url().value)
    secret = context.token()
    if secret is None:
        yield _nothing(url, bypassed=own and auth.localhost_bypass)
    else:
        held = _held(secret, url)
        yield _signed_in(held)
        yield from _issuer(held, auth)
        yield from _clock(held)
    yield from _who(url)


def _off(*, own: bool) -> Finding:
    if own:
        return Finding(_PART, OK, "off: everybody who can reach the hub is who they say")
    seen = "off, although the hub is on another machine: everybody is who they say"
    return Finding(_PART, NOTE, seen, "turn sign-in on at the hub, or let only people reach it whom you trust")


def _of_the_hub(health: Document, auth: SignIn, *, own: bool) -> Iterator[Finding]:
    """What the hub says of its own settings."""
    where = "[[auth.issuers]] in config.toml, then mycelium config apply"
    for warning in health.get("warnings") or []:
        if str(warning).startswith(WARNING):
            said = clean_line(warning).removeprefix(WARNING)
            hint = where if own else "tell who runs the hub"
            yield Finding(_PART, NOTE if auth.issuers else WRONG, said, hint)
    if own and auth.localhost_bypass:
        yield Finding(_PART, OK, "the hub's own machine needs no token (auth.localhost_bypass)")


def check_settings() -> Iterator[Finding]:
    """What a hub that does not run would be started with."""
    if config.effective("auth.enabled").value is not True:
        return
    if not config.effective("auth.issuers").value:
        seen = "auth.enabled is on and no issuer is trusted: nobody could sign in"
        yield Finding(_PART, WRONG, seen, f"[[auth.issuers]] in {config.path()}")
    elif not config.effective("auth.audience").value:
        seen = "auth.audience is not set: tokens for other applications would be taken too"
        yield Finding(_PART, NOTE, seen, "mycelium config set auth.audience <audience>")


def _nothing(url: str, *, bypassed: bool) -> Finding:
    """Nothing is sent, and why not."""
    person = token_file.find(url)
    if person is not None:
        return _ended(person)
    who = context.handle(None)
    handle = str(who.value) if who else agents.own_handle()
    if handle and agents.credential_of(handle) is not None:
        return _agent_without(handle)
    if bypassed:
        return Finding(_PART, OK, "on, and not needed here; nobody is signed in")
    elsewhere = sorted(clean_line(hub) for hub in token_file.everyone())
    but = f", but at {', '.join(elsewhere)}" if elsewhere else ""
    return Finding(_PART, WRONG, f"on, and nobody is signed in here{but}", _SIGN_IN)


def _ended(person: Person) -> Finding:
    issuer = clean_line(person.issuer)
    if person.ended:
        seen = f"the sign-in at {issuer} has ended: {clean_line(person.ended)}"
    elif not person.refresh_token:
        seen = f"the sign-in at {issuer} was over at {_at(person.expires_at)}; the issuer gave nothing to renew it with"
    elif person.failed_at:
        seen = f"the sign-in at {issuer} was over at {_at(person.expires_at)}; the issuer has not renewed it"
    else:
        seen = f"the sign-in at {issuer} was over at {_at(person.expires_at)} and could not be renewed"
    return Finding(_PART, WRONG, seen, "mycelium login")


def _agent_without(handle: str) -> Finding:
    """An agent that has a credential, and no token by it."""
    from mycelium_cli.sign_in import agent_tokens

    hint = f"mycelium agent credential show {handle}"
    if agents.grant_of(handle) is None:
        seen = f"@{handle} has a credential, and no issuer to use it at"
        return Finding(_PART, WRONG, seen, "mycelium config set agent_auth.issuer <url>")
    kept = agent_tokens.any_of(handle)
    why = f": {clean_line(kept.why)}" if kept and kept.why else ""
    return Finding(_PART, WRONG, f"@{handle} has a credential, and got no token for this hub{why}", hint)


def _held(secret: Value, url: str) -> Held:
    person = token_file.find(url) if secret.source == token_file.path() else None
    return Held(secret.source, _claims(str(secret.value)), person)


def _claims(token: str) -> dict[str, Any]:
    """What a token says of itself, unchecked; nothing when it is no JWT."""
    try:
        part = token.split(".")[1]
        said = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    except (IndexError, ValueError, RecursionError):
        return {}
    return said if isinstance(said, dict) else {}


def _signed_in(held: Held) -> Finding:
    """By what, as whom, until when, and what becomes of it then."""
    person = held.person
    if person is None:
        ends_s = _number(held.claims.get("exp"))
        until = f", until {_at(ends_s)}" if ends_s else ""
        if ends_s and ends_s < time.time():
            return Finding(_PART, WRONG, f"on; the token of {held.source} was over at {_at(ends_s)}", "get another")
        return Finding(_PART, OK, f"on; the token comes from {held.source}{until}")
    seen = f"on; signed in as @{clean_line(person.handle)} at {clean_line(person.issuer)}"
    if not person.expires_at:
        return Finding(_PART, OK, seen)
    if not person.refresh_token:
        seen += f", until {_at(person.expires_at)}; the issuer gave nothing to renew it with"
        return Finding(_PART, NOTE, seen, "mycelium login, then")
    if person.failed_at:
        return Finding(_PART, NOTE, f"{seen}, until {_at(person.expires_at)}; the issuer did not renew it just now")
    return Finding(_PART, OK, f"{seen}, until {_at(person.expires_at)}, renewed by itself")


def _issuer(held: Held, auth: SignIn) -> Iterator[Finding]:
    """Whether the hub trusts who gave it, and whether they answer."""
    if not held.issuer:
        return
    mine = clean_line(held.issuer)
    if not auth.named(held.issuer):
        hint = f"mycelium login --issuer {shell_word(auth.issuers[0])}" if auth.issuers else "tell who runs the hub"
        yield Finding(_PART, WRONG, f"the token is of {mine}; the hub trusts {auth.listed or 'nobody'}", hint)
        return
    from mycelium_cli.sign_in import discovery

    try:
        discovery.discover(Value(held.issuer, "--issuer"))
    except Failure as failure:
        yield Finding(_PART, NOTE, f"{failure.cause}: nothing can be renewed now", failure.hint)


def _clock(held: Held) -> Iterator[Finding]:
    """This machine's clock against the issuer's, by what it wrote into the token."""
    begins_s = max(_number(held.claims.get("iat")), _number(held.claims.get("nbf")))
    early_s = begins_s - time.time()
    ends_s = _number(held.claims.get("exp"))
    ahead_s = held.person.expires_at - ends_s if held.person and held.person.expires_at and ends_s else 0.0
    hint = "timedatectl set-ntp true, on the machine that is wrong"
    if early_s > _SKEW_S:
        seen = f"this machine's clock is at least {early_s:.0f} s behind the issuer's: the token begins later"
        yield Finding(_PART, WRONG, seen, hint)
    elif abs(ahead_s) > _SKEW_S:
        where = "ahead of" if ahead_s > 0 else "behind"
        seen = f"this machine's clock was {abs(ahead_s):.0f} s {where} the issuer's when the token came"
        yield Finding(_PART, NOTE, seen, hint)


def _who(url: str) -> Iterator[Finding]:
    """Who commands say they are against whom the sign-in is of: which wins."""
    person, acting = token_file.find(url), context.handle(None)
    if person is None or not person.handle or not person.access_token:
        return
    set_here = config.from_file("identity.name")
    mine = clean_line(person.handle)
    if acting is not None and acting.value != person.handle:
        secret = context.token()
        if secret is not None and secret.source == token_file.path():
            other = str(acting.value)
            seen = f"{acting.source} says @{other}, and the sign-in is @{mine}'s: as @{other} you are refused"
            yield Finding("identity", WRONG, seen, f"sign in as @{other}, or take it out of {acting.source}")
    elif set_here is not None and handle_of(str(set_here.value), set_here.source) != person.handle:
        seen = f"identity.name is {clean_line(set_here.value)}, but the sign-in as @{mine} wins over it"
        yield Finding("identity", NOTE, seen, f"mycelium config set identity.name {mine}")


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else 0.0


def _at(time_s: float) -> str:
    """A moment, as times are printed."""
    try:
        return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time_s))
    except (ValueError, OverflowError, OSError):
        return "a time that is none"
