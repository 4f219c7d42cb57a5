"""`user create|ls|show`: the people of the hub."""

from collections.abc import Iterator

import click

from mycelium_cli import completing
from mycelium_cli.api import api_path
from mycelium_cli.command import Entry, Group, command
from mycelium_cli.context import Here
from mycelium_cli.handles import handle_of
from mycelium_cli.output import Paint, at, clean_line, fields, table
from mycelium_cli.wording import Document, person

group = Group(
    "user",
    "Users: people, once for the whole hub.",
    {
        "create": Entry("people.user:create", "Add a person."),
        "ls": Entry("people.user:ls", "List people."),
        "show": Entry("people.user:show", "Show a person and the agents they own."),
    },
    example='mycelium user create avery --name "Avery Quinn" --team core\nmycelium user show avery',
)


@command("create", example='mycelium user create avery --name "Avery Quinn" --team core', writes=True)
@click.option("--name", metavar="NAME", help="What messages show: Avery Quinn.")
@click.option("--team", metavar="NAME", help="The team they work in.")
@click.argument("handle")
def create(here: Here, *, name: str | None, team: str | None, handle: str) -> None:
    """Add a person."""
    known = {"handle": handle_of(handle), "name": name, "team": team}
    body = {field: value for field, value in known.items() if value is not None}
    user = here.hub().post(api_path("users"), body)
    here.out.answer(user, lambda data, _: [f"added {person(data.get('name'), data['handle'])}"])


@command("ls", example="mycelium user ls --json")
def ls(here: Here) -> None:
    """List people."""
    here.out.answer({"items": here.hub().items(api_path("users")), "next": None}, draw_users)


def draw_users(answer: Document, paint: Paint) -> list[str]:
    """People as a table."""
    if not answer["items"]:
        return ["no users yet: mycelium user create <handle>"]
    rows = [[at(user["handle"]), user.get("name") or "", user.get("team") or ""] for user in answer["items"]]
    return table(["USER", "NAME", "TEAM"], rows, paint)


@command("show", example="mycelium user show avery")
@click.argument("handle", shell_complete=completing.people)
def show(here: Here, *, handle: str) -> None:
    """Show a person and the agents they own."""
    here.out.answer(here.hub().get(api_path("users", handle_of(handle))), draw_user)


def draw_user(user: Document, paint: Paint) -> Iterator[str]:
    """A person's fields, then their agents."""
    yield paint.bold(person(user.get("name"), user["handle"]))
    yield from fields([("team", user.get("team") or ""), ("added", str(user.get("created_at") or ""))], paint)
    agents = user.get("agents") or []
    yield ""
    if not agents:
        yield "owns no agents"
        return
    rows = [[at(agent["handle"]), clean_line(agent["room"])] for agent in agents]
    yield from table(["AGENT", "ROOM"], rows, paint)
