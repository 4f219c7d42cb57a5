"""`board log`: what happened in a room, day by day, and who did it."""

from collections.abc import Iterator
from datetime import date

import click

from mycelium_cli.api import Query, api_path
from mycelium_cli.board.zones import zone_name
from mycelium_cli.command import command, handle_option, room_option
from mycelium_cli.context import Here
from mycelium_cli.errors import usage
from mycelium_cli.output import Paint, at, clean_line, shell_word, width_of
from mycelium_cli.wording import Document

PEOPLE = 8  # of a day that one line names
TITLE_CHARACTERS = 100
DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
NOTHING, SOME, MET = "·", "▒", "█"
BACK_DAYS = (30, 90, 366)  # how far back one is led; a log is of 366 days at most
PERIODS = ("since", "week", "last_week", "day")


@command(
    "log",
    example="mycelium board log\n"
    "mycelium board log --since 30d\n"
    "mycelium board log --last-week --by @agent-y\n"
    "mycelium board log --day 2026-08-19 --tz Europe/Paris",
)
@room_option
@handle_option
@click.option("--since", metavar="DAYS", help="today, or a number of days such as 30d; default: 7d.")
@click.option("--week", is_flag=True, help="This week, Monday to Sunday.")
@click.option("--last-week", is_flag=True, help="The week before.")
@click.option("--day", metavar="DATE", help="One day, such as 2026-08-19.")
@click.option("--by", metavar="HANDLE", help="Only what one member did.")
@click.option("--tz", metavar="ZONE", help="Where days begin, such as Europe/Paris; default: $TZ, then this machine's.")
@click.option("--before", metavar="CURSOR", help="Go on where a page ended.")
def log(here: Here, *, room: str | None, handle: str | None, tz: str | None, **wanted: str | bool | None) -> None:
    """See what happened day by day, and who did it.

    Messages, changes of memories, tasks that were closed, and runs of engines; people and agents side by
    side. Nobody writes it, and what is recorded twice is told once.
    """
    named = [name for name in PERIODS if wanted[name]]
    if len(named) > 1:
        first, second = (f"--{name.replace('_', '-')}" for name in named[:2])
        raise usage(f"{first} and {second} are two periods: use one of them")
    place = here.room(room)
    query: Query = {name: _text(value) for name, value in wanted.items()} | {"tz": zone_name(tz, here.out.note)}
    found = here.hub(handle).get(api_path("rooms", place, "board", "log"), query)
    here.out.answer(found, lambda data, paint: draw(data, _again(place, wanted, tz), _lately(place, wanted, tz), paint))


def _text(value: str | bool | None) -> str | None:
    return "true" if value is True else value or None


def _again(room: str, wanted: dict[str, str | bool | None], tz: str | None) -> str:
    """The command that a page came from, without the place where it began."""
    said = [f"mycelium board log --room {shell_word(room)}"]
    for name, value in {**wanted, "tz": tz}.items():
        if value and name != "before":
            flag = f"--{name.replace('_', '-')}"
            said.append(flag if value is True else f"{flag} {shell_word(value)}")
    return " ".join(said)


def _lately(room: str, wanted: dict[str, str | bool | None], tz: str | None) -> str:
    """The same without its period."""
    return _again(room, {name: value for name, value in wanted.items() if name not in PERIODS}, tz)


def draw(page: Document, again: str, lately: str, paint: Paint) -> Iterator[str]:
    """The period, its days that have something, the streaks, the calendar."""
    span = page["first"] if page["first"] == page["last"] else f"{page['first']} to {page['last']}"
    of = f" · {at(page['by'])}" if page["by"] else ""
    yield f"{paint.bold(clean_line(page['room']))} · {clean_line(span)} · {clean_line(page['tz'])}{of}"
    busy = [day for day in page["items"] if day["total"]]
    for day in busy:
        yield ""
        yield from _day(day, page["target"], paint)
    if not busy:
        yield ""
        yield _nothing(page, lately)
    if page["next"]:
        yield ""
        yield paint.dim(f"older: {again} --before {clean_line(page['next'])}")
    else:
        yield ""
        yield from _calendar(page, paint)


def _nothing(page: Document, lately: str) -> str:
    """Where to look instead: further back, or up to today."""
    today = date.fromisoformat(page["calendar"][-1]["date"])
    days = (today - date.fromisoformat(page["first"])).days + 1
    if days < 1:
        return f"that is still to come; what was lately: {lately}"
    further = next((back for back in BACK_DAYS if back > days), None)
    return f"nothing happened; further back: {lately} --since {further}d" if further else "nothing happened"


def _day(day: Document, target: int, paint: Paint) -> Iterator[str]:
    met = paint.good("✓") if day["met"] else " "
    named = paint.bold(clean_line(f"{day['weekday']} {day['date']}"))
    yield f"{met} {named} · {day['total']} of {target}"
    people = [f"{at(person['handle'])} {person['total']}" for person in day["people"]]
    more = len(people) - PEOPLE + day["more_people"]
    yield paint.dim(f"  {', '.join(people[:PEOPLE])}{f' and {more} more' if more > 0 else ''}")
    widest = max((width_of(at(entry["by"])) for entry in day["entries"]), default=0)
    for entry in day["entries"]:
        by = at(entry["by"])
        yield f"  {paint.dim(clean_line(entry['time']))}  {by}{' ' * (widest - width_of(by))}  {_told(entry)}"


def _told(entry: Document) -> str:
    if entry["what"] == "messages":
        return f"{entry['count']} message{'' if entry['count'] == 1 else 's'}"
    title = clean_line(entry["title"] or "")
    cut = title if len(title) <= TITLE_CHARACTERS else title[:TITLE_CHARACTERS] + "…"
    was = f" (was {clean_line(entry['moved_from'])})" if entry["moved_from"] else ""
    named = f" {clean_line(entry['key'])}{was}{f' — {cut}' if cut else ''}" if entry["key"] else ""
    came_to = entry.get("outcome") or entry.get("answer")
    ended = f" → {clean_line(came_to)}" if came_to else ""
    return f"{clean_line(entry['what']):<9}{named}{ended}"


def _calendar(page: Document, paint: Paint) -> Iterator[str]:
    """Ten weeks, each a column from Monday down, and the streaks beside it."""
    totals = [day["total"] for day in page["calendar"]]
    yield paint.dim(f"ten weeks from {clean_line(page['calendar'][0]['date'])}")
    said = _streaks(page)
    for number, name in enumerate(DAYS):
        marks = " ".join(_mark(total, page["target"]) for total in totals[number::7])
        beside = said[number] if number < len(said) else ""
        yield f"  {paint.dim(name)}  {marks:<19}   {beside}".rstrip()


def _mark(total: int, target: int) -> str:
    return NOTHING if not total else SOME if total < target else MET


def _streaks(page: Document) -> list[str]:
    def told(whose: str, streak: Document) -> str:
        days = "1 day" if streak["current"] == 1 else f"{streak['current']} days"
        return f"{whose}: {days} in a row, longest {streak['longest']}"

    whose = at(page["by"]) if page["by"] else "the room"
    said = [told(whose, page["streak"])]
    if page["own_streak"] and not page["by"]:
        said.append(told("you", page["own_streak"]))
    return [*said, f"{MET} {page['target']} or more  {SOME} fewer  {NOTHING} nothing"]
