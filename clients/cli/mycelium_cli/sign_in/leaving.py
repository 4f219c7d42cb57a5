"""Telling the issuer that a sign-in is over (RFC 7009), as far as it listens."""

from collections.abc import Mapping

from mycelium_cli import config
from mycelium_cli.errors import Failure
from mycelium_cli.sign_in import asking
from mycelium_cli.sign_in.asking import Program
from mycelium_cli.sign_in.token_file import Person

_WITHIN_S = 5.0


def revoke(person: Person, others: Mapping[str, Person]) -> str:
    """Revoke what renews the sign-in, and the token; why that was not done, in one line.

    To the issuer, two sign-ins of one browser may be one grant: revoking this would end that at another hub too.
    """
    if not person.revocation_endpoint:
        return ""
    for hub, other in sorted(others.items()):
        if (other.issuer, other.client_id) == (person.issuer, person.client_id) and other.access_token:
            return f"{person.issuer} was not told, since it keeps you signed in at {hub} too"
    secret = str(config.effective("login.client_secret").value)
    program = Program(person.client_id, secret, person.by_basic)
    for kind, token in (("refresh_token", person.refresh_token), ("access_token", person.access_token)):
        if not token:
            continue
        try:
            said = asking.post(
                person.revocation_endpoint, {"token": token, "token_type_hint": kind}, program, _WITHIN_S
            )
        except Failure as failure:
            return f"warning: {failure.cause}; it was not told, so the token is good until it expires"
        # A token that can't be revoked, being self-contained, ends by its time: nothing to worry about.
        if said.status >= 400 and kind == "refresh_token":
            return f"warning: {person.issuer} did not revoke the sign-in ({said.error}); it ends by its time"
    return ""
