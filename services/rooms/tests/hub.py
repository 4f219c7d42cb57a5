"""A hub of rooms in memory: commands run through their own load, decide and projection, with time and ids in hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mycelium.rooms.v1 import service_pb2, views_pb2
from mycelium_kernel import subjects
from mycelium_kernel.service import Actor
from mycelium_kernel.tables import Tables
from mycelium_kernel.tail import RawFact
from mycelium_rooms.presence import Presences
from mycelium_rooms.service import PROJECTION, service
from mycelium_rooms.waits import Waits
from services.kernel.tests import in_hand
from services.kernel.tests.in_hand import START

__all__ = ["AGENT", "ENGINE", "START", "USER", "Hub", "demo_hub", "rebuilt", "rows_of", "states", "words_of"]
AGENT, USER, ENGINE = views_pb2.MEMBER_KIND_AGENT, views_pb2.MEMBER_KIND_USER, views_pb2.MEMBER_KIND_ENGINE


def rows_of(tables: Tables) -> dict[str, list[tuple[Any, ...]]]:
    """Every row that counts, and the words of each message that is left."""
    rows = tables.dump()
    kept = {row[0] for row in rows["message"]}
    rows["message_words"] = [row for row in words_of(tables) if row[1] in kept]
    return rows


def words_of(tables: Tables) -> list[tuple[Any, ...]]:
    """What the index of words holds: each word, the message that it is in, and where."""
    tables.execute("CREATE VIRTUAL TABLE IF NOT EXISTS temp.word USING fts5vocab(main, message_words, instance)")
    return sorted(tables.all("SELECT term, doc, col, offset FROM temp.word"))


def rebuilt(facts: list[RawFact]) -> Tables:
    """Empty tables to which all `facts` were applied."""
    return in_hand.tables_of(PROJECTION, facts)


class Hub(in_hand.InHand):
    """Rooms as a service would keep them, driven one request at a time."""

    def __init__(self, *, ids: int = 0) -> None:
        self.monotonic = 0.0
        self.waits = Waits(lambda: self.monotonic)
        self.presences = Presences(self.waits)
        super().__init__(service(self.waits, self.presences), ids=ids)
        self.signed_in: dict[str, str] = {}  # who has proven who they are, as a user or an agent
        self.operators: set[str] = set()  # those of them who run the hub

    def actor(self, handle: str, session: str) -> Actor:
        """With what they have proven."""
        return Actor(handle, session, self.signed_in.get(handle, ""), handle in self.operators)

    def cost(self, run: Callable[[], object]) -> int:
        """How many steps of SQLite's machine something takes."""
        steps = 0

        def step() -> int:
            nonlocal steps
            steps += 10
            return 0

        self.tables._connection.set_progress_handler(step, 10)
        run()
        self.tables._connection.set_progress_handler(None, 0)
        return steps

    def room(self, name: str = "demo", handle: str = "avery", **fields: Any) -> str:
        """Id of a new room."""
        response = self.ask(service_pb2.CreateRoomRequest(name=name, **fields), handle)
        return str(response.room.id)

    def agent(self, *handles: str, room: str = "demo", by: str = "avery", **fields: Any) -> None:
        """New agents of a room."""
        for handle in handles:
            self.ask(service_pb2.SaveMemberRequest(room=room, handle=handle, **fields), by)

    def user(self, handle: str, **fields: Any) -> None:
        """A new user of the hub."""
        self.ask(service_pb2.SaveUserRequest(handle=handle, **fields))

    def leave(self, handle: str, room: str = "demo") -> None:
        """A member leaves."""
        self.ask(service_pb2.RemoveMemberRequest(room=room, handle=handle), "avery")

    def post(
        self, content: str, handle: str = "avery", session: str = "", room: str = "demo", **fields: Any
    ) -> views_pb2.Message:
        """A new message."""
        request = service_pb2.PostMessageRequest(room=room, content=content, **fields)
        response: service_pb2.PostMessageResponse = self.ask(request, handle, session)
        return response.message

    def take(
        self, handle: str, session: str = "", *, new_call: bool = True, room: str = "demo", **fields: Any
    ) -> service_pb2.TakeDeliveryResponse:
        """One call of a wait."""
        request = service_pb2.TakeDeliveryRequest(room=room, new_call=new_call, **fields)
        response: service_pb2.TakeDeliveryResponse = self.ask(request, handle, session)
        return response

    def mark(
        self,
        message: str,
        handle: str,
        session: str = "",
        state: views_pb2.DeliveryState.ValueType = views_pb2.DELIVERY_STATE_DELIVERED,
        *,
        room: str = "demo",
        seat: str = "",
    ) -> views_pb2.DeliveryState.ValueType:
        """What a session says of a delivery; that it received it, unless told otherwise."""
        request = service_pb2.MarkDeliveryRequest(room=room, message=message, state=state, seat=seat)
        response: service_pb2.MarkDeliveryResponse = self.ask(request, handle, session)
        return response.state

    def receive(self, handle: str, session: str = "", **fields: Any) -> str:
        """Id of the message that a new call gets and receives; empty when nothing came."""
        taken = self.take(handle, session, **fields)
        if taken.message_id:
            place = {name: fields[name] for name in ("room", "seat") if name in fields}
            self.mark(taken.message_id, handle, session, **place)
        return taken.message_id

    def waiting(self, room_id: str, queue: str, wait: str = "w1", gateway: str = "g1") -> None:
        """A wait is open."""
        self.waits._picture.put(f"instance.{gateway}", gateway, self.monotonic)
        self.waits._picture.put(f"{room_id}.{subjects.token(queue)}.{wait}", gateway, self.monotonic)

    def receipts(self, message: str, room: str = "demo") -> dict[str, str]:
        """Each receipt's state by queue, as a word; what stands in the way of a delivery before its state."""
        response = self.ask(service_pb2.ListReceiptsRequest(room=room, message=message), "avery")
        return {
            receipt.handle: views_pb2.MentionState.Name(receipt.mention)[14:].lower()
            if receipt.mention
            else views_pb2.DeliveryState.Name(receipt.state)[15:].lower()
            for receipt in response.receipts
        }


def demo_hub() -> Hub:
    """A hub with the room `demo`, the user avery and the agents engineer and reviewer."""
    hub = Hub()
    hub.user("avery", name="Avery Quinn")
    hub.room()
    hub.agent("engineer", "reviewer")
    return hub


def states(mentions: Any) -> dict[str, str]:
    """Each mention's state by handle, as a word."""
    return {mention.handle: views_pb2.MentionState.Name(mention.state)[14:].lower() for mention in mentions}
