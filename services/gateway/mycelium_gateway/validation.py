"""What is wrong with a request's form, told so that the caller can mend it: where, what, and the nearest right name."""

from __future__ import annotations

import difflib
from typing import Any, get_args

from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response

from mycelium_gateway import problems

SHOWN = 10  # errors in one document
INNER = 3  # where a field of an object in a list stands in a place: body, field, number, field
LONGEST = 80  # characters of a name that somebody sent
# How the kinds of errors that Pydantic finds are told to who may never have heard of it.
TEXT, WHOLE, NUMBER, TRUTH = "a text", "a whole number", "a number", "true or false"
WHAT = {
    "string_type": TEXT,
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float", "int_parsing_size"), WHOLE),
    **dict.fromkeys(("float_type", "float_parsing", "finite_number"), NUMBER),
    **dict.fromkeys(("bool_type", "bool_parsing"), TRUTH),
    "list_type": "a list",
    "dict_type": "an object",
    "greater_than_equal": "at least {ge}",
    "greater_than": "more than {gt}",
    "less_than_equal": "at most {le}",
}


class InvalidError(RequestValidationError):
    """The first errors of a body that may have many more."""

    def __init__(self, errors: list[dict[str, Any]], count: int) -> None:
        super().__init__(errors)
        self.count = count


async def answer_invalid(request: Request, error: Exception) -> Response:
    """Exception handler for bodies and parameters that do not fit their schema."""
    assert isinstance(error, RequestValidationError)
    found = error.errors()
    told: dict[str, str] = {}
    near = []
    for item in found[:SHOWN]:
        where, what, nearest = _describe(request, item)
        # What may be one of several kinds has an error for each.
        told[where] = f"{told[where]}, or {what.removeprefix('should be ')}" if where in told else what
        near += nearest
    errors = [{"where": where, "what": what} for where, what in told.items()]
    detail = f"{errors[0]['where']}: {errors[0]['what']}"
    count = (error.count if isinstance(error, InvalidError) else len(found)) - len(found[:SHOWN]) + len(told)
    if count > 1:
        detail += f" (and {count - 1} more)"
    extras: dict[str, Any] = {"errors": errors}
    if near:
        extras["near"] = near
    return problems.response(problems.document("request.invalid", detail, **extras))


def _describe(request: Request, item: dict[str, Any]) -> tuple[str, str, list[str]]:
    """Where, what, and near names, of one error that Pydantic found."""
    # A name below a field is a kind that its value might have had, and no place; of an object in a list it is a field.
    parts = item["loc"]
    inner = _fields_of_items(request, parts[1]) if len(parts) > INNER and parts[0] == "body" else []
    location = [
        _cut(str(part))
        for place, part in enumerate(parts)
        if place < 2 or isinstance(part, int) or (inner and place == INNER)
    ]
    where = ".".join(location)
    kind = item["type"]
    if kind == "json_invalid":
        return "body", f"not JSON: {item['ctx']['error']}", []
    if kind == "extra_forbidden":
        known = inner or fields(request, location[0])
        near = difflib.get_close_matches(location[-1], known, n=1)
        hint = f", did you mean {near[0]}?" if near else f"; there are {', '.join(known)}"
        return where, f"no such field{hint}", near
    if kind in {"model_attributes_type", "model_type"}:
        return where, "send a JSON object, with Content-Type: application/json", []
    if kind == "missing":
        return where, "is missing", []
    if kind in WHAT:
        bounds = {name: _whole(bound) for name, bound in item.get("ctx", {}).items()}
        return where, "should be " + WHAT[kind].format(**bounds), []
    return where, str(item["msg"]).replace("Input should", "should").replace("String should", "should"), []


def _whole(bound: Any) -> Any:
    return int(bound) if isinstance(bound, float) and bound.is_integer() else bound


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else text[:LONGEST] + "…"


def fields(request: Request, part: str) -> list[str]:
    """The fields that a request's body, or its query, may have."""
    names: list[str] = []
    for parameter in _parameters(request, part):
        model = _model(parameter.field_info)
        names += list(model.model_fields) if model else [parameter.alias]
    return names


def _fields_of_items(request: Request, name: str) -> list[str]:
    """The fields of the objects in a list that is a field of the body; none when that holds no objects."""
    for parameter in _parameters(request, "body"):
        body = _model(parameter.field_info)
        field = body.model_fields.get(name) if body else None
        for kind in get_args(field.annotation) if field else ():
            if isinstance(kind, type) and issubclass(kind, BaseModel):
                return list(kind.model_fields)
    return []


def _parameters(request: Request, part: str) -> list[Any]:
    """What a request's route takes from its body, or its query."""
    dependant = getattr(request.scope.get("route"), "dependant", None)
    if dependant is None:
        return []
    found: list[Any] = dependant.body_params if part == "body" else dependant.query_params
    return found


def _model(info: Any) -> type[BaseModel] | None:
    kind = getattr(info, "annotation", None)
    return kind if isinstance(kind, type) and issubclass(kind, BaseModel) else None
