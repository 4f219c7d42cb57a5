"""Asks a model on a room's account: the one way from an activity to a model, whatever the kind of engine.

A turn is taken before, what it took is told with the answer, so that the step that posts it records it, once.
"""

from __future__ import annotations

import asyncio
import logging
import shlex
import uuid
from dataclasses import dataclass
from typing import Any

from mycelium_engine import advice, models, prices, spending
from mycelium_engine.calls import PICO, Answer, Use
from mycelium_engine.ledger import Ledger
from mycelium_engine.settings import ModelSettings

LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True)
class Account:
    """On whose account a step asks: the room (its name for what is said there), and the engine."""

    room_id: str
    room: str
    handle: str


async def ask(
    model: ModelSettings, ledger: Ledger, account: Account, step: str, instructions: str, message: str
) -> Answer:
    """The model's answer, or why there is none. `step` is one of a run. Raises `Unavailable`, before it has asked."""
    try:
        models.check(model)
    except models.ModelFailure as failure:
        return _failed(failure)
    number, ask = spending.digest(step), spending.digest(uuid.uuid4().hex)
    await models.warm(model)
    is_priced = await asyncio.to_thread(prices.are_known, model)
    verdict = await ledger.admit(account.room_id, number, ask, account.handle, is_priced=is_priced)
    if verdict.slug:
        return _refused(verdict, account, model)
    is_reserved = verdict.is_reserved
    try:
        said = await models.ask(model, instructions, message)
    except models.ModelFailure as failure:
        LOGGER.warning("the model gave no answer: %s", failure.slug)
        return _failed(failure, model.model, _use(number, ask, failure.took, is_reserved=is_reserved))
    use = _use(number, ask, said.took, is_reserved=is_reserved)
    return Answer(text=said.text, model=model.model, use=use)


def metadata(answer: Answer) -> dict[str, Any]:
    """The model that was asked, and what it took: null when nobody knows, left out when a provider took nothing."""
    use = answer.use
    if use is None or use.outcome == "nothing":
        return {"model": answer.model} if answer.model else {}
    if use.outcome != "reported":
        return {"model": answer.model, "usage": None}
    usage: dict[str, Any] = {"input_tokens": use.input_tokens, "output_tokens": use.output_tokens}
    if use.pico_usd is not None:
        usage["usd"] = use.pico_usd / PICO
    return {"model": answer.model, "usage": usage}


def _use(step: int, ask: int, took: models.Took, *, is_reserved: bool) -> Use:
    return Use(step, ask, is_reserved, took.outcome, took.input_tokens, took.output_tokens, took.pico_usd)


def _failed(failure: models.ModelFailure, model: str = "", use: Use | None = None) -> Answer:
    return Answer(slug=failure.slug, detail=failure.detail, next=failure.next, model=model, use=use)


def _refused(verdict: spending.Verdict, account: Account, model: ModelSettings) -> Answer:
    next_command = f"mycelium engine budget -r {shlex.quote(account.room)} {verdict.arguments}"
    if verdict.slug == "model.price_unknown":
        next_command = advice.to_set_prices(model)
    return Answer(slug=verdict.slug, detail=verdict.detail, next=next_command)
