"""What follows from a code that was used: who joined is a member. And how the tables keep codes and tokens, by digest.

The command that used it waits for that; should it not come to it, the reaction does it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mycelium.rooms.v1 import join_pb2, views_pb2
from mycelium_kernel import clock, subjects
from mycelium_kernel.service import Context, Reaction, Stored
from mycelium_kernel.tables import Tables
from mycelium_rooms.commands_join import not_good
from mycelium_rooms.model import ROOMS, may_act

if TYPE_CHECKING:
    from mycelium_kernel.run import Runtime

# Of a token, which is as good as its membership.
OWNER = """SELECT room_id, room.name, handle
  FROM joining JOIN room USING (room_id) JOIN member USING (room_id, handle)
  WHERE token = ?1 AND token != '' AND has_left = 0"""


async def register(runtime: Runtime, event: join_pb2.JoinCodeUsed, sequence: int) -> None:
    """Make who joined a member, unless it is one. Refused when somebody who looks the same was a moment quicker."""
    if await _is_refused(runtime, event, sequence):
        raise not_good()


async def _register(runtime: Runtime, event: join_pb2.JoinCodeUsed, stored: Stored) -> None:
    await _is_refused(runtime, event, stored.sequence)


async def _is_refused(runtime: Runtime, event: join_pb2.JoinCodeUsed, sequence: int) -> bool:
    request = join_pb2.RegisterJoinedRequest(room_id=event.room_id, handle=event.handle, joined=sequence)
    answer = await runtime.do(request)
    return isinstance(answer, join_pb2.RegisterJoinedResponse) and answer.refused


REGISTRAR = Reaction("registrar", (join_pb2.JoinCodeUsed,), (subjects.of_kind(ROOMS, "join"),), _register)


def find_joined(tables: Tables, request: join_pb2.FindJoinedRequest, _context: Context) -> join_pb2.FindJoinedResponse:
    row = tables.one(OWNER, request.token_digest)
    return (
        join_pb2.FindJoinedResponse(room_id=row[0], room=row[1], handle=row[2])
        if row
        else join_pb2.FindJoinedResponse()
    )


def join_code_made(tables: Tables, event: join_pb2.JoinCodeMade, _stored: Stored) -> None:
    """A new code takes the place of the one before; the token stays until the code is used."""
    sql = """INSERT INTO joining VALUES (?, ?, ?, ?, ?, '', '')
             ON CONFLICT DO UPDATE
             SET code = excluded.code, expires_at = excluded.expires_at, made_by = excluded.made_by"""
    expires_at, made_by = clock.to_millis(event.expires_at), event.made_by if event.proven else ""
    tables.execute(sql, event.room_id, event.handle, event.code_digest, expires_at, made_by)


def join_code_used(tables: Tables, event: join_pb2.JoinCodeUsed, _stored: Stored) -> None:
    update = "UPDATE joining SET token = ?, given_by = made_by WHERE room_id = ? AND handle = ?"
    tables.execute(update, event.token_digest, event.room_id, event.handle)
    row = tables.one("SELECT record FROM member WHERE room_id = ? AND handle = ?", event.room_id, event.handle)
    if row:
        end_with_right(tables, event.room_id, views_pb2.Member.FromString(row[0]))


def end_with_right(tables: Tables, room_id: str, member: views_pb2.Member) -> None:
    """A member's record stands: a token that was got from who may not act for it any more is good no more, for good."""
    row = tables.one("SELECT given_by FROM joining WHERE room_id = ? AND handle = ?", room_id, member.handle)
    if row and row[0] and not may_act(member, row[0]):
        tables.execute("UPDATE joining SET token = '' WHERE room_id = ? AND handle = ?", room_id, member.handle)


def forget(tables: Tables, room_id: str, handle: str) -> None:
    """A member has left: neither its code nor its token is good any more."""
    tables.execute("DELETE FROM joining WHERE room_id = ? AND handle = ?", room_id, handle)
