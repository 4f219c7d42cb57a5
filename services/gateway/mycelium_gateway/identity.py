"""Who a token proved the caller to be: what signing in hands to the routes."""

from __future__ import annotations

from dataclasses import dataclass

from mycelium_kernel.errors import Unavailable

USER, AGENT = "user", "agent"


@dataclass(frozen=True)
class Identity:
    """The caller of one request, proven by its token.

    `role` is "user", "agent" or empty, when neither the token nor its issuer says. `expires_at` is seconds since 1970.
    A token of the hub's own is good in one room, `room_id`; for any other it is empty.
    """

    handle: str
    role: str
    issuer: str
    subject: str
    expires_at: float
    room_id: str = ""

    @property
    def proven(self) -> str:
        """What services are told: "agent" for an agent, else "user"."""
        return AGENT if self.role == AGENT else USER


class AuthUnavailable(Unavailable):
    """Nobody can be signed in at the moment: no issuer is trusted, or its keys can't be had."""

    slug = "auth.unavailable"
