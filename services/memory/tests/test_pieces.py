"""Sections cut into texts that a model reads to the end."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mycelium_memory.pieces import ABOUT, MOST, pieces


def test_a_short_section_is_one_piece_that_says_what_it_is_about() -> None:
    """The heading counts as much as the text."""
    assert pieces("decisions/db > Storage", "We use JetStream.\n") == ["decisions/db > Storage\nWe use JetStream."]
    assert pieces("decisions/db", "") == ["decisions/db"]


def test_a_long_section_is_cut_where_a_paragraph_or_a_sentence_ends() -> None:
    """Rather than in the middle of a thought."""
    paragraph = "One thought that goes on for a while. " * 15
    cut = pieces("k", f"{paragraph}\n\n{paragraph}")
    assert [piece.endswith("while.") for piece in cut] == [True, True]


@given(st.text(max_size=300), st.text(max_size=4_000))
def test_nothing_but_space_is_lost_and_no_piece_is_too_long(about: str, text: str) -> None:
    """Every word is in some piece."""
    cut = pieces(about, text)
    said = about.strip()[:ABOUT]
    assert all(len(piece) <= MOST + ABOUT + 1 for piece in cut)
    together = "".join(piece.removeprefix(said) for piece in cut)
    assert "".join(together.split()) == "".join(text.split())
