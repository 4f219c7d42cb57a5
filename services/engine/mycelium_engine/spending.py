"""What engines may spend on models in a room, decided: the limits, what is used, whether one more turn may be taken.

Plain functions from a state to the next, None when nothing changes. `ledger.py` keeps the state in the log. A turn is
counted before a model is asked; tokens and money are known after, so they end a limit late by the turns under way.
"""

from __future__ import annotations

import hashlib
from datetime import datetime
from typing import NamedTuple

from mycelium.engine.v1 import service_pb2, states_pb2
from mycelium_engine.calls import PICO, Limits, Use
from mycelium_kernel import clock
from mycelium_kernel.errors import Refusal

REMEMBERED = 100  # steps that are known to be counted: more than can be under way in a room
MOST = 2**64 - 1
State = states_pb2.SpendingState


class Part(NamedTuple):
    """One of the things that a budget counts: its names, and how much of it is used and allowed."""

    name: str
    setting: str
    used: int
    limit: int
    is_own: bool


class Verdict(NamedTuple):
    """Whether a model may be asked: not when there is a `slug`. `state` is to be saved before.

    `is_reserved`: the step's turn is counted then.
    """

    slug: str = ""
    detail: str = ""
    arguments: str = ""  # of `mycelium engine budget`, which gets further
    is_reserved: bool = False
    state: State | None = None


def digest(text: str) -> int:
    """A text as it is remembered."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


def parts(state: State | None, hub: Limits) -> tuple[Part, Part, Part]:
    """Turns, tokens and money: a room's own limit replaces the hub's."""
    now = state or State()
    own = now.limits
    used = {"turns": now.turns, "tokens": now.input_tokens + now.output_tokens, "pico_usd": now.pico_usd}
    turns, tokens, pico_usd = (
        Part(
            name,
            f"llm.max_{name.removeprefix('pico_')}_per_room",
            used[name],
            getattr(own if own.HasField(name) else hub, name),
            own.HasField(name),
        )
        for name in ("turns", "tokens", "pico_usd")
    )
    return turns, tokens, pico_usd


def admit(state: State | None, hub: Limits, step: int, ask: int, now: datetime, *, is_priced: bool) -> Verdict:
    """Whether a step may ask the model now. A step that has its turn already may ask again, if there is the money."""
    turns, tokens, money = parts(state, hub)
    known = _find(state, step)
    over = [part for part in (turns, tokens, money) if part.limit and part.used >= part.limit]
    if known and turns in over:
        over.remove(turns)
    if over:
        return Verdict("model.over_budget", _over(over[0], state), "--renew")
    if money.limit and not is_priced:
        return Verdict("model.price_unknown", "this room's budget is in money, and nobody knows what the model costs")
    if (tokens.limit or money.limit) and state and state.unreported:
        detail = "the model's provider does not say how many tokens it takes, which this room's budget counts"
        return Verdict("model.unmetered", detail, "--turns 20 --tokens none --usd none --renew")
    if not turns.limit:
        return Verdict()
    return Verdict(is_reserved=True, state=_reserved(state, known, step, ask, now))


def _reserved(
    state: State | None, known: states_pb2.CountedStep | None, step: int, ask: int, now: datetime
) -> State | None:
    """The state with the step's turn taken; None when this very try has taken it already."""
    if known and known.ask == ask:
        return None
    following = _copy(state, now)
    if known is None:
        following.turns += 1
    elif known.open:  # whoever asked died, and what was answered went with it
        following.lost += 1
    _remember(following, step, ask, is_open=True)
    return following


def record(state: State | None, use: Use, now: datetime) -> State | None:
    """The state with what a question took; None when it is in it already."""
    known = _find(state, use.step)
    if known and known.ask == use.ask and not known.open:
        return None
    following = _copy(state, now)
    if known is None and not use.is_reserved:
        following.turns += 1
    following.input_tokens = min(MOST, following.input_tokens + use.input_tokens)
    following.output_tokens = min(MOST, following.output_tokens + use.output_tokens)
    following.pico_usd = min(MOST, following.pico_usd + (use.pico_usd or 0))
    following.unreported += use.outcome == "unreported"
    following.lost += use.outcome == "lost"
    following.unpriced += use.outcome == "reported" and use.pico_usd is None
    _remember(following, use.step, use.ask, is_open=False)
    return following


def change(state: State | None, request: service_pb2.ChangeBudgetRequest, scope: str, now: datetime) -> State | None:
    """The state with other limits, or counted from zero; None when it is as asked, or was made so under this key.

    `scope` is the key with its actor. Refused when it was used for another request: use a new key.
    """
    step, ask = digest(scope), digest(request.SerializeToString(deterministic=True).hex())
    known = _find(state, step)
    if known and known.ask != ask:
        raise Refusal("key.reused", "this key was used for another request; use a new key for a new request")
    if known:
        return None
    following = _copy(state, now)
    for name in ("turns", "tokens", "pico_usd"):
        if request.HasField(name):
            wanted: service_pb2.Limit = getattr(request, name)
            following.limits.ClearField(name)
            if not wanted.inherit:
                setattr(following.limits, name, wanted.most)
    if request.renew:
        following = State(limits=following.limits, since=clock.to_timestamp(now), counted=following.counted)
    elif following.limits == (state or State()).limits:
        return None
    _remember(following, step, ask, is_open=False)
    return following


def view(state: State | None, hub: Limits) -> service_pb2.Budget:
    """A budget as it is told."""
    turns, tokens, money = (
        service_pb2.Line(used=part.used, limit=part.limit, own=part.is_own) for part in parts(state, hub)
    )
    told = service_pb2.Budget(turns=turns, tokens=tokens, pico_usd=money)
    if state:
        told.since.CopyFrom(state.since)
        for name in ("input_tokens", "output_tokens", "unreported", "lost", "unpriced"):
            setattr(told, name, getattr(state, name))
    return told


def usd(pico: int) -> str:
    """An amount of money for people: to the cent when it has no smaller parts."""
    whole, part = divmod(pico, PICO)
    return f"${whole}.{f'{part:012d}'.rstrip('0').ljust(2, '0')}"


def _over(part: Part, state: State | None) -> str:
    shown = usd if part.name == "pico_usd" else str
    what = "" if part.name == "pico_usd" else f" {part.name}"
    whose = "its own limit" if part.is_own else f"the hub's {part.setting}"
    since = state.since.ToDatetime().strftime("%Y-%m-%d %H:%M UTC") if state else ""
    return f"engines have used {shown(part.used)} of the {shown(part.limit)}{what} of this room ({whose}) since {since}"


def _copy(state: State | None, now: datetime) -> State:
    following = State()
    if state:
        following.CopyFrom(state)
    else:
        following.since.CopyFrom(clock.to_timestamp(now))
    return following


def _find(state: State | None, step: int) -> states_pb2.CountedStep | None:
    return next((one for one in state.counted if one.step == step), None) if state else None


def _remember(state: State, step: int, ask: int, *, is_open: bool) -> None:
    kept = [one for one in state.counted if one.step != step][1 - REMEMBERED :]
    del state.counted[:]
    state.counted.extend([*kept, states_pb2.CountedStep(step=step, ask=ask, open=is_open)])
