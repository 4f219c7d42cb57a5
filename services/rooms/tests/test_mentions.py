"""Whom a text names: the table of cases from the field, and laws over generated texts."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mycelium_kernel import names
from mycelium_kernel.errors import Refusal
from mycelium_rooms import mentions

CASES = [
    # plain, and what stands beside it
    ("hello @a", "a"),
    ("@a", "a"),
    ("(@a)", "a"),
    ("@a.", "a"),
    ("@a...", "a"),
    ("@a,@b", "a b"),
    ("@a/@b", "a b"),
    ("@a: please, @b; and @c!", "a b c"),
    ("'@a' \"@b\" [@c] {@d}", "a b c d"),
    ("@a\n@b\r\n@c", "a b c"),
    (".@a", "a"),
    ("wait...@a", "a"),
    ("-@a", "a"),
    ("—@a—", "a"),
    ("@a's work", "a"),
    ("@Release-Agent.v2_x", "release-agent.v2_x"),
    ("@A and @a", "a"),
    ("emoji 🎉@a🎉", "a"),
    ("@a @a @a", "a"),
    # forms
    ("@~a", "~a"),
    ("cc @~a and @a", "a"),
    ("@a and cc @~a", "a"),
    ("@a#2", "a#2"),
    ("@a#Main.", "a#main"),
    ("@~a#2", "~a#2"),
    ("@a @a#2", "a a#2"),
    ("@a# and @b#", "a b"),
    ("@a#" + "x" * 33, "a"),
    ("@a.#2", "a"),
    # full width, and scripts without spaces
    ("＠a", "a"),
    ("你好@a你好", "a"),
    ("你好＠a，谢谢", "a"),
    ("すみません@aさん", "a"),
    ("สวัสดี@a", "a"),
    ("한국@a", "a"),
    # addresses
    ("jane@acme.com", ""),
    ("deploy@buildbot", ""),
    ("mail jane.doe+x@acme.com or <jane@acme.com>", ""),
    ("jane_@acme.com", ""),
    ("josé@acme.com", ""),
    ("jose\u0301@acme.com", ""),
    ("x@", ""),
    ("@", ""),
    ("@@a", ""),
    ("@a@b", ""),
    ("@user@social.example", ""),
    ("git@github.com:org/repo.git", ""),
    # what can't be a handle
    ("@-a", ""),
    ("@_a", ""),
    ("@ a", ""),
    ("@josé", ""),
    ("@" + "x" * 65, ""),
    ("@" + "x" * 64, "x" * 64),
    # URLs
    ("https://x/@user", ""),
    ("see https://x.com/u?by=@user&x=1 and @a", "a"),
    ("(https://x/@user)", ""),
    ("ssh://@host/path", ""),
    ("medium.com/@user", ""),
    ("see https://x.com, @a", "a"),
    ("[text](https://x/y),@a", "a"),
    ("*https://x*@a", "a"),
    ("看https://x.com，@a", "a"),
    ("[text](https://x/@user)", ""),
    ("[@a](https://x/@user)", "a"),
    ("[x](@user) and [y](</@user> '@title')", ""),
    ("![@alt](x)", ""),
    ("<https://x/@user> @a", "a"),
    ("[x]\n\n[x]: https://x/@user '@title'", ""),
    # code
    ("`@a`", ""),
    ("`` `@a` `` @b", "b"),
    ("```\n@a\n```\n@b", "b"),
    ("~~~py\n@a\n~~~", ""),
    ("text\n\n    @a\n\n@b", "b"),
    ("    @a", ""),
    ("- item\n\n      @a\n  @b", "b"),
    ("`not closed @a", "a"),
    ("```\nnot closed\n@a", ""),
    # quotes
    ("> @a", ""),
    ("> quote\n\n@a", "a"),
    ("> quote\n@lazy", ""),
    ("- > @a\n- @b", "b"),
    (">>> @a\n\n> - @b", ""),
    # escapes
    (r"\@a", ""),
    (r"\＠a", ""),
    (r"\\@a", "a"),
    (r"\@@a", ""),
    (r"\@@a @b", "b"),
    ("&#64;a", ""),
    ("&commat;a @b", "b"),
    (r"@foo\_bar", "foo_bar"),
    (r"@a\#2", "a"),
    (r"@\~a", ""),
    # other markup is text
    ("*@a* **@b** _@c_ __@d__", "a b c d"),
    ("_@a and @b_", "a b"),
    ("@foo_bar_baz", "foo_bar_baz"),
    ("# @a\n\n## x @b ##", "a b"),
    ("1. @a\n2. @b", "a b"),
    ("<b>@a</b> <!-- @b -->", "a b"),
    ("<div>\n@a\n</div>", "a"),
    ("@a\n===\n\n---", "a"),
]


def shown(text: str) -> str:
    """The names in `text`, as it could write them."""
    return " ".join(
        f"{'~' if name.silent else ''}{name.handle}{'#' if name.seat else ''}{name.seat}"
        for name in mentions.parse(text)
    )


@pytest.mark.parametrize(("text", "expected"), CASES, ids=[text[:30] for text, _ in CASES])
def test_a_text_names_whom_a_reader_would_say(text: str, expected: str) -> None:
    """R4: mentions are found where people mean them, and nowhere else."""
    assert shown(text) == expected


HOSTILE = {
    "quotes": ">" * 250_000 + "@a",
    "quoted lines": ("> " * 30 + "@a\n") * 3_000,
    "brackets": "@a " + "[" * 250_000,
    "open brackets": "@a " + "[ " * 9_000,
    "images": "@a " + "![" * 125_000,
    "nested links": "[" * 60_000 + "@a" + "](b)" * 40_000,
    "stars": "@a " + "*" * 250_000,
    "underscores": "_@a " * 62_000,
    "backticks": "@a " + " ".join("`" * length for length in range(1, 700)),
    "signs": "@" * 250_000,
    "mentions": "@a " * 83_000,
    "lists": "- @a `x`\n" * 28_000,
    "deep lists": "".join("  " * depth + "- @a\n" for depth in range(500)),
    "definitions": "[@a]: x\n" * 30_000,
    "addresses": "jane@acme.com\n" * 18_000,
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_text_is_read_or_refused(text: str) -> None:
    """A text of the largest size takes no more than a moment, whatever is in it; too much markup is refused."""
    found, refusal = "", None
    try:
        found = shown(text)
    except Refusal as caught:
        refusal = caught
    assert found in {"", "a"}
    assert refusal is None or refusal.slug == "content.too_large"


@pytest.mark.parametrize("line", ["- " * 19 + "a", "> - " * 10 + "a", "1. " * 14 + "a", ">" * 40 + "a", "* + " * 10])
def test_a_text_of_lists_in_lists_is_refused(line: str) -> None:
    """Each list that a line opens costs as much as a line; one post must not hold up everybody else."""
    with pytest.raises(Refusal, match="lists and quotes"):
        mentions.parse("@a\n\n" + f"{line}\n" * 5_000)


def test_a_text_names_at_most_a_hundred_handles() -> None:
    """A text that names more is refused rather than half delivered."""
    assert len(mentions.parse(" ".join(f"@a{number}" for number in range(100)))) == 100
    with pytest.raises(Refusal, match="more than 100"):
        mentions.parse(" ".join(f"@a{number}" for number in range(101)))


handles = st.from_regex(re.compile(r"[a-z0-9](?:[a-z0-9._-]{0,20}[a-z0-9])?", re.ASCII), fullmatch=True)
prose = st.text(st.sampled_from("abc XYZ.,;:!?()\n\"'你é🎉-"), max_size=40)


@given(prose, handles, prose)
def test_an_escaped_or_quoted_sign_names_nobody(before: str, handle: str, after: str) -> None:
    """Whatever stands around it, a mention that is escaped, code or a quote is none."""
    for hidden in (rf"\@{handle}", f"`@{handle}`", f"\n\n```\n@{handle}\n```\n\n", f"\n\n> @{handle}\n\n"):
        assert mentions.parse(f"{before} {hidden} {after}") == ()


@given(prose, handles, prose)
def test_a_mention_between_spaces_is_always_found(before: str, handle: str, after: str) -> None:
    """Prose around a mention does not hide it."""
    text = f"{before.strip()} @{handle} {after.strip()}"
    assert [name.handle for name in mentions.parse(text)] == [handle]


@given(st.text(st.sampled_from("@＠ab~#._-/:\\`*_[]()<>&;!\n \0你é"), max_size=60))
def test_whatever_is_found_could_be_read_in_the_raw_text(text: str) -> None:
    """Markdown only takes mentions away: nothing is named that is not written, and every name keeps the grammar."""
    raw = text.replace("\\", "").lower()
    for name in mentions.parse(text):
        assert re.search("[@＠]~?" + re.escape(name.handle), raw)
        assert names.HANDLE.fullmatch(name.handle)
        assert len(mentions.parse(text)) == len({(name.handle, name.seat) for name in mentions.parse(text)})


@given(st.text(st.sampled_from("@ab c.,\n你"), max_size=60))
def test_without_markup_the_quick_way_gives_what_the_parser_gives(text: str) -> None:
    """Blocks without markup are not parsed for it: a pair of escapes elsewhere changes nothing."""
    lines = " ".join(text.split())  # one paragraph
    assert mentions.parse(lines) == mentions.parse(lines + r" \* `x`")
