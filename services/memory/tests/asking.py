"""A client of memory over the bus, in tests."""

from __future__ import annotations

from typing import Any

from google.protobuf.message import Message

from mycelium_kernel import events, subjects
from mycelium_kernel.bus import Bus
from mycelium_kernel.service import Actor


class Asker:
    """The type of an answer follows from its request's."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus

    async def __call__(self, request: Message, handle: str = "avery", key: str = "") -> Any:
        response = events.message_type(subjects.method_of(request.DESCRIPTOR).output_type.full_name)
        return (await self._bus.ask(request, response, actor=Actor(handle, handle), key=key)).message
