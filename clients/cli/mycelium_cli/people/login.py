"""`login` and `logout`: a person signs in at the issuer that the hub trusts, and every command sends their token."""

import os
import time
from collections.abc import Iterator
from typing import Any

import click

from mycelium_cli import config, config_writing, context
from mycelium_cli.api import Caller, Hub, api_path
from mycelium_cli.command import command
from mycelium_cli.context import Here
from mycelium_cli.errors import FORBIDDEN, Failure, usage
from mycelium_cli.handles import handle_of
from mycelium_cli.health import SignIn
from mycelium_cli.output import Paint, clean_line, shell_word
from mycelium_cli.sign_in import agents, discovery, granted, leaving, renewal, token_file
from mycelium_cli.sign_in.granted import Attempt
from mycelium_cli.sign_in.token_file import Person
from mycelium_cli.wording import Document


@command("login", example="mycelium login\nmycelium login --device  # no browser here: a code to enter elsewhere")
@click.option("--device", is_flag=True, help="Print an address and a code to enter in a browser on any machine.")
@click.option("--issuer", metavar="URL", help="With whom to sign in, where the hub trusts several.")
def login(here: Here, *, device: bool, issuer: str | None) -> None:
    """Sign in, with a browser or by a code.

    The hub is asked which issuer it trusts. From then on every command sends your token to this hub, and to no
    other; it is renewed by itself. Where no browser is found, the code is used.
    """
    _check_named(here)
    hub = discovery.trusted(here)
    named = discovery.chosen(here, issuer, hub)
    if not discovery.is_private(here.hub_url):
        here.out.note(f"warning: {here.hub_url} is plain HTTP: others on the way can read the token")
    trying = granted.attempt(discovery.discover(named))
    if hub is None:
        here.out.note(
            f"warning: the hub at {here.hub_url} can't be reached, which may not be its address: mycelium status"
        )
    person = granted.person(trying, _tokens(here, trying, by_code=device), time.time())
    handle, trouble = _handle(here, person, hub)
    person = person._replace(handle=handle)
    with renewal.locked():
        token_file.keep(here.hub_url, person)
    trouble = _become(here, person) if handle else trouble
    _remember(person.issuer)
    answer = {"handle": handle, "issuer": person.issuer, "hub": here.hub_url, "expires_at": person.expires_at or None}
    here.out.answer(answer, draw_login)
    for words in [trouble, *_overruled(handle)]:
        if words:
            here.out.note(f"warning: {words}")


def _check_named(here: Here) -> None:
    """The file of a folder may have come with somebody's repository: its hub gets nobody's token by that."""
    found = context.hub_url()
    if context.is_named_by_a_folder_alone(here.hub_url):
        cause = f"{found.source} alone names the hub at {here.hub_url}, and would have your token sent there"
        raise usage(cause, f"in another folder, or MYCELIUM_API_URL={here.hub_url} mycelium login, if you trust it")


def _tokens(here: Here, trying: Attempt, *, by_code: bool) -> dict[str, Any]:
    from mycelium_cli.sign_in import browser, device

    if not by_code and not browser.is_here():
        here.out.note("no browser is found here, so you get a code")
        by_code = True
    return device.sign_in(trying, here.out.note) if by_code else browser.sign_in(trying, here.out.note)


def _handle(here: Here, person: Person, hub: SignIn | None) -> tuple[str, str]:
    """Who that is, as the hub says it; else why it is not known. A token that the hub refuses is not kept."""
    asking = Hub(here.hub_url, Caller("", here.session, person.access_token), verbose=here.verbose)
    try:
        told: Document = asking.look(api_path("whoami"))
    except Failure as failure:
        if failure.exit_status != FORBIDDEN:
            later = "once it answers: mycelium login"
            return "", f"{failure.cause}; so who you are there is not known. Next: {later}"
        raise _refused(here, person, hub, failure) from None
    if not (told.get("auth") or {}).get("enabled"):
        return "", f"the hub at {here.hub_url} has sign-in off: it looks at no token. Next: mycelium iam <handle>"
    try:
        return handle_of(str(told.get("handle") or ""), "the handle in your token"), ""
    except Failure as failure:
        hint = "whoever runs the hub sets auth.handle_claim to a claim that holds one"
        return "", f"{failure.cause}. Next: {hint}"


