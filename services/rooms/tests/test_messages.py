"""Messages: posted, refused, amended, placed in threads; what the answer says of each mention."""

from __future__ import annotations

from typing import Any

import pytest

from mycelium.rooms.v1 import events_pb2, views_pb2
from mycelium.rooms.v1 import service_pb2 as pb
from mycelium_kernel import clock, names, subjects
from mycelium_kernel.errors import Refusal
from mycelium_kernel.service import Done, Fact
from mycelium_rooms.commands_text import check_content
from services.rooms.tests.hub import ENGINE, USER, Hub, states

THREAD = "0190aaaa-0000-7000-8000-00000000beef"


def refused_post(hub: Hub, slug: str, content: str, handle: str = "avery", **fields: Any) -> Refusal:
    return hub.refused(slug, pb.PostMessageRequest(room="demo", content=content, **fields), handle)


def test_a_post_is_one_free_fact_on_the_subject_of_all_posts(demo: Hub) -> None:
    """It carries the mentions and the deliveries that follow from them."""
    fact = demo.decide(pb.PostMessageRequest(room="demo", content=" hello @engineer\n"), "avery", "s1")
    assert isinstance(fact, Fact)
    event = fact.event
    assert isinstance(event, events_pb2.MessagePosted)
    assert fact.on is None
    assert fact.subject == subjects.posts(event.room_id)
    assert (event.content, event.sender_handle, event.sender_name) == (" hello @engineer\n", "avery", "Avery Quinn")
    assert (event.session, event.room, event.message_type) == ("s1", "demo", "message")
    assert list(event.deliver_to) == ["engineer"]


def test_the_answer_is_the_message_as_readers_see_it(demo: Hub) -> None:
    """The answer and the history agree."""
    message = demo.post("hello @engineer", metadata_json='{"a": 1}', thread=THREAD)
    assert message == demo.ask(pb.GetMessageRequest(room="demo", message=message.id)).message
    assert message.sequence == len(demo.facts)


def test_a_caller_without_a_session_is_one_session_by_its_handle(demo: Hub) -> None:
    """So that a plain HTTP client can be acknowledged too."""
    fact = demo.decide(pb.PostMessageRequest(room="demo", content="x"), "@Avery")
    assert isinstance(fact, Fact)
    assert fact.event.session == "avery"  # type: ignore[attr-defined]


def test_any_handle_may_post_but_somebody_must_speak(demo: Hub) -> None:
    """R14: unregistered handles may send."""
    assert demo.post("hello", "build-bot").sender_name == ""
    refused_post(demo, "handle.missing", "hello", handle="")
    refused_post(demo, "handle.invalid", "hello", handle="no handle")


@pytest.mark.parametrize("content", ["x", "🎉", "e\u0301", "x" * 65_536, "\u202e@\n\t.", "é" * 131_072, "x" * 262_144])
def test_texts_of_every_size_arrive_whole(demo: Hub, content: str) -> None:
    """From one byte to the limit; nothing is stripped."""
    message = demo.post(content)
    assert demo.ask(pb.GetMessageRequest(room="demo", message=message.id)).message.content == content


@pytest.mark.parametrize(
    ("content", "slug", "says"),
    [
        ("", "content.empty", "no text"),
        (" \n\t\u2003", "content.empty", "no text"),
        ("ab\0c", "content.invalid", "character 2"),
        ("x" * 300_000, "content.too_large", "300,000 bytes"),
        ("é" * 131_073, "content.too_large", "262,146 bytes"),
    ],
)
def test_a_text_that_can_not_be_taken_is_refused_with_the_reason(demo: Hub, content: str, slug: str, says: str) -> None:
    """What, where, and the limit."""
    assert says in refused_post(demo, slug, content).detail
    assert demo.ask(pb.ListMessagesRequest(room="demo")).messages == []


def test_half_a_surrogate_pair_is_refused() -> None:
    """Python lets a text hold one; UTF-8 does not."""
    with pytest.raises(Refusal, match=r"content\.invalid.*character 1"):
        check_content("a\ud800")


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"message_type": "note"}, "message_type"),
        ({"metadata_json": "{"}, "not JSON"),
        ({"metadata_json": "[1]"}, "object"),
        ({"metadata_json": '{"a": NaN}'}, "not JSON"),
        ({"metadata_json": "[" * 60_000}, "not JSON"),
        ({"metadata_json": '{"a": "' + "x" * 65_536 + '"}'}, "65,5"),
        ({"message_type": "event"}, "metadata.kind"),
        ({"message_type": "event", "metadata_json": '{"kind": 1}'}, "metadata.kind"),
        ({"message_type": "event", "metadata_json": '{"kind": "No"}'}, "metadata.kind"),
    ],
)
def test_metadata_is_a_json_object_and_an_event_says_its_kind(demo: Hub, fields: dict[str, str], says: str) -> None:
    """R5: kinds of one's own are allowed."""
    assert says in refused_post(demo, "request.invalid", "x", **fields).detail


