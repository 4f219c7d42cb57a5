"""What is wrong with a request's form, told so that the caller can mend it: where, what, and the nearest right name."""

from __future__ import annotations

import difflib
from typing import Any

from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response

from mycelium_gateway import problems

SHOWN = 10  # errors in one document
LONGEST = 80  # characters of a name that somebody sent


class InvalidError(RequestValidationError):
    """The first errors of a body that may have many more."""

    def __init__(self, errors: list[dict[str, Any]], count: int) -> None:
        super().__init__(errors)
        self.count = count


async def answer_invalid(request: Request, error: Exception) -> Response:
    """Exception handler for bodies and parameters that do not fit their schema."""
    assert isinstance(error, RequestValidationError)
    found = error.errors()
    errors, near = [], []
    for item in found[:SHOWN]:
        where, what, nearest = _describe(request, item)
        errors.append({"where": where, "what": what})
        near += nearest
    detail = f"{errors[0]['where']}: {errors[0]['what']}"
    count = error.count if isinstance(error, InvalidError) else len(found)
    if count > 1:
        detail += f" (and {count - 1} more)"
    extras: dict[str, Any] = {"errors": errors}
    if near:
        extras["near"] = near
    return problems.response(problems.document("request.invalid", detail, **extras))


def _describe(request: Request, item: dict[str, Any]) -> tuple[str, str, list[str]]:
    """Where, what, and near names, of one error that Pydantic found."""
    location = [_cut(str(part)) for part in item["loc"]]
    where = ".".join(location)
    kind = item["type"]
    if kind == "json_invalid":
        return "body", f"not JSON: {item['ctx']['error']}", []
    if kind == "extra_forbidden":
        near = difflib.get_close_matches(location[-1], fields(request, location[0]), n=1)
        hint = f", did you mean {near[0]}?" if near else f"; there are {', '.join(fields(request, location[0]))}"
        return where, f"no such field{hint}", near
    if kind in {"model_attributes_type", "model_type"}:
        return where, "send a JSON object, with Content-Type: application/json", []
    if kind == "missing":
        return where, "is missing", []
    return where, str(item["msg"]).replace("Input should", "should"), []


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else text[:LONGEST] + "…"


def fields(request: Request, part: str) -> list[str]:
    """The fields that a request's body, or its query, may have."""
    route = request.scope.get("route")
    dependant = getattr(route, "dependant", None)
    if dependant is None:
        return []
    parameters = dependant.body_params if part == "body" else dependant.query_params
    names: list[str] = []
    for parameter in parameters:
        annotation = getattr(parameter.field_info, "annotation", None)
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            names += list(annotation.model_fields)
        else:
            names.append(parameter.alias)
    return names
