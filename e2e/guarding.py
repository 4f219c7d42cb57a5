"""Settings of a hub where nobody is anybody without a token, not on its own machine either; for tests and the bench."""

import json
from collections.abc import Mapping

from e2e.oidc_server import AUDIENCE, OidcServer

OPERATOR = "ops-on-call"  # one of `auth.operators` of the hub that tests share
NO_LEEWAY = {"MYCELIUM_AUTH_LEEWAY_S": "0"}  # so that a token has ended when it says so, not a minute later


def guarded(*issuers: OidcServer | Mapping[str, str]) -> dict[str, str]:
    """The settings of one that trusts these: an issuer alone is one of people, others are tables of `auth.issuers`."""
    tables = [{"issuer": one.issuer, "role": "user"} if isinstance(one, OidcServer) else dict(one) for one in issuers]
    return {
        "MYCELIUM_AUTH_ENABLED": "true",
        "MYCELIUM_AUTH_AUDIENCE": AUDIENCE,
        "MYCELIUM_AUTH_ISSUERS": json.dumps(tables),
        "MYCELIUM_AUTH_LOCALHOST_BYPASS": "false",
    }