@pytest.mark.parametrize("kind", ["source_event", "action", "concern", "ci_result"])
def test_an_event_is_stored_with_its_metadata(demo: Hub, kind: str) -> None:
    """As it was given."""
    message = demo.post("New PR", message_type="event", metadata_json=f'{{ "kind": "{kind}" }}')
    assert (message.message_type, message.metadata_json) == ("event", f'{{ "kind": "{kind}" }}')


# --- mentions ---------------------------------------------------------------------------------------------------------


def test_the_answer_says_what_became_of_every_mention(demo: Hub) -> None:
    """R9: woken, queued, left, self, silent; and when each was last seen."""
    demo.agent("gone", "quiet")
    demo.leave("gone")
    demo.later(seconds=3)
    demo.post("here", "reviewer")
    room_id = demo.ask(pb.GetRoomRequest(room="demo")).room.id
    demo.waiting(room_id, "engineer")
    message = demo.post("@engineer @reviewer @gone @avery @~quiet @engineer#2")
    assert states(message.mentions) == {
        "engineer": "woken", "reviewer": "queued", "gone": "left", "avery": "self", "quiet": "silent",
        "engineer#2": "queued",
    }  # fmt: skip
    seen = {mention.handle: mention.last_seen for mention in message.mentions if mention.HasField("last_seen")}
    assert seen == {"reviewer": clock.to_timestamp(demo.now)}
    assert demo.receipts(message.id) == states(message.mentions) | {"engineer": "queued"}


def test_the_same_recipient_three_times_is_one_delivery(demo: Hub) -> None:
    """And a waking form beats a silent one."""
    message = demo.post("@~engineer @engineer @engineer")
    assert states(message.mentions) == {"engineer": "queued"}
    assert len(demo.receipts(message.id)) == 1


def test_an_unknown_handle_is_refused_with_the_nearest_right_one(demo: Hub) -> None:
    """Nothing is stored; the sender learns it at once."""
    refusal = refused_post(demo, "mention.unknown", "@enginer please, @nobody-here too")
    assert refusal.detail == "@enginer is not a member of 'demo'; did you mean @engineer?"
    assert refusal.extras == {"near": ["engineer"], "unknown": ["enginer", "nobody-here"]}
    assert refusal.next == "mycelium agent ls --room demo"
    assert demo.ask(pb.ListMessagesRequest(room="demo")).messages == []
    refusal = refused_post(demo, "mention.unknown", "@~xyzzy")
    assert refusal.next == "mycelium agent create xyzzy --room demo"
    assert refusal.extras["near"] == []


def test_an_unknown_handle_is_posted_when_the_sender_allows_it(demo: Hub) -> None:
    """And said to be unknown."""
    message = demo.post("@enginer and @engineer", allow_unknown=True)
    assert states(message.mentions) == {"enginer": "unknown", "engineer": "queued"}
    assert demo.receipts(message.id) == {"enginer": "unknown", "engineer": "queued"}


def test_an_unregistered_sender_may_name_itself(demo: Hub) -> None:
    """It knows itself, if nobody else does; another seat of it is another."""
    assert states(demo.post("I am @build-bot", "build-bot").mentions) == {"build-bot": "self"}
    assert states(demo.post("@engineer#2 look", "engineer").mentions) == {"engineer#2": "queued"}


def test_every_user_of_the_hub_is_a_member_of_an_open_room(demo: Hub) -> None:
    """Not of a private one, where only those who were added are."""
    demo.user("kim")
    assert states(demo.post("@kim", "engineer").mentions) == {"kim": "queued"}
    demo.ask(pb.ChangeRoomRequest(room="demo", private=True), "avery")
    assert refused_post(demo, "mention.unknown", "@kin").extras["near"] == []
    refused_post(demo, "mention.unknown", "@kim")
    demo.agent("kim", kind=USER)
    assert states(demo.post("@kim", "engineer").mentions) == {"kim": "queued"}
    demo.leave("kim")
    assert states(demo.post("@kim", "engineer").mentions) == {"kim": "left"}


def test_a_user_who_was_removed_has_left_also_an_open_room(demo: Hub) -> None:
    """And the handle of an agent that left is its new user's."""
    demo.agent("avery", kind=USER)
    demo.leave("avery")
    demo.leave("reviewer")
    demo.user("reviewer")
    assert states(demo.post("@avery @reviewer", "engineer").mentions) == {"avery": "left", "reviewer": "queued"}


