"""`engine budget`: what engines have spent on models in a room, and how much they may."""

import time
from collections.abc import Iterator

import click

from mycelium_cli.api import api_path
from mycelium_cli.command import command, room_option
from mycelium_cli.context import Here
from mycelium_cli.errors import usage
from mycelium_cli.output import Paint, age, table
from mycelium_cli.wording import Document

_WORDS = ("none", "hub")
_UNKNOWN = {
    "unreported": "tokens that the provider did not tell",
    "lost": "no answer came",
    "unpriced": "no price is known",
}


def _wanted(typed: str | None, option: str, kind: type[int] | type[float]) -> int | float | str | None:
    """A limit as the hub takes it."""
    if typed is None:
        return None
    text = typed.strip().lower().lstrip("$").replace(",", "").replace("_", "")
    if text in _WORDS:
        return text
    try:
        number = kind(text)
    except ValueError:
        number = 0
    if not 0 < number < float("inf"):
        what = "whole number" if kind is int else "number"
        raise usage(f"{option} is a {what} above 0, none, or hub, not {typed}", "mycelium engine budget --help")
    return number


@command(
    "budget",
    example="mycelium engine budget -r sprint-plan\n"
    "mycelium engine budget -r sprint-plan --turns 20 --usd 2.50\n"
    "mycelium engine budget -r sprint-plan --usd hub --renew",
    writes=True,
)
@room_option
@click.option("--turns", metavar="N|none|hub", help="How often they may ask the model.")
@click.option("--tokens", metavar="N|none|hub", help="Tokens, read and written.")
@click.option("--usd", metavar="X|none|hub", help="Money, in US dollars.")
@click.option("--renew", is_flag=True, help="Count from zero again.")
def budget(
    here: Here,
    *,
    room: str | None,
    turns: str | None,
    tokens: str | None,
    usd: str | None,
    renew: bool,
) -> None:
    """Show or set what engines may spend on models.

    Each room has its budget. Its own limit replaces the hub's; none: there is none; hub: the hub's again.
    When one is used up, engines say so in the room, and ask the model no more.
    """
    path = api_path("rooms", here.room(room), "budget")
    wanted = {
        "turns": _wanted(turns, "--turns", int),
        "tokens": _wanted(tokens, "--tokens", int),
        "usd": _wanted(usd, "--usd", float),
        "renew": renew or None,
    }
    body = {name: value for name, value in wanted.items() if value is not None}
    told = here.hub().write("PATCH", path, body).data if body else here.hub().get(path)
    here.out.answer(told, lambda data, paint: draw_budget(data, time.time(), paint))


def draw_budget(budget: Document, now_s: float, paint: Paint) -> Iterator[str]:
    """A table, and what is not known."""
    rows = [
        [name, _amount(name, budget[name]["used"]), _limit(name, budget[name]), f"the {budget[name]['set_by']}"]
        for name in ("turns", "tokens", "usd")
    ]
    yield from table(["", "USED", "LIMIT", "SET BY"], rows, paint)
    if budget["since"]:
        read, wrote = budget["input_tokens"], budget["output_tokens"]
        yield f"counted since {age(budget['since'], now_s)}; tokens: {read:,} read, {wrote:,} written"
    for name, words in _UNKNOWN.items():
        if budget[name]:
            turns = "turn" if budget[name] == 1 else "turns"
            yield paint.warn(f"not known: what {budget[name]} {turns} took ({words})")


def one_line(budget: Document) -> str:
    """What is used of what is limited; turns and money when nothing is."""
    lines = {name: budget[name] for name in ("turns", "tokens", "usd")}
    shown = [name for name, line in lines.items() if line["limit"] is not None] or ["turns", "usd"]
    parts = []
    for name in shown:
        limit = f" of {_limit(name, lines[name])}" if lines[name]["limit"] is not None else ""
        unit = "" if name == "usd" else f" {name}"
        parts.append(f"{_amount(name, lines[name]['used'])}{limit}{unit}")
    return f"{', '.join(parts)} used in this room"


def _limit(name: str, line: Document) -> str:
    return "none" if line["limit"] is None else _amount(name, line["limit"])


def _amount(name: str, value: float) -> str:
    if name != "usd":
        return f"{value:,}"
    return f"${value:,.2f}" if value == round(value, 2) else f"${value:,.12f}".rstrip("0")
