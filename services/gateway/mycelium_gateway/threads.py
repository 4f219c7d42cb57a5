"""Threads as callers name them: by id, by the last eight digits of one, or by the key of the memory that has it."""

from __future__ import annotations

from mycelium.memory.v1 import service_pb2
from mycelium_gateway.actor import Call
from mycelium_kernel import names
from mycelium_kernel.errors import Refusal

NO_KEY = {"memory.not_found", "memory.key_invalid"}


async def find(call: Call, room: str, text: str | None) -> str:
    """What the rooms service is told: ids as they are, for a key the id of its thread. Refused when there is none."""
    named = (text or "").strip()
    if not named or names.is_id(named.lower()) or names.is_short_id(named.lower()):
        return named
    request = service_pb2.FindThreadRequest(room=room, key=named)
    try:
        return (await call.ask(request, service_pb2.FindThreadResponse)).message.thread
    except Refusal as refusal:
        if refusal.slug not in NO_KEY:
            raise
        detail = f"there is no thread {named[:60]!r}, and {refusal.detail}"
        raise Refusal("thread.not_found", detail, next=refusal.next, **refusal.extras) from None