def _refused(here: Here, person: Person, hub: SignIn | None, failure: Failure) -> Failure:
    """Why the sign-in is of no use here, and what to change."""
    cause = f"the hub at {here.hub_url} does not take a token of {person.issuer}: {failure.cause}"
    hint = (_remedy(person, hub, failure.cause) if hub else "") or failure.hint or "ask who runs the hub"
    return Failure(cause, exit_status=FORBIDDEN, hint=hint, problem=failure.problem)


def _remedy(person: Person, hub: SignIn, cause: str) -> str:
    """What signing in again would not change; nothing when it might."""
    if hub.issuers and person.issuer not in hub.issuers:
        listed = ", ".join(clean_line(one) for one in hub.issuers)
        return f"whoever runs the hub puts it into auth.issuers to the letter; {listed} is there"
    if "handle_claim" in cause or "can't be a handle" in cause:
        return "whoever runs the hub sets auth.handle_claim to a claim that holds a handle"
    if "audience" in cause and hub.audience and hub.audience != str(config.effective("login.audience").value):
        return f"mycelium config set login.audience {shell_word(hub.audience)}, then mycelium login"
    return ""


def _become(here: Here, person: Person) -> str:
    """Be that handle on this machine and a user of the hub, as `iam` does; what was not to be done."""
    hub = Hub(here.hub_url, Caller(person.handle, here.session, person.access_token), verbose=here.verbose)
    trouble = ""
    try:
        hub.write("PUT", api_path("users", person.handle), {})
    except Failure as failure:
        trouble = f"the hub did not take you as a user: {failure.cause}. Next: mycelium iam {person.handle}"
    try:
        config_writing.write("identity.name", person.handle)
    except Failure as failure:
        trouble = trouble or f"identity.name was not set: {failure.cause}. Next: {failure.hint}"
    return trouble


def _remember(issuer: str) -> None:
    """The next sign-in needs no hub to tell the issuer."""
    if config.lookup("login.issuer") is None:
        config_writing.write("login.issuer", issuer)


def _overruled(handle: str) -> Iterator[str]:
    """What of this shell goes before the sign-in."""
    shell = os.environ.get("MYCELIUM_AGENT_HANDLE", "")
    if handle and shell and shell.strip().removeprefix("@").lower() != handle:
        yield f"MYCELIUM_AGENT_HANDLE is set to {shell} in this shell, and wins over it"
    if os.environ.get(agents.TOKEN):
        yield f"{agents.TOKEN} is set in this shell, and wins over it"


def draw_login(answer: Document, paint: Paint) -> Iterator[str]:
    """Who one is from now on, and by whose word."""
    who = f" as {paint.bold('@' + clean_line(answer['handle']))}" if answer["handle"] else ""
    yield f"signed in{who} ({clean_line(answer['issuer'])})"


@command("logout", example="mycelium logout")
def logout(here: Here) -> None:
    """Sign out of the hub.

    The token is removed from this machine, and the issuer is told to let nobody renew it. Sign-ins at other hubs stay.
    """
    with renewal.locked():
        person = token_file.find(here.hub_url)
        token_file.keep(here.hub_url, None)
    others = token_file.everyone()
    trouble = leaving.revoke(person, others) if person else ""
    answer = {"hub": here.hub_url, "signed_out": person is not None, "others": sorted(others)}
    here.out.answer(answer, draw_logout)
    if trouble:
        here.out.note(trouble)
    if others and person is None:
        here.out.note(
            f"signed in at {', '.join(map(clean_line, others))}: MYCELIUM_API_URL names the hub to sign out of"
        )


def draw_logout(answer: Document, _paint: Paint) -> Iterator[str]:
    """Where one is no longer signed in."""
    hub = clean_line(answer["hub"])
    yield f"signed out of {hub}" if answer["signed_out"] else f"nobody was signed in at {hub}"
