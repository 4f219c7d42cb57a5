"""Waiting for a mention: order, time, and what happens to a message when its client goes away."""

import json
import socket
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from e2e.harness import Hub, Machine
from e2e.processes import Background
from e2e.requirements import requirement
from e2e.room import Document, Room, states
from e2e.waiting import until

Unique = Callable[[str], str]

# Received by a session that has not acknowledged it, the first time or again.
GIVEN_OUT = {"delivered", "redelivered"}


def take(room: Room, *words: str, session: str = "s1", timeout: str = "5") -> Document:
    """What `mycelium await --json` prints."""
    found: Document = room.machine.run(
        "await", "--timeout", timeout, "--json", *words, handle="sec", session=session, room=room.name
    ).json
    return found


def printed(waiting: Background) -> str:
    """The text of the message that a `mycelium await --json` in the background ended with."""
    return str(waiting.ended().json["message"]["content"])


def nothing(room: Room, session: str = "s1") -> None:
    """A wait that finds an empty queue."""
    found = room.machine.run("await", "--timeout", "0", handle="sec", session=session, room=room.name)
    assert found.status == 6, found


@requirement("await:order:oldest-first", "await:next-call")
def test_three_mentions_before_the_first_wait_all_come_oldest_first(room: Room) -> None:
    """The queue was there before the agent was."""
    room.join("sec")
    for word in ("one", "two", "three"):
        room.post(f"@sec {word}")
    turns = [take(room) for _ in range(3)]
    assert [turn["message"]["content"] for turn in turns] == ["@sec one", "@sec two", "@sec three"]
    assert {(turn["redelivered"], turn["reason"], turn["attempt"]) for turn in turns} == {(False, "mention", 1)}
    assert len({turn["ack"] for turn in turns}) == 3
    nothing(room)


@requirement("await:order:between")
def test_a_mention_between_two_waits_is_not_missed(room: Room) -> None:
    """It comes while the agent is thinking."""
    room.join("sec")
    waiting = room.wait("sec", "--json", "--timeout", "20", session="s1")
    room.post("@sec one")
    assert printed(waiting) == "@sec one"
    room.post("@sec two")
    assert take(room)["message"]["content"] == "@sec two"


@requirement("await:timeout")
def test_a_wait_that_times_out_says_so_and_acknowledges_nothing(room: Room) -> None:
    """By its exit status; what the session was given before is still its own to answer for."""
    room.join("sec", "b")
    message = room.post("@sec one")
    take(room, session="s1")
    quiet = room.machine.run("await", "--timeout", "1", handle="b", room=room.name)
    assert (quiet.status, quiet.out) == (6, "")
    assert "nothing came for @b" in quiet.err
    assert room.try_take("b", timeout_s=0).status == 204
    assert room.state(message, "sec") == "delivered"


@requirement("await:only-mentions")
def test_only_a_mention_wakes(room: Room) -> None:
    """Talk in the room, mentions of others and silent ones do not."""
    room.join("sec", "planner")
    waiting = room.wait("sec", "--json", "--timeout", "20")
    for text in ("hello", "@planner hello", "as @~sec said", "sec?"):
        room.post(text)
    assert waiting.alive
    room.post("@sec now")
    assert printed(waiting) == "@sec now"


@requirement("await:earlier")
def test_a_mention_comes_with_what_was_said_before_it(room: Room) -> None:
    """Since the agent last spoke, at most the last 30, oldest first; none of it twice as a message."""
    room.join("sec")
    room.post("before its last word")
    room.post("my last word", sender="sec")
    for number in range(3):
        room.post(f"talk {number}")
    room.post("@sec one")
    turn = take(room)
    assert [message["content"] for message in turn["earlier"]] == ["talk 0", "talk 1", "talk 2"]
    for number in range(40):
        room.post(f"more {number}")
    room.post("@sec two")
    earlier = [message["content"] for message in take(room)["earlier"]]
    assert earlier == [f"more {number}" for number in range(10, 40)]


