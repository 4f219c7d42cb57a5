"""Tokens made by hand: good ones by every algorithm, and every kind of forgery that a hub must refuse.

`FORGERIES` is the table: a name, what makes the token (given the algorithm), and words of the refusal. Each is a good
token in all but the one point, so that nothing else refuses it.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import hmac
import json
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from joserfc.jwk import ECKey, RSAKey
from joserfc.jws import JWSRegistry

ISSUER, OTHER_ISSUER, AUDIENCE = "https://people.example/realms/mycelium", "https://agents.example", "mycelium"
ALGORITHMS = [family + bits for family in ("RS", "PS", "ES") for bits in ("256", "384", "512")]
CURVES = {"ES256": "P-256", "ES384": "P-384", "ES512": "P-521"}
# Stands in every forged token, and must stand nowhere else.
SECRET = "fly-agaric"


@functools.cache
def key(owner: str, name: str) -> Any:
    """A private key: "rsa", or the name of a curve."""
    return RSAKey.generate_key(2048) if name == "rsa" else ECKey.generate_key(name)


def key_name(algorithm: str) -> str:
    return CURVES.get(algorithm, "rsa")


def published(owner: str = ISSUER) -> dict[str, Any]:
    """What this issuer publishes: one key for RS and PS, and one for each curve."""
    names = ["rsa", *CURVES.values()]
    return {"keys": [{**key(owner, name).as_dict(private=False), "kid": name, "use": "sig"} for name in names]}


def b64(data: bytes | str | dict[str, Any]) -> str:
    raw = json.dumps(data) if isinstance(data, dict) else data
    return base64.urlsafe_b64encode(raw.encode() if isinstance(raw, str) else raw).rstrip(b"=").decode()


def claims(**changed: Any) -> dict[str, Any]:
    """Good claims; a change to `...` leaves one out."""
    now = int(time.time())
    good = {"iss": ISSUER, "aud": AUDIENCE, "sub": "alice", "iat": now, "exp": now + 300, "email": SECRET}
    return {name: value for name, value in {**good, **changed}.items() if value is not ...}


def header(algorithm: str, **changed: Any) -> dict[str, Any]:
    good = {"alg": algorithm, "typ": "at+jwt", "kid": key_name(algorithm)}
    return {name: value for name, value in {**good, **changed}.items() if value is not ...}


def signed(head: str, body: str, algorithm: str, owner: str = ISSUER, key_of: str = "") -> str:
    """The token of two texts, signed by this algorithm with the owner's key."""
    message = f"{head}.{body}"
    signature = JWSRegistry.algorithms[algorithm].sign(message.encode(), key(owner, key_of or key_name(algorithm)))
    return f"{message}.{b64(signature)}"


def token(algorithm: str = "RS256", owner: str = ISSUER, head: dict[str, Any] | None = None, **changed: Any) -> str:
    """A good token but for what is changed: `head` in its header, the rest in its claims."""
    return signed(b64(header(algorithm, **(head or {}))), b64(claims(**changed)), algorithm, owner)


# --- the kinds --------------------------------------------------------------------------------------------------------


class Forgery(NamedTuple):
    """One kind: what makes it, and words of the refusal."""

    name: str
    make: Callable[[str], str]
    words: str


def unsigned(written: str) -> Callable[[str], str]:
    return lambda alg: f"{b64(header(alg, alg=written))}.{b64(claims())}."


def unsigned_with_a_signature(alg: str) -> str:
    return f"{b64(header(alg, alg='none'))}.{b64(claims())}.{token(alg).rpartition('.')[2]}"


def confused(form: str) -> Callable[[str], str]:
    """Signed with the public key, as if it were a shared secret."""

    def make(alg: str) -> str:
        public = key(ISSUER, key_name(alg))
        secret = {
            "pem": public.as_pem(private=False),
            "der": public.as_der(private=False),
            "jwk": json.dumps(public.as_dict(private=False)).encode(),
        }[form]
        message = f"{b64(header(alg, alg=f'HS{alg[2:]}'))}.{b64(claims())}"
        return f"{message}.{b64(hmac.digest(secret, message.encode(), f'sha{alg[2:]}'))}"

    return make


