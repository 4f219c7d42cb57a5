"""Who asks, and of which room: what the commands of services share. Pure: nothing here reads a table or the bus."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from mycelium_kernel import names
from mycelium_kernel.errors import Refusal
from mycelium_kernel.service import Context


@dataclass(frozen=True)
class RoomRow:
    """A room as the commands of a service see it that does not own rooms."""

    id: str
    name: str


def handle_of(context: Context) -> str:
    """The handle that asks; empty when the caller named none."""
    return names.handle(context.actor.handle) if context.actor.handle else ""


def speaker(context: Context) -> str:
    """The handle that asks. Refused when the caller named none, or one of the hub's own: say who you are."""
    handle = handle_of(context)
    if not handle:
        raise Refusal("handle.missing", "this needs a handle, and the caller named none", next="mycelium iam NAME")
    if handle in names.UNSPOKEN_HANDLES:
        raise Refusal("handle.invalid", f"nobody speaks as @{handle}, which is a name of the hub itself")
    return handle


def unregistered(room: str, handle: str) -> Refusal:
    """The refusal of a handle that is nobody in the room of that name: register it."""
    next_command = f"mycelium agent create {handle} --room {shlex.quote(room)}"
    return Refusal("handle.unregistered", f"@{handle} is not a registered agent or user", next=next_command)
