"""Messages as HTTP has them."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from mycelium_gateway.schemas.shape import Body, Parameters, Shape, WrittenHandle, shown_as

MESSAGE = {
    "id": "0199f2a1-5b7c-7a10-8f42-3d1e9c04b7aa",
    "seq": 42,
    "room": "design-review",
    "sender_handle": "avery",
    "sender_name": "Avery Quinn",
    "content": "@engineer keychain, or WebCrypto?",
    "message_type": "message",
    "thread": None,
    "reply_to": None,
    "metadata": {},
    "created_at": "2026-09-03T16:41:07.250Z",
    "edited_at": None,
    "mentions": [{"handle": "engineer", "state": "woken", "last_seen": "2026-09-03T16:41:05.000Z"}],
    "status": "",
    "expires_at": None,
}
RECEIPT = {
    "handle": "engineer",
    "state": "acknowledged",
    "deliveries": 1,
    "session": "engineer",
    "delivered_at": "2026-09-03T16:41:07.260Z",
    "acknowledged_at": "2026-09-03T16:43:10.000Z",
}
MentionState = Literal["woken", "queued", "held", "paused", "left", "self", "silent", "unknown"]
MessageType = Literal["message", "event"]
AnyType = Literal["message", "event", "notice", "change"]
ReceiptState = Literal[
    "queued",
    "offered",
    "delivered",
    "acknowledged",
    "redelivered",
    "parked",
    "woken",
    "held",
    "paused",
    "left",
    "self",
    "silent",
    "unknown",
]
Status = Literal["", "open", "in_progress", "resolved", "expired"]


class NewMessage(Body):
    """A message to post."""

    content: str = Field(
        description="Markdown, at most 256 KiB in UTF-8. `@handle` mentions.", examples=["@engineer ready?"]
    )
    sender_handle: WrittenHandle | None = Field(
        None, description="Who posts; must agree with `Mycelium-Handle`.", examples=["avery"]
    )
    message_type: MessageType = "message"
    thread: str | None = Field(None, description="The thread: an id, its last eight digits, or a memory's key.")
    reply_to: str | None = Field(None, description="Id of the message that it answers, full or short.")
    metadata: dict[str, Any] = Field(
        default_factory=dict,
        description="The sender's own facts. An event needs `kind`, and may have `status`, `ttl_seconds`, `payload`, "
        "`provenance` (a list of `{type, ref}`).",
    )
    allow_unknown: bool = Field(False, description="Post it although it mentions unknown handles.")


class MessageChange(Body):
    """The new text of one's own message, or the status of an event."""

    content: str | None = Field(None, description="The new text.", examples=["@engineer ready? The cache TTL is 300s."])
    status: str | None = Field(None, description="`open`, `in_progress` or `resolved`.")
    sender_handle: WrittenHandle | None = Field(None, description="Who changes it; must agree with `Mycelium-Handle`.")
    allow_unknown: bool = Field(False, description="Store it although it mentions unknown handles.")


class History(Parameters):
    """Which messages a page holds."""

    limit: int = Field(50, ge=1, le=500, description="How many at most.")
    before: str = Field(
        "", description="Only older: RFC 3339, a cursor, an age (`90s 30m 2h 1d`), `today` or `yesterday`."
    )
    since: str = Field("", description="Only from then on, written like `before`.")
    tz: str = Field("", description="Zone of days and of times without one, such as `Europe/Paris`; UTC without.")
    thread: str = Field("", description="Only this thread, by id or a memory's key; the room's channel without.")
    all: bool = Field(False, description="The channel and every thread.")
    sender: str = Field("", description="Only by this handle.")
    kind: str = Field("", description="Only events of this kind, wherever they are unless `thread` says.")
    status: str = Field("", description="Only events that are `open`, `in_progress`, `resolved` or `expired` now.")
    q: str = Field("", description='Only texts with all these words, and these `"phrases in quotes"`.')


class Mention(Shape):
    """One handle that a message names, and what became of it."""

    handle: str
    state: MentionState
    last_seen: str | None = Field(description="When the member last posted or waited.")


class Message(Shape):
    """One post as readers see it now."""

    model_config = shown_as(MESSAGE)

    id: str = Field(description="Its last eight digits are its short form, accepted everywhere.")
    seq: int = Field(description="Its place in the room's one order.")
    room: str = Field(description="Name of the room.")
    sender_handle: str
    sender_name: str = Field(description="Name of the sender; empty when none is known.")
    content: str
    message_type: AnyType = Field(
        description="`notice` of the board, `change` of a document in its thread: what the hub says of `sender_handle`."
    )
    thread: str | None
    reply_to: str | None
    metadata: dict[str, Any]
    created_at: str
    edited_at: str | None = Field(description="Null when it never was.")
    mentions: list[Mention]
    status: Status = Field(description="Of an event, as of now; empty when it has none.")
    expires_at: str | None = Field(description="When an event expires; null when never.")


class Text(Shape):
    """One text that a message has had. The first has `created_at`, the others `edited_at`."""

    content: str
    created_at: str = Field("", description="When it was posted; absent from an edit.")
    edited_at: str = Field("", description="When it was edited; absent from the first.")


class MessageWithHistory(Message):
    """A message and, when asked for, every text that it has had."""

    model_config = shown_as(
        {
            **MESSAGE,
            "content": "@engineer keychain, or WebCrypto? The TTL is 300s.",
            "edited_at": "2026-09-03T16:42:00.000Z",
            "history": [
                {"content": "@engineer keychain, or WebCrypto?", "created_at": "2026-09-03T16:41:07.250Z"},
                {
                    "content": "@engineer keychain, or WebCrypto? The TTL is 300s.",
                    "edited_at": "2026-09-03T16:42:00.000Z",
                },
            ],
        }
    )

    history: list[Text] = Field(
        default_factory=list, description="Oldest first, the present one last; absent unless asked for."
    )


class MessagePage(Shape):
    """A page of history, newest first."""

    items: list[Message]
    next: str | None = Field(description="The same as `older_before`.")
    older_before: str | None = Field(description="`before` of the next page; null when nothing is older.")


class Receipt(Shape):
    """What became of one mention: how far its delivery has come, or why there is none."""

    model_config = shown_as(RECEIPT)

    handle: str
    state: ReceiptState = Field(
        description="`offered` was given to a session that has not said that it received it; `redelivered` was given "
        "out more than once; `paused` and `left` stand in the way of one that waits."
    )
    deliveries: int = Field(description="How often it was given out.")
    session: str | None = Field(description="The session that got it last.")
    delivered_at: str | None
    acknowledged_at: str | None = Field(description="When it was acknowledged or parked.")


class ReceiptPage(Shape):
    """A message's mentions by handle."""

    items: list[Receipt]
    next: str | None
