"""The token of a cluster's operator, which signs in at no issuer: a secret that it and the gateway alone read.

Who has it is the operator, whose handle nobody else gets. The gateway keeps a digest of it only.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from pathlib import Path

from mycelium_gateway import joined
from mycelium_gateway.identity import AGENT, Identity
from mycelium_kernel import names
from mycelium_kernel.settings import BadSetting, Setting

FIT = re.compile(r"[A-Za-z0-9_-]{43,200}")  # 256 bits and more, and nothing that a header would change
OPERATOR = Identity(names.OPERATOR, AGENT, "hub", names.OPERATOR, 0.0)
SETTING = Setting(
    "gateway.operator_token_file", "str", "",
    "The file with the operator's token on a cluster, which the operator reads too; empty: there is no operator.",
    unit="file", scope="service",
)  # fmt: skip


def read(file: str) -> str:
    """The digest of the token in a file; empty for no file. Raises `BadSetting` for a token that could be guessed."""
    if not file:
        return ""
    try:
        token = Path(file).read_text(encoding="ascii").strip()
    except (OSError, ValueError) as error:
        raise BadSetting(f"{SETTING.key}: {file} can't be read: {error}") from None
    if not FIT.fullmatch(token) or joined.is_own(token):
        raise BadSetting(f"{SETTING.key}: what {file} has is no token: use 43 to 200 of A-Z a-z 0-9 _ -, at random")
    return digest(token)


def digest(token: str) -> str:
    """What is kept of a token."""
    return hashlib.sha256(f"mycelium operator\n{token}".encode("utf-8", "replace")).hexdigest()


def identity_of(token: str, kept: str) -> Identity | None:
    """The operator, when the token is its; `kept` is the digest of the right one, or empty when there is none."""
    return OPERATOR if kept and hmac.compare_digest(digest(token), kept) else None
