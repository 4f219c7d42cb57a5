"""Who may use each operation, by the name of its function. `openapi.py` tells it as `x-access`.

A route that stands in no rule has no document, so the contract's tests fail until somebody has decided about it. What
is said here is held by the services (who sees a room, whose record or message it is) and by `actor.py` (as whom a
caller speaks); the matrix of `e2e/test_access.py` asks every operation as every kind of caller.
"""

from __future__ import annotations

from enum import StrEnum


class Access(StrEnum):
    """What a caller has to be, each including what stands above it where it concerns a room."""

    OPEN = "open"  # nobody has to sign in
    HUB = "hub"  # whoever is signed in
    ROOM = "room"  # whoever may see the room; to all others it is not there
    OWN = "own"  # ... and what is done is done as the caller: a request that names another handle is refused
    ACTING = "acting"  # ... or as an agent whose record in that room names the caller as owner or in `allow_from`
    KEEPER = "keeper"  # ... and the record has to be the caller's to change
    AUTHOR = "author"  # ... and the message has to be the caller's


MEANING = {
    Access.OPEN: "Open: no token is needed.",
    Access.HUB: "For whoever is signed in.",
    Access.ROOM: "For whoever may see the room; to others it is not there.",
    Access.OWN: "For whoever may see the room, as themselves: naming another handle is refused.",
    Access.ACTING: "For whoever may see the room, as themselves or as an agent that they may act for.",
    Access.KEEPER: "For whoever may see the room and keeps the record: the one that it is of, its owner, who added it. "
    "Operators keep every member's and person's.",
    Access.AUTHOR: "For whoever may see the room, for their own messages.",
}
BY_ACCESS: dict[Access, tuple[str, ...]] = {
    Access.OPEN: ("healthz", "health", "join", "begin_sign_in", "finish_sign_in", "sign_out"),
    Access.HUB: ("metrics", "whoami", "list_rooms", "list_users", "get_user", "create_room", "create_user"),
    Access.ROOM: (
        "get_room",
        "list_messages",
        "get_message",
        "list_receipts",
        "list_members",
        "get_member",
        "list_engines",
        "get_engine",
        "get_budget",
        "list_memory",
        "get_memory",
        "get_graph",
        "search_memory",
        "reindex_memory",
        "catch_up",
        "show_board",
        "read_board_log",
        "list_reservations",
        "check_paths",
        "list_subscriptions",
        "export_room",
        "watch_room",
        "watch_rooms",
    ),
    Access.OWN: (
        "change_room",
        "import_room",
        "post_message",
        "respond",
        "write_memory",
        "change_memory",
        "remove_memory",
        "subscribe",
        "unsubscribe",
        "create_task",
        "claim_task",
        "renew_claim",
        "release_task",
        "resolve_task",
        "block_task",
        "answer_task",
        "promote_task",
        "dismiss_task",
        "coordinate",
        "reserve",
        "renew_reservations",
        "release_reservations",
        "change_budget",
    ),
    Access.ACTING: ("await_delivery", "acknowledge", "say_presence", "make_join_code"),
    Access.KEEPER: (
        "add_member",
        "change_member",
        "remove_member",
        "add_engine",
        "remove_engine",
        "save_user",
        "delete_room",
    ),
    Access.AUTHOR: ("amend_message",),
}
RULES = {name: access for access, names in BY_ACCESS.items() for name in names}