@requirement("await:vanished", "delivery:woken")
def test_a_client_killed_while_it_waits_takes_nothing_with_it(room: Room) -> None:
    """The wait is gone at once, so the sender doesn't read `woken`; the next wait gets the message."""
    room.join("sec")
    waiting = room.wait("sec", "--timeout", "60")
    waiting.kill()
    room.until_idle("sec")
    assert states(room.post("@sec one")) == {"sec": "queued"}
    turn = take(room)
    assert (turn["message"]["content"], turn["redelivered"]) == ("@sec one", False)


@requirement("await:vanished")
def test_a_socket_that_closes_takes_nothing_with_it(hub: Hub, room: Room) -> None:
    """A raw request that hangs up, without the client's confirmation to tell it apart; again and again.

    One in twenty came at the very moment in which NATS answered the gateway, and its wait stayed open.
    """
    room.join("sec")
    there = urlsplit(hub.url)
    body = json.dumps({"handle": "sec", "timeout_s": 60}).encode()
    head = (
        f"POST {room.at('await')} HTTP/1.1\r\nHost: {there.netloc}\r\nMycelium-Handle: sec\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    for _ in range(20):
        with socket.create_connection((str(there.hostname), there.port or 80)) as line:
            line.sendall(head.encode() + body)
            room.until_waiting("sec")
        room.until_idle("sec")
    assert states(room.post("@sec one")) == {"sec": "queued"}
    assert take(room)["message"]["content"] == "@sec one"


@requirement("await:vanished")
def test_an_answer_that_nobody_confirmed_comes_again(room: Room) -> None:
    """What a client asked to confirm and didn't is not received, also not by its own next call."""
    room.join("sec")
    message = room.post("@sec one")
    offered = room.take("sec", session="s1", confirm=True)
    assert offered is not None
    assert room.state(message, "sec") == "offered"
    again = room.take("sec", session="s1", confirm=True)
    assert again is not None
    assert again["message"]["id"] == message["id"]
    body = {"handle": "sec", "ack": again["ack"], "outcome": "received"}
    room.api.post(room.at("ack"), body, handle="sec", session="s1").ok(204)
    assert room.state(message, "sec") in GIVEN_OUT


@requirement("await:killed-after", "delivery:receipts")
def test_an_agent_killed_after_await_gets_the_mention_again_marked(room: Room) -> None:
    """A new session starts where the dead one was; nobody has to notice the death."""
    room.join("sec")
    message = room.post("@sec one")
    assert take(room, session="dead")["redelivered"] is False
    assert room.state(message, "sec") == "delivered"
    again = take(room, session="alive")
    assert (again["message"]["id"], again["redelivered"], again["attempt"]) == (message["id"], True, 2)
    text = room.machine.run("await", "--timeout", "5", handle="sec", session="third", room=room.name).ok().out
    assert "again: it was given out before" in text


@requirement("await:sessions")
def test_two_sessions_of_one_handle_do_not_acknowledge_for_each_other(room: Room) -> None:
    """Each call acknowledges what its own session holds."""
    room.join("sec")
    one = room.post("@sec one")
    take(room, session="s1")
    assert take(room, session="s2")["message"]["id"] == one["id"]
    receipt = room.receipts(one)["sec"]
    assert receipt["state"] in GIVEN_OUT
    assert (receipt["session"], receipt["deliveries"]) == ("s2", 2)
    two = room.post("@sec two")
    assert take(room, session="s2")["message"]["id"] == two["id"]
    assert (room.state(one, "sec"), room.state(two, "sec")) == ("acknowledged", "delivered")


@requirement("await:next-call", "delivery:receipts")
def test_the_next_call_of_a_session_acknowledges(machine: Machine, room: Room) -> None:
    """And only then; `receipts` follows every step."""
    room.join("sec", "b")
    message = room.post("@sec @b one")
    assert {handle: row["state"] for handle, row in room.receipts(message).items()} == {"sec": "queued", "b": "queued"}
    take(room)
    assert room.state(message, "sec") == "delivered"
    nothing(room)
    receipt = room.receipts(message)["sec"]
    assert (receipt["state"], receipt["session"]) == ("acknowledged", "s1")
    assert receipt["delivered_at"] <= receipt["acknowledged_at"]
    assert room.state(message, "b") == "queued"
    shown = machine.run("receipts", message["id"][-8:], room=room.name).ok().out
    assert [line.split("  ")[0] for line in shown.splitlines()[1:]] == ["@b", "@sec"]
    assert "acknowledged" in shown


@requirement("await:next-call")
def test_an_acknowledgement_can_be_said(room: Room) -> None:
    """With the token of the delivery, in a call of its own or with the next wait; a foreign token is refused."""
    room.join("sec", "b")
    one, two, other = room.post("@sec one"), room.post("@sec two"), room.post("@b three")
    first = room.take("sec", session="s1")
    assert first is not None
    body = {"handle": "sec", "ack": first["ack"], "outcome": "acknowledged"}
    room.api.post(room.at("ack"), body, handle="sec", session="s1").ok(204)
    assert room.state(one, "sec") == "acknowledged"
    second = room.take("sec", session="s1")
    assert second is not None
    assert room.take("sec", session="other", ack=second["ack"]) is None
    assert room.state(two, "sec") == "acknowledged"
    foreign = room.take("b")
    assert foreign is not None
    body = {"handle": "sec", "ack": foreign["ack"], "outcome": "acknowledged"}
    room.api.post(room.at("ack"), body, handle="sec", session="s1").refused(404, "delivery.not_found")
    room.api.post(room.at("ack"), {**body, "ack": "nonsense"}, handle="sec").refused(422, "request.invalid")
    assert room.state(other, "b") == "delivered"


@requirement("await:key")
def test_the_same_wait_under_the_same_key_gets_the_first_answer(room: Room, unique: Unique) -> None:
    """The retry of a wait whose answer was lost does not acknowledge it, nor get the next message."""
    room.join("sec")
    message = room.post("@sec one")
    room.post("@sec two")
    key = unique("key")
    first = room.try_take("sec", key=key).ok(200).json
    again = room.try_take("sec", key=key).ok(200).json
    assert first["message"]["id"] == again["message"]["id"] == message["id"]
    assert room.state(message, "sec") == "delivered"


@requirement("await:task")
def test_a_wait_for_one_thread_leaves_the_rest(room: Room) -> None:
    """The other mention is there for a later wait."""
    room.join("sec")
    root = room.post("a task")
    room.post("@sec in the channel")
    thread = room.post("@sec in the thread", thread=root["id"])
    assert thread["thread"] == root["id"]
    turn = take(room, "--task", root["id"][-8:])
    assert turn["message"]["content"] == "@sec in the thread"
    assert take(room)["message"]["content"] == "@sec in the channel"


@requirement("await:seat")
def test_a_seat_has_a_queue_of_its_own(room: Room) -> None:
    """What is said to the seat stays until somebody waits as it; what is said to the handle is not the seat's."""
    room.join("sec")
    message = room.post("@sec#night the alarm")
    assert states(message) == {"sec#night": "queued"}
    plain = room.post("@sec good morning")
    nothing_for_day = room.machine.run("await", "--seat", "day", "--timeout", "0", handle="sec", room=room.name)
    assert nothing_for_day.status == 6
    turn = take(room, "--seat", "night", session="n1")
    assert turn["message"]["id"] == message["id"]
    assert take(room, session="d1")["message"]["id"] == plain["id"]
    assert (room.state(message, "sec#night"), room.state(plain, "sec")) == ("delivered", "delivered")
    waiting = room.wait("sec", "--seat", "night", "--json", "--timeout", "20", session="n1")
    assert states(room.post("@sec#night again")) == {"sec#night": "woken"}
    assert printed(waiting) == "@sec#night again"


@requirement("await:removed")
def test_a_member_that_is_removed_while_it_waits_is_told(machine: Machine, room: Room) -> None:
    """It does not wait for what can't come."""
    room.join("sec")
    waiting = room.wait("sec", "--timeout", "60")
    machine.run("agent", "rm", "sec", room=room.name).ok()
    ended = waiting.ended(5)
    assert (ended.status, "mycelium agent create sec" in ended.err) == (4, True)


@requirement("await:unregistered")
def test_an_unregistered_handle_is_told_how_to_register(machine: Machine, room: Room) -> None:
    """The documented words, at once, with the status of a thing not allowed; a loop ends too."""
    for words in (("await", "--timeout", "30"), ("await", "--loop"), ("respond", "hello")):
        refused = machine.run(*words, handle="ci-runner", room=room.name)
        assert refused.status == 4
        assert "403" in refused.err
        assert "is not a registered agent or user" in refused.err
        assert "mycelium agent create ci-runner" in refused.err or "mycelium user create ci-runner" in refused.err
    assert room.contents() == []


@requirement("respond:thread")
def test_a_reply_goes_to_the_message_that_was_given(machine: Machine, room: Room) -> None:
    """In its thread; flags win; without a message it is a plain post."""
    room.join("sec")
    machine.run("respond", "nothing was asked", handle="sec", session="s1", room=room.name).ok()
    root = room.post("a task")
    question = room.post("@sec keychain?", thread=root["id"])
    later = room.post("@sec and this?")
    take(room, session="s1")
    machine.run("respond", "keychain", handle="sec", session="s1", room=room.name).ok()
    machine.run("respond", "this", "--reply-to", later["id"], handle="sec", session="s1", room=room.name).ok()
    newest = room.api.get(room.at("messages", thread=root["id"])).ok(200).json["items"][0]
    assert (newest["content"], newest["thread"], newest["reply_to"]) == ("keychain", root["id"], question["id"])
    channel = {message["content"]: message for message in room.page()["items"]}
    assert (channel["nothing was asked"]["thread"], channel["nothing was asked"]["reply_to"]) == (None, None)
    assert channel["this"]["reply_to"] == later["id"]


@requirement("delivery:woken")
def test_a_mention_of_a_waiting_agent_reads_woken(machine: Machine, room: Room) -> None:
    """And the agent has it."""
    room.join("sec")
    waiting = room.wait("sec", "--json", "--timeout", "20")
    sent = machine.run("room", "send", "@sec hello", handle="avery", room=room.name).ok()
    assert "@sec woken" in sent.out
    turn = waiting.ended().json
    assert turn["message"]["mentions"] == [
        {"handle": "sec", "state": "woken", "last_seen": turn["message"]["mentions"][0]["last_seen"]}
    ]


@requirement("delivery:woken")
def test_a_wait_that_has_ended_wakes_nobody(room: Room) -> None:
    """As soon as its client has read that nothing came: `woken` claims no more than was so."""
    room.join("sec")
    told: list[str] = []
    had: dict[str, Any] = {}
    for _ in range(40):
        assert room.try_take("sec", timeout_s=0, **had).status == 204
        told.append(states(room.post("@sec hello"))["sec"])
        turn = room.take("sec", session="s1")
        assert turn is not None
        had = {"ack": turn["ack"]}  # without it, the next call at another gateway may come too soon
    assert set(told) == {"queued"}, told


@requirement("delivery:queued")
def test_a_mention_of_a_stopped_agent_reads_queued_and_comes_when_it_starts(machine: Machine, room: Room) -> None:
    """The sender reads since when it has not been seen."""
    room.join("sec")
    sent = machine.run("room", "send", "@sec one", handle="avery", room=room.name).ok()
    assert "@sec queued (never seen here yet)" in sent.out
    assert room.member("sec")["unread"] == 1
    assert take(room)["message"]["content"] == "@sec one"
    until(lambda: room.member("sec")["last_seen"], "it was seen")
    sent = machine.run("room", "send", "@sec two", handle="avery", room=room.name).ok()
    assert "@sec queued (last seen" in sent.out


@requirement("delivery:left")
def test_a_mention_of_a_removed_member_reads_left(machine: Machine, room: Room) -> None:
    """The message is stored; nothing waits for it when it comes back."""
    room.join("sec")
    machine.run("agent", "rm", "sec", room=room.name).ok()
    sent = machine.run("room", "send", "@sec hello", handle="avery", room=room.name).ok()
    assert "@sec left" in sent.out
    assert room.contents() == ["@sec hello"]
    machine.run("agent", "create", "sec", room=room.name).ok()
    nothing(room)