def edwards(alg: str) -> str:
    message = f"{b64(header(alg, alg='EdDSA'))}.{b64(claims())}"
    return f"{message}.{b64(Ed25519PrivateKey.generate().sign(message.encode()))}"


def brings_its_key(member: str) -> Callable[[str], str]:
    """Signed with the forger's key, which the header brings or points to."""

    def make(alg: str) -> str:
        forgers = key("forger", key_name(alg)).as_dict(private=False)
        brought = {
            "jwk": forgers,
            "jku": f"https://{SECRET}.example/jwks",
            "x5u": f"https://{SECRET}.example/x5u",
            "x5c": [b64(SECRET)],
        }
        return token(alg, "forger", {member: brought[member]})

    return make


def detached(alg: str) -> str:
    """By RFC 7797: the claims stand in the token as they are signed, not encoded."""
    body = b64(claims())
    return signed(b64(header(alg, b64=False, crit=["b64"])), body, alg)


def by_another_family(alg: str) -> str:
    """Signed well, by a key of another kind than the algorithm's; the header names that key."""
    other = "RS256" if alg in CURVES else "ES256"
    head, body = b64(header(alg, kid=key_name(other))), b64(claims())
    return signed(head, body, other)


def altered(part: int) -> Callable[[str], str]:
    def make(alg: str) -> str:
        parts = token(alg).split(".")
        parts[part] = [b64(header(alg, cty="x")), b64(claims(sub="bob"))][part]
        return ".".join(parts)

    return make


def resigned(change: Callable[[bytes], bytes]) -> Callable[[str], str]:
    """With another signature, made of the right one."""

    def make(alg: str) -> str:
        message, _, signature = token(alg).rpartition(".")
        return f"{message}.{b64(change(base64.urlsafe_b64decode(signature + '===')))}"

    return make


def der(signature: bytes) -> bytes:
    half = len(signature) // 2
    return encode_dss_signature(int.from_bytes(signature[:half]), int.from_bytes(signature[half:]))


def loose_bits(alg: str) -> str:
    """The same bytes of signature in another text: the last character's spare bits are set."""
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    good = token(alg)
    if len(good.rpartition(".")[2]) % 4 == 0:  # there are no spare bits: 384-bit signatures
        return good + "A"
    return good[:-1] + alphabet[alphabet.index(good[-1]) + 1]


def texts(head: Callable[[str], str] | None = None, body: Callable[[], str] | None = None) -> Callable[[str], str]:
    """Of JSON written by hand, signed well."""

    def make(alg: str) -> str:
        written = head(json.dumps(header(alg))) if head else json.dumps(header(alg))
        return signed(b64(written), b64(body() if body else claims()), alg)

    return make


def twice(name: str, value: Any) -> Callable[[str], str]:
    return texts(body=lambda: f'{{"{name}": {json.dumps(value)}, {json.dumps(claims())[1:]}')


def with_head(**changed: Any) -> Callable[[str], str]:
    return lambda alg: token(alg, head=changed)


def with_claims(**changed: Any) -> Callable[[str], str]:
    return lambda alg: token(alg, **changed)


def at(name: str, seconds: float) -> Callable[[str], str]:
    """With a time that is counted from when the token is made."""

    def make(alg: str) -> str:
        return with_claims(**{name: time.time() + seconds})(alg)

    return make


