"""What every schema stands on: request bodies that name unknown fields, answers that carry an example."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict


class Body(BaseModel):
    """A request body, or the parameters of a list. A field that it does not have is refused, with the nearest one."""

    model_config = ConfigDict(extra="forbid")


class Shape(BaseModel):
    """An answer. A test holds what the routes answer to these, so that answering needs no second validation."""

    model_config = ConfigDict(extra="forbid")


def shown_as(example: Mapping[str, Any]) -> ConfigDict:
    """The configuration of an answer that is documented by an example."""
    return ConfigDict(extra="forbid", json_schema_extra={"examples": [dict(example)]})
