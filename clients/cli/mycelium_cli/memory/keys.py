"""Keys of memories as they are typed: what can't be one is refused before anything is sent."""

import re

from mycelium_cli.api import api_path
from mycelium_cli.errors import usage

STRUCTURED = ("work", "decisions", "context", "status", "procedures")
PART = re.compile(r"[a-z0-9][a-z0-9._-]*")
_RULE = "a-z 0-9 . _ -, first a letter or digit"


def checked(typed: str) -> str:
    """A key, in lower case where the rules say so. The hub checks the rest of the rules."""
    group, slash, rest = typed.partition("/")
    if group.lower() not in STRUCTURED or not slash:
        if not typed.strip():
            raise usage("the key is empty", "mycelium memory ls", "memory.key_invalid")
        return typed
    lowered = rest.lower()
    bad = [part for part in lowered.split("/") if not PART.fullmatch(part)]
    if bad:
        cause = f'"{typed}" can\'t be a key: "{bad[0]}" breaks the rule for {group.lower()}/ ({_RULE})'
        raise usage(cause, f"mycelium memory ls {group.lower()}/", "memory.key_invalid")
    return f"{group.lower()}/{lowered}"


def prefix_of(typed: str) -> str:
    """What keys may begin with; refused when none can, since an empty list would say that there is nothing."""
    *folders, rest = typed.split("/")
    bad = [part for part in [*folders, rest] if part.startswith(".")]
    why = f'"{bad[0]}" begins with a dot' if bad else "a part of it is empty" if "" in folders else ""
    if why:
        raise usage(f'"{typed}" can\'t be the beginning of a key: {why}', "mycelium memory ls", "memory.key_invalid")
    return typed


def path_of(room: str, key: str) -> str:
    """Where the hub answers for a memory; what no address can hold is refused here."""
    parts = key.split("/")
    if not {"", ".", ".."}.isdisjoint(parts):
        why = "a part of it is empty" if "" in parts else "a part of it is dots alone"
        raise usage(f'"{key}" can\'t be a key: {why}', "mycelium memory ls", "memory.key_invalid")
    return api_path("rooms", room, "memory", *parts)
