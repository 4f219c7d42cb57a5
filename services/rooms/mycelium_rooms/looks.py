"""Finds for whom a new handle or name can be taken, among those whom everybody may know of who is told. For loads."""

from __future__ import annotations

from mycelium.rooms.v1 import looks_pb2, views_pb2
from mycelium_kernel import subjects
from mycelium_kernel.callers import handle_of
from mycelium_kernel.lookalikes import skeleton
from mycelium_kernel.service import Context
from mycelium_kernel.tables import Tables
from mycelium_rooms import views
from mycelium_rooms.commands_names import Alike
from mycelium_rooms.model import ROOMS, Look, RoomRow

USERS = """SELECT handle, '' FROM user WHERE looks = ?1 AND handle != ?2
  UNION ALL SELECT handle, name FROM user WHERE called = ?1 AND length(called) > 1 AND handle != ?2"""
AGENTS = f"""SELECT handle FROM member JOIN room USING (room_id)
  WHERE looks = ?2 AND handle != ?3 AND {views.VISIBLE}"""  # noqa: S608 - fixed text

NAMESAKES = f"""SELECT iif({views.VISIBLE}, room.name, '') AS shown FROM member JOIN room USING (room_id)
  WHERE handle = ?2 AND has_left = 0 AND kind != ?3 ORDER BY shown = '' LIMIT 1"""  # noqa: S608 - fixed text


def look_of(tables: Tables, name: str) -> Look:
    """The entity of how a handle or a person's name looks, which whoever is about to be called so takes."""
    subject = subjects.fact(ROOMS, subjects.HUB, "look", subjects.digest(skeleton(name)))
    return tables.entity(subject, looks_pb2.LookState)


def where_agent(tables: Tables, handle: str, context: Context) -> tuple[bool, str]:
    """Whether a handle is an agent's or engine's anywhere, and the name of such a room if the caller sees one."""
    row = tables.one(NAMESAKES, handle_of(context), handle, views_pb2.MEMBER_KIND_USER)
    return row is not None, row[0] if row else ""


def like_member(tables: Tables, room: RoomRow, handle: str) -> Alike | None:
    """For whom a new member of a room can be taken: for one of the room, also who has left, or a user of the hub."""
    looks = skeleton(handle)
    row = tables.one(
        "SELECT handle FROM member WHERE room_id = ? AND looks = ? AND handle != ?", room.id, looks, handle
    )
    return Alike(row[0]) if row else _like_user(tables, looks, handle)


def like_user(tables: Tables, handle: str, context: Context) -> Alike | None:
    """For whom a new user can be taken: for another, or an agent of a room that the caller sees."""
    looks = skeleton(handle)
    found = _like_user(tables, looks, handle)
    if found:
        return found
    row = tables.one(f"{AGENTS} LIMIT 1", handle_of(context), looks, handle)
    return Alike(row[0]) if row else None


def _like_user(tables: Tables, looks: str, handle: str) -> Alike | None:
    row = tables.one(f"{USERS} LIMIT 1", looks, handle)
    return Alike(*row) if row else None


def like_name(tables: Tables, name: str, handle: str) -> list[Alike]:
    """People whose handle or name looks like a name."""
    looks = skeleton(name)
    return [Alike(*row) for row in tables.all(USERS, looks, handle)] if looks else []
