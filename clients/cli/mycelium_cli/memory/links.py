"""`memory links`: what memories link to, what links to them, and what of it leads nowhere."""

from collections.abc import Callable, Iterable, Iterator

import click

from mycelium_cli.api import Hub, Query, api_path
from mycelium_cli.command import command, room_option
from mycelium_cli.context import Here
from mycelium_cli.errors import REFUSED, usage
from mycelium_cli.memory.keys import checked, path_of
from mycelium_cli.output import Paint, clean_line, width_of
from mycelium_cli.wording import Document

Name = Callable[[Document], str]
_PAGE = 1000
# What is the matter with a link; one to another room is as its writer meant it.
_STATES = {
    "ok": "",
    "broken": "no such memory",
    "no_section": "no such section",
    "not_expandable": "not expandable",
    "other_room": "another room",
    "too_large": "too large",
}
_FINE = {"ok", "other_room"}


@command(
    "links",
    example="mycelium memory links context/stack\nmycelium memory links context/stack --backlinks\n"
    "mycelium memory links --check",
)
@room_option
@click.option("--check", is_flag=True, help="Only what is broken, and memories that nothing links to.")
@click.option("--backlinks", is_flag=True, help="Only what links to KEY.")
@click.argument("memory", required=False, metavar="[KEY]")
def links(here: Here, *, room: str | None, check: bool, backlinks: bool, memory: str | None) -> None:
    """What a memory links to, and what links to it.

    Without KEY, every link of the room. With --check, the exit status is 1 when a link is broken: its memory or
    section is not there, or it embeds one that is not expandable. A memory that nothing links to is shown and
    is nothing wrong, nor is a link to another room, where links don't lead.
    """
    if backlinks and (check or memory is None):
        raise usage("--backlinks goes with a KEY, and not with --check", "mycelium memory links KEY --backlinks")
    place, hub = here.room(room), here.hub()
    if memory is None:
        found = _graph(hub, place, problems=check)
        data = _checked(found["edges"], found["documents"], found["links"], found["nodes"]) if check else found
        here.out.answer(data, _draw_check if check else _draw_graph)
    else:
        found = _document(hub, path_of(place, checked(memory)))
        if backlinks:
            del found["links"]
        data = _checked(found["links"], 1, len(found["links"])) if check else found
        here.out.answer(data, _draw_check if check else _draw_document)
    if check and data["broken"]:
        raise click.exceptions.Exit(REFUSED)


def matter(state: str) -> str:
    """What is the matter with a link; empty for nothing."""
    return _STATES.get(state, state)


def _document(hub: Hub, path: str) -> Document:
    found: Document = {}
    for page in _pages(hub, path, {"view": "links", "limit": _PAGE}):
        found = {**page, "backlinks": [*found.get("backlinks", []), *page["backlinks"]]}
    del found["next"]
    return found


def _graph(hub: Hub, room: str, *, problems: bool) -> Document:
    """The whole of it: a room's links are as many as people have written."""
    found: Document = {"nodes": [], "edges": [], "documents": 0, "links": 0}
    query: Query = {"problems": "true" if problems else None, "limit": _PAGE}
    for page in _pages(hub, api_path("rooms", room, "graph"), query):
        for name in found:
            found[name] += page[name]
    return found


def _pages(hub: Hub, path: str, query: Query) -> Iterator[Document]:
    cursor = None
    while True:
        page = hub.get(path, {**query, "cursor": cursor})
        yield page
        cursor = page["next"]
        if cursor is None:
            return


def _checked(links: list[Document], documents: int, count: int, nodes: Iterable[Document] = ()) -> Document:
    return {
        "broken": [link for link in links if link["state"] not in _FINE],
        "orphans": [node["key"] for node in nodes],
        "documents": documents,
        "links": count,
    }


def _draw_document(found: Document, paint: Paint) -> Iterator[str]:
    absent = "" if found["exists"] else paint.bad(" (not there)")
    yield paint.bold(clean_line(found["key"])) + absent
    sources = {link["source"] for link in found["backlinks"]}
    column = max([_widest(found.get("links", []), _target) + 2, _widest(found["backlinks"], _source)])
    if "links" in found:
        yield ""
        yield "→ links to"
        yield from _rows(found["links"], _target, paint, column - 2, marked=True) or [paint.dim("  nothing")]
    yield ""
    yield f"← referenced by ({len(sources)})"
    yield from _rows(found["backlinks"], _source, paint, column, marked=False)


def _draw_graph(found: Document, paint: Paint) -> Iterator[str]:
    by_source: dict[str, list[Document]] = {}
    for link in found["edges"]:
        by_source.setdefault(link["source"], []).append(link)
    for source, links in by_source.items():
        yield paint.bold(clean_line(source))
        yield from _rows(links, _target, paint, _widest(links, _target), marked=True)
    if not by_source:
        yield "no links"


def _draw_check(found: Document, paint: Paint) -> Iterator[str]:
    if found["broken"]:
        yield paint.bad(f"broken links ({len(found['broken'])})")
        yield from _rows(found["broken"], _way, paint, _widest(found["broken"], _way), marked=False)
    if found["orphans"]:
        yield f"nothing links to ({len(found['orphans'])})"
        yield from (f"  {clean_line(key)}" for key in found["orphans"])
    looked = f"{_many(found['documents'], 'memory', 'memories')}, {_many(found['links'], 'link', 'links')}"
    yield paint.dim(f"looked at {looked}") if found["broken"] else paint.good(f"no broken links in {looked}")


def _rows(links: Iterable[Document], name: Name, paint: Paint, column: int, *, marked: bool) -> list[str]:
    """Links, those that would look the same but once."""
    rows = dict.fromkeys((link["state"], clean_line(name(link)), _kind(link)) for link in links)
    return [_row(*row, column, paint, marked=marked) for row in rows]


def _widest(links: Iterable[Document], name: Name) -> int:
    return max((width_of(clean_line(name(link))) for link in links), default=0)


def _row(state: str, name: str, kind: str, width: int, paint: Paint, *, marked: bool) -> str:
    sign = {"ok": paint.good("✓"), "other_room": paint.dim("·")}.get(state, paint.bad("✗"))
    padded = name + " " * (width - width_of(name))
    why = paint.dim(matter(state)) if state in _FINE else paint.bad(matter(state))
    return f"  {sign + ' ' if marked else ''}{padded}    {kind}" + (f"  {why}" if why else "")


def _kind(link: Document) -> str:
    return str(link["type"] or link["kind"])


def _target(link: Document) -> str:
    key = link["key"] or link["written"]
    if link["room"]:
        key = f"myc://rooms/{link['room']}/{key}"
    return f"{key}#{link['section']}" if link["section"] else str(key)


def _source(link: Document) -> str:
    return f"{link['source']} → #{link['section']}" if link["section"] else str(link["source"])


def _way(link: Document) -> str:
    return f"{link['source']} → {_target(link)}"


def _many(count: int, one: str, several: str) -> str:
    return f"{count:,} {one if count == 1 else several}"
