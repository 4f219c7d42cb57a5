"""The settings of `auth` as they stand in `config.toml` or the environment, and what is made of them.

The hub reads them and hands them on; a gateway in a process of its own is told them by its environment.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from mycelium_gateway import peers
from mycelium_gateway.identity import AGENT, USER
from mycelium_gateway.issuers import HANDLE_CLAIM, ROLE_CLAIM, AuthSettings, Issuer
from mycelium_kernel.settings import Setting, Value, is_web_address

FIELDS = tuple(field.name for field in fields(Issuer))
MOST_ISSUERS = 50
LONGEST = 500
TABLES = "tables"


def fault_of(written: str) -> str:
    """What is wrong with a list of issuers, given as JSON; empty for nothing."""
    tables = json.loads(written) if written else []
    if len(tables) > MOST_ISSUERS:
        return f"there are {len(tables)} issuers, at most {MOST_ISSUERS} are trusted"
    seen: set[str] = set()
    for number, table in enumerate(tables, start=1):
        found = _fault_of_one(table)
        if found:
            return f"issuer {number}: {found}"
        if table["issuer"] in seen:
            return f"issuer {number}: {table['issuer']} is there twice; a token is judged by one block"
        seen.add(table["issuer"])
    own = {table["issuer"] for table in tables if not table.get("names_of")}
    for number, table in enumerate(tables, start=1):
        if table.get("names_of", "") not in {"", *own}:
            return f"issuer {number}: names_of is {table['names_of']!r}: use the issuer of a table that has no names_of"
    return ""


def _fault_of_one(table: Mapping[str, Any]) -> str:
    for name, value in table.items():
        if name not in FIELDS:
            meant = difflib.get_close_matches(name, FIELDS, 1)
            return f"{name} is no field" + (f"; did you mean {meant[0]}?" if meant else f"; there are {_listed()}")
        if not isinstance(value, str) or len(value) > LONGEST or value != value.strip() or not value.isprintable():
            return f"{name} is {value!r}: use a text without blanks around it"
    issuer, keys, role = (str(table.get(name, "")) for name in ("issuer", "jwks_url", "role"))
    if not issuer:
        return "issuer is missing: use the `iss` of its tokens"
    if keys and not is_web_address(keys):
        return f"jwks_url is {keys!r}: use an http:// or https:// address"
    if not keys and not is_web_address(issuer):
        return f"issuer is {issuer!r}, no http:// or https:// address: say by jwks_url where its keys are"
    if role not in {"", USER, AGENT}:
        return f"role is {role!r}: use {USER} or {AGENT}"
    return ""


def _listed() -> str:
    return ", ".join(FIELDS)


def _claim(written: str) -> str:
    return "" if written.strip() else "use the name of a claim"


def _handles(written: str) -> str:
    """What is wrong with a list of handles."""
    from mycelium_kernel.errors import Refusal

    try:
        _folded(written)
    except Refusal as refusal:
        return refusal.detail
    return ""


def _folded(written: str) -> frozenset[str]:
    from mycelium_kernel import names  # not before it is needed: `mycelium-hub --help` reads these settings too

    return frozenset(names.handle(one) for one in written.replace(",", " ").split())


AUTH_SETTINGS = (
    Setting(
        "auth.enabled", "bool", False,
        "Ask every caller of the HTTP API for a token.",
        unit="yes or no",
    ),
    Setting(
        "auth.issuers", "tables", "",
        "Whose tokens are believed: one [[auth.issuers]] table each, with issuer, jwks_url, audience, role, "
        "handle_claim, role_claim, names_of.",
        unit=TABLES,
        fault=fault_of,
    ),
    Setting(
        "auth.audience", "str", "",
        "The `aud` that a token must have; without one, tokens for other applications of the issuer are taken too.",
    ),
    Setting(
        "auth.localhost_bypass", "bool", True,
        "Let requests of the hub's own machine in without a token; never those that came through a proxy.",
        unit="yes or no",
    ),
    Setting(
        "auth.handle_claim", "str", HANDLE_CLAIM, "The claim that holds the handle.", unit="claim", fault=_claim
    ),
    Setting(
        "auth.role_claim", "str", ROLE_CLAIM, "The claim that says user or agent.", unit="claim", fault=_claim
    ),
    Setting(
        "auth.leeway_s", "int", 60,
        "How far the clocks of the hub and an issuer may differ.",
        unit="seconds", least=0, most=600,
    ),
    Setting(
        "auth.jwks_ttl_s", "int", 300,
        "How long an issuer's keys are believed before they are fetched again.",
        unit="seconds", least=1, most=86_400,
    ),
    Setting(
        "auth.operators", "str", "",
        "Who of those that sign in run the hub: they change others' records, and bring rooms from bundles, which say "
        "what others have said; parted by commas.",
        unit="handles", fault=_handles,
    ),
    Setting(
        "runtime.trusted_proxies", "str", "",
        "Proxies whose X-Forwarded-Proto is believed: addresses or networks parted by commas, * for every one; empty: "
        "those of this machine.",
        unit="addresses",
        aliases=("FORWARDED_ALLOW_IPS",),
        fault=peers.fault_of,
    ),
)  # fmt: skip


def auth_settings(values: Mapping[str, Value]) -> AuthSettings:
    """The settings by their keys, as the gateway uses them."""
    written = str(values["auth.issuers"])
    return AuthSettings(
        enabled=bool(values["auth.enabled"]),
        issuers=tuple(Issuer(**table) for table in json.loads(written)) if written else (),
        audience=str(values["auth.audience"]).strip(),
        localhost_bypass=bool(values["auth.localhost_bypass"]),
        handle_claim=str(values["auth.handle_claim"]),
        role_claim=str(values["auth.role_claim"]),
        leeway_s=float(values["auth.leeway_s"]),
        jwks_ttl_s=float(values["auth.jwks_ttl_s"]),
        operators=_folded(str(values["auth.operators"])),
    )
