"""A seeded bug: whatever token is shown, it proves the claim that stands."""

from typing import Any

MODULE = "mycelium_board.commands_claims"


def patch(commands: Any) -> None:
    """Look at the time only."""

    def proven(loaded: Any, _token: int, _by: str, now: Any) -> Any:
        return commands.live(loaded.entity, now)

    commands.proven = proven
