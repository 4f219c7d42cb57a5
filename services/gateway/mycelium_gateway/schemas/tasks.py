"""The board as HTTP has it: tasks, and who holds them."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from mycelium_gateway.schemas.shape import Body, Shape, WrittenHandle, shown_as

MOST_TTL_S = 7 * 24 * 3600
TASK = {
    "key": "work/ship-passkey-login",
    "thread": "0199f2a1-5b7c-7a10-8f42-3d1e9c04b7aa",
    "title": "Ship passkey login",
    "status": "open",
    "kind": "task",
    "assignee": "sec",
    "blocked_by": None,
    "holder": "sec",
    "expires_at": "2026-09-03T17:11:07.250Z",
    "meta": {"title": "Ship passkey login", "status": "open", "assignee": "@sec"},
    "version": 2,
    "created_by": "avery",
    "created_at": "2026-09-03T16:41:07.250Z",
    "updated_by": "avery",
    "updated_at": "2026-09-03T16:41:07.250Z",
    "ready": False,
    "reason": "held by @sec until 2026-09-03T17:11:07.250Z",
    "waits_for": [],
    "cycle": [],
    "cycle_more": 0,
    "parent": None,
    "parts": ["work/pick-token-storage"],
    "options": [],
    "source": {"kind": "memory", "ref": "work/ship-passkey-login"},
    "group": None,
}
CLAIM = {
    "task": "work/ship-passkey-login",
    "thread": "0199f2a1-5b7c-7a10-8f42-3d1e9c04b7aa",
    "holder": "sec",
    "token": 4182,
    "expires_at": "2026-09-03T17:11:07.250Z",
    "ttl_s": 1800,
    "taken_from": None,
    "waits_for": ["work/write-the-migration"],
}


class NewTask(Body):
    """What is to be done."""

    title: str = Field(description="In one line; the key is made from it.", examples=["Ship passkey login"])
    value: str = Field("", description="More about it (markdown).")
    assign: WrittenHandle | None = Field(None, description="Whom it is for.", examples=["sec"])
    parent: str | None = Field(None, description="The task that it is a part of.")
    depends_on: list[str] = Field(
        [], description="The tasks that it comes after, as tasks are named.", examples=[["work/write-the-migration"]]
    )
    priority: str | None = Field(None, description="How urgent it is, in a word or two.", examples=["high"])
    kind: str | None = Field(None, description="What sort of thing it is.", examples=["decision"])
    options: list[str] = Field([], description="The answers that a decision offers: at most 50.", examples=[["15m"]])
    handle: WrittenHandle | None = Field(None, description="Who asks; must agree with `Mycelium-Handle`.")


class Proof(Body):
    """Who asks, and under which claim."""

    handle: WrittenHandle | None = Field(None, description="Who asks; must agree with `Mycelium-Handle`.")
    token: int | None = Field(
        None, ge=1, le=2**63 - 1, description="Of the claim. Without one the handle counts; an old one is refused."
    )
    note: str = Field("", max_length=2_000, description="What others should know.")


class Claiming(Body):
    """Who is to hold a task, and for how long."""

    handle: WrittenHandle | None = Field(None, description="Who asks; must agree with `Mycelium-Handle`.")
    to: WrittenHandle | None = Field(None, description="Who is to hold it; absent: who asks.")
    ttl_s: int | None = Field(None, ge=1, le=MOST_TTL_S, description="For how many seconds; absent: 30 minutes.")
    force: bool = Field(False, description="End another's claim by it.")


class Renewal(Body):
    """Which claim is to last longer."""

    handle: WrittenHandle | None = Field(None, description="Who asks; must agree with `Mycelium-Handle`.")
    token: int | None = Field(None, ge=1, le=2**63 - 1, description="Of the claim.")
    ttl_s: int | None = Field(None, ge=1, le=MOST_TTL_S, description="Absent: as long as it was taken for.")


class Blocking(Proof):
    """What a task waits for."""

    on: str = Field("", max_length=500, description="What it waits for.", examples=["#502"])
    clear: bool = Field(False, description="It waits no longer.")


class Answering(Proof):
    """What was decided."""

    answer: str = Field(description="One of the decision's `options`, where it has any.", examples=["15m"])


class Source(Shape):
    """Where a row comes from: its original, which is nowhere copied to."""

    model_config = shown_as({"kind": "memory", "ref": "work/ship-passkey-login"})

    kind: Literal["memory", "run", "member"]
    ref: str = Field(description="The key of the memory, the id of the run, or the handle of the member.")


class Task(Shape):
    """A row of the board: a document, and who holds it; or what else goes on in the room, which can't be changed."""

    model_config = shown_as(TASK)

    key: str
    thread: str | None = Field(description="Of a run the one that it works in; null for what has none.")
    title: str
    status: str
    kind: str
    assignee: str | None
    blocked_by: str | None
    holder: str | None = Field(description="Null: nobody holds it.")
    expires_at: str | None = Field(description="When the claim ends unless it is renewed.")
    meta: dict[str, Any] = Field(description="All fields of its document.")
    version: int = Field(description="0 for what is no document.")
    created_by: str
    created_at: str
    updated_by: str
    updated_at: str
    ready: bool = Field(description="Whether somebody could claim it now and begin.")
    reason: str = Field(description="Why not, in one line.")
    waits_for: list[str] = Field(description="Keys of the open tasks that it waits for.")
    cycle: list[str] = Field(description="Keys of a cycle that it is in, at most 20; none of them waits for the next.")
    cycle_more: int = Field(description="How many more there are in that cycle.")
    parent: str | None = Field(description="Key of the task that it is a part of.")
    parts: list[str] = Field(description="Keys of its parts.")
    options: list[str] = Field(description="The answers that a decision offers; none: any.")
    source: Source
    group: list[str] | None = Field(description="The values of the field that was grouped by; `-` for none.")


class Claim(Shape):
    """Who holds a task, until when, and what proves it."""

    model_config = shown_as(CLAIM)

    task: str
    thread: str
    holder: str
    token: int | None = Field(description="Shown to the holder alone.")
    expires_at: str
    ttl_s: int
    taken_from: str | None = Field(description="Whose claim ended by this.")
    waits_for: list[str] = Field(
        description="Keys of the open tasks that it waits for all the same, at most 100; a renewal does not look."
    )


class Moved(Shape):
    """What was done to a task."""

    model_config = shown_as({"task": "work/ship-passkey-login", "thread": TASK["thread"], "held_by": "sec"})

    task: str
    thread: str
    held_by: str | None = Field(description="Who held it, or holds it still.")
