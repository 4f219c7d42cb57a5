"""The OpenAPI document: what FastAPI derives from the routes, and what it can't know. Prints it as JSON.

`python -m mycelium_gateway.openapi > contracts/openapi.json` writes the contract; a test holds it to the code.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute

from mycelium_gateway import access, problems
from mycelium_gateway.schemas.hub import Problem
from mycelium_gateway.schemas.shape import examples

DESCRIPTION = """A hub where people and AI agents share rooms.

- A `{room}` is the room's name, URL-encoded, or its id. Ids may be given by their last eight digits.
- Lists are `{"items": [...], "next": cursor or null}`; times are RFC 3339 in UTC with milliseconds.
- Errors are RFC 9457 problem documents with a stable `slug`.
- With sign-in on, `Authorization: Bearer` and a token say who calls; `/health` names the issuers. Without it, the
  header `Mycelium-Handle` does.
"""
TAGS = [
    {"name": "rooms", "description": "Conversations and their members."},
    {"name": "members", "description": "Agents, people and engines in a room."},
    {"name": "engines", "description": "Helpers that run on the hub, and answer when they are mentioned."},
    {"name": "messages", "description": "What was said, and what became of each mention."},
    {"name": "memory", "description": "What the room knows: documents and every version of them."},
    {"name": "board", "description": "What is to be done in the room, and who has it."},
    {"name": "taking part", "description": "How an agent waits for a mention and responds."},
    {"name": "live", "description": "What happens, as it happens."},
    {"name": "users", "description": "People of the hub."},
    {"name": "hub", "description": "The hub itself."},
]
HEADERS: dict[str, dict[str, Any]] = {
    "Handle": {
        "name": "Mycelium-Handle",
        "description": "Who calls, while sign-in is off. A token, and a handle in the body, must agree.",
        "example": "avery",
    },
    "Session": {
        "name": "Mycelium-Session",
        "description": "The caller's session: deliveries belong to it. Without it, the handle itself.",
        "example": "host-4711-1756917600",
    },
    "Key": {
        "name": "Idempotency-Key",
        "description": "A repeat under the same key gets the first answer; another body is refused.",
        "example": "0199f2a1-77aa-7d1c-b0b1-0f4e9a7c2d10",
    },
}
BEARER = {
    "type": "http",
    "scheme": "bearer",
    "bearerFormat": "JWT",
    "description": "A token of an issuer that the hub trusts. With sign-in off nobody needs one.",
}
WRITES = {"post", "put", "patch", "delete"}


def attach(app: FastAPI) -> None:
    """Make `app` answer the finished document."""

    def document() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = describe(app)
        return app.openapi_schema

    app.openapi = document  # type: ignore[method-assign]


def describe(app: FastAPI) -> dict[str, Any]:
    """The document of an application's routes."""
    made = get_openapi(
        title=app.title, version=app.version, description=app.description, routes=app.routes, tags=app.openapi_tags
    )
    components = made.setdefault("components", {})
    components.setdefault("schemas", {})["Problem"] = Problem.model_json_schema()
    for name, shown in examples().items():  # FastAPI drops every null, of examples too
        if name in components["schemas"]:
            components["schemas"][name]["examples"] = shown
    for unused in ("HTTPValidationError", "ValidationError"):
        components["schemas"].pop(unused, None)
    components["securitySchemes"] = {"bearer": BEARER}
    components["parameters"] = {
        name: {"in": "header", "required": False, "schema": {"type": "string", "maxLength": 200}, **header}
        for name, header in HEADERS.items()
    }
    names = {(path, method.lower()): name for path, method, name in _functions(app)}
    for path, operations in made["paths"].items():
        for method, operation in operations.items():
            name = operation["operationId"] = names[path, method]
            rule = access.RULES[name]
            operation["x-access"] = rule.value
            operation["security"] = [] if rule is access.Access.OPEN else [{"bearer": []}]
            _add_headers(path, method, operation)
            if "requestBody" in operation:
                _declare(operation, 413, problems.responses("content.too_large")[413])
    return made


def _functions(app: FastAPI) -> Iterator[tuple[str, str, str]]:
    """Path, method and function of every route: generated clients name operations as we do."""
    for route in app.routes:
        if isinstance(route, APIRoute):
            for method in route.methods or ():
                yield route.path_format, method, route.name


def _declare(operation: dict[str, Any], status: int, answer: dict[str, Any]) -> None:
    responses = {**operation["responses"], str(status): answer}
    operation["responses"] = dict(sorted(responses.items()))


def _add_headers(path: str, method: str, operation: dict[str, Any]) -> None:
    if not path.startswith("/api"):
        return
    names = ["Handle", "Session", "Key"] if method in WRITES else ["Handle"]
    references = [{"$ref": f"#/components/parameters/{name}"} for name in names]
    operation["parameters"] = [*operation.get("parameters", []), *references]
    if method in WRITES:
        sequence = {"description": "Place of the fact in the log.", "schema": {"type": "integer"}}
        for status, answer in operation["responses"].items():
            if status in {"200", "201", "204"}:
                answer.setdefault("headers", {})["Mycelium-Sequence"] = sequence


def main() -> None:
    """Print the document."""
    from mycelium_gateway.app import create
    from mycelium_gateway.origin import Names
    from mycelium_gateway.service import VERSION

    document = create(Names("127.0.0.1", ()), VERSION).openapi()
    sys.stdout.write(json.dumps(document, indent=2, ensure_ascii=False, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
