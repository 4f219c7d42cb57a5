"""What to do when the hub will not have a request for who makes it: 401 and 403 as the next command to type.

The hub knows no more than the token that it got; where that came from, and so what mends it, is known here.
"""

import os

from mycelium_cli.errors import Failure
from mycelium_cli.output import clean_line

MISSING, REFUSED, FORBIDDEN = "token.missing", "token.refused", "handle.forbidden"


def explained(failure: Failure, handle: str, url: str) -> Failure:
    """The failure with a hint that fits where the token came from; other failures as they are."""
    if failure.slug == MISSING:
        failure.cause = f"the hub at {url} wants to know who you are, and no token was sent"
        failure.hint = _how_to_sign_in(handle)
    elif failure.slug == REFUSED:
        failure.hint = _how_to_renew(handle, url)
    elif failure.slug == FORBIDDEN:
        failure.hint = _how_to_speak(handle)
    return failure


def _how_to_sign_in(handle: str) -> str:
    from mycelium_cli.sign_in import agents

    for_person = "mycelium login"
    if not handle:
        return for_person
    if agents.credential_of(handle) is not None:
        return f"mycelium agent credential show {handle}"
    return f"{for_person} (or, for an agent of this machine: mycelium agent credential set {handle})"


def _how_to_renew(handle: str, url: str) -> str:
    """By the place that the token came from."""
    from mycelium_cli import context
    from mycelium_cli.sign_in import agents

    found = context.token(handle, url)
    source = found.source if found else ""
    if source == agents.TOKEN:
        return f"set {agents.TOKEN} to a new one"
    if agents.credential_of(handle) is not None:
        return f"mycelium agent credential show {handle}"
    join = context.joined()
    if join is not None and source == join.source:
        return "mycelium join <code> --replace, with a new code"
    return "mycelium login"


def _how_to_speak(handle: str) -> str:
    from mycelium_cli.setting_values import find

    named = next((name for name in find("identity.name").env if os.environ.get(name)), "")
    if named:
        return f"mycelium whoami --sources ({clean_line(named)} says @{handle})"
    return "mycelium whoami --sources"
