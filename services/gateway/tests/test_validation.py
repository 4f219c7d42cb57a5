"""What is wrong with a request's form is told in few words, however much of it is wrong."""

from __future__ import annotations

import json

import httpx2
import pytest
from jsonschema import Draft202012Validator
from pydantic import ValidationError
from starlette.requests import Request

from mycelium_gateway.routes import plain
from mycelium_gateway.schemas.messages import NewMessage
from mycelium_gateway.schemas.shape import Body
from mycelium_gateway.validation import SHOWN, InvalidError
from services.gateway.tests.door import BOUND_S

MANY = 60_000
BODIES = sorted(Body.__subclasses__(), key=lambda body: body.__qualname__)
SAMPLES = [True, 0, 7, "7", "yes", "", [], {}]


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


@pytest.mark.parametrize("body", BODIES, ids=lambda body: body.__qualname__)
def test_a_field_takes_nothing_that_the_contract_does_not_give_it(body: type[Body]) -> None:
    """`true` is no number, `"7"` none either, `"yes"` is not true: what a program sent by mistake is not guessed at."""
    schema = body.model_json_schema()
    for name, field in schema["properties"].items():
        for sample in SAMPLES:
            if Draft202012Validator({**field, "$defs": schema.get("$defs", {})}).is_valid(sample):
                continue
            with pytest.raises(ValidationError) as raised:
                body.model_validate_json(json.dumps({name: sample}))
            assert name in {error["loc"][0] for error in raised.value.errors()}, (name, sample)


@pytest.mark.parametrize(
    ("method", "path", "body", "said"),
    [
        ("PATCH", "/budget", {"turns": True}, "body.turns: should be a whole number, or 'none' or 'hub'"),
        ("PATCH", "/budget", {"turns": 0}, "body.turns: should be at least 1, or 'none' or 'hub'"),
        ("PATCH", "/budget", {"usd": "all"}, "body.usd: should be a number, or 'none' or 'hub'"),
        ("PATCH", "/budget", {"usd": 0}, "body.usd: should be more than 0, or 'none' or 'hub'"),
        (
            "PATCH",
            "/budget",
            {"turns": 0, "tokens": True},
            "body.turns: should be at least 1, or 'none' or 'hub' (and 1 more)",
        ),
        ("PUT", "/memory/a", {"value": 1, "expect": True}, "body.expect: should be a whole number"),
        (
            "POST",
            "/reservations/renew",
            {"reservations": [{"pattern": "a"}, {"pattern": "a", "token": "1"}]},
            "body.reservations.1.token: should be a whole number",
        ),
        (
            "POST",
            "/reservations/renew",
            {"reservations": [{"patern": "a", "pattern": "b"}]},
            "body.reservations.0.patern: no such field, did you mean pattern?",
        ),
        ("PUT", "/memory/a", {"value": 1, "expandable": "yes"}, "body.expandable: should be true or false"),
        ("PUT", "/memory/a", {"value": 1, "tags": "a"}, "body.tags: should be a list"),
        ("PUT", "/memory/a", {"value": 1, "tags": ["a", 7]}, "body.tags.1: should be a text"),
        ("PUT", "/memory/a", {"value": 1, "meta": []}, "body.meta: should be an object"),
        ("POST", "/await", {"timeout_s": True}, "body.timeout_s: should be a number"),
        ("POST", "/await", {"timeout_s": 4000}, "body.timeout_s: should be at most 3600"),
        ("GET", "/messages?limit=true", None, "query.limit: should be a whole number"),
        ("GET", "/messages?all=perhaps", None, "query.all: should be true or false"),
        (
            "POST",
            "/messages",
            {"content": "a", "message_type": "x"},
            "body.message_type: should be 'message' or 'event'",
        ),
    ],
)
async def test_what_a_value_should_be_is_told_in_words(
    http: httpx2.AsyncClient, method: str, path: str, body: object, said: str
) -> None:
    """Where, and what would do; not how the program that looked is made inside."""
    found = (await http.request(method, f"/api/rooms/demo{path}", json=body)).json()
    assert (found["slug"], found["detail"]) == ("request.invalid", said)
    assert found["errors"][0]["where"] == said.partition(":")[0]


@pytest.mark.parametrize(("method", "path"), [("POST", "/messages"), ("PUT", "/memory/a"), ("PATCH", "/memory/a")])
@pytest.mark.parametrize(
    "raw",
    [
        b"\xff",
        b'{"value": "\xff"}',
        b'{"value": "\\ud800"}',
        b'{"value": {"\\udfff": 1}}',
        b'{"value": 1, "tags": ["\\ud800"]}',
        b'{"value": 1, "meta": {"a": "\\ud800"}}',
        b'{"value": ' + b"[" * 100_000,
        b"{",
        b"{} {}",
    ],
    ids=lambda raw: str(raw[:30]),
)
async def test_what_is_no_json_is_refused(http: httpx2.AsyncClient, method: str, path: str, raw: bytes) -> None:
    """By every kind of route: halves of characters, other encodings, and depths that no parser follows, too."""
    headers = {"Mycelium-Handle": "avery", "Content-Type": "application/json"}
    response = await http.request(method, f"/api/rooms/demo{path}", content=raw, headers=headers)

    assert (response.status_code, response.json()["slug"]) == (422, "request.invalid")
    assert response.json()["detail"].startswith("body: not JSON: ")


async def test_a_number_that_nobody_can_write_down_is_refused(http: httpx2.AsyncClient) -> None:
    """One of more than 4,300 digits can't be made a text again."""
    headers = {"Mycelium-Handle": "avery", "Content-Type": "application/json"}
    for raw in (b"9" * 5_000, b"[" + b"9" * 5_000 + b"]"):
        response = await http.put("/api/rooms/demo/memory/a", content=b'{"value": ' + raw + b"}", headers=headers)
        assert (response.status_code, response.json()["slug"]) == (422, "request.invalid")
