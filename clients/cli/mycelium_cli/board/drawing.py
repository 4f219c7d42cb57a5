"""How the board is shown: sections of rows, or a table, perhaps by the values of a field. Pure: data in, lines out."""

from collections.abc import Iterable, Iterator
from datetime import tzinfo
from typing import NamedTuple

from mycelium_cli.board.zones import clock_at
from mycelium_cli.output import Paint, age, at, clean_line, short, table
from mycelium_cli.wording import Document

NONE = "-"
OF_ROWS = (
    "owner",
    "assignee",
    "holder",
    "blocked_by",
    "parent",
    "parts",
    "waits_for",
    "reason",
    "cycle",
    "options",
    "expires_at",
)  # each may be nobody's or nothing
HANDLES = ("assignee", "holder", "owner", "created_by", "updated_by")  # fields whose values are handles
CLOSED = ("resolved", "dismissed")
# Statuses in the order of work; others come after them.
STATUSES = ("open", "in_progress", "in_review", "blocked", *CLOSED)
MOST_PARTS = 5  # of a row that are named
# What the rows of the list stand under: a heading and a mark.
SECTIONS = {
    "decision": ("Decisions", "?"),
    "blocked": ("Blocked", "⊘"),
    "review": ("Review", "◉"),
    "open": ("Open", "○"),
    "closed": ("Closed", "✓"),
    "run": ("Runs", "▸"),
    "member": ("Active now", "●"),
}


class Look(NamedTuple):
    """How a board is looked at."""

    filter: str
    view: str
    group: str
    zone: tzinfo
    now_s: float


def draw(page: Document, look: Look, paint: Paint) -> Iterator[str]:
    """The numbers of all filters, then the rows."""
    counts = f"{page['needs_you']} need you · {page['in_flight']} in flight · {page['resolved']} resolved today"
    yield f"{paint.bold(clean_line(page['room']))}   {counts}"
    if not page["items"]:
        yield paint.dim("nothing here" if look.filter == "all" else "nothing here; --filter all shows every row")
    elif look.view == "table":
        yield from _table(page["items"], look, paint)
    else:
        for heading, rows in _parts(page["items"], look):
            yield ""
            yield f"{paint.bold(heading)} {len(rows)}"
            for row in rows:
                yield from _lines(row, look, paint)
    if (
        look.group
        and look.group not in OF_ROWS
        and page["items"]
        and all(row.get("group") in ([NONE], None) for row in page["items"])
    ):
        yield paint.dim(f"no row here has a field {clean_line(look.group)}")


def by_group(rows: Iterable[Document], field: str) -> dict[str, list[Document]]:
    """Rows under each value that they have, the values in the order in which people read them."""
    found: dict[str, list[Document]] = {}
    for row in rows:
        for value in row.get("group") or [NONE]:
            found.setdefault(str(value), []).append(row)

    def order(value: str) -> tuple[bool, int, str]:
        is_known = field == "status" and value in STATUSES
        return value == NONE, STATUSES.index(value) if is_known else len(STATUSES), value.casefold()

    return {value: found[value] for value in sorted(found, key=order)}


def section(row: Document) -> str:
    """What a row stands under in the list."""
    kind = row["source"]["kind"]
    if kind != "memory":
        return str(kind)
    if row["status"] in CLOSED:
        return "closed"
    if row["kind"] == "decision":
        return "decision"
    return {"blocked": "blocked", "in_review": "review"}.get(row["status"], "open")


def _parts(rows: list[Document], look: Look) -> Iterator[tuple[str, list[Document]]]:
    """Headings, and what stands under each."""
    if look.group:
        for value, group in by_group(rows, look.group).items():
            yield _value(look.group, value), group
        return
    for name, (heading, _mark) in SECTIONS.items():
        found = [row for row in rows if section(row) == name]
        if found:
            yield heading, found


def _value(field: str, value: str) -> str:
    return at(value) if field in HANDLES and value != NONE else clean_line(value)


def _table(rows: list[Document], look: Look, paint: Paint) -> list[str]:
    heads = ["KEY", "TITLE", "STATUS", "KIND", "FOR", "HELD BY", "NOT READY", "MOVED"]
    if not look.group:
        return table(heads, [_cells(row, look) for row in rows], paint)
    lines = [
        [_value(look.group, value), *_cells(row, look)]
        for value, group in by_group(rows, look.group).items()
        for row in group
    ]
    return table([clean_line(look.group).upper(), *heads], lines, paint)


def _cells(row: Document, look: Look) -> list[str]:
    why = "" if row["ready"] else row["reason"]
    seen = [row["key"], row["title"], _status(row), row["kind"], at(row["assignee"]), _held(row, look), why]
    return [*(clean_line(cell or NONE) for cell in seen), age(row["updated_at"], look.now_s)]


def _status(row: Document) -> str:
    """Its status; of what goes on elsewhere that."""
    return "promoted" if row["status"] == "resolved" and row["meta"].get("promoted") else str(row["status"])


def _held(row: Document, look: Look) -> str:
    """Who holds it, until when."""
    return f"{at(row['holder'])} until {clock_at(row['expires_at'], look.zone, look.now_s)}" if row["holder"] else ""


def _lines(row: Document, look: Look, paint: Paint) -> Iterator[str]:
    mark = SECTIONS[section(row)][1]
    name = short(row["thread"]) if row["thread"] else " " * 8
    urgency = row["meta"].get("priority")
    told = f"  {paint.warn(clean_line(urgency))}" if urgency else ""
    yield f" {mark} {name}  {paint.bold(clean_line(row['title']))}{told}"
    yield " " * 13 + paint.dim(" · ".join(_small_print(row, look)))
    if row.get("options") and row["status"] not in CLOSED:
        yield " " * 13 + " ".join(f"[{clean_line(option)}]" for option in row["options"])


def _small_print(row: Document, look: Look) -> Iterator[str]:
    """What is known of a row, in the order in which one asks."""
    yield clean_line(row["key"])
    answer = row["meta"].get("answer") if row["status"] == "resolved" else None
    yield clean_line(_status(row)) + (f" → {clean_line(answer)}" if answer else "")
    if row["source"]["kind"] == "memory":
        yield from _standing(row)
        if row["assignee"]:
            yield f"for {', '.join(map(at, row['assignee'].split(', ')))}"
        yield f"held by {_held(row, look)}" if row["holder"] else "unowned"
    yield age(row["updated_at"], look.now_s)


def _standing(row: Document) -> Iterator[str]:
    """What it waits for, and what it belongs to."""
    if row["blocked_by"]:
        yield f"waiting on {clean_line(row['blocked_by'])}"
    if row["waits_for"]:
        yield f"after {_keys(row['waits_for'])}"
    if row["cycle"]:
        more = [f"and {row['cycle_more']} more"] if row["cycle_more"] else []
        yield f"in a cycle: {' → '.join([*map(clean_line, row['cycle']), *more, clean_line(row['cycle'][0])])}"
    if row["parent"]:
        yield f"part of {clean_line(row['parent'])}"
    if row["parts"]:
        yield f"parts: {_keys(row['parts'])}"


def _keys(keys: list[str]) -> str:
    more = f" and {len(keys) - MOST_PARTS} more" if len(keys) > MOST_PARTS else ""
    return ", ".join(clean_line(key) for key in keys[:MOST_PARTS]) + more
