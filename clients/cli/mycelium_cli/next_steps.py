"""What to type next after a refusal of the hub that names no command itself: by its slug, else by its kind.

What was typed wrong (exit status 2) leads to the help of the command, which `command` adds.
"""

import errno

from mycelium_cli.errors import FORBIDDEN, INTERNAL, NOT_FOUND, REFUSED, UNREACHABLE, USAGE

_MESSAGES = "mycelium room messages"
_WHO = "mycelium whoami --sources"
KNOWN = {
    "mention.unknown": "mend the handle, or the same with --allow-unknown",
    "auth.unavailable": "the same again later; whoever runs the hub sees more with: mycelium doctor",
    "content.too_large": "the same with less text, or in parts",
    "token.missing": "mycelium login",
    "token.refused": "mycelium login",
    "auth.refused": f"ask somebody who may, or act as somebody else ({_WHO} tells who you are)",
    "handle.unregistered": "mycelium agent create <handle> (a person: mycelium user create <handle>)",
    "handle.mismatch": _WHO,
    "handle.forbidden": _WHO,
    "acting.forbidden": "ask its owner for: mycelium agent create <handle> --allow-from <you>",
    "sign_in.failed": "mycelium login",
    "sign_in.off": "mycelium config set oidc.issuer <url>, on the hub's machine",
    "join.refused": "ask for a new code; who lets you in makes it with: mycelium agent code",
    "record.foreign": "ask whom it is of, or sign in as them: mycelium login",
    "message.not_yours": f"ask its sender, or post another: {_WHO} tells who you are",
    "host.refused": "mycelium config set runtime.allowed_hosts <name>, on the hub's machine",
    "origin.refused": "open the page from the hub itself",
    "room.not_found": "mycelium room ls",
    "member.not_found": "mycelium room show",
    "engine.not_found": "mycelium engine ls",
    "user.not_found": "mycelium user ls",
    "message.not_found": _MESSAGES,
    "thread.not_found": _MESSAGES,
    "delivery.not_found": "mycelium await, as the same handle",
    "memory.not_found": "mycelium memory ls",
    "subscription.not_found": "mycelium memory subscribe --ls",
    "task.not_found": "mycelium board --filter all",
    "memory.version_not_found": "mycelium memory history <key>",
    "route.not_found": "mycelium status",
    "method.not_allowed": "mycelium status, which tells the hub's version",
    "room.name_taken": "mycelium room use <name>, or the same with another name",
    "handle.taken": "the same with another handle; who has it: mycelium room show",
    "name.taken": "the same with another name",
    "memory.key_taken": "write to that key, or choose another: mycelium memory ls",
    "join.other_member": "the same without --handle, or ask for a code of your own",
    "claim.held": "mycelium board ready, for another task",
    "claim.none": "mycelium board claim <task>",
    "reservation.held": "ask who holds it, or wait until then: mycelium board reserve --check <what>",
    "reservation.none": "mycelium board reserve",
    "reservation.full": "mycelium board reserve --release <what>, or reserve a folder in place of its files",
    "lease.lost": "stop, and look at the task before you claim it again: mycelium board",
    "task.waiting": "mycelium board ready, for another task (or --force)",
    "task.closed": "mycelium board --filter resolved",
    "row.unchangeable": "change it where it comes from; tasks of the board: mycelium board",
    "task.not_blocked": "mycelium board",
    "id.ambiguous": "the same with the whole id",
    "event.expired": "mycelium room event, for a new one",
    "conflict": "look at it again, then the same again",
    "memory.stale": "mycelium memory get <key>, then the same on top of what it says",
    "request.timed_out": "the same again",
    "request.head_too_large": "the same with fewer and shorter options",
    "rate.limited": "the same again in a moment",
    "unavailable": "the same again in a moment; mycelium status tells what is away",
    "deadline.passed": "the same again",
    "store.full": "free space on the hub's disk, then the same again",
    "internal": "mycelium logs, on the hub's machine; report what it says",
}
_BY_STATUS = {
    REFUSED: "the same with --json, which shows all that the hub said",
    NOT_FOUND: "mycelium status, which tells the hub's version",
    FORBIDDEN: _WHO,
    UNREACHABLE: "mycelium status",
    INTERNAL: "mycelium logs, on the hub's machine; report what it says",
}

# The same for what this machine refuses, by the names of its errors.
_BY_ERROR = {
    "ENOENT": "the same with one that is there",
    "EISDIR": "the same with a file",
    "ENOTDIR": "the same with a folder",
    "EEXIST": "the same with another name",
    "EACCES": "the same where you may read and write",
    "EPERM": "the same where you may read and write",
    "EROFS": "the same where you may write",
    "ENOSPC": "free space there, then the same again",
    "EDQUOT": "free space there, then the same again",
}


def after_error(number: int | None) -> str:
    """What helps after an error of this machine."""
    return _BY_ERROR.get(errno.errorcode.get(number or 0, ""), "mend that, then the same again")


def after(slug: str, exit_status: int) -> str:
    """What helps after such a refusal; empty for what was typed wrong and its command's help explains."""
    if exit_status == USAGE:
        return KNOWN.get(slug, "")
    return KNOWN.get(slug) or _BY_STATUS.get(exit_status, "")
