"""Which issuer to sign in with, and what it says of itself."""

from typing import Any, NamedTuple
from urllib.parse import urlsplit

from mycelium_cli import config, setting_values
from mycelium_cli.config import Value
from mycelium_cli.context import Here
from mycelium_cli.errors import UNREACHABLE, Failure, usage
from mycelium_cli.health import SignIn, sign_in_of
from mycelium_cli.output import clean_line, shell_word
from mycelium_cli.sign_in import asking
from mycelium_cli.transport import LOOPBACK


class Issuer(NamedTuple):
    """An issuer's own document, as far as signing in needs it."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    device_endpoint: str
    revocation_endpoint: str
    jwks_uri: str
    by_basic: bool
    names_itself: bool  # in its answer to the browser flow (RFC 9207)


def trusted(here: Here) -> SignIn | None:
    """Ask the hub which issuers it trusts, without any token; `None` when it could not be asked."""
    from mycelium_cli.api import Caller, Hub

    try:
        return sign_in_of(Hub(here.hub_url, Caller("", here.session, ""), verbose=here.verbose).look("/health"))
    except Failure:
        return None


def chosen(here: Here, flag: str | None, hub: SignIn | None) -> Value:
    """The issuer: the flag's, the setting's, or the one that the hub trusts. Nothing is guessed."""
    if flag:
        return _of_the_hub(here, Value(setting_values.checked_url(flag, "--issuer"), "--issuer"), hub)
    found = config.lookup("login.issuer")
    if found:
        return _of_the_hub(here, Value(setting_values.checked_url(str(found.value), found.source), found.source), hub)
    if hub is None:
        cause = f"the hub at {here.hub_url} can't be reached, so it can't say whom to sign in with"
        raise Failure(cause, exit_status=UNREACHABLE, hint="mycelium config set login.issuer <url>, or --issuer <url>")
    if not hub.enabled:
        cause = f"there is nothing to sign in to: the hub at {here.hub_url} has sign-in off (auth.enabled)"
        raise Failure(cause, hint="mycelium iam <handle>")
    if not hub.issuers:
        cause = f"the hub at {here.hub_url} trusts no issuer (auth.issuers)"
        raise Failure(cause, exit_status=UNREACHABLE, hint="ask who runs it to name one")
    if len(hub.issuers) > 1:
        raise usage(f"the hub trusts more than one issuer: {hub.listed}", "mycelium login --issuer <one of them>")
    if not asking.is_address(hub.issuers[0]):
        cause = f"the hub at {here.hub_url} names an issuer that is no address ({clean_line(hub.issuers[0])})"
        raise Failure(cause, exit_status=UNREACHABLE, hint="ask who runs it to mend auth.issuers")
    return Value(hub.issuers[0], here.hub_url)


def _of_the_hub(here: Here, named: Value, hub: SignIn | None) -> Value:
    """A named issuer, unless the hub is known not to trust it: its token must go nowhere else."""
    mine = str(named.value).rstrip("/")
    if hub is None or not hub.enabled or not hub.issuers:
        return named
    match = hub.named(mine)
    if match:
        return Value(match, named.source)
    cause = f"the hub at {here.hub_url} does not trust the issuer {mine} ({named.source}); it trusts {hub.listed}"
    raise usage(cause, f"mycelium login --issuer {shell_word(hub.issuers[0])}")


def discover(named: Value) -> Issuer:
    """What the issuer says of itself; it must be the one that was asked for."""
    url = str(named.value)
    _check_line(named)
    said = asking.document(url)
    told = said.document.get("issuer")
    if said.status != 200 or not isinstance(told, str):
        cause = f"{clean_line(url)} does not answer as an OIDC issuer (status {said.status})"
        raise Failure(cause, exit_status=UNREACHABLE, hint="mycelium config get login.issuer, or --issuer <url>")
    if told.rstrip("/") != url.rstrip("/"):
        cause = f"{clean_line(url)} calls itself {clean_line(told)}, so its tokens would be those of another"
        raise Failure(cause, hint=f"mycelium login --issuer {shell_word(told)}, if that is the right one")
    return Issuer(
        issuer=told,
        authorization_endpoint=_endpoint(said.document, "authorization_endpoint", told),
        token_endpoint=_endpoint(said.document, "token_endpoint", told),
        device_endpoint=_endpoint(said.document, "device_authorization_endpoint", told),
        revocation_endpoint=_endpoint(said.document, "revocation_endpoint", told),
        jwks_uri=_endpoint(said.document, "jwks_uri", told),
        by_basic=asking.ways(said.document)[0] == asking.BASIC,
        names_itself=said.document.get("authorization_response_iss_parameter_supported") is True,
    )


def is_private(url: str) -> bool:
    """Whether nobody on the way can read along: TLS, or this machine."""
    place = urlsplit(url)
    return place.scheme == "https" or (place.hostname or "") in LOOPBACK


def _check_line(named: Value) -> None:
    """Plain HTTP beyond this machine only when a person named it: then they know."""
    by_person = named.source == "--issuer" or named.source in setting_values.find("login.issuer").env
    by_person = by_person or named.source == config.path()
    if not is_private(str(named.value)) and not by_person:
        cause = (
            f"the hub names an issuer on plain HTTP, {clean_line(named.value)}: others could read what you type there"
        )
        raise usage(cause, f"mycelium login --issuer {shell_word(named.value)}, if you trust that network")


def _endpoint(document: dict[str, Any], name: str, issuer: str) -> str:
    """An address of the issuer, empty when it has none; never a less private one than its own."""
    url = document.get(name)
    if not isinstance(url, str) or not url:
        return ""
    if not asking.is_address(url) or (is_private(issuer) and not is_private(url)):
        raise Failure(
            f"the issuer {clean_line(issuer)} has an unsafe {name}: {clean_line(url)}", hint="tell who runs it"
        )
    return url
