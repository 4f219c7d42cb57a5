"""Posting, reading back, amending; sizes and keys."""

from collections.abc import Callable

import pytest

from e2e.harness import Machine
from e2e.requirements import requirement
from e2e.room import Room
from e2e.web import path

Unique = Callable[[str], str]

WHOLE = {
    "a byte": "x",
    "64 KB": "0123456789abcdef" * 4096,
    "emoji": "👩🏽‍🚀 launches 🚀 at 🌍",
    "lines": "  first\n\n\tsecond\r\n  third  ",
    "largest": "é" * (128 * 1024),
}


@requirement("messages:post:stored")
def test_the_answer_to_a_post_is_the_message(room: Room) -> None:
    """As every reader sees it, with its place in the order."""
    reply = room.try_post("hello", sender="avery", metadata={"kind": "note", "payload": {"n": 1}}).ok(201)
    message = reply.json
    assert int(reply.headers["mycelium-sequence"]) == message["seq"]
    assert set(message) >= {
        "id", "seq", "room", "sender_handle", "sender_name", "content", "message_type", "thread", "reply_to",
        "metadata", "created_at", "edited_at", "mentions",
    }  # fmt: skip
    assert (message["room"], message["sender_handle"], message["content"]) == (room.name, "avery", "hello")
    assert (message["message_type"], message["thread"], message["reply_to"]) == ("message", None, None)
    assert (message["metadata"], message["edited_at"]) == ({"kind": "note", "payload": {"n": 1}}, None)
    assert room.api.get(room.at("messages", message["id"])).ok(200).json == message
    assert room.page()["items"] == [message]


@requirement("messages:post:stored")
def test_a_message_answers_another_one(machine: Machine, room: Room) -> None:
    """By full or short id."""
    first = room.post("a question")
    machine.run("room", "send", "the answer", "--reply-to", first["id"][-8:], handle="sec", room=room.name).ok()
    newest = room.page()["items"][0]
    assert (newest["content"], newest["reply_to"]) == ("the answer", first["id"])
    room.try_post("an answer to nothing", reply_to="00000000").refused(404, "message.not_found")


@requirement("messages:post:anybody")
def test_any_handle_may_post(machine: Machine, room: Room) -> None:
    """One that the hub doesn't know too; nobody at all may not."""
    sent = machine.run("room", "send", "Tests pass, PR is up.", handle="ci-7", room=room.name).ok()
    assert sent.out.startswith("sent ")
    piped = machine.run("room", "send", "-", handle="ci-7", room=room.name, stdin=b"from a pipe\n").ok()
    assert piped.out.startswith("sent ")
    assert room.contents() == ["Tests pass, PR is up.", "from a pipe"]
    assert "No handle found" in machine.run("room", "send", "who?", room=room.name).err
    room.try_post("who?", sender="").refused(422, "handle.missing")
    room.try_post("me?", sender="avery", sender_handle="sec").refused(403, "handle.mismatch")


@requirement("messages:post:short-ids")
def test_the_short_id_does_wherever_an_id_does(machine: Machine, room: Room) -> None:
    """It is what every command prints."""
    room.join("sec")
    sent = machine.run("room", "send", "@sec one", handle="avery", room=room.name).ok().out
    short = sent.split()[1]
    message = room.page()["items"][0]
    assert message["id"].endswith(short)
    assert len(short) == 8
    assert room.api.get(room.at("messages", short)).ok(200).json == message
    assert "@sec" in machine.run("receipts", short, room=room.name).ok().out
    machine.run("room", "amend", short, "@sec two", handle="avery", room=room.name).ok()
    assert room.contents() == ["@sec two"]
    room.api.get(room.at("messages", "ffffffff")).refused(404, "message.not_found")


@requirement("messages:history:pages")
def test_cursors_walk_all_of_the_history(machine: Machine, room: Room) -> None:
    """Newest first, no gap, no repeat, while others go on posting."""
    for number in range(25):
        room.post(f"message {number}")
    words = ["room", "messages", room.name, "--limit", "7", "--json"]
    page = machine.run(*words).json
    read = [message["content"] for message in page["items"]]
    while page["older_before"]:
        room.post("something new")
        page = machine.run(*words, "--before", page["older_before"]).json
        read += [message["content"] for message in page["items"]]
    assert read == [f"message {number}" for number in reversed(range(25))]
    text = machine.run("room", "messages", room.name, "--limit", "3").ok().out
    assert text.splitlines()[-1].startswith(f"older: mycelium room messages {room.name} --limit 3 --before 20")


@requirement("messages:history:pages")
def test_the_page_size_has_bounds(room: Room) -> None:
    """1 to 500."""
    for limit in (0, 501, -1):
        room.api.get(room.at("messages", limit=limit)).refused(422, "request.invalid")


@requirement("messages:history:window")
def test_history_has_a_window_of_time(machine: Machine, room: Room) -> None:
    """Timestamps as printed, ages, cursors; what can't be read is refused."""
    stamps = [room.post(f"message {number}")["created_at"] for number in range(3)]
    assert all(stamp.endswith("Z") and len(stamp) == len("2026-09-03T16:40:00.123Z") for stamp in stamps)

    def window(*words: str) -> list[str]:
        page = machine.run("room", "messages", room.name, *words, "--json").json
        return [message["content"] for message in page["items"]]

    assert window("--before", stamps[0]) == []
    assert "message 2" in window("--since", stamps[2])
    assert len(window("--since", "1h")) == 3
    assert window("--before", "1h") == []
    assert len(window("--since", "2d", "--before", "2020-01-01T00:00:00Z")) == 0
    wrong = machine.run("room", "messages", room.name, "--since", "yesterdayish")
    assert (wrong.status, "yesterdayish" in wrong.err) == (2, True)


