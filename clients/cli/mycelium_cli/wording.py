"""How messages, mentions and deliveries are said. Pure: data of the hub in, lines out."""

from collections.abc import Iterable
from typing import Any

from mycelium_cli.output import Paint, age, at, clean, clean_line, short, width_of

# An object as the hub answers it.
Document = dict[str, Any]

# What a mention's state means to the one who posted. Nothing here claims more than the hub has seen.
MENTION_WORDS = {
    "woken": "woken",
    "queued": "queued",
    "held": "held (waits until they let you in)",
    "paused": "paused (waits until they are resumed)",
    "left": "left (not a member any more, not delivered)",
    "self": "self (your own handle, not delivered)",
    "silent": "silent (named without waking)",
    "unknown": "unknown (nobody has this handle, not delivered)",
}

# What a notice of the board is called; a task that was filed is named by its kind.
NOTICE_WORDS = {
    "claimed": "Claimed",
    "released": "Handed back",
    "resolved": "Resolved",
    "blocked": "Blocked",
    "unblocked": "Unblocked",
    "expired": "Expired",
    "floor": "Turn of",
}
# How a task was closed, of a notice that says it.
CLOSING_WORDS = {"dismissed": "Dismissed", "promoted": "Promoted", "answered": "Answered"}
_RESERVATION = "reservation"
_WORDS_WIDTH, _TITLE_WIDTH = 12, 56  # columns: where the title begins, and where it has ended

RECEIPT_WORDS = {
    "queued": "queued, not given to anybody yet",
    "offered": "given out, not received yet",
    "delivered": "delivered, not acknowledged yet",
    "redelivered": "redelivered, not acknowledged yet",
    "acknowledged": "acknowledged",
    "parked": "parked: its command failed, it isn't given out again",
}


def person(name: object, handle: object) -> str:
    """`Avery Quinn (@avery)`, or the handle alone when there is no name."""
    shown = clean_line(name or "").strip()
    return f"{shown} ({at(handle)})" if shown else at(handle)


def sender(message: Document) -> str:
    """Who wrote a message."""
    return person(message.get("sender_name"), message["sender_handle"])


def mention(row: Document, now_s: float, paint: Paint) -> str:
    """What became of one mention: `@sec queued (last seen 5m ago)`."""
    state = str(row["state"])
    words = MENTION_WORDS.get(state, clean_line(state))
    if state == "queued":
        seen = row.get("last_seen")
        words += f" (last seen {age(seen, now_s)})" if seen else " (never seen here yet)"
    colour = paint.good if state == "woken" else paint.warn
    return f"{at(row['handle'])} {colour(words)}"


def sent(message: Document, now_s: float, paint: Paint, verb: str = "sent") -> list[str]:
    """The answer to a post: its id, and for each mention what became of it."""
    parts = [f"{verb} {short(message['id'])}"]
    parts += [mention(row, now_s, paint) for row in message.get("mentions") or []]
    return [" · ".join(parts)]


def presence(member: Document, now_s: float) -> str:
    """What a member does right now, as far as the hub sees: `working: reviewing #48`, `offline, seen 5m ago`."""
    if member.get("kind") == "engine":
        return engine_state(member, now_s)
    word = clean_line(member.get("presence") or ("idle" if member.get("waiting") else "offline"))
    seen = member.get("last_seen")
    if word == "offline":
        word += f", seen {age(seen, now_s)}" if seen else ", never seen"
    elif member.get("presence_note"):
        word += f": {clean_line(member['presence_note'])}"
    elif member.get("waiting"):
        word += ", waiting"
    return f"paused, {word}" if member.get("paused") else word


def engine_state(engine: Document, now_s: float) -> str:
    """The same of an engine, which runs on the hub and is never offline: `seen 5m ago`, `paused`."""
    if engine.get("paused"):
        return "paused"
    return f"seen {age(engine['last_seen'], now_s)}" if engine["last_seen"] else "never asked"


def member_row(member: Document, now_s: float) -> list[str]:
    """One member for a table: who, whose, what they do now, what waits for them."""
    return [
        person(member.get("name"), member["handle"]),
        member.get("kind") or "",
        at(member.get("owner")),
        member.get("team") or "",
        presence(member, now_s),
        str(member.get("unread", "")),
    ]


def text_lines(text: object) -> list[str]:
    """Somebody's text, set in from the margin, so that it can't pass for a line of ours."""
    return [f"  {line}".rstrip() for line in clean(text).split("\n")]


