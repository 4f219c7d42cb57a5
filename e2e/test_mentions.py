"""Who is mentioned by a text, and what the sender reads about it."""

from collections.abc import Callable

import pytest

from e2e.harness import Machine
from e2e.requirements import requirement
from e2e.room import Room, states

Unique = Callable[[str], str]

# Texts and whom they mention, of the agents a and b.
FOUND = {
    "@a": "a",
    "hello @a": "a",
    "(@a)": "a",
    "@a.": "a",
    "@a, please": "a",
    "@a: please": "a",
    "is it @a?": "a",
    "@a,@b": "a b",
    "@a/@b": "a b",
    "@a and @b!": "a b",
    "@a @a and again @a": "a",
    "@A": "a",
    "**@a** _@b_": "a b",
    "- @a\n- @b": "a b",
    "# @a": "a",
    "“@a”": "a",
    "'@a'": "a",
    "你好，@a。": "a",
    "（@a）、@b": "a b",
    "line one\n@a": "a",
    "| who |\n|---|\n| @a |": "a",
    "`code` then @a": "a",
    "> quoted\n\n@a": "a",
    "@a's turn": "a",
}
NOT_FOUND = [
    "jane@a",
    "jane@acme.com",
    "deploy@a",
    "`@a`",
    "``x @a y``",
    "```\n@a\n```",
    "~~~sh\nssh @a\n~~~",
    "    @a as code",
    "> @a said so",
    "> quoted\n> > @a deeper",
    "https://example.org/@a",
    "see http://example.org/x?y=@a now",
    "<https://example.org/@a>",
    "[text](https://example.org/@a)",
    "\\@a",
    "@ a",
    "a @",
    "@@",
]


@pytest.fixture
def two(room: Room) -> Room:
    """A room with the agents a and b."""
    room.join("a", "b")
    return room


@requirement("mentions:text:found")
@pytest.mark.parametrize("text", list(FOUND))
def test_mentions_are_found_among_punctuation(two: Room, text: str) -> None:
    """Each once, and each is delivered."""
    message = two.post(text)
    assert states(message) == dict.fromkeys(FOUND[text].split(), "queued")
    for handle in FOUND[text].split():
        turn = two.take(handle)
        assert turn is not None
        assert turn["message"]["content"] == text


@requirement("mentions:text:not-found")
@pytest.mark.parametrize("text", NOT_FOUND)
def test_what_only_looks_like_a_mention_mentions_nobody(two: Room, text: str) -> None:
    """Addresses, code, quotes, URLs, an escaped sign."""
    assert two.post(text)["mentions"] == []
    assert two.member("a")["unread"] == 0


@requirement("mentions:silent")
def test_a_silent_mention_wakes_nobody(two: Room) -> None:
    """It is shown as what it is; named loudly too, it wakes."""
    assert states(two.post("as @~a said")) == {"a": "silent"}
    assert two.take("a") is None
    assert states(two.post("as @~a said, @a")) == {"a": "queued"}


@requirement("mentions:self")
def test_who_mentions_itself_gets_nothing(two: Room) -> None:
    """An agent can't wake itself for ever."""
    assert states(two.post("note to @a, and to @b", sender="a")) == {"a": "self", "b": "queued"}
    assert two.take("a") is None


@requirement("mentions:unknown:refused")
def test_an_unknown_handle_is_refused_with_the_near_ones(machine: Machine, room: Room) -> None:
    """Nothing is stored; the command line asks whether the near one was meant."""
    room.join("engineer", "sec")
    problem = room.try_post("@enginer please, @sec too").refused(422, "mention.unknown")
    assert problem["near"] == ["engineer"]
    assert "enginer" in problem["detail"]
    typed = machine.run("room", "send", "@enginer please", handle="avery", room=room.name)
    assert typed.status == 2
    assert "engineer" in typed.err.replace("enginer", "", 1)
    assert room.contents() == []
    assert room.take("sec") is None


@requirement("mentions:unknown:allowed")
def test_an_unknown_handle_can_be_posted_on_purpose(machine: Machine, room: Room) -> None:
    """The answer says that nobody got it."""
    room.join("sec")
    sent = machine.run(
        "room", "send", "@dependabot did it, @sec", "--allow-unknown", handle="avery", room=room.name
    ).ok()
    assert "@dependabot unknown" in sent.out
    assert states(room.page()["items"][0]) == {"dependabot": "unknown", "sec": "queued"}


@requirement("mentions:team")
def test_a_teams_name_mentions_its_members(room: Room) -> None:
    """Each of them, but not who asks."""
    room.join("one", "two", team="reviewers")
    room.join("three", team="others")
    assert states(room.post("@reviewers please look", sender="two")) == {"one": "queued", "two": "self"}
    assert room.take("one") is not None
    assert room.take("three") is None


@requirement("mentions:user")
def test_a_person_can_be_mentioned_and_waits_like_an_agent(machine: Machine, room: Room, unique: Unique) -> None:
    """A user of the hub takes part without being registered in the room."""
    handle = unique("ci-runner")
    machine.run("user", "create", handle, "--name", "Build runner").ok()
    assert states(room.post(f"@{handle} hold the deploy")) == {handle: "queued"}
    turn = machine.run("await", "--timeout", "5", "--json", handle=handle, room=room.name).json
    assert turn["message"]["content"] == f"@{handle} hold the deploy"
    machine.run("respond", "I can hold it until the bench lands.", handle=handle, room=room.name).ok()
    assert room.page()["items"][0]["reply_to"] == turn["message"]["id"]


@requirement("mentions:amended")
def test_an_amended_text_goes_to_the_newly_named_only(two: Room) -> None:
    """Who had it is not woken again."""
    message = two.post("@a please")
    first = two.take("a")
    assert first is not None
    two.api.patch(two.at("messages", message["id"]), {"content": "@a and @b please"}, handle="avery").ok(200)
    assert two.take("a") is None
    turn = two.take("b")
    assert turn is not None
    assert turn["message"]["content"] == "@a and @b please"
