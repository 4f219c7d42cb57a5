"""Decisions on names: which handle a newcomer can have, and what a person can be called. Who is there keeps theirs."""

from __future__ import annotations

from dataclasses import dataclass

from mycelium.rooms.v1 import events_pb2, views_pb2
from mycelium_kernel import names
from mycelium_kernel.callers import handle_of
from mycelium_kernel.errors import Refusal
from mycelium_kernel.lookalikes import same_name
from mycelium_kernel.service import Context
from mycelium_rooms.commands_text import NAME_CHARACTERS, line


@dataclass(frozen=True)
class Alike:
    """Somebody for whom a new name can be taken: by their handle, or by the name that is given here."""

    handle: str
    name: str = ""

    @property
    def shown(self) -> str:
        """As a refusal names them."""
        return f"{self.name!r} (@{self.handle})" if self.name else f"@{self.handle}"


def check_member_handle(
    before: events_pb2.MemberState | None,
    alike: Alike | None,
    handle: str,
    kind: views_pb2.MemberKind.ValueType,
    context: Context,
) -> None:
    """Refused for a newcomer under a name of the hub, or one that can be taken for somebody else: take another.

    Who was here before comes back under its own name; only an engine's name does not become an agent's.
    """
    engine = views_pb2.MEMBER_KIND_ENGINE
    was = before.member.kind if before else None
    if was is None or (was == engine and kind != engine):
        names.new_handle(handle, engine=kind == engine)
    if before is None and kind != views_pb2.MEMBER_KIND_USER:
        check_likeness(alike, handle, context)


def check_unspoken(handle: str, kind: views_pb2.MemberKind.ValueType, context: Context, *, has_spoken: bool) -> None:
    """Refused for a newcomer under the handle of somebody who has written in the room without being added to it.

    They signed in under it: whoever added it as an agent of theirs could have a token for it, and speak as them.
    Who runs the hub may all the same.
    """
    proven, may = context.actor.proven, context.actor.operator or handle_of(context) == handle
    if has_spoken and proven and not may and kind != views_pb2.MEMBER_KIND_USER:
        detail = (
            f"@{handle} has written in this room already: who signs in under it adds it, with `--owner` for another"
        )
        raise Refusal("handle.taken", detail)


def check_likeness(alike: Alike | None, handle: str, context: Context) -> None:
    """Who signed in under a handle has it from an issuer that the hub trusts, and is not kept out by a likeness."""
    is_own = context.actor.proven != "" and handle_of(context) == handle
    if alike and not is_own:
        raise Refusal(
            "handle.taken", f"@{handle} can be taken for {alike.shown}; take another handle", near=alike.handle
        )


def person_name(text: str, handle: str, alike: list[Alike]) -> str:
    """What a person is to be called. Refused when that deceives: two may share a name, none may look like another.

    `alike` are the people with a handle or a name that looks the same.
    """
    name = names.person_name(line("name", text, NAME_CHARACTERS))
    own = names.reserved_name(name)
    if own:
        raise Refusal("name.taken", f"{name!r} can be taken for @{own} of the hub itself; take another name")
    for one in alike:
        if one.handle != handle and not (one.name and same_name(one.name, name)):
            raise Refusal("name.taken", f"{name!r} can be taken for {one.shown}; take another name", near=one.handle)
    return name
