"""The state that commands decide from, how each event changes it, and the words that commands share.

Pure: nothing here reads a clock, a table or the bus.
"""

from __future__ import annotations

from mycelium.memory.v1 import events_pb2
from mycelium_kernel import subjects

MEMORY = "memory"  # the service, as its subjects name it
DOCUMENT = "document"


def document_id(folded: str) -> str:
    """The id of the document that a folded key names in a room: what its subject ends with.

    Two keys that a disk might take for one are one document, so that neither can ever overwrite the other unseen.
    """
    return subjects.digest(folded)


def subject(room_id: str, folded: str) -> str:
    """Subject of a document's facts."""
    return subjects.fact(MEMORY, room_id, DOCUMENT, document_id(folded))


def subscription_subject(room_id: str, handle: str, folded: str) -> str:
    """Subject of a handle's subscription to a folded pattern."""
    return subjects.fact(MEMORY, room_id, "subscription", subjects.digest(f"{handle}\n{folded}"))


def import_subject(room_id: str) -> str:
    """Subject of the import of a room's documents."""
    return subjects.fact(MEMORY, room_id, "import", room_id)


def move_import(
    _before: events_pb2.DocumentsImportState | None, event: events_pb2.DocumentsImported
) -> events_pb2.DocumentsImportState:
    """How far an import is after a step."""
    return events_pb2.DocumentsImportState(last=event.last, facts=event.facts)


def move_subscription(
    _before: events_pb2.SubscriptionState | None, event: events_pb2.SubscriptionSet | events_pb2.SubscriptionEnded
) -> events_pb2.SubscriptionState:
    """How a subscription stands."""
    if isinstance(event, events_pb2.SubscriptionEnded):
        return events_pb2.SubscriptionState(pattern=event.pattern)
    return events_pb2.SubscriptionState(stands=True, pattern=event.pattern, set_at=event.set_at)


def write(_before: events_pb2.DocumentState | None, event: events_pb2.DocumentWritten) -> events_pb2.DocumentState:
    """The state after a version."""
    state = events_pb2.DocumentState(
        key=event.key,
        version=event.version,
        exists=True,
        thread=event.thread,
        created_by=event.created_by,
        updated_by=event.updated_by,
    )
    state.created_at.CopyFrom(event.created_at)
    state.updated_at.CopyFrom(event.updated_at)
    return state


def remove(before: events_pb2.DocumentState | None, event: events_pb2.DocumentRemoved) -> events_pb2.DocumentState:
    """The state after a removal: the versions and the thread are kept for who writes the key again."""
    state = events_pb2.DocumentState()
    if before:
        state.CopyFrom(before)
    state.version, state.exists, state.updated_by = event.version, False, event.removed_by
    state.updated_at.CopyFrom(event.removed_at)
    return state
