"""Whether two patterns mean a common path: what is said is true, against every small path and many random ones."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from mycelium_board import globs
from mycelium_board.globs import (
    MOST_ALTERNATIVES,
    MOST_CHARACTERS,
    MOST_CLASSES,
    MOST_RANGES,
    Net,
    overlap,
    parse,
    path,
)
from services.board.tests.meaning import (
    PATHS,
    PATTERNS,
    SMALL,
    SOME_PATHS,
    Atom,
    about,
    is_in_brackets,
    meaning,
    text_of,
)


def glob(atoms: tuple[Atom, ...]) -> globs.Glob | None:
    """None for braces that choose between nothing and nothing."""
    try:
        return parse(text_of(atoms))
    except ValueError:
        assert not text_of(atoms).strip("/{,}"), text_of(atoms)
        return None


@settings(max_examples=200, deadline=None)
@given(st.data(), SOME_PATHS)
def test_whenever_a_path_is_meant_by_both_they_overlap(data: st.DataObject, parts: list[str]) -> None:
    """Patterns made from the path, and any others; both ways round, and the path itself."""
    for_path = st.one_of(PATTERNS, about(parts), about(parts))
    one, two = data.draw(for_path), data.draw(for_path)
    found = [glob(one), glob(two)]
    for atoms, parsed in zip((one, two), found, strict=True):
        if meaning(atoms)(parts):
            assert parsed
            assert overlap(parsed, path("/".join(parts))), text_of(atoms)
    if meaning(one)(parts) and meaning(two)(parts):
        assert found[0]
        assert found[1]
        assert overlap(found[0], found[1])
        assert overlap(found[1], found[0])


@settings(max_examples=60, deadline=None)
@given(PATTERNS, PATTERNS)
def test_whenever_they_do_not_overlap_no_path_is_meant_by_both(one: tuple[Atom, ...], two: tuple[Atom, ...]) -> None:
    """None of all paths up to three segments of two letters."""
    first, second = glob(one), glob(two)
    if first and second and not overlap(first, second):
        by_one, by_two = meaning(one), meaning(two)
        assert not [parts for parts in PATHS if by_one(parts) and by_two(parts)], (text_of(one), text_of(two))


@settings(max_examples=60, deadline=None)
@given(SMALL, SMALL)
def test_whenever_they_overlap_there_is_a_path(one: tuple[Atom, ...], two: tuple[Atom, ...]) -> None:
    """Nobody is refused for nothing: small patterns that overlap share a small path, but for odd names."""
    assume(not any(is_in_brackets(part) for text in (one, two) for part in text_of(text).split("/")))
    first, second = glob(one), glob(two)
    assert first
    assert second
    if overlap(first, second):
        by_one, by_two = meaning(one), meaning(two)
        assert any(by_one(parts) and by_two(parts) for parts in PATHS), (text_of(one), text_of(two))


@settings(max_examples=60, deadline=None)
@given(st.lists(PATTERNS, max_size=5), PATTERNS)
def test_many_side_by_side_are_what_each_is_alone(many: list[tuple[Atom, ...]], one: tuple[Atom, ...]) -> None:
    """Asked at once, the same patterns are met as one by one."""
    laid = [found for found in map(glob, many) if found]
    asked = glob(one)
    if asked:
        assert Net(laid).meeting(asked) == [number for number, other in enumerate(laid) if overlap(other, asked)]


@pytest.mark.parametrize(
    ("one", "two", "do"),
    [
        ("src/auth", "src/auth/login.py", True),
        ("src/auth/", "src/auth/**", True),
        ("src/auth", "src/authors", False),
        ("src", "src/auth", True),
        ("src/*.py", "src/auth/login.py", False),
        ("src/**/*.py", "src/auth/login.py", True),
        ("**/*.py", "**/*.ts", False),
        ("**/*.py", "src", True),
        ("src/a*", "src/*b", True),
        ("SRC", "src", False),
        ("{src,docs}/a", "docs/a/b", True),
        ("{a,b{c,d/e}}/f", "bd/e/f", True),
        ("src/{a,b}", "src/c", False),
        ("src/{a,b}*.py", "**/c.py", False),
        ("src/[a-z]*.py", "**/1.py", False),
        ("[a-c]1", "[!a-c]1", False),
        ("[]x]1", "]1", True),
        (r"\*", "*", True),
        (r"\*", "a", False),
        ("src/\\", "src", True),
        ("src/\\", "src/a", False),
        ("*/a", "**/a", True),
        ("*", "a/b", False),
        ("src/[id]/page", "src/[id]/page", True),
        ("src/[id]/page", "src/i/page", True),
        ("deploy:staging", "deploy:staging", True),
        ("deploy:staging", "deploy:production", False),
        ("port 8080", "port *", True),
        ("café", "cafe\u0301", True),
        ("a[b", "a[b", True),
        ("a{b", "a{b", True),
        ("**", "port 8080", True),
    ],
)
def test_what_people_write(one: str, two: str, do: bool) -> None:
    """Folders, names, wildcards; both ways round."""
    assert overlap(parse(one), parse(two)) is do
    assert overlap(parse(two), parse(one)) is do


def test_a_path_is_no_pattern() -> None:
    """What looks like a wildcard in the name of a file is a letter of it."""
    assert not overlap(parse("src/i"), path("src/[id]"))
    assert overlap(parse("src/[id]"), path("src/[id]"))
    assert not overlap(parse("src/b"), path("src/*"))
    assert overlap(parse("src/**"), path("./src//a\nb"))


def test_a_path_is_that_alone_unless_it_is_a_folder() -> None:
    """A file has nothing below it; what ends in a slash has."""
    assert not overlap(parse("src/**/*.py"), path("src/Makefile"))
    assert not overlap(parse("src/auth"), path("src"))
    assert overlap(parse("src/auth"), path("src/"))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "is empty"),
        (" ./ ", "is empty"),
        ("{,}", "is empty"),
        ("../other", "leads out"),
        ("src/{a,../b}", "leads out"),
        ("a\nb", "can't be printed"),
        ("x" * (MOST_CHARACTERS + 1), "characters"),
        ("{a,b}" * 6, f"more than {MOST_ALTERNATIVES} alternatives"),
        ("{" + "x" * 30 + ",y}" + "{a,b}{a,b}{a,b}{a,b}", "with all its alternatives"),
        ("[z-a]", "back to"),
        ("[" + "acegikmoqsuwy02468" + "]", f"more than {MOST_RANGES}"),
        ("".join(f"[{letter}x]" for letter in "abcde"), f"more than {MOST_CLASSES}"),
    ],
)
def test_what_is_no_pattern_is_told_why(text: str, why: str) -> None:
    """Nothing, what leads out of the folder, and whatever would cost too much to compare."""
    with pytest.raises(ValueError, match=why):
        parse(text)


@pytest.mark.parametrize("text", ["", "/", "a/../b"])
def test_what_is_no_path_is_told_so(text: str) -> None:
    """A path is within the folder."""
    with pytest.raises(ValueError, match=r"no path|leads out"):
        path(text)


def test_a_room_full_of_hostile_patterns_is_compared_in_one_go() -> None:
    """Stars against stars, where trying one after the other would never end."""
    hostile = [parse("*a" * 95 + str(number)) for number in range(500)]
    net = Net([*hostile, parse("**/b/**/b/**/b"), parse("*b*" * 50)])
    assert net.meeting(parse("a*" * 80 + "b")) == [501]
    assert net.meeting(parse("*a*" * 60)) == [*range(500), 501]


@pytest.mark.parametrize("text", ["{" * 200, "{a," * 60, "[" * 200, "\\" * 199, "{a}" * 60, "**/" * 60 + "x"])
def test_patterns_of_signs_alone_are_read(text: str) -> None:
    """What opens and never ends stands for itself."""
    assert overlap(parse(text), parse("**"))
