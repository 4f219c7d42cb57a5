"""What `await --exec` hands to its command: the one list, which `--help` prints and `handover` fills."""

VARIABLES = {
    "MYCELIUM_PROMPT": "The text of the message; cut at 100 kB here, whole on stdin.",
    "MYCELIUM_SENDER": "The handle of who wrote it.",
    "MYCELIUM_SENDER_NAME": "Their name; empty when they have none.",
    "MYCELIUM_REPLY_TO": "The message's id; what `mycelium respond` answers.",
    "MYCELIUM_THREAD": "The thread it stands in; empty in the channel.",
    "MYCELIUM_TASK": "The task that a notice of the board is about; else empty.",
    "MYCELIUM_ROOM": "The room.",
    "MYCELIUM_HANDLE": "Who was waiting: you.",
    "MYCELIUM_ACTIVE_ROOM": "The room again: commands in there act in it.",
    "MYCELIUM_AGENT_HANDLE": "The handle again: commands in there act as it.",
    "MYCELIUM_API_URL": "The hub's address.",
    "MYCELIUM_SESSION": "A session of its own, so that nothing is acknowledged before exit 0.",
}
FIELDS = {
    "message": "The message: id, room, sender_handle, sender_name, content, thread, reply_to, created_at, …",
    "earlier": "The messages that led up to it, oldest first.",
    "redelivered": "Whether it was given out before, and nobody said that it was done.",
    "attempt": "How many times it has been given out, with this time.",
    "reason": "Why it was given to you: mention; changed for a memory that you subscribe to; assigned for a task that "
    "is yours to do; lease when others ended your claim, or when the task of --lease changed hands.",
    "ack": "The token of this delivery; --exec reports under it.",
    "sequence": "With --lease: the place in the log of what was done to the task.",
}
EXEC_NOTES: dict[str, str | dict[str, str]] = {
    "Environment of the --exec command": VARIABLES,
    "JSON on its stdin (and printed by --json)": FIELDS,
}