ALGORITHM, UNREADABLE, BROKEN = "algorithm is not accepted", "can't be read", "not three parts"
KEY, TIME, WHOSE = "not by a key", "is no time", "issuer is not one"
FORGERIES = [
    *(Forgery(f"alg {written}", unsigned(written), BROKEN) for written in ("none", "None", "NONE", "nOnE")),
    Forgery("alg none, with a signature", unsigned_with_a_signature, ALGORITHM),
    *(Forgery(f"HS by the public key, {form}", confused(form), ALGORITHM) for form in ("pem", "der", "jwk")),
    Forgery("EdDSA", edwards, ALGORITHM),
    *(Forgery(f"alg {alg!r}", with_head(alg=alg), ALGORITHM) for alg in (..., "", "ES256K", 1, None, ["RS256"])),
    Forgery("alg in lower case", lambda alg: token(alg, head={"alg": alg.lower()}), ALGORITHM),
    *(Forgery(f"brings {name}", brings_its_key(name), name) for name in ("jwk", "jku", "x5u", "x5c")),
    *(Forgery(f"crit {crit}", with_head(crit=crit), "crit") for crit in (["exp"], ["b64"], ["x"], [], None)),
    Forgery("claims not encoded", detached, "crit"),
    *(Forgery(f"b64 {value}", with_head(b64=value), "b64") for value in (True, False)),
    *(Forgery(f"has {name}", with_head(**{name: "x"}), name) for name in ("enc", "zip")),
    *(
        Forgery(f"typ {typ!r}", with_head(typ=typ), "typ")
        for typ in ("", "JWE", "JOSE", "logout+jwt", "secevent+jwt", "dpop+jwt", None, 1)
    ),
    *(Forgery(f"kid {kid!r}", with_head(kid=kid), "kid") for kid in ("", None, 7, ["rsa"], "k" * 2_000)),
    *(Forgery(f"kid {kid!r}", with_head(kid=kid), KEY) for kid in ("../../dev/null", "' OR 1=1", SECRET)),
    Forgery("kid of another key of the issuer", by_another_family, KEY),
    Forgery("the forger's key under a known kid", lambda alg: token(alg, "forger"), KEY),
    Forgery("the forger's key without kid", lambda alg: token(alg, "forger", {"kid": ...}), KEY),
    Forgery("the key of another issuer", lambda alg: token(alg, OTHER_ISSUER), KEY),
    Forgery("the name of another issuer", with_claims(iss=OTHER_ISSUER), KEY),
    Forgery("header altered", altered(0), KEY),
    Forgery("claims altered", altered(1), KEY),
    Forgery("signature of zeros", resigned(lambda found: bytes(len(found))), KEY),
    Forgery("signature of ones", resigned(lambda found: b"\xff" * len(found)), KEY),
    Forgery("signature cut", resigned(lambda found: found[:-1]), KEY),
    Forgery("signature with more behind it", resigned(lambda found: found + b"\0"), KEY),
    Forgery("signature in DER", resigned(der), KEY),
    Forgery("signature by its digest alone", resigned(lambda found: hashlib.sha256(found).digest()), KEY),
    Forgery("signature with loose bits", loose_bits, "no base64url"),
    Forgery("padded", lambda alg: token(alg) + "==", BROKEN),
    Forgery("a line break", lambda alg: token(alg) + "\n", BROKEN),
    Forgery("no signature", lambda alg: token(alg).rpartition(".")[0], BROKEN),
    Forgery("an empty signature", lambda alg: token(alg).rpartition(".")[0] + ".", BROKEN),
    Forgery("five parts", lambda alg: token(alg) + ".AAAA.AAAA", BROKEN),
    Forgery("not of ASCII", lambda alg: token(alg) + "é", BROKEN),
    Forgery("as JSON", lambda alg: json.dumps({"protected": token(alg).partition(".")[0]}), BROKEN),
    Forgery("not a token", lambda _alg: SECRET, BROKEN),
    Forgery("empty", lambda _alg: "", BROKEN),
    Forgery("oversize", with_claims(padding="x" * 20_000), "more than"),
    Forgery("header names alg twice", texts(lambda text: f'{{"alg": "none", {text[1:]}'), UNREADABLE),
    Forgery("claims name sub twice", twice("sub", "bob"), UNREADABLE),
    Forgery("claims name exp twice", twice("exp", 1e11), UNREADABLE),
    Forgery("a claim within names one twice", texts(body=lambda: '{"a": {"b": 1, "b": 2}}'), UNREADABLE),
    Forgery("header is no JSON", texts(lambda _text: "{"), UNREADABLE),
    Forgery("header is a list", texts(lambda text: f"[{text}]"), "no JSON object"),
    Forgery("header after a mark of order", texts(lambda text: "\ufeff" + text), UNREADABLE),
    Forgery("claims are no JSON", texts(body=lambda: SECRET), UNREADABLE),
    Forgery("claims are a list", texts(body=lambda: "[]"), "no JSON object"),
    Forgery("claims are deep", texts(body=lambda: "[" * 6_000), UNREADABLE),
    Forgery("claims hold NaN", texts(body=lambda: json.dumps(claims(exp=float("nan")))), UNREADABLE),
    Forgery("a number of many digits", texts(body=lambda: f'{{"exp": {"9" * 5_000}}}'), UNREADABLE),
    *(
        Forgery(f"iss {iss!r}", with_claims(iss=iss), WHOSE)
        for iss in (..., None, "", [ISSUER], ISSUER + "/", ISSUER.upper(), ISSUER + "\0", "https://evil.example")
    ),
    *(
        Forgery(f"aud {aud!r}", with_claims(aud=aud), "another audience")
        for aud in (..., [], "", "myceliu", "Mycelium", "mycelium ", ["other"], "mycelium-web")
    ),
    *(Forgery(f"aud {aud!r}", with_claims(aud=aud), "`aud`") for aud in (None, 1, {"mycelium": 1}, ["mycelium", 1])),
    Forgery("exp missing", with_claims(exp=...), "when it expires"),
    Forgery("expired", at("exp", -61), "Signature has expired"),
    *(Forgery(f"exp {exp!r}", with_claims(exp=exp), TIME) for exp in (None, "2100-01-01", True, -1, [1], 1e300)),
    Forgery("not valid yet", at("nbf", 90), "not valid yet"),
    *(Forgery(f"nbf {nbf!r}", with_claims(nbf=nbf), TIME) for nbf in (None, "0", True, [0])),
    Forgery("of the future", at("iat", 90), "issued in the future"),
    *(Forgery(f"iat {iat!r}", with_claims(iat=iat), TIME) for iat in (None, "0", False)),
    *(Forgery(f"claim typ {typ!r}", with_claims(typ=typ), "claim `typ`") for typ in ("ID", "Refresh", "Logout", 1)),
    Forgery("tells of an event", with_claims(events={}), "event"),
    Forgery("bound to a key", with_claims(cnf={"jkt": "x"}), "bound"),
    *(Forgery(f"sub {sub!r}", with_claims(sub=sub), "no claim `sub`") for sub in (...,)),
    *(Forgery(f"sub {sub!r}", with_claims(sub=sub), "`sub`") for sub in (None, 5, ["alice"], {"x": 1}, "\ud800")),
    *(
        Forgery(f"sub {sub!r}", with_claims(sub=sub), "can't be a handle")
        for sub in ("", "@", " alice", "alice ", "a" * 65, "alice#a8f3", "al ice", "@@alice", "alice.", "-alice")
    ),
    *(
        Forgery(f"sub {sub!r}", with_claims(sub=sub), "can't be a handle")
        for sub in ("\u0430lice", "\u212aim", "al\u0131ce", "alic\u0435", "\uff41lice")
    ),
    *(Forgery(f"sub {sub!r}", with_claims(sub=sub), "hub itself") for sub in ("system", "Hub", "@all")),
    *(
        Forgery(f"role {role!r}", with_claims(mycelium_role=role), "neither user nor agent")
        for role in ("admin", "", "User", 1, [], ["user", "agent"], {"user": 1}, True)
    ),
]  # fmt: skip
