"""Reads what decisions on imports need. An import's room is named by its id alone, which nobody but its caller has."""

from __future__ import annotations

from typing import Any

from mycelium.rooms.v1 import events_pb2, states_pb2, transfer_pb2, views_pb2
from mycelium_kernel import names, subjects
from mycelium_kernel.service import Context, Entity
from mycelium_kernel.tables import Tables
from mycelium_rooms import looks
from mycelium_rooms.commands_portable import PORTABLE
from mycelium_rooms.commands_transfer import Importing, not_importing
from mycelium_rooms.loads_rooms import name_of
from mycelium_rooms.model import ROOMS, RoomRow

POSTED, JOINED = (kind.DESCRIPTOR.full_name for kind in (events_pb2.MessagePosted, events_pb2.MemberSaved))
Step = transfer_pb2.FinishImportRequest | transfer_pb2.AbandonImportRequest


def for_import_room(
    tables: Tables, request: transfer_pb2.ImportRoomRequest, _context: Context
) -> Entity[events_pb2.NameState]:
    return name_of(tables, names.room_name(request.name))


def for_step(tables: Tables, request: Step, _context: Context) -> Importing:
    return _importing(tables, request.room_id)


def for_facts(tables: Tables, request: transfer_pb2.ImportFactsRequest, _context: Context) -> Importing:
    posted, joined = (_read(request, kind) for kind in (POSTED, JOINED))
    message_ids = [event.message_id for event in posted]
    handles = [event.member.handle for event in joined]
    users = "SELECT handle FROM user WHERE handle IN (%s)"
    agents = f"SELECT handle FROM member WHERE has_left = 0 AND kind != {views_pb2.MEMBER_KIND_USER} AND handle IN (%s)"  # noqa: S608
    known = "SELECT message_id FROM message WHERE room_id = ? AND message_id IN (%s)"
    return _importing(
        tables,
        request.room_id,
        known=_found(tables, known, message_ids, request.room_id),
        users=_found(tables, users, handles),
        agents=_found(tables, agents, handles),
        looks={handle: looks.look_of(tables, handle) for handle in handles},
    )


def _importing(tables: Tables, room_id: str, **found: Any) -> Importing:
    row = tables.one("SELECT name, private, created_by, importing FROM room WHERE room_id = ?", room_id)
    if row is None:
        raise not_importing(room_id)
    room = RoomRow(room_id, row[0], bool(row[1]), row[2])
    subject = subjects.fact(ROOMS, room_id, "import", room_id)
    entity = tables.entity(subject, states_pb2.ImportState)
    return Importing(room, row[3] > 0, entity, name_of(tables, room.name), **found)


def _read(request: transfer_pb2.ImportFactsRequest, type_name: str) -> list[Any]:
    """The facts of a type, as far as they can be read; the decision refuses the others."""
    found = []
    for fact in request.facts:
        if fact.type == type_name:
            try:
                found.append(PORTABLE[type_name][0].FromString(fact.data))
            except Exception:  # noqa: S112 - protobuf's own error
                continue
    return found


def _found(tables: Tables, sql: str, values: list[str], *before: str) -> frozenset[str]:
    marks = ",".join("?" * len(values))
    return frozenset(row[0] for row in tables.all(sql % marks, *before, *values))
