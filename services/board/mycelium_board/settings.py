"""The board service's settings. Only `service.py`, `__main__` and the hub read them."""

from __future__ import annotations

from mycelium_kernel.settings import Setting

BOARD_SETTINGS = (
    Setting(
        "board.dependency_gate",
        "bool",
        False,
        "Refuse a claim of a task that waits for another one, until that is closed; --force claims it anyway.",
        unit="yes or no",
        aliases=("BOARD_DEPENDENCY_GATE",),
    ),
)
GATE = BOARD_SETTINGS[0]
