"""`room add|remove`: letting somebody into a room whom the hub knows already, and out of it."""

import click

from mycelium_cli import completing
from mycelium_cli.api import Caller, Hub, api_path
from mycelium_cli.command import command, room_option
from mycelium_cli.context import Here
from mycelium_cli.errors import FORBIDDEN, NOT_FOUND, Failure
from mycelium_cli.handles import handle_of
from mycelium_cli.output import at, clean_line


@command("add", example="mycelium room add avery --room board-only", writes=True)
@room_option
@click.argument("handle", shell_complete=completing.people)
def add(here: Here, *, room: str | None, handle: str) -> None:
    """Let a user or an agent into a room.

    A private room is for its members alone; in a shared one it is for having them in the list. A new agent
    is registered with `agent create`.
    """
    place, who, hub = here.room(room), handle_of(handle), here.hub()
    body = {"handle": who, "kind": _kind(hub, who)}
    answer = hub.write("POST", api_path("rooms", place, "members"), body)
    told = f"added {at(who)} to" if answer.status == 201 else f"{at(who)} is already in"
    here.out.answer(answer.data, lambda _data, _paint: [f"{told} {clean_line(place)}"])


def _kind(hub: Hub, who: str) -> str:
    """What the hub knows a handle as; nothing is made up for one that it doesn't know."""
    try:
        hub.get(api_path("users", who))
    except Failure as failure:
        if failure.exit_status != NOT_FOUND:
            raise
    else:
        return "user"
    if _is_agent(hub, who):
        return "agent"
    hint = f"mycelium user create {who}, for a person; mycelium agent create {who}, for an agent"
    raise Failure(f"the hub knows nobody called {at(who)}", exit_status=NOT_FOUND, hint=hint)


def _is_agent(hub: Hub, who: str) -> bool:
    try:
        known = Hub(hub.url, Caller(who, hub.caller.session, hub.caller.token)).get(api_path("whoami"))
    except Failure as failure:
        if failure.exit_status != FORBIDDEN:  # with sign-in, nobody may ask as somebody else
            raise
        return False
    return bool(known.get("kind") == "agent")


@command("remove", example="mycelium room remove avery --room board-only", writes=True)
@room_option
@click.argument("handle", shell_complete=completing.members)
def remove(here: Here, *, room: str | None, handle: str) -> None:
    """Take a user or an agent out of a room.

    What they posted stays. Whoever mentions them reads that they left.
    """
    place, who = here.room(room), handle_of(handle)
    here.hub().write("DELETE", api_path("rooms", place, "members", who))
    here.out.answer({"removed": who, "room": place}, lambda _data, _: [f"removed {at(who)} from {clean_line(place)}"])
