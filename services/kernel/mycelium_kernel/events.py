"""From a fact's type name to its message, for every reader of the log. The proto modules must have been imported."""

from __future__ import annotations

from functools import cache

from google.protobuf import descriptor_pool, message_factory
from google.protobuf.message import Message


@cache
def message_type(full_name: str) -> type[Message]:
    """The class of a message by its full name. Raises `KeyError` for a name that no imported proto has."""
    descriptor = descriptor_pool.Default().FindMessageTypeByName(full_name)
    return message_factory.GetMessageClass(descriptor)


def decode(full_name: str, data: bytes) -> Message:
    """The event that a fact holds."""
    return message_type(full_name).FromString(data)


def type_name(message: Message | type[Message]) -> str:
    """The full name of a message's type, which stands in the header of its fact."""
    return str(message.DESCRIPTOR.full_name)
