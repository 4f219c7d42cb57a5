"""What a handle is, as the hub writes it. `context` finds whose it is; settings hold one, too."""

import re

from mycelium_cli.errors import usage

_TYPED = "the handle"
_HANDLE = re.compile(r"[a-z0-9](?:[a-z0-9._-]{0,62}[a-z0-9_-])?")
RULE = "a to z, 0 to 9, dot, dash or underscore, at most 64, starting with a letter or digit"


def folded(typed: str) -> str:
    """A handle as the hub writes it: `@Sec` and `sec` are the same. Empty for what is none."""
    handle = typed.strip().removeprefix("@").lower()
    return handle if typed.isascii() and _HANDLE.fullmatch(handle) else ""  # the Kelvin sign is a `k` in lower case


def handle_of(typed: str, source: str = _TYPED) -> str:
    """The same, or a refusal that says where it came from and what a handle is."""
    handle = folded(typed)
    if not handle:
        hint = "" if source in {_TYPED, "--handle"} else f"mend {source}"
        raise usage(f'{source} is "{typed}", which is no handle ({RULE})', hint, "handle.invalid")
    return handle
