"""The OpenAPI document is what the code makes, and the golden examples are what it says."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from mycelium_gateway import app, openapi, slugs
from mycelium_gateway.origin import Names
from mycelium_gateway.service import VERSION

CONTRACTS = Path(__file__).parent.parent
DOCUMENT: dict[str, Any] = json.loads((CONTRACTS / "openapi.json").read_text(encoding="utf-8"))
EXAMPLES = sorted((CONTRACTS / "examples").glob("*.json"))
# They answer or take text or a bundle, answer for as long as the caller stays, or send a browser on.
WITHOUT_EXAMPLE = {
    "healthz", "metrics", "watch_room", "watch_rooms", "export_room", "import_room", "begin_sign_in", "finish_sign_in",
}  # fmt: skip


def operations() -> dict[str, tuple[str, str, dict[str, Any]]]:
    found = {}
    for path, methods in DOCUMENT["paths"].items():
        for method, operation in methods.items():
            found[operation["operationId"]] = (method.upper(), path, operation)
    return found


def errors_of(schema: dict[str, Any], value: object) -> list[str]:
    """Why `value` does not fit a schema of the document."""
    validator = Draft202012Validator({**schema, "components": DOCUMENT["components"]})
    return [f"{'.'.join(map(str, error.absolute_path))}: {error.message}" for error in validator.iter_errors(value)]


def read(example: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(example.read_text(encoding="utf-8"))
    return found


def test_the_document_is_what_the_code_makes() -> None:
    """`python -m mycelium_gateway.openapi > contracts/openapi.json` was run after the last change of a route."""
    made = app.create(Names("127.0.0.1", ()), VERSION).openapi()

    assert json.loads(json.dumps(made)) == DOCUMENT


def test_every_operation_is_described() -> None:
    """A caller finds each operation by its tag, summary, name, and learns how it can fail."""
    tags = {tag["name"] for tag in openapi.TAGS}

    for name, (_method, path, operation) in operations().items():
        assert operation["summary"], name
        assert set(operation["tags"]) <= tags, name
        if path.startswith("/api"):
            assert {"422", "500", "503"} <= set(operation["responses"]), name


def test_every_declared_slug_is_in_the_table() -> None:
    """A status names only slugs that the table gives that status."""
    for name, (_method, _path, operation) in operations().items():
        for status, answer in operation["responses"].items():
            if int(status) >= 400:
                for slug in re.findall(r"`([a-z_.]+)`", answer["description"]):
                    assert slugs.SLUGS[slug].status == int(status), f"{name}: {slug}"


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_what_the_document_says(example: Path) -> None:
    """A request and its answer, as somebody may copy them."""
    written = read(example)
    method, path, operation = operations()[written["operation"]]
    request, response = written["request"], written["response"]

    assert request["method"] == method
    assert re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", path), request["path"])
    known = {parameter["name"] for parameter in operation.get("parameters", []) if parameter.get("in") == "query"}
    assert set(request.get("query", {})) <= known
    if "body" in request:
        schema = operation["requestBody"]["content"]["application/json"]["schema"]
        assert errors_of(schema, request["body"]) == []
    else:
        assert "requestBody" not in operation
    content = operation["responses"][str(response["status"])].get("content")
    if content is None:
        assert "body" not in response
    else:
        media = content.get("application/json") or next(iter(content.values()))
        assert errors_of(media["schema"], response["body"]) == []


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_of_a_problem_is_one_of_the_table(example: Path) -> None:
    """Title and status are the slug's."""
    body = read(example)["response"].get("body", {})
    if "slug" in body:
        entry = slugs.SLUGS[body["slug"]]
        assert (body["status"], body["title"]) == (entry.status, entry.title)
        assert read(example)["response"]["status"] == entry.status


def test_every_operation_has_an_example() -> None:
    """What is not shown is not found."""
    shown = {read(example)["operation"] for example in EXAMPLES}

    assert shown | WITHOUT_EXAMPLE == set(operations())


def test_every_answer_has_an_example_that_fits_its_schema() -> None:
    """The examples inside the document's schemas fit the schemas they stand in."""
    for name, schema in DOCUMENT["components"]["schemas"].items():
        for example in schema.get("examples", []):
            assert errors_of(schema, example) == [], name