def test_a_team_is_all_who_belong_to_it(demo: Hub) -> None:
    """Members of the room and users of the hub; a handle beats a team of the same name."""
    demo.agent("bot", "gone", team="Core")
    demo.leave("gone")
    demo.user("avery", team="CORE")
    demo.user("kim", team="core")
    demo.agent("aligner", kind=ENGINE, team="engineer")
    message = demo.post("@core @~kim @engineer")
    assert states(message.mentions) == {"avery": "self", "bot": "queued", "kim": "queued", "engineer": "queued"}
    assert states(demo.post("@~core#2").mentions) == {"avery#2": "silent", "bot#2": "silent", "kim#2": "silent"}
    demo.ask(pb.ChangeRoomRequest(room="demo", private=True), "avery")
    assert states(demo.post("@core").mentions) == {"avery": "self", "bot": "queued"}
    demo.agent("kim", kind=USER)
    assert states(demo.post("@core").mentions) == {"avery": "self", "bot": "queued", "kim": "queued"}
    assert refused_post(demo, "mention.unknown", "@cores").extras["near"] == ["core"]


def test_a_team_of_more_than_a_thousand_is_refused(demo: Hub) -> None:
    """A post's fact has a size."""
    for number in range(1_001):
        demo.tables.execute("INSERT INTO user VALUES (?1, '', 'crowd', 0, 0, ?1, '')", f"u{number}")
    refused_post(demo, "content.invalid", "@crowd")


# --- places -----------------------------------------------------------------------------------------------------------


def test_a_thread_is_a_full_id_or_the_short_one_of_what_is_known(demo: Hub) -> None:
    """A message may become the root of a thread."""
    root = demo.post("root")
    assert demo.post("x", thread=THREAD.upper()).thread == THREAD
    assert demo.post("x", thread="0000BEEF").thread == THREAD
    assert demo.post("x", thread=names.short_id(root.id)).thread == root.id
    assert demo.post("x", thread=names.short_id(root.id)).thread == root.id
    for unknown in ("12345678", "beef", "work/x"):
        refused_post(demo, "thread.not_found", "x", thread=unknown)


def test_a_reply_names_a_known_message_by_either_id(demo: Hub) -> None:
    """A reply alone does not change the place."""
    root = demo.post("root", thread=THREAD)
    for form in (root.id, names.short_id(root.id)):
        reply = demo.post("reply", reply_to=form)
        assert (reply.reply_to, reply.thread) == (root.id, "")
    for unknown in (THREAD, "12345678", "x" * 100):
        refusal = refused_post(demo, "message.not_found", "x", reply_to=unknown)
        assert refusal.next == "mycelium room messages demo"


def test_a_short_id_that_fits_several_is_refused_with_the_candidates(demo: Hub) -> None:
    """In the room: another room's ids do not count."""
    first = demo.post("a")
    demo.room("other")
    demo.post("elsewhere", room="other")
    second = first.id.replace("0190", "0191", 1)
    demo.tables.execute("UPDATE message SET message_id = ? WHERE content = 'elsewhere'", second)
    assert demo.post("x", reply_to=names.short_id(first.id)).reply_to == first.id
    demo.tables.execute(
        "UPDATE message SET room_id = (SELECT room_id FROM room WHERE name = 'demo') WHERE content = 'elsewhere'"
    )
    refusal = refused_post(demo, "id.ambiguous", "x", reply_to=names.short_id(first.id))
    assert refusal.extras["candidates"] == [first.id, second]
    assert refused_post(demo, "id.ambiguous", "x", thread=names.short_id(first.id)).extras == refusal.extras


# --- respond ----------------------------------------------------------------------------------------------------------


def respond(hub: Hub, handle: str = "engineer", session: str = "", **fields: Any) -> tuple[str, str]:
    message = hub.post("done", handle, session, respond=True, **fields)
    return message.thread, message.reply_to


def test_a_response_goes_to_the_last_delivered_message_that_is_unanswered(demo: Hub) -> None:
    """Each is answered once; then the one before; then the channel."""
    first = demo.post("@engineer one", thread=THREAD)
    second = demo.post("@engineer two")
    assert [demo.receive("engineer"), demo.receive("engineer")] == [first.id, second.id]
    assert respond(demo) == ("", second.id)
    assert respond(demo) == (THREAD, first.id)
    assert respond(demo) == ("", "")


def test_a_response_in_a_thread_answers_what_was_delivered_there(demo: Hub) -> None:
    """What the request names overrides."""
    first = demo.post("@engineer one", thread=THREAD)
    second = demo.post("@engineer two")
    demo.receive("engineer")
    demo.receive("engineer")
    assert respond(demo, thread=THREAD) == (THREAD, first.id)
    assert respond(demo, thread=second.id) == (second.id, "")
    assert respond(demo, reply_to=first.id) == (THREAD, first.id)
    assert respond(demo, reply_to=first.id, thread=second.id) == (second.id, first.id)
    assert respond(demo) == ("", second.id)


