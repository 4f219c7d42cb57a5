"""Which names look like others, and what no name may hold."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from mycelium.rooms.v1 import views_pb2
from mycelium_kernel import lookalikes, names
from mycelium_kernel.errors import Refusal

HANDLES = st.from_regex(names.HANDLE, fullmatch=True)
LETTERS = st.sampled_from("oO0lLiI1rnmvwVW.-_ аеорсхАВЕНКМОРСТХιοΑΒａｌéÅ")
TEXTS = st.one_of(st.text(max_size=30), st.text(LETTERS, max_size=12))
LIKE = [
    ("avery-quinn", "averyquinn"),
    ("avery.quinn", "avery_quinn"),
    ("engineer", "eng1neer"),
    ("paul", "pau1"),
    ("paul", "paui"),
    ("root", "r00t"),
    ("modem", "modern"),
    ("wave", "vvave"),
    ("agent-1", "agent1"),
    ("Avery Quinn", "avery-quinn"),
    ("Avery Quinn", "averyquinn"),
    ("Ávery  Quinn", "avery.quinn"),
    ("Ａｖｅｒｙ", "avery"),
    ("АВЕ", "ABE"),
    ("сосо", "coco"),
    ("ΑΒΕ", "abe"),
    ("ꓮꓐꓰ", "abe"),
    ("Avery\u200bQuinn", "averyquinn"),
]
UNLIKE = [
    ("agent-1-1", "agent-11"),
    ("worker-1-11", "worker-11-1"),
    ("avery", "avery2"),
    ("कि", "की"),
    ("山田", "山本"),
]


@pytest.mark.parametrize(("one", "other"), LIKE)
def test_names_that_look_alike_have_one_skeleton(one: str, other: str) -> None:
    """identity: separators, case, accents, other alphabets and like letters don't tell names apart."""
    assert lookalikes.skeleton(one) == lookalikes.skeleton(other)


@pytest.mark.parametrize(("one", "other"), UNLIKE)
def test_names_that_differ_are_told_apart(one: str, other: str) -> None:
    """Numbers are told apart, and so are marks that are letters of their own."""
    assert lookalikes.skeleton(one) != lookalikes.skeleton(other)


@given(TEXTS)
def test_a_skeleton_is_its_own_skeleton(text: str) -> None:
    """Folding twice is folding once, for whatever somebody types."""
    skeleton = lookalikes.skeleton(text)
    assert lookalikes.skeleton(skeleton) == skeleton
    assert lookalikes.skeleton(text.swapcase().swapcase()) in {skeleton, lookalikes.skeleton(text.casefold())}


@given(HANDLES, st.sampled_from(sorted(names.HUB_HANDLES | names.ENGINE_HANDLES)))
def test_what_passes_for_a_reserved_name_has_its_skeleton(handle: str, reserved: str) -> None:
    """The stricter rule refuses nothing that the other would let pass."""
    if lookalikes.passes_for(handle, reserved):
        assert lookalikes.skeleton(handle) == lookalikes.skeleton(reserved)


@given(HANDLES)
def test_every_handle_has_a_skeleton(handle: str) -> None:
    """So that it is found; and one that is not reserved is given out as it is."""
    assert lookalikes.skeleton(handle)
    assume(not names.reserved(handle))
    assert names.new_handle(handle) == handle


@pytest.mark.parametrize(
    "handle", ["hub", "a11", "al1", "b0ard", "sys-tem", "systern", "e.v.e.r.yone", "aligner", "a1igner", "@Conductor"]
)
def test_names_of_the_hub_are_nobodys(handle: str) -> None:
    """Nor what passes for one; a word of its own that only begins alike is free."""
    with pytest.raises(Refusal, match=r"handle\.invalid"):
        names.new_handle(handle)


@pytest.mark.parametrize("handle", ["ali", "hubert", "worker-1", "system-tests", "neil", "me"])
def test_words_of_their_own_are_free(handle: str) -> None:
    """@ali is a name, although it is nearly @all."""
    assert names.new_handle(handle) == handle


def test_an_engine_is_called_like_an_engine() -> None:
    """And still not like the hub."""
    assert names.new_handle("Aligner", engine=True) == "aligner"
    with pytest.raises(Refusal, match="a name of the hub itself"):
        names.new_handle("board", engine=True)


HIDDEN = ["\u200b", "\u202e", "\u2066", "\u200f", "\ufeff", "\u00ad", "\u3164", "\u2060", "\x1b", "\ue000", "\u2028"]


@pytest.mark.parametrize("character", HIDDEN, ids=lambda character: f"U+{ord(character):04X}")
def test_a_persons_name_hides_nothing(character: str) -> None:
    """identity: no control characters, no marks that turn text round, nothing that nobody sees."""
    with pytest.raises(Refusal, match=r"request\.invalid"):
        names.person_name(f"Avery{character}Quinn")


@pytest.mark.parametrize("name", ["Аvery Quinn", "Avery Quіnn", "Αvery", "Avery (@kim)", "＠kim", "@kim"])
def test_a_persons_name_passes_for_no_other(name: str) -> None:
    """Letters of two alphabets in a word, and a handle within the name, are there to deceive."""
    with pytest.raises(Refusal, match=r"request\.invalid"):
        names.person_name(name)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "Avery Quinn",
        "Ève Ångström",
        "Ирина Smith",
        "山田 Taro",
        "O'Neill-Smith",
        "a@example.com",
        "علی\u200cرضا",
        "R2 D2",
    ],
)
def test_names_of_the_world_are_kept(name: str) -> None:
    """As they are written, in NFC."""
    assert names.person_name(f" {name} ") == name


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("Avery Quinn", "avery  QUINN", True),
        ("José", "Jose", True),
        ("Avery Quinn", "Avery Qu1nn", False),
        ("АВЕ", "ABE", False),
    ],
)
def test_two_may_be_called_the_same(one: str, other: str, same: bool) -> None:
    """What is spelled alike is one name; what only looks so is not."""
    assert lookalikes.same_name(one, other) is same


def test_reserved_names_are_no_persons() -> None:
    """In whatever letters."""
    shown = {name: names.reserved_name(name) for name in ("System", "The Hub", "Ѕystem", "Ali", "A 11", "Ｈｕｂ", "")}
    assert shown == {
        "System": "system",
        "The Hub": "",
        "Ѕystem": "system",
        "Ali": "",
        "A 11": "all",
        "Ｈｕｂ": "hub",
        "": "",
    }


def test_every_kind_of_engine_is_a_reserved_name() -> None:
    """Those that there are; the list has also those that are to come."""
    kinds = {name.removeprefix("ENGINE_KIND_").lower() for name, number in views_pb2.EngineKind.items() if number}
    assert kinds
    assert kinds <= names.ENGINE_HANDLES
