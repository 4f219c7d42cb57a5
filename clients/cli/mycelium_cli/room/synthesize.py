"""`synthesize`: asking for a synthesis, and the answer as long as no engine of this hub writes one."""

import click

from mycelium_cli import completing
from mycelium_cli.api import api_path
from mycelium_cli.command import command, room_option
from mycelium_cli.context import Here
from mycelium_cli.errors import NOT_FOUND, Failure
from mycelium_cli.output import at, clean_line, shell_word

_KIND = "synthesizer"


@command("synthesize", example="mycelium synthesize\nmycelium room synthesize --room design-review")
@room_option
@click.argument("name", required=False, metavar="[ROOM]", shell_complete=completing.rooms)
def synthesize(here: Here, *, room: str | None, name: str | None) -> None:
    """Ask for a synthesis; no engine writes one yet.

    A synthesizer is an engine that sums up a room in context/synthesis. This version has no engine of that kind, so
    nothing is written: the exit status is 3. What a room has come to is told by: mycelium catchup
    """
    place = here.room(name or room)
    engines = here.hub().items(api_path("rooms", place, "engines"))
    found = next((one for one in engines if one["kind"] == _KIND), None)
    if found:  # of a hub that is newer than this program
        ask = f'mycelium engine invoke {clean_line(found["handle"])} "catch us up" --room {shell_word(place)}'
        raise Failure(f"{at(found['handle'])} is the synthesizer of {clean_line(place)}: ask it", hint=ask)
    cause = f"no synthesizer is in {clean_line(place)}, and engines of that kind are not available yet"
    raise Failure(cause, exit_status=NOT_FOUND, hint=f"mycelium catchup --room {shell_word(place)}")
