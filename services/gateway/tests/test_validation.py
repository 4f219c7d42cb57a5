"""What is wrong with a request's form is told in few words, however much of it is wrong."""

from __future__ import annotations

import json

import httpx2
import pytest
from starlette.requests import Request

from mycelium_gateway.routes import plain
from mycelium_gateway.schemas.messages import NewMessage
from mycelium_gateway.validation import SHOWN, InvalidError
from services.gateway.tests.door import BOUND_S

MANY = 60_000


async def test_of_many_errors_a_few_are_told(http: httpx2.AsyncClient) -> None:
    """With how many there are, and those of fields that are known."""
    body = {f"f{number}": 1 for number in range(MANY)} | {"sender_handle": 7}
    found = (await http.post("/api/rooms/demo/messages", json=body, timeout=BOUND_S)).json()

    assert found["slug"] == "request.invalid"
    assert len(found["errors"]) == SHOWN
    assert found["detail"].endswith(f" (and {MANY + 1} more)")


def test_of_many_errors_only_those_that_are_shown_are_built() -> None:
    """Building them all holds up every other request."""
    raw = json.dumps({f"f{number}": 1 for number in range(MANY)}).encode()
    error = plain_error(raw)

    assert error.count == MANY + 1  # and the missing content
    assert len(error.errors()) <= SHOWN + len(NewMessage.model_fields)


def plain_error(raw: bytes) -> InvalidError:
    scope = {"type": "http", "headers": [(b"content-type", b"application/json")]}
    with pytest.raises(InvalidError) as raised:
        plain.read_body(Request(scope), raw, NewMessage)
    return raised.value


async def test_of_a_list_with_many_errors_one_is_told(http: httpx2.AsyncClient) -> None:
    """The list is read no further."""
    body = {"handle": "bob", "allow_from": [1] * 100_000}
    found = (await http.post("/api/rooms/demo/members", json=body)).json()

    assert [error["where"] for error in found["errors"]] == ["body.allow_from.0"]


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/api/users", {"handle": "x" * 900_000}),
        ("POST", "/api/rooms/demo/messages", {"content": "hi", "sender_handle": "x" * 900_000}),
        ("POST", "/api/rooms/demo/members", {"handle": "bob", "allow_from": ["x" * 900_000]}),
        ("POST", "/api/rooms/demo/await", {"seat": "x" * 900_000}),
        ("PATCH", "/api/rooms/demo/members/bob", {"owner": "x" * 900_000}),
        ("POST", "/api/rooms/demo/presence", {"state": "idle", "handle": "x" * 900_000}),
        ("POST", "/api/rooms", {"x" * 900_000: 1}),
    ],
)
async def test_what_is_far_too_long_does_not_come_back(
    http: httpx2.AsyncClient, method: str, path: str, body: dict[str, object]
) -> None:
    """The caller knows what it sent."""
    response = await http.request(method, path, json=body)

    assert response.json()["slug"] == "request.invalid"
    assert len(response.content) < 1_000
