"""Sections: what stands under each heading, and the pieces that are embedded."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mycelium_memory import markdown, sections

PARTS = [
    "# One\n",
    "## Two\n",
    "### One\n",
    "Title\n===\n",
    "Low\n---\n",
    "word ",
    "\n",
    "\n\n",
    "- # Listed\n",
    "```\n",
    "> # Quoted\n",
    "\r\n",
]
BODIES = st.lists(st.sampled_from([*PARTS, "# \n", "x" * 30, "    # code\n", "#no\n"])).map("".join)


def outline(body: str) -> str:
    return " ".join(f"{section.level}:{section.slug}" for section in sections.split(body))


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("", ""),
        ("  \n\n", ""),
        ("text", "0:"),
        ("# A\n\ntext\n\n## B\n", "1:a 2:b"),
        ("before\n\n# A\n", "0: 1:a"),
        ("A title\n===\n\nLower\nin two\n---\n", "1:a-title 2:lower-in-two"),
        ("# A\n# A\n# A-1\n# A\n", "1:a 1:a-1 1:a-1-1 1:a-2"),
        ("# A\n# A-1\n# A\n", "1:a 1:a-1 1:a-2"),
        ("#\n# !\n", "1:section 1:section-1"),
        ("```\n# no\n```\n", "0:"),
        ("    # no\n\n<!-- \n# no\n-->\n", "0:"),
        ("- # no\n\n> # no\n\n#no\n\n\\# no\n", "0:"),
        ("# A ##\n", "1:a"),
        ("# `code` and **bold** [link](url) <b>x</b> ![image](url)\n", "1:code-and-bold-link-x-image"),
        ("# Überblick & Größe: 1.5 (α_β)\n", "1:überblick--größe-15-α_β"),
        ("# 日本語 の 見出し\n", "1:日本語-の-見出し"),
        ("# A  b\u0301 🎉\n", "1:a-b\u0301-"),
    ],
)
def test_sections_and_their_slugs(body: str, found: str) -> None:
    assert outline(body) == found


def test_a_section_has_its_own_text_and_all_that_is_under_it() -> None:
    body = "intro\n\n# A\n\none\n\n## B\n\ntwo\n\n# C\n\nthree\n"
    intro, first, second, third = sections.split(body)
    assert body[intro.start : intro.end] == "intro\n\n"
    assert body[first.start : first.end] == "# A\n\none\n\n"
    assert body[first.start : first.whole_end] == "# A\n\none\n\n## B\n\ntwo\n\n"
    assert body[second.start : second.whole_end] == "## B\n\ntwo\n\n"
    assert body[third.start : third.end] == "# C\n\nthree\n"


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("vector-store", "Vector store"),
        ("Vector store", "Vector store"),
        ("VECTOR STORE", "Vector store"),
        ("b-1", "B"),
        ("x", None),
        ("", None),
    ],
)
def test_a_section_is_found_by_its_slug_or_its_title(name: str, title: str | None) -> None:
    found = sections.find("intro\n\n# Vector store\n\n# B\n\n# B\n", name)
    assert (found.title if found else None) == title


@given(BODIES)
def test_sections_are_the_whole_text_in_order(body: str) -> None:
    found = sections.split(body)
    position = found[0].start if found else len(body)
    assert body[:position].strip() == ""
    for section in found:
        assert section.start == position
        assert section.end <= section.whole_end <= len(body)
        position = section.end
    assert position == len(body)
    slugs = [section.slug for section in found]
    assert len(set(slugs)) == len(slugs)
    assert all(sections.find(body, slug) == section for slug, section in zip(slugs, found, strict=True) if slug)
    wholes = [
        min([s.start for s in found[n + 1 :] if s.level <= each.level], default=len(body))
        for n, each in enumerate(found)
    ]
    assert [each.whole_end for each in found if each.level] == [
        w for w, each in zip(wholes, found, strict=True) if each.level
    ]


@given(BODIES, st.integers(1, 60))
def test_pieces_are_small_lie_within_a_section_and_lose_nothing(body: str, most: int) -> None:
    position = 0
    for piece in sections.pieces(body, most):
        assert body[position : piece.start].strip() == ""
        assert piece.section.start <= piece.start < piece.end <= piece.section.end
        assert piece.text == body[piece.start : piece.end] == piece.text.strip()
        assert len(piece.text) <= most
        position = piece.end
    assert body[position:].strip() == ""


def test_a_long_section_is_cut_between_paragraphs_then_lines_then_words() -> None:
    texts = [piece.text for piece in sections.pieces("# A\n\naa aa\n\nbb bb\ncc cc\n\n" + "d" * 25, 12)]
    assert texts == ["# A\n\naa aa", "bb bb\ncc cc", "d" * 12, "d" * 12, "d"]
    assert [piece.text for piece in sections.pieces("one two three", 9)] == ["one two", "three"]
    first = next(iter(sections.pieces("# A\n\n" + "word " * 10, 30)))
    assert first.text == "# A\n\nword word word word word"


def test_a_text_with_too_many_headings_is_still_all_there() -> None:
    body = "# a\n" * (sections.SECTIONS + 100)
    found = sections.split(body)
    assert len(found) == sections.SECTIONS
    assert found[-1].end == len(body)
    assert outline("- a\n" * (markdown.LINES + 1) + "\n# b\n") == "0:"


@pytest.mark.parametrize(
    "part",
    ["# _a_ b\n", "# a\n", ">", "> > a\n", "- \n", "\n", "\r", "a\n=\n", "# [a](b) ", "<div>\n", "  - a\n", "`a\n"],
)
def test_no_text_takes_long(part: str) -> None:
    body = (part * 512 * 1024)[: 512 * 1024]
    found = sections.pieces(body)
    assert len(found) <= 512 * 1024
    assert sum(len(piece.text) for piece in found) <= len(body)
