"""What every schema stands on: request bodies that name unknown fields, answers that carry an example."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, StringConstraints

# As somebody writes it; the grammar is the services'. What is far too long need not come back in their refusal.
WrittenHandle = Annotated[str, StringConstraints(max_length=200)]


class Body(BaseModel):
    """A request body: flat, and taken at its word. What it does not have is refused, with the nearest one.

    Strict, since JSON has numbers and truth of its own: `true` is no 1 and `"yes"` is not true.
    """

    model_config = ConfigDict(extra="forbid", strict=True)


class Parameters(BaseModel):
    """The parameters of an address, which are texts. One that it does not have is refused, with the nearest one."""

    model_config = ConfigDict(extra="forbid")


class Shape(BaseModel):
    """An answer. A test holds what the routes answer to these, so that answering needs no second validation."""

    model_config = ConfigDict(extra="forbid")


def examples(shape: type[Shape] = Shape) -> dict[str, list[Any]]:
    """The examples of every answer, by the name of its schema."""
    found: dict[str, list[Any]] = {}
    for kind in shape.__subclasses__():
        shown = kind.model_config.get("json_schema_extra")
        if isinstance(shown, dict):
            found[kind.__name__] = list(shown["examples"])  # type: ignore[arg-type]
        found.update(examples(kind))
    return found


def shown_as(example: Mapping[str, Any], *, extra: Literal["allow", "forbid"] = "forbid") -> ConfigDict:
    """The configuration of an answer that is documented by an example."""
    return ConfigDict(extra=extra, json_schema_extra={"examples": [dict(example)]})
