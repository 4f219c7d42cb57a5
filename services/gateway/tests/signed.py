"""Gateways that ask for tokens, and requests of the contract's operations made as somebody."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from e2e import oidc_server
from mycelium_gateway.issuers import AuthSettings, Issuer
from mycelium_gateway.settings import GatewaySettings
from services.gateway.tests.door import DOCUMENT

MORE: dict[str, dict[str, Any]] = {  # what a route wants that its model does not ask for
    "write_memory": {"value": "text"},
    "change_memory": {"value": "text"},
}
SAVING = frozenset({"add_member", "add_engine", "create_user", "save_user"})  # whose `handle` is whom they are about
NAMING = ("handle", "sender_handle")  # fields of a body that say who calls
OF_OTHERS = {
    "add_member",
    "add_engine",
    "create_user",
    "save_user",
    "join",
    "make_join_code",
}  # `handle` is not the caller
ACTING = "acting"


def settings(idp: oidc_server.OidcServer, **changes: Any) -> GatewaySettings:
    """Sign-in at that issuer, also on this machine."""
    trusted = (Issuer(idp.issuer, role="user"),)
    values = {"enabled": True, "issuers": trusted, "audience": oidc_server.AUDIENCE, "localhost_bypass": False}
    others = {name: changes.pop(name) for name in ("trusted_proxies",) if name in changes}
    return GatewaySettings(port=0, auth=AuthSettings(**{**values, **changes}), **others)


def bearer(token: str, **headers: str) -> dict[str, str]:
    """The headers of who sends that token."""
    return {"Authorization": f"Bearer {token}", **headers}


class Operation(NamedTuple):
    """One operation of the contract, with an address and a body that its route takes."""

    name: str
    method: str
    path: str
    access: str
    body: dict[str, Any] | None
    naming: str  # the field of its body that says who calls; empty when it has none


def operations() -> Iterator[Operation]:
    """Every operation that the contract has."""
    for template, methods in DOCUMENT["paths"].items():
        for method, operation in methods.items():
            name, model = operation["operationId"], _model(operation)
            needed = [one for one in operation.get("parameters", []) if one.get("in") == "query" and one["required"]]
            query = "&".join(f"{one['name']}=demo" for one in needed)
            path = re.sub(r"\{\w+\}", "demo", template) + (f"?{query}" if query else "")
            body = {**_body(model), **MORE.get(name, {})} if model else None
            naming = [field for field in NAMING if model and field in model["properties"] and name not in SAVING]
            yield Operation(name, method, path, operation["x-access"], body, naming[0] if naming else "")


def _model(operation: dict[str, Any]) -> dict[str, Any] | None:
    content = operation.get("requestBody", {}).get("content", {}).get("application/json")
    if content is None:
        return None
    found: dict[str, Any] = DOCUMENT["components"]["schemas"][content["schema"]["$ref"].rpartition("/")[2]]
    return found


def _body(model: dict[str, Any]) -> dict[str, Any]:
    """The least that a route takes; an example for what it must have."""
    return {name: _example(model["properties"][name]) for name in model.get("required", [])}


def _example(field: dict[str, Any]) -> Any:
    if "examples" in field:
        return field["examples"][0]
    if "const" in field:
        return field["const"]
    if "enum" in field:
        return field["enum"][0]
    return {"string": "demo", "array": [], "number": 60, "integer": 1, "object": {}}[field.get("type", "string")]
