"""Asks the model for a reply, with the settings that a hub of this home would start with."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace

from mycelium_engine import advice, models, prices
from mycelium_hub import settings
from mycelium_hub.errors import Refused
from mycelium_hub.finding import NOTE, OK, WRONG, Finding
from mycelium_hub.home import Home

ANSWER_S = 20.0
TOKENS = 64
WORDS = {"model.not_configured": "not configured", "model.auth": "auth failed"}


def check(home: Home, environ: Mapping[str, str]) -> Iterator[Finding]:
    """Whether it answers, and what is wrong when it does not. No model at all is a choice."""
    try:
        found = settings.load(home.path, environ)
    except Refused:
        return  # said of the settings
    if not found.engines:
        yield Finding("model", OK, "engines are off (runtime.engines); none is asked")
        return
    asked = replace(found.model, timeout_s=min(ANSWER_S, found.model.timeout_s), max_tokens=TOKENS)
    began = time.monotonic()
    try:
        asyncio.run(models.ask(asked, "You are asked whether you are there.", "Reply with the one word: here"))
    except models.ModelFailure as failure:
        words = WORDS.get(failure.slug, failure.slug.removeprefix("model.").replace("_", " "))
        state = NOTE if failure.slug == "model.not_configured" and not asked.model else WRONG
        yield Finding("model", state, f"{words}: {failure.detail}", _next(failure))
        return
    answered = f"{asked.model} answered within {time.monotonic() - began:.1f} s"
    if asked.limits.pico_usd and not prices.are_known(asked):
        seen = f"{answered}, but engines may not ask it: llm.max_usd_per_room needs its price, which is not known"
        yield Finding("model", WRONG, seen, advice.to_set_prices(asked))
        return
    yield Finding("model", OK, answered)


def _next(failure: models.ModelFailure) -> str:
    return "mycelium config show" if failure.next == models.CHECK else failure.next
