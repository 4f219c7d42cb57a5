"""The identity token of a sign-in: signed by its issuer, for this program, in answer to this very request.

Loads Authlib and joserfc, which only a sign-in does.
"""

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from mycelium_cli.errors import FORBIDDEN, Failure
from mycelium_cli.sign_in import asking
from mycelium_cli.sign_in.discovery import Issuer

if TYPE_CHECKING:
    from joserfc.jwk import KeySet

ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"]
_KINDS = {"RSA", "EC", "OKP"}
_LEEWAY_S = 60
_LONGEST = 100_000


def check(at: Issuer, client_id: str, tokens: dict[str, Any], *, nonce: str = "", wanted: bool = True) -> None:
    """Refuse the sign-in unless the token holds. Without one: unless none was `wanted`."""
    found = tokens.get("id_token")
    if not found and not wanted:
        return
    if not isinstance(found, str) or len(found) > _LONGEST:
        raise _refused(at, "there is none")
    from authlib.oidc.core import CodeIDToken
    from joserfc import jwt
    from joserfc.errors import JoseError

    try:
        decoded = jwt.decode(found, _keys(at), algorithms=ALGORITHMS)
        options: Any = {
            "iss": {"essential": True, "value": at.issuer},
            "aud": {"essential": True, "value": client_id},
        }
        params = {"nonce": nonce, "client_id": client_id, "access_token": tokens.get("access_token")}
        CodeIDToken(decoded.claims, decoded.header, options, params).validate(leeway=_LEEWAY_S)
    except (JoseError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise _refused(
            at, getattr(error, "error", "") or type(error).__name__, str(getattr(error, "claim", ""))
        ) from None


def _keys(at: Issuer) -> "KeySet":
    """The keys with which the issuer signs. What can't be read as one is passed over (RFC 7517, 5)."""
    from joserfc.errors import JoseError
    from joserfc.jwk import JWKRegistry, KeySet

    said = asking.get(at.jwks_uri) if at.jwks_uri else None
    listed = said.document.get("keys") if said else None
    keys = []
    for key in listed if isinstance(listed, list) else []:
        with suppress(JoseError, ValueError, TypeError, KeyError, AttributeError):
            if key["kty"] in _KINDS and key.get("use", "sig") == "sig":
                keys.append(JWKRegistry.import_key(key))
    return KeySet(keys)


def _refused(at: Issuer, why: str, claim: str = "") -> Failure:
    about = f"{why}, {claim}" if claim else why
    cause = f"the identity token of {at.issuer} does not hold ({about}), so nobody is signed in"
    return Failure(cause, exit_status=FORBIDDEN, hint="mycelium login, and if it comes again, tell who runs the issuer")
