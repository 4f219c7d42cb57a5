"""Whether a request was made on the hub's own machine, by whoever runs the hub.

What a proxy says of the caller is never believed: any forwarding header only shows that it came from elsewhere.
"""

from __future__ import annotations

from starlette.types import Scope

from mycelium_kernel.names import is_loopback

FORWARDING = frozenset({b"forwarded", b"via", b"x-real-ip"})
FORWARDING_PREFIX = b"x-forwarded-"


def is_operator(scope: Scope) -> bool:
    """Whether it came over loopback and through no proxy."""
    client = scope.get("client")
    if client is None or not is_loopback(client[0]):
        return False
    return not any(name in FORWARDING or name.startswith(FORWARDING_PREFIX) for name, _value in scope["headers"])
