"""The grammar of names, and of the subjects made of them."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mycelium.rooms.v1 import service_pb2, views_pb2
from mycelium_kernel import names, subjects
from mycelium_kernel.errors import Refusal

TEXTS = st.text(max_size=120)


def accepted(function: object, text: str) -> str | None:
    try:
        return function(text)  # type: ignore[operator,no-any-return]
    except Refusal:
        return None


@pytest.mark.parametrize(
    ("text", "handle"), [("a", "a"), ("@Jane", "jane"), (" j.d-x_1 ", "j.d-x_1"), ("0" * 64, "0" * 64), ("a_", "a_")]
)
def test_a_handle_is_folded(text: str, handle: str) -> None:
    """Case, a leading `@` and space around it do not matter."""
    assert names.handle(text) == handle


@pytest.mark.parametrize(
    "text", ["", "@", "@@a", "a.", "-a", "_a", ".a", "a b", "é", "\u212a", "a\n.", "0" * 65, "a/b", "a#b"]
)
def test_what_is_no_handle_is_refused(text: str) -> None:
    """Also a letter that only looks like an ASCII one once it is folded."""
    with pytest.raises(Refusal) as refused:
        names.handle(text)
    assert refused.value.slug == "handle.invalid"


@given(TEXTS)
def test_a_handle_stays_what_it_is(text: str) -> None:
    """Whatever is accepted is accepted again unchanged, and is plain ASCII."""
    handle = accepted(names.handle, text)
    if handle is not None:
        assert names.handle(handle) == handle
        assert handle.isascii()
        assert handle == handle.lower()


def test_the_hubs_own_names_are_not_given_out() -> None:
    """They may be named, not taken."""
    assert names.handle("system") == "system"
    assert names.new_handle("jane") == "jane"
    with pytest.raises(Refusal):
        names.new_handle("@Hub")


def test_a_seat_is_letters_and_digits() -> None:
    """A queue is a handle, or a handle's seat."""
    assert names.queue("jane", names.seat("#2A")) == "jane#2a"
    assert names.queue("jane", names.seat("")) == "jane"
    for text in ("a-b", "é", "x" * 33):
        with pytest.raises(Refusal):
            names.seat(text)


@pytest.mark.parametrize("text", ["demo", "Ünïcode room", "a.b", "日本", "x" * 100, "é" * 100, "..."])
def test_a_rooms_name_may_be_almost_anything(text: str) -> None:
    """Spaces, accents and other scripts are allowed."""
    assert names.room_name(f"  {text} ") == unicodedata.normalize("NFC", text)


@pytest.mark.parametrize(
    "text",
    [
        "", "   ", ".", "..", "a/b", "a\\b", "a\x00b", "a\nb", "a\u2028b", "a:session:b", "a:SESSION:b",
        "x" * 101, "日" * 86,
        "00000000-0000-7000-8000-00000000000A",
    ],
)  # fmt: skip
def test_what_cant_be_a_rooms_name_is_refused_with_the_reason(text: str) -> None:
    """A name that is no folder, hides something, or looks like an id is refused, and the sentence stays short."""
    with pytest.raises(Refusal) as refused:
        names.room_name(text)
    assert refused.value.slug == "name.invalid"
    assert len(refused.value.detail) < 250


@given(TEXTS)
def test_a_rooms_name_stays_what_it_is(text: str) -> None:
    """Whatever is accepted is accepted again unchanged."""
    name = accepted(names.room_name, text)
    if name is not None:
        assert names.room_name(name) == name


@given(TEXTS)
def test_names_that_look_the_same_are_the_same(text: str) -> None:
    """However a text is composed and whatever its case, it folds to the same."""
    folded = names.fold_room_name(text)
    assert names.fold_room_name(unicodedata.normalize("NFD", text)) == folded
    assert names.fold_room_name(folded) == folded


def test_ids_have_a_short_form() -> None:
    """The last eight digits are what is printed."""
    identifier = "01890a5d-ac96-774b-bcce-b302099a8057"
    assert names.is_id(identifier)
    assert not names.is_id(identifier.upper())
    assert names.short_id(identifier) == "099a8057"
    assert names.is_short_id("099a8057")
    assert not names.is_short_id("099a805")


@given(TEXTS.filter(bool), TEXTS.filter(bool))
def test_two_texts_never_share_a_token(one: str, other: str) -> None:
    """A token is one to one, and fit for a subject."""
    assert (subjects.token(one) == subjects.token(other)) == (one == other)
    assert set(subjects.token(one)) <= set("abcdefghijklmnopqrstuvwxyz0123456789-_")


@given(st.text(alphabet="_a1é", min_size=1, max_size=8), st.text(alphabet="_a1é", min_size=1, max_size=8))
def test_texts_made_of_what_escapes_are_made_of_share_no_token(one: str, other: str) -> None:
    """The same where it is hardest."""
    assert (subjects.token(one) == subjects.token(other)) == (one == other)


def test_an_empty_text_is_no_token() -> None:
    """A subject never ends in a dot."""
    with pytest.raises(ValueError, match="empty"):
        subjects.token("")


def test_subjects_say_what_they_are_of() -> None:
    """Room and service can be read back from a subject."""
    assert subjects.fact("board", "r1", "task", "A") == "evt.board.r1.task._41_"
    assert subjects.room_of(subjects.posts("r1")) == "r1"
    assert subjects.room_of(subjects.room_name("demo")) == subjects.NAMES
    assert subjects.room_of_timer(subjects.timer_due("board", "r1", "t")) == "r1"
    assert subjects.timer_set("board", "r1", "t") == "timer.set.board.r1.t"
    assert subjects.of_room("r1") == "evt.*.r1.>"
    assert subjects.request(service_pb2.SaveUserRequest, "gateway") == "svc.rooms.save_user.gateway"
    assert subjects.inbox("rooms") == "_INBOX_rooms"
    with pytest.raises(LookupError):
        subjects.method_of(views_pb2.User.DESCRIPTOR)


@pytest.mark.parametrize(
    "text", ["de\u200bmo", "\u3164", "demo\u00ad", "a\u202eb", "demo\U000e0041", "\u200ddemo", "demo\u2060"]
)
def test_a_room_name_hides_nothing(text: str) -> None:
    """A character that nobody sees would make two rooms look like one."""
    with pytest.raises(Refusal, match="nobody sees"):
        names.room_name(text)


def test_names_that_differ_by_joiners_are_the_same() -> None:
    """Joiners are part of scripts and emoji, so they are allowed inside a name, and tell no two names apart."""
    family = "\U0001f468\u200d\U0001f469\u200d\U0001f467 trip"

    assert names.room_name(family) == family
    assert names.fold_room_name("de\u200dmo") == names.fold_room_name("Demo")
