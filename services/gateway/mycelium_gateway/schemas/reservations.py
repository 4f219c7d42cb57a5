"""Reservations as HTTP has them."""

from __future__ import annotations

from pydantic import Field

from mycelium_gateway.schemas.shape import Body, Shape, WrittenHandle, shown_as
from mycelium_gateway.schemas.tasks import MOST_TTL_S

PATTERN = "A path, with wildcards (`*`, `**`, `?`, `[a-z]`, `{a,b}`) or without, or any other name."
LISTED = {
    "pattern": "src/auth/**",
    "holder": "sec",
    "expires_at": "2026-09-03T17:11:07.250Z",
    "ttl_s": 1800,
    "task": "work/ship-passkey-login",
    "thread": "0199f2a1-5b7c-7a10-8f42-3d1e9c04b7aa",
}
OWN = {**LISTED, "token": 4182}
CONFLICT = {"path": "src/auth/login.py", **{name: LISTED[name] for name in ("pattern", "holder", "expires_at", "task")}}


class Reserving(Body):
    """What is to be reserved, and for how long."""

    handle: WrittenHandle | None = Field(None, description="Who asks; must agree with `Mycelium-Handle`.")
    patterns: list[str] = Field(description=f"{PATTERN} At most 20: all or none.", examples=[["src/auth/**"]])
    task: str | None = Field(None, description="The task that it is for; the reservation ends with it.")
    ttl_s: int | None = Field(None, ge=1, le=MOST_TTL_S, description="For how many seconds; absent: 30 minutes.")
    force: bool = Field(False, description="End reservations of others that are in the way.")


class Named(Body):
    """A reservation of the caller's."""

    pattern: str = Field(description="The pattern.")
    token: int | None = Field(
        None, ge=1, le=2**63 - 1, description="What proves it. Without one the handle counts; an old one is refused."
    )


class Renewing(Body):
    """Which reservations are to last longer."""

    handle: WrittenHandle | None = Field(None, description="Who asks; must agree with `Mycelium-Handle`.")
    reservations: list[Named] = Field([], description="Which; none: all of the caller's.")
    ttl_s: int | None = Field(None, ge=1, le=MOST_TTL_S, description="Absent: each as long as it was taken for.")


class Releasing(Body):
    """Which reservations are given back."""

    handle: WrittenHandle | None = Field(None, description="Who asks; must agree with `Mycelium-Handle`.")
    reservations: list[Named] = Field([], description="Which; none: all of the caller's.")
    note: str = Field("", max_length=2_000, description="What others should know.")


class Checking(Body):
    """Paths that somebody wants to change."""

    handle: WrittenHandle | None = Field(None, description="Who asks; must agree with `Mycelium-Handle`.")
    paths: list[str] = Field(
        description="As they are, no patterns; at most 1,000.", examples=[["src/auth/login.py", "README.md"]]
    )


class Reservation(Shape):
    """What is reserved, by whom, until when."""

    model_config = shown_as(LISTED)

    pattern: str
    holder: str
    expires_at: str
    ttl_s: int
    task: str | None = Field(description="The task that it is for.")
    thread: str | None = Field(description="Id of that task's thread.")


class OwnReservation(Reservation):
    """A reservation of the caller's, with what proves it."""

    model_config = shown_as(OWN)

    token: int


class Reservations(Shape):
    """What is reserved in a room."""

    model_config = shown_as({"room": "demo", "items": [LISTED], "next": None})

    room: str
    items: list[Reservation] = Field(description="By pattern.")
    next: None = Field(description="Always null: a room has at most 500.")


class Reserved(Shape):
    """What the caller has now."""

    model_config = shown_as({"items": [OWN], "taken": []})

    items: list[OwnReservation]
    taken: list[Reservation] = Field(description="Reservations of others that ended by it.")


class Renewed(Shape):
    """The caller's reservations as they are now."""

    model_config = shown_as({"items": [OWN]})

    items: list[OwnReservation]


class Released(Shape):
    """What was given back."""

    model_config = shown_as({"items": [LISTED]})

    items: list[Reservation]


class Conflict(Shape):
    """A path that somebody else has reserved."""

    model_config = shown_as(CONFLICT)

    path: str
    pattern: str
    holder: str
    expires_at: str
    task: str | None


class Checked(Shape):
    """The paths that others have reserved."""

    model_config = shown_as({"items": [CONFLICT], "more": False})

    items: list[Conflict] = Field(description="In the order of the paths; at most 1,000.")
    more: bool = Field(description="Whether there are more.")
