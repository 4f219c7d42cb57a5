"""Who the handles in a text are: members of the room, users of the hub, teams, those who have left, or nobody."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mycelium.rooms.v1 import views_pb2
from mycelium_kernel import names
from mycelium_kernel.tables import Tables
from mycelium_rooms import lookup, mentions
from mycelium_rooms.commands_messages import Addressee, Standing
from mycelium_rooms.model import RoomRow
from mycelium_rooms.waits import Waits

NO_ENGINE = views_pb2.ENGINE_KIND_UNSPECIFIED
ALL = "all"  # names every agent of the room; nobody can have it as a handle


def find(
    tables: Tables, waits: Waits, room: RoomRow, sender: str, text: str, thread: str = ""
) -> tuple[Addressee, ...]:
    """Whom `text`, said in a thread or the channel, names, each recipient once."""
    found: dict[str, Addressee] = {}
    for addressee in _each(tables, waits, room, sender, mentions.parse(text), thread):
        known = found.get(addressee.queue)
        if known is None or (known.silent and not addressee.silent):
            found[addressee.queue] = addressee
    return tuple(found.values())


def _each(
    tables: Tables, waits: Waits, room: RoomRow, sender: str, named: Iterable[mentions.Name], thread: str
) -> Iterator[Addressee]:
    for name in named:
        handles, its = _handles(tables, room, sender, name.handle)
        for handle in handles:
            queue = names.queue(handle, name.seat)
            present = its is Standing.PRESENT
            paused, engine = _member(tables, room, handle) if present else (False, NO_ENGINE)
            yield Addressee(
                handle,
                name.seat,
                name.silent,
                its,
                waiting=present and waits.is_open(room.id, queue, thread),
                paused=paused,
                last_seen=_last_seen(tables, room, handle),
                engine=engine,
            )


def _handles(tables: Tables, room: RoomRow, sender: str, name: str) -> tuple[list[str], Standing]:
    """The handles that a name stands for: a member's or user's own, else all agents, else a team's."""
    found = standing(tables, room, name)
    if found is not Standing.UNKNOWN:
        return [name], found
    if name == ALL:
        return [handle for handle in _agents(tables, room) if handle != sender], Standing.PRESENT
    team = _team(tables, room, name)
    return (team, Standing.PRESENT) if team else ([name], found)


def _agents(tables: Tables, room: RoomRow) -> list[str]:
    sql = "SELECT handle FROM member WHERE room_id = ? AND has_left = 0 AND kind = ? ORDER BY handle"
    return [row[0] for row in tables.all(sql, room.id, views_pb2.MEMBER_KIND_AGENT)]


def _member(tables: Tables, room: RoomRow, handle: str) -> tuple[bool, views_pb2.EngineKind.ValueType]:
    """Whether a member is paused, and which engine it is."""
    sql = "SELECT paused, CASE kind WHEN ? THEN record END FROM member WHERE room_id = ? AND handle = ?"
    row = tables.one(sql, views_pb2.MEMBER_KIND_ENGINE, room.id, handle)
    if row is None:
        return False, NO_ENGINE
    return bool(row[0]), views_pb2.Member.FromString(row[1]).engine_kind if row[1] else NO_ENGINE


def engine_of(tables: Tables, room: RoomRow, handle: str) -> views_pb2.EngineKind.ValueType:
    """Which engine of the room a handle is."""
    return _member(tables, room, handle)[1]


def is_engine(tables: Tables, room: RoomRow, handle: str) -> bool:
    """Whether a handle is an engine of the room."""
    sql = "SELECT 1 FROM member WHERE room_id = ? AND handle = ? AND kind = ? AND has_left = 0"
    return tables.one(sql, room.id, handle, views_pb2.MEMBER_KIND_ENGINE) is not None


def is_paused(tables: Tables, room: RoomRow, handle: str) -> bool:
    """Whether a member's deliveries wait until it is resumed."""
    row = tables.one("SELECT paused FROM member WHERE room_id = ? AND handle = ?", room.id, handle)
    return bool(row and row[0])


def standing(tables: Tables, room: RoomRow, handle: str) -> Standing:
    """What a handle is in a room.

    A member who has left stays so until it joins again; a handle that a user has taken since is the user's.
    """
    row = tables.one("SELECT has_left, kind FROM member WHERE room_id = ? AND handle = ?", room.id, handle)
    if row and not row[0]:
        return Standing.PRESENT
    if not row and room.private and handle == room.created_by:
        return Standing.PRESENT
    if not room.private and lookup.is_user(tables, handle) and (not row or row[1] != views_pb2.MEMBER_KIND_USER):
        return Standing.PRESENT
    return Standing.LEFT if row else Standing.UNKNOWN


def _team(tables: Tables, room: RoomRow, team: str) -> list[str]:
    """The members of the room, and users that count as such, who belong to a team."""
    rows = tables.all(
        """SELECT member.handle FROM member LEFT JOIN user ON user.handle = member.handle
           WHERE room_id = ?1 AND has_left = 0 AND (lower(member.team) = ?2 OR lower(coalesce(user.team, '')) = ?2)
           UNION SELECT handle FROM user WHERE lower(team) = ?2 AND (NOT ?3 OR handle = ?5)
             AND NOT EXISTS (SELECT 1 FROM member WHERE room_id = ?1 AND member.handle = user.handle AND has_left = 1
                             AND kind = ?4)
           ORDER BY 1""",
        room.id, team, room.private, views_pb2.MEMBER_KIND_USER, room.created_by,
    )  # fmt: skip
    return [row[0] for row in rows]


def _last_seen(tables: Tables, room: RoomRow, handle: str) -> int:
    row = tables.one("SELECT at FROM seen WHERE room_id = ? AND handle = ?", room.id, handle)
    return int(row[0]) if row else 0


def near(tables: Tables, room: RoomRow, handle: str) -> list[str]:
    """The names most like `handle` among those that could have been written here."""
    rows = tables.all(
        """SELECT handle FROM member WHERE room_id = ?1 AND has_left = 0
           UNION SELECT lower(team) FROM member WHERE room_id = ?1 AND has_left = 0 AND team != ''
           UNION SELECT ?3 WHERE ?2
           UNION SELECT handle FROM user WHERE NOT ?2 UNION SELECT lower(team) FROM user WHERE team != '' AND NOT ?2""",
        room.id, room.private, room.created_by,
    )  # fmt: skip
    return names.near(handle, (row[0] for row in rows if names.HANDLE.fullmatch(row[0])))
