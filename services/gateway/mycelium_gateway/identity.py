"""Who a token proved the caller to be: what signing in hands to the routes."""

from __future__ import annotations

from dataclasses import dataclass

USER, AGENT = "user", "agent"
STATE = "identity"  # where it stands in the state of a request


@dataclass(frozen=True)
class Identity:
    """The caller of one request, proven by its token.

    `role` is "user", "agent" or empty, when neither the token nor its issuer says. `expires_at`, in seconds since 1970,
    is until when the token is good here, leeway and all; 0: for ever. A token of the hub's own is good in one room,
    by id and name; for any other both are empty.
    """

    handle: str
    role: str
    issuer: str
    subject: str
    expires_at: float
    room_id: str = ""
    room: str = ""

    @property
    def proven(self) -> str:
        """What services are told: "agent" for an agent, else "user"."""
        return AGENT if self.role == AGENT else USER
