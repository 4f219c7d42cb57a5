"""What engines may spend on models in a room, as HTTP has it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from mycelium_gateway.schemas.shape import Body, Shape, shown_as

LIMIT = "; `none`: no limit; `hub`: the hub's again. Left out, it stays."
BUDGET = {
    "turns": {"used": 3, "limit": 20, "set_by": "room"},
    "tokens": {"used": 1874, "limit": None, "set_by": "hub"},
    "usd": {"used": 0.0124, "limit": 5.0, "set_by": "hub"},
    "input_tokens": 1402,
    "output_tokens": 472,
    "since": "2026-09-03T16:40:01.000Z",
    "unreported": 0,
    "lost": 0,
    "unpriced": 0,
}

Unlimited = Literal["none", "hub"]


class BudgetChange(Body):
    """A room's own limits. What is not given stays."""

    turns: Annotated[int, Field(ge=1, le=10**12)] | Unlimited | None = Field(
        None, description=f"How often engines may ask the model{LIMIT}", examples=[20]
    )
    tokens: Annotated[int, Field(ge=1, le=10**15)] | Unlimited | None = Field(
        None, description=f"How many tokens they may use, read and written{LIMIT}"
    )
    usd: Annotated[float, Field(gt=0, le=10**6)] | Unlimited | None = Field(
        None, description=f"How much money they may spend, in US dollars{LIMIT}"
    )
    renew: bool = Field(False, description="Count from zero again.")


class CountLine(Shape):
    """How much of something is used, and may be."""

    used: int
    limit: int | None = Field(description="Null: there is no limit.")
    set_by: Literal["room", "hub"] = Field(description="Whose limit it is, or whose that there is none.")


class MoneyLine(Shape):
    """How much money is spent, and may be, in US dollars."""

    used: float
    limit: float | None = Field(description="Null: there is no limit.")
    set_by: Literal["room", "hub"] = Field(description="Whose limit it is, or whose that there is none.")


class Budget(Shape):
    """What engines have spent on models in a room, and how much they may."""

    model_config = shown_as(BUDGET)

    turns: CountLine = Field(description="Questions put to models.")
    tokens: CountLine = Field(description="Tokens, read and written, as far as providers told.")
    usd: MoneyLine = Field(description="What they cost, as far as prices are known.")
    input_tokens: int
    output_tokens: int
    since: str | None = Field(description="Since when it is counted; null while nothing was.")
    unreported: int = Field(description="Answers whose provider did not say how many tokens they took.")
    lost: int = Field(description="Questions of which no answer came, so that nobody knows what they took.")
    unpriced: int = Field(description="Answers whose price is not known.")
