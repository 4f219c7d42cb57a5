"""`receipts`: what became of a message at each of its recipients."""

import time

import click

from mycelium_cli.api import api_path
from mycelium_cli.command import Entry, Group, command, room_option
from mycelium_cli.context import Here
from mycelium_cli.output import Paint, table
from mycelium_cli.wording import Document, receipt_row

group = Group(
    "messages",
    "Messages: who got one.",
    {"receipts": Entry("room.receipts:receipts", "Who got a message, and what became of it.")},
    example="mycelium messages receipts a1b2c3d4",
)


@command("receipts", example="mycelium receipts a1b2c3d4\nmycelium messages receipts a1b2c3d4")
@room_option
@click.argument("message")
def receipts(here: Here, *, room: str | None, message: str) -> None:
    """Who got a message, and what became of it."""
    place = here.room(room)
    rows = here.hub().items(api_path("rooms", place, "messages", message, "receipts"))
    here.out.answer({"items": rows, "next": None}, draw_receipts)


def draw_receipts(answer: Document, paint: Paint) -> list[str]:
    """A line for each recipient."""
    if not answer["items"]:
        return ["it was delivered to nobody: it mentions no member"]
    rows = [receipt_row(row, time.time()) for row in answer["items"]]
    return table(["TO", "STATE", "WHEN", "GIVEN", "SESSION"], rows, paint)
