"""Threads as callers name them: by id, by the last eight digits of one, or by the key of the memory that has it."""

from __future__ import annotations

from mycelium.memory.v1 import service_pb2
from mycelium_gateway.actor import Call
from mycelium_kernel import names
from mycelium_kernel.bus import TIMEOUT_S
from mycelium_kernel.errors import Refusal, Unavailable

NO_KEY = {"memory.not_found", "memory.key_invalid"}
PATIENCE_S = 1.0  # a short id may be of a thread that memory knows nothing of, so it need not be there


async def find(call: Call, room: str, text: str | None) -> str:
    """What the rooms service is told: ids as they are, for a key the id of its thread. Refused when there is none.

    The short id of a document's thread is made whole, since nobody may have said anything in it yet.
    """
    named = (text or "").strip()
    if not named or names.is_id(named.lower()):
        return named
    if names.is_short_id(named.lower()):
        try:
            return await _of_document(call, room, named, PATIENCE_S)
        except Unavailable:
            return named
        except Refusal as refusal:
            if refusal.slug not in NO_KEY:
                raise
            return named
    try:
        return await _of_document(call, room, named)
    except Refusal as refusal:
        if refusal.slug not in NO_KEY:
            raise
        detail = f"there is no thread {named[:60]!r}, and {refusal.detail}"
        raise Refusal("thread.not_found", detail, next=refusal.next, **refusal.extras) from None


async def _of_document(call: Call, room: str, named: str, timeout_s: float = TIMEOUT_S) -> str:
    request = service_pb2.FindThreadRequest(room=room, key=named)
    return (await call.ask(request, service_pb2.FindThreadResponse, timeout_s=timeout_s)).message.thread