@requirement("messages:amend:own")
def test_an_own_message_gets_a_new_text(machine: Machine, room: Room) -> None:
    """Marked as edited, in its old place."""
    message = room.post("the cache TTL is 30s", sender="sec")
    room.post("after it")
    amended = machine.run("room", "amend", message["id"], "the cache TTL is 300s", handle="sec", room=room.name).ok()
    assert amended.out.startswith("amended ")
    assert room.contents() == ["the cache TTL is 300s", "after it"]
    now = room.page()["items"][1]
    assert (now["seq"], now["created_at"]) == (message["seq"], message["created_at"])
    assert now["edited_at"] >= message["created_at"]
    assert "(edited)" in machine.run("room", "messages", room.name).ok().out


@requirement("messages:amend:others")
def test_a_message_of_somebody_else_stays(machine: Machine, room: Room) -> None:
    """Refused with whose it is."""
    message = room.post("mine", sender="sec")
    refused = machine.run("room", "amend", message["id"], "yours", handle="avery", room=room.name)
    assert (refused.status, "sec" in refused.err) == (4, True)
    target = room.at("messages", message["id"])
    room.api.patch(target, {"content": "yours"}, handle="avery").refused(403, "message.not_yours")
    assert room.contents() == ["mine"]


@requirement("messages:size:whole")
@pytest.mark.parametrize("text", list(WHOLE.values()), ids=list(WHOLE))
def test_texts_arrive_as_they_were_sent(machine: Machine, room: Room, text: str) -> None:
    """Through a pipe, out of history, and to the one who is mentioned."""
    room.join("sec")
    machine.run("room", "send", "-", handle="avery", room=room.name, stdin=text.encode()).ok()
    assert room.contents() == [text]
    mentioning = f"@sec\n{text}"[: len(text)] if len(text) > 5 else "@sec"
    room.post(mentioning)
    turn = machine.run("await", "--timeout", "5", "--json", handle="sec", room=room.name).json
    assert turn["message"]["content"] == mentioning
    if len(text) < 100_000:  # what led up to a message has a budget
        assert [message["content"] for message in turn["earlier"]] == [text]


@requirement("messages:size:refused")
def test_what_can_not_be_stored_is_refused_with_the_reason(machine: Machine, room: Room) -> None:
    """And nothing is stored."""
    room.try_post("a null \0 byte").refused(422, "content.invalid")
    room.try_post("x" * 300 * 1024).refused(413, "content.too_large")
    room.try_post("x" * 2 * 1024 * 1024).refused(413, "content.too_large")
    room.try_post(" \n\t ").refused(422, "content.empty")
    room.try_post("").refused(422, "content.empty")
    null = machine.run("room", "send", "-", handle="avery", room=room.name, stdin=b"a null \0 byte")
    assert (null.status, "null" in null.err.lower() or "U+0000" in null.err) == (2, True), null
    large = machine.run("room", "send", "-", handle="avery", room=room.name, stdin=b"x" * 300 * 1024)
    assert (large.status, "262,144" in large.err) == (1, True), large
    latin = machine.run("room", "send", "-", handle="avery", room=room.name, stdin=b"caf\xe9")
    assert (latin.status, "UTF-8" in latin.err) == (2, True), latin
    assert room.contents() == []


@requirement("messages:text:harmless")
def test_control_characters_do_not_reach_a_terminal(machine: Machine, room: Room) -> None:
    """A message can't clear a reader's screen or turn a line around."""
    room.join("sec")
    evil = "@sec \x1b[2J\x1b]0;owned\x07 \u202egnp.exe"
    room.post(evil)
    shown = machine.run("room", "messages", room.name).ok().out
    waited = machine.run("await", "--timeout", "5", handle="sec", room=room.name).ok().out
    listed = machine.run("room", "messages", room.name, "--json").ok()
    for text in (shown, waited, listed.out):
        assert not set(text) & {"\x1b", "\x07", "\u202e"}
    assert listed.json["items"][0]["content"] == evil


@requirement("messages:key:repeat")
def test_a_repeated_post_is_one_message(machine: Machine, room: Room, unique: Unique) -> None:
    """Over HTTP and with `--key`; another sender's key is another key."""
    key = unique("key")
    first = room.try_post("once", key=key).ok(201).json
    assert room.try_post("once", key=key).ok(201).json["id"] == first["id"]
    for _ in range(2):
        machine.run("room", "send", "twice typed", "--key", key, handle="ci", room=room.name).ok()
    assert room.contents() == ["once", "twice typed"]


@requirement("messages:key:altered")
def test_another_body_under_the_same_key_is_refused(room: Room, unique: Unique) -> None:
    """The first one stays as it is."""
    key = unique("key")
    room.try_post("once", key=key).ok(201)
    room.try_post("otherwise", key=key).refused(422, "key.reused")
    room.try_post("once", key=key, metadata={"kind": "note"}).refused(422, "key.reused")
    room.api.post(path("rooms"), {"name": unique("other")}, handle="avery", key=key).refused(422, "key.reused")
    assert room.contents() == ["once"]
