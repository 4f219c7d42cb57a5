"""A seeded bug: a delivery counts as acknowledged as soon as it was offered."""

from typing import Any

MODULE = "mycelium_rooms.commands_deliveries"


def patch(commands: Any) -> None:
    """Let the fact that offers a delivery end it, too."""
    take = commands.take_delivery

    def takes(*args: Any) -> Any:
        decided = take(*args)
        if isinstance(decided, commands.Fact) and decided.event.message_id:
            decided.event.acknowledged.append(decided.event.message_id)
        return decided

    commands.take_delivery = takes
