"""`presence`: telling the room what one is doing."""

import click

from mycelium_cli.api import api_path
from mycelium_cli.command import command, handle_option, room_option
from mycelium_cli.context import Here
from mycelium_cli.errors import usage
from mycelium_cli.output import Paint, at, clean_line
from mycelium_cli.periods import duration_s
from mycelium_cli.wording import Document

_SHORTEST_S, _LONGEST_S = 5, 600


@command("presence", example='mycelium presence working "reviewing #48" --ttl 10m\nmycelium presence idle')
@room_option
@handle_option
@click.option("--ttl", metavar="TIME", default="60", show_default=True, help="How long it holds: 5s to 10m.")
@click.argument("state", type=click.Choice(["idle", "working", "blocked"]))
@click.argument("note", required=False)
def presence(here: Here, *, room: str | None, handle: str | None, ttl: str, state: str, note: str | None) -> None:
    """Tell the room what you are doing.

    Waiting shows as idle and a message taken as working without it. When nothing is heard for the time
    given here, you show as offline.
    """
    place, who = here.room(room), here.handle(handle)
    ttl_s = round(duration_s(ttl, "--ttl"))
    if not _SHORTEST_S <= ttl_s <= _LONGEST_S:
        raise usage(f"--ttl is {_SHORTEST_S}s to {_LONGEST_S // 60}m, not {ttl}")
    body = {"handle": who, "state": state, "note": note, "ttl_s": ttl_s}
    known = {name: value for name, value in body.items() if value}
    here.hub(handle).post(api_path("rooms", place, "presence"), known)
    here.out.answer({**body, "room": place}, draw_presence)


def draw_presence(answer: Document, _paint: Paint) -> list[str]:
    """What others see from now on, and for how long."""
    note = f": {clean_line(answer['note'])}" if answer["note"] else ""
    return [f"{at(answer['handle']) or 'you'} {answer['state']}{note}, for {answer['ttl_s']} s"]