def test_a_response_is_by_the_session_that_got_the_message(demo: Hub) -> None:
    """Another session of the handle has its own last message; other handles of the session too."""
    first = demo.post("@engineer one", thread=THREAD)
    demo.receive("engineer", "a")
    assert respond(demo, session="b") == ("", "")
    assert respond(demo, handle="reviewer", session="a") == ("", "")
    assert respond(demo, session="a") == (THREAD, first.id)


def test_a_response_to_what_is_on_its_way_finds_it(demo: Hub) -> None:
    """A quick client may answer before the gateway has recorded that it has the message."""
    first = demo.post("@engineer one", thread=THREAD)
    demo.take("engineer")
    assert respond(demo) == (THREAD, first.id)


def test_only_a_registered_handle_responds(demo: Hub) -> None:
    """The refusal names the command that registers it."""
    refusal = refused_post(demo, "handle.unregistered", "x", handle="build-bot", respond=True)
    assert refusal.detail == "@build-bot is not a registered agent or user"
    assert refusal.next == "mycelium agent create build-bot --room demo"
    assert respond(demo, handle="avery") == ("", "")
    demo.leave("engineer")
    refused_post(demo, "handle.unregistered", "x", handle="engineer", respond=True)


# --- amend ------------------------------------------------------------------------------------------------------------


def amend(hub: Hub, message: str, content: str, handle: str = "avery", **fields: Any) -> views_pb2.Message:
    request = pb.AmendMessageRequest(room="demo", message=message, content=content, **fields)
    assert hub.ask(request, handle).message_id
    shown: views_pb2.Message = hub.ask(pb.GetMessageRequest(room="demo", message=message)).message
    return shown


def test_an_amended_message_shows_the_new_text_and_that_it_was_edited(demo: Hub) -> None:
    """R3: by full or short id."""
    before = demo.post("the TTL is 30s")
    assert not before.HasField("edited_at")
    demo.later(seconds=9)
    after = amend(demo, names.short_id(before.id), "the TTL is 300s")
    assert (after.content, after.edited_at) == ("the TTL is 300s", clock.to_timestamp(demo.now))
    assert (after.created_at, after.sequence) == (before.created_at, before.sequence)


def test_an_amended_text_delivers_to_the_newly_named_only(demo: Hub) -> None:
    """What was delivered before stays as it was; what is named no longer stays delivered."""
    demo.agent("third", "fourth")
    message = demo.post("@engineer @~reviewer @third", thread=THREAD)
    room_id = demo.ask(pb.GetRoomRequest(room="demo")).room.id
    demo.waiting(room_id, "engineer")
    demo.waiting(room_id, "fourth")
    demo.receive("engineer")
    amended = amend(demo, message.id, "@engineer @reviewer @fourth @avery")
    assert states(amended.mentions) == {
        "engineer": "queued", "reviewer": "queued", "fourth": "woken", "avery": "self",
    }  # fmt: skip
    assert demo.receipts(message.id) == {
        "avery": "self", "engineer": "delivered", "fourth": "queued", "reviewer": "queued", "third": "queued",
    }  # fmt: skip
    assert demo.take("reviewer", thread=THREAD).message_id == message.id


def test_amending_to_the_same_text_is_no_fact(demo: Hub) -> None:
    """It is not edited then."""
    message = demo.post("same")
    request = pb.AmendMessageRequest(room="demo", message=message.id, content="same")
    decided = demo.decide(request, "avery")
    assert isinstance(decided, Done)
    assert decided.answer == pb.AmendMessageResponse(message_id=message.id)


def test_an_amendment_is_refused_for_what_a_post_would_be(demo: Hub) -> None:
    """And for a message of another."""
    message = demo.post("mine").id

    def request(content: str, **fields: Any) -> pb.AmendMessageRequest:
        return pb.AmendMessageRequest(room="demo", **{"message": message, "content": content, **fields})

    refusal = demo.refused("message.not_yours", request("x"), "engineer")
    assert refusal.detail == f"message {message[-8:]} is by @avery; only @avery can amend it"
    demo.refused("handle.missing", request("x"))
    demo.refused("content.empty", request(" "), "avery")
    demo.refused("mention.unknown", request("@enginer"), "avery")
    demo.refused("message.not_found", request("x", message=THREAD), "avery")
    amended = amend(demo, message, "@enginer", allow_unknown=True)
    assert states(amended.mentions) == {"enginer": "unknown"}
