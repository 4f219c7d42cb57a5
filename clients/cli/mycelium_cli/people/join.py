"""`join`, `leave` and `agent code`: how an agent that was started anywhere becomes a member, by a code."""

import os
import shlex
from collections.abc import Iterator

import click

from mycelium_cli import completing, joining, setting_values
from mycelium_cli.api import Caller, Hub, api_path
from mycelium_cli.command import command, room_option
from mycelium_cli.context import Here, same_hub
from mycelium_cli.errors import NOT_FOUND, Failure
from mycelium_cli.handles import handle_of
from mycelium_cli.joining import Joined
from mycelium_cli.output import Paint, at, clean_line
from mycelium_cli.people.joined_folder import Folder, Interruption, uninterrupted
from mycelium_cli.wording import Document


@command("code", example="mycelium agent code scout --room design-review", writes=True)
@room_option
@click.argument("handle", shell_complete=completing.members)
def code(here: Here, *, room: str | None, handle: str) -> None:
    """Make a code by which an agent joins.

    Whoever uses it first becomes that agent of the room, in the folder where it says `mycelium join`. It is good
    once, for ten minutes, and takes the place of one that was made before and not used. An agent that is no member
    of the room yet becomes one. With sign-in on, codes are made by the agent itself, its owner, and whom its
    `--allow-from` names.
    """
    who = handle_of(handle)
    made = here.hub().post(api_path("rooms", here.room(room), "join-codes"), {"handle": who})
    made["command"] = f"mycelium join {made['code']} --hub {shlex.quote(here.hub_url)}"
    here.out.answer(made, draw_code)


def draw_code(made: Document, paint: Paint) -> Iterator[str]:
    """The code, whom it lets in where and until when, and what is typed there."""
    yield paint.bold(clean_line(made["code"]))
    yield f"  lets {at(made['handle'])} into {clean_line(made['room'])}, once, until {clean_line(made['expires_at'])}"
    yield f"  {clean_line(made['command'])}"


@command("join", example="mycelium join abcd-efgh-jkmn --hub http://hub.example.com:8000", writes=True)
@click.option("--hub", metavar="URL", help="The hub that the code is from; default: the one in use.")
@click.option("--replace", is_flag=True, help="Also when this folder is another member's.")
@click.argument("code")
def join(here: Here, *, hub: str | None, replace: bool, code: str) -> None:
    """Make this folder a member's, by a code.

    From then on every command in this folder, and in those below it, acts as that member in that room, unless a flag
    or the environment says otherwise. The membership is in a file that only you can read and that git does not see.
    """
    url = setting_values.checked_url(hub, "--hub") if hub else here.hub_url
    with uninterrupted() as interruption, Folder(os.getcwd()) as folder:
        only = {} if replace else _only(folder, url)
        interruption.check()
        member = _use(here, url, {"code": code, **only}, interruption)
        folder.save(member)
        known = {"room": member.room, "handle": member.handle, "hub": member.hub, "folder": folder.path}
        here.out.answer({**known, "file": folder.file, "token": bool(member.token)}, draw_join)


def _only(folder: Folder, url: str) -> dict[str, str]:
    """The member that the folder is, who may join again; a refusal when that can't be whom a code of the hub is for."""
    before = joining.read(folder.file)
    if before is None:
        return {}
    if not same_hub(before.hub, url):
        raise _taken(before)
    return {"room": before.room, "handle": before.handle}


def _taken(before: Joined) -> Failure:
    whose = f"@{before.handle}'s, in {before.room} at {before.hub}"
    return Failure(f"this folder is {whose} ({before.source})", hint="--replace, or mycelium leave", slug="cli.joined")


def _use(here: Here, url: str, body: dict[str, str], interruption: Interruption) -> Joined:
    """Spend the code. Nobody asks: whoever acts here so far has nothing to do with it."""
    caller = Caller(handle="", session=here.session, token="")
    asking = Hub(url, caller, verbose=here.verbose, key=here.key, pause=interruption.pause)
    try:
        said = asking.post("/api/join", body)
    except Failure as failure:
        if failure.slug == "join.other_member":
            raise Failure(
                f"this folder is @{body['handle']}'s, in {body['room']}, and the code is another's",
                hint="--replace, or mycelium leave",
                slug=failure.slug,
                problem=failure.problem,
            ) from None
        raise
    return Joined(hub=url, room=said["room"], handle=said["handle"], token=said["token"] or "", source="")


def draw_join(known: Document, _paint: Paint) -> Iterator[str]:
    """Who acts here from now on."""
    yield f"joined {clean_line(known['room'])} as {at(known['handle'])}"
    yield f"  every command in {clean_line(known['folder'])} and below it acts as {at(known['handle'])} from now on"


@command("leave", example="mycelium leave")
def leave(here: Here) -> None:
    """Take the membership out of this folder.

    Or out of the nearest folder above it that has one. The hub is not asked: the agent stays a member of its room.
    To take it out: mycelium agent rm.
    """
    place = next((one for one in joining.places() if os.path.lexists(one)), None)
    if place is None:
        raise Failure(
            "neither this folder nor one above it has joined a room",
            exit_status=NOT_FOUND,
            hint="mycelium whoami --sources",
        )
    try:
        before: Joined | None = joining.read(place)
    except Failure:
        before = None  # what it says counts for nothing, and it can go
    folder = os.path.dirname(os.path.dirname(place))
    Folder(folder).clear()
    who = {"room": before.room, "handle": before.handle} if before else {"room": None, "handle": None}
    here.out.answer({**who, "folder": folder, "file": place}, draw_leave)


def draw_leave(known: Document, _paint: Paint) -> Iterator[str]:
    """Whose folder it was."""
    whose = f", and is {at(known['handle'])}'s no more" if known["handle"] else ""
    yield f"{clean_line(known['folder'])} has left {clean_line(known['room'] or 'its room')}{whose}"