def message_heading(message: Document, paint: Paint) -> str:
    """Who, short id, time, what it belongs to, and whether it was edited."""
    head = [paint.bold(sender(message)), short(message["id"]), paint.dim(clean_line(message["created_at"]))]
    head += [paint.dim(remark) for remark in _remarks(message)]
    edited = f" {paint.dim('(edited)')}" if message.get("edited_at") else ""
    return " · ".join(head) + edited


def notice_lines(notice: Document, paint: Paint) -> list[str]:
    """A change of the board: what, which task, by whom, and its key; what was said to it, set in."""
    words = _heading_of(notice)
    title = clean_line(notice.get("title") or notice.get("task") or "")
    gap = " " * max(2, _WORDS_WIDTH - width_of(words))
    line = paint.bold(words) + gap + title + " " * max(2, _TITLE_WIDTH - width_of(words + gap + title))
    small = [clean_line(notice["task"])] if notice.get("task") and notice.get("title") else []
    small += [clean_line(notice["created_at"])] if notice.get("created_at") else []
    line = f"{line}{' · '.join([*filter(None, _told_of(notice)), *map(paint.dim, small)])}".rstrip()
    return [line, *(text_lines(notice["note"]) if notice.get("note") else [])]


def _heading_of(notice: Document) -> str:
    """What has happened."""
    kind, row_kind = str(notice.get("kind") or ""), clean_line(notice.get("row_kind") or "task")
    if is_reservation(notice) and kind == "claimed":
        return "Reserved"
    if is_reservation(notice) and kind in {"released", "expired"}:
        return "Reservation given back" if _is_own(notice) else "Reservation over"
    if kind == "filed":
        return f"New {row_kind}"
    word = NOTICE_WORDS.get(kind, clean_line(kind))
    return CLOSING_WORDS.get(str(notice.get("move")), word) if kind == "resolved" else word


def _told_of(notice: Document) -> Iterable[str]:
    """By whom, and for whom; what it waits for, or what was decided."""
    kind, holder, who = notice.get("kind"), notice.get("holder"), at(notice.get("by"))
    if is_reservation(notice) and kind != "claimed" and holder and not _is_own(notice):
        yield f"of {at(holder)}"
    elif kind == "claimed" and holder and not _is_own(notice):
        yield f"{who} for {at(holder)}"
    else:
        yield who
    if kind == "blocked" and notice.get("on"):
        yield f"waiting on {clean_line(notice['on'])}"
    if kind == "resolved" and notice.get("answer"):
        yield f"→ {clean_line(notice['answer'])}"


def _is_own(notice: Document) -> bool:
    return notice.get("by") == notice.get("holder")


def is_reservation(notice: Document) -> bool:
    """Whether it is of names that are reserved, not of a task."""
    return notice.get("row_kind") == _RESERVATION


def notice_of(message: Document) -> Document | None:
    """What a message of the history says of the board; None when it is none of these."""
    told = message.get("metadata") or {}
    if message.get("message_type") != "notice" or not (told.get("task") or is_reservation(told)):
        return None
    return {**told, "by": message.get("sender_handle"), "created_at": message.get("created_at")}


def task_of(message: Document) -> str:
    """The key of the task that a notice is about; empty for every other message."""
    return str((notice_of(message) or {}).get("task") or "")


def message_lines(message: Document, paint: Paint) -> list[str]:
    """A message as everybody sees it: its heading and its text. A notice is a line."""
    notice = notice_of(message)
    if notice is not None:
        return notice_lines(notice, paint)
    return [message_heading(message, paint), *text_lines(message["content"])]


def _remarks(message: Document) -> Iterable[str]:
    kind = (message.get("metadata") or {}).get("kind")
    if message.get("message_type") == "event":
        status = message.get("status")
        yield (f"event {clean_line(kind)}" if kind else "event") + (f" ({clean_line(status)})" if status else "")
    elif message.get("message_type") in {"change", "notice"}:  # the hub's words, about the sender
        yield f"a {message['message_type']}"
    if message.get("thread"):
        yield f"thread {short(message['thread'])}"
    if message.get("reply_to"):
        yield f"answers {short(message['reply_to'])}"


def receipt_row(row: Document, now_s: float) -> list[str]:
    """One recipient of a message, for a table."""
    state = str(row["state"])
    tries = row.get("deliveries") or 0
    when = row.get("acknowledged_at") or row.get("delivered_at")
    words = {**MENTION_WORDS, **RECEIPT_WORDS}.get("offered" if state == "queued" and tries else state, state)
    return [at(row["handle"]), words, age(when, now_s) if when else "-", f"{tries}", str(row.get("session") or "-")]
