"""What was promised, counted by id: the room's history against what everybody saw. Each breach is a `Verdict`."""

import json
from collections import Counter

from e2e.faults.record import Given, Record, Verdict, names
from e2e.harness import Hub
from e2e.room import Document, Room

KEPT = {"stream", "log", "tables", "store", "contents"}
DOCTOR_S = 120.0


def history_of(room: Room) -> list[Document]:
    """The whole room, oldest first."""
    page = room.page(limit=500)
    found: list[Document] = list(page["items"])
    while page["older_before"]:
        page = room.page(limit=500, before=page["older_before"])
        found += page["items"]
    return found[::-1]


def everything(room: Room, record: Record) -> None:
    """All verdicts on one run."""
    history = history_of(room)
    assert record.count >= 10, "nearly nothing was posted: nothing was tried"
    nothing_lost(history, record)
    one_effect(history, record)
    one_order(history, record)
    read_whole(history, record)
    every_mention(history, record)


def nothing_lost(history: list[Document], record: Record) -> None:
    """What was acknowledged is there, under its id."""
    there = {message["id"]: message["content"] for message in history}
    for name, posts in record.posted.items():
        for number, post in enumerate(posts):
            if there.get(post.id) != post.content:
                found = there.get(post.id, "nothing")
                text = f"{post.id} of {name}, post {number} of {len(posts)}: {post.content!r}, but {found!r} is there"
                raise Verdict("lost", text, record)


def one_effect(history: list[Document], record: Record) -> None:
    """However often it was asked, each text is stored once, and nothing that was never acknowledged."""
    counted = Counter(message["content"] for message in history)
    twice = {content: count for content, count in counted.items() if count > 1}
    if twice:
        raise Verdict("repeated", f"stored more than once: {twice}", record)
    if len(history) != record.count:
        raise Verdict("repeated", f"{len(history)} messages are there, {record.count} were acknowledged", record)


def one_order(history: list[Document], record: Record) -> None:
    """A post that was acknowledged before another was sent stands before it, whoever sent them."""
    posts = {post.id: post for posts in record.posted.values() for post in posts}
    newest_s = 0.0
    for message in history:
        post = posts[message["id"]]
        if post.ended_s < newest_s:
            raise Verdict("reordered", f"{post} stands after a post that was sent after its answer", record)
        newest_s = max(newest_s, post.began_s)


def read_whole(history: list[Document], record: Record) -> None:
    """Every reader saw the history: no gap, no repeat, no other order, however often its line was cut."""
    ids = [message["id"] for message in history]
    for name, read in record.read.items():
        if read != ids:
            raise Verdict("gap or repeat", f"{name} saw {difference(read, ids)}", record)


def every_mention(history: list[Document], record: Record) -> None:
    """Every mention came to every handle that it names, each time as an attempt of its own."""
    for handle, given in record.given.items():
        wanted = [message["id"] for message in history if names(message["content"], handle)]
        came = list(dict.fromkeys(one.message for one in given))
        if missing := set(wanted) - set(came):
            text = f"{len(missing)} of {len(wanted)} mentions of {handle} never came: {difference(came, wanted)}"
            raise Verdict("not delivered", text, record)
        attempts = Counter((one.message, one.attempt) for one in given)
        if twice := [one for one, count in attempts.items() if count > 1]:
            raise Verdict("two holders", f"{handle} was given the same attempt twice: {twice}", record)
        if len({one.session.partition(".")[0] for one in given}) == 1:
            _one_by_one(handle, given, wanted, record)


def _one_by_one(handle: str, given: list[Given], wanted: list[str], record: Record) -> None:
    """An agent with one session at a time got them for the first time in order, and again only with a mark."""
    came = list(dict.fromkeys(one.message for one in given))
    if came != wanted:
        raise Verdict("reordered", f"{handle} got {difference(came, wanted)}", record)
    seen: set[str] = set()
    for one in given:
        if one.message in seen and not one.redelivered:
            raise Verdict("repeated", f"{handle} was given {one} again, unmarked", record)
        seen.add(one.message)


def one_winner(record: Record) -> None:
    """Of those who wanted a name at once, one got it."""
    for name, won in record.won.items():
        if len(won) != 1:
            raise Verdict("two holders", f"{len(won)} rooms were made under the name {name!r}: {won}", record)


def whole(hub: Hub, record: Record) -> None:
    """Every byte of the log's stores is as it was written, and every row of every table what the log says."""
    told = hub.machine.run("doctor", "--deep", "--json", within_s=DOCTOR_S)
    found = [finding for finding in json.loads(told.out)["items"] if finding["part"] in KEPT]
    assert {finding["part"] for finding in found} >= KEPT, told
    if wrong := [finding for finding in found if finding["state"] == "wrong"]:
        raise Verdict("damaged", str(wrong), record)


def difference(read: list[str], ids: list[str]) -> str:
    """What a reader got, as places in the history: ranges where it goes on, one after the other."""
    place = {one: number for number, one in enumerate(ids)}
    parts: list[list[int]] = []
    for one in read:
        here = place.get(one, -1)
        if parts and here == parts[-1][1] + 1:
            parts[-1][1] = here
        else:
            parts.append([here, here])
    return f"{' '.join(f'{first}-{last}' for first, last in parts[:50])} of 0-{len(ids) - 1}"
