"""Every way in which a request can fail: one table of slugs.

A slug is public interface: it never changes its meaning. Services name slugs in refusals; only this table says which
HTTP status each has. `reference.py` prints the table for the docs.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Slug:
    """One reason: its HTTP status, a sentence for people, and what the caller should do."""

    status: int
    title: str
    remedy: str


SLUGS: dict[str, Slug] = {
    "request.invalid": Slug(
        422, "The request is not valid", "Change what `detail` and `errors` name and send it again."
    ),
    "name.invalid": Slug(422, "The room name is not allowed", "Choose a name that follows the rules for room names."),
    "handle.invalid": Slug(
        422, "The handle is not allowed", "Use 1 to 64 of a-z 0-9 . _ -, beginning with a letter or digit."
    ),
    "handle.missing": Slug(
        422, "No handle was given", "Say who calls: header `Mycelium-Handle`, or the handle in the body."
    ),
    "mention.unknown": Slug(
        422, "A mentioned handle is unknown", "Correct it (see `near`), or send `allow_unknown` to post it anyway."
    ),
    "content.invalid": Slug(422, "The text can't be stored", "Remove what `detail` names from the text."),
    "content.empty": Slug(422, "The text is empty", "Send a text that is more than blanks."),
    "event.not_an_event": Slug(422, "The message is no event", "Only events have a status; reply to it instead."),
    "key.reused": Slug(422, "The idempotency key was used for another request", "Use a new key for a new request."),
    "room.import_refused": Slug(
        422, "The bundle makes no room", "Export the room again; a bundle that was cut or altered is refused whole."
    ),
    "memory.key_invalid": Slug(
        422, "The key is not allowed", "Choose a key that follows the rules for keys; `detail` says which is broken."
    ),
    "memory.field_invalid": Slug(422, "A field can't be kept", "Change what `detail` names; nothing was written."),
    "memory.field_managed": Slug(
        422,
        "The field is the hub's own",
        "Choose another name; the hub writes key, version, authors, times and thread.",
    ),
    "memory.file_invalid": Slug(422, "The file is no document", "Change what `detail` names; it is left as it is."),
    "memory.links_too_many": Slug(422, "The document has too many links", "Split it; nothing was written."),
    "memory.tag_invalid": Slug(422, "A tag can't be kept", "Change what `detail` names; nothing was written."),
    "presence.invalid": Slug(422, "That is no presence", "Send `state` idle, working or blocked, `ttl_s` 5 to 600."),
    "content.too_large": Slug(413, "The text is too large", "Send less: `detail` says how much is allowed."),
    "token.missing": Slug(401, "Sign in first", "Send a token: `Authorization: Bearer ...`."),
    "token.refused": Slug(
        401, "The token is not accepted", "Get a new one; `detail` says what is wrong with this one."
    ),
    "auth.refused": Slug(403, "Not allowed for this caller", "Ask somebody who may, or sign in as somebody else."),
    "handle.unregistered": Slug(
        403, "The handle is not a registered agent or user", "Register it first; `next` holds the command."
    ),
    "handle.mismatch": Slug(
        403, "Two handles in one request", "Name one caller: header and body must name the same handle."
    ),
    "handle.forbidden": Slug(
        403, "The token is another handle's", "Leave the handle out, or name the one that the token is for."
    ),
    "acting.forbidden": Slug(
        403, "The caller may not act for this handle", "Have its owner name the caller as `owner` or in `allow_from`."
    ),
    "sign_in.failed": Slug(
        403, "You are not signed in", "Begin again at `/api/auth/login`, in the browser that is to be signed in."
    ),
    "join.refused": Slug(
        403,
        "The code lets nobody in",
        "Ask for a new one: a code is good once, for ten minutes, at the hub it is from.",
    ),
    "record.foreign": Slug(
        403, "The record is somebody else's", "Ask whom `detail` names, or sign in as them; nothing was changed."
    ),
    "message.not_yours": Slug(403, "The message belongs to somebody else", "Only its sender can change a message."),
    "host.refused": Slug(
        403,
        "The hub does not answer to this name",
        "Call it by its own address, or add the name to the setting `runtime.allowed_hosts`.",
    ),
    "origin.refused": Slug(
        403, "Pages of another origin may not call the hub", "Open the page from the hub itself; CORS is closed."
    ),
    "sign_in.off": Slug(
        404, "Nobody signs in by a browser here", "Set `oidc.issuer` and `auth.session_secret`, with `auth.enabled` on."
    ),
    "room.not_found": Slug(404, "Room not found", "List the rooms, or create it first."),
    "member.not_found": Slug(404, "Member not found", "List the room's members, or add it first."),
    "engine.not_found": Slug(
        404, "No such engine", "List the room's engines, or add it; a member has its own address."
    ),
    "user.not_found": Slug(404, "User not found", "List the users, or create it first."),
    "message.not_found": Slug(404, "Message not found", "Take an id from the room's messages."),
    "thread.not_found": Slug(404, "Thread not found", "Take an id from the room's messages."),
    "delivery.not_found": Slug(
        404, "Delivery not found", "Take the `ack` of an answer of await, with the same handle and seat."
    ),
    "memory.not_found": Slug(404, "No such memory", "List the room's memory, or take one of `near`."),
    "subscription.not_found": Slug(404, "There is no such subscription", "List them; the pattern must be the same."),
    "task.not_found": Slug(404, "No such task", "Show the room's board, or take one of `near`."),
    "memory.version_not_found": Slug(404, "The memory was not there then", "List its versions: `?view=versions`."),
    "route.not_found": Slug(404, "No such address", "See /docs for what there is."),
    "method.not_allowed": Slug(
        405, "This address does not take that method", "Use one of the methods in header `Allow`."
    ),
    "room.name_taken": Slug(409, "The room name is taken", "Use that room, or choose another name."),
    "handle.taken": Slug(
        409,
        "The handle is taken, or can be taken for another",
        "Choose another handle, or change the existing record.",
    ),
    "name.taken": Slug(409, "The name can be taken for another's", "Choose another name; `detail` says whose it is."),
    "memory.key_taken": Slug(
        409,
        "A key that a disk may take for the same is there",
        "Write to that one (see `near`), or choose another key.",
    ),
    "join.other_member": Slug(
        409, "The code is another member's", "Nothing was done; use it elsewhere, or without naming a member."
    ),
    "claim.held": Slug(
        409, "Somebody else holds the task", "Wait until `expires_at`, ask `holder`, or take another task."
    ),
    "claim.none": Slug(409, "Nobody holds the task", "Claim it first; `next` holds the command."),
    "reservation.held": Slug(
        409, "Somebody else has reserved it", "Wait until `expires_at`, ask `holder`, or work on something else."
    ),
    "reservation.none": Slug(409, "You have not reserved it", "Reserve it first; `next` holds the command."),
    "reservation.full": Slug(409, "Too many reservations", "Release some, or reserve a folder in place of its files."),
    "lease.lost": Slug(
        409, "The claim has ended", "Stop: somebody else may have begun. Look at the task before you claim it again."
    ),
    "task.waiting": Slug(
        412, "The task waits for others", "Close those in `waits_for` first, or claim it by force; `next` does that."
    ),
    "task.closed": Slug(409, "The task is closed", "Open it again first; `next` holds the command."),
    "row.unchangeable": Slug(
        409, "The row is no task", "Rows whose `source` is no memory show what goes on elsewhere; change it there."
    ),
    "task.not_blocked": Slug(409, "The task is not blocked", "There is nothing to clear."),
    "id.ambiguous": Slug(409, "The short id fits more than one", "Use the full id; `candidates` holds them."),
    "event.expired": Slug(409, "The event's time is over", "Post a new one; this one stays in history as it is."),
    "conflict": Slug(409, "Others changed it at the same moment", "Look at it again and retry."),
    "memory.stale": Slug(
        412, "Another version is there", "Read it (`version`, `updated_by` say which), merge, and write expecting that."
    ),
    "request.timed_out": Slug(
        408, "The request did not come in time", "Send it again, whole; the connection is closed."
    ),
    "request.head_too_large": Slug(
        431, "The request's head is too large", "Send a shorter address and fewer headers; the connection is closed."
    ),
    "rate.limited": Slug(429, "Too many requests", "Wait for `Retry-After` seconds."),
    "unavailable": Slug(
        503, "A part of the hub does not answer", "Retry after `Retry-After` seconds with the same key."
    ),
    "auth.unavailable": Slug(
        503, "Sign-in does not work at the moment", "Retry after `Retry-After` seconds; `/health` says what is set."
    ),
    "store.full": Slug(
        507, "The hub's disk is full", "Free space on the hub's disk, then retry after `Retry-After` seconds."
    ),
    "deadline.passed": Slug(503, "It was not done in time", "Nothing was done; retry with the same key."),
    "internal": Slug(500, "A fault in the hub", "Report it with the `key`: the hub's log holds the details under it."),
}
