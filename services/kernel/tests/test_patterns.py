"""Patterns of keys: what they match, and what can't be one."""

from __future__ import annotations

import pytest

from mycelium_kernel import patterns
from mycelium_kernel.errors import Refusal


@pytest.mark.parametrize(
    ("pattern", "fitting", "other"),
    [
        ("decisions/*", ["decisions/db", "decisions/api/style"], ["decisions", "decisionsx/db", "my/decisions/db"]),
        ("work/", ["work/a", "work/a/b"], ["work", "workshop/a"]),
        ("*/notes/", ["a/notes/x"], ["notes/x", "a/notes"]),
        ("*", ["a", "a/b"], []),
        ("**/db", ["decisions/db", "a/b/db"], ["db", "decisions/dbs"]),
        ("status/?", ["status/a"], ["status/ab", "status/"]),
        ("status/[ab]", ["status/a"], ["status/c", "status/[ab]"]),
        ("status/[!ab]", ["status/c"], ["status/a"]),
        ("context/stack", ["context/stack"], ["context/stack/x", "context/stac"]),
        ("notes/[x", ["notes/[x"], ["notes/x"]),
        (" a b ", ["a b"], ["ab"]),
    ],
)
def test_a_pattern_matches_as_in_a_shell(pattern: str, fitting: list[str], other: list[str]) -> None:
    """A star goes across slashes, a slash at the end makes a beginning, and no sign is one key alone."""
    found = patterns.read(pattern)
    assert [key for key in [*fitting, *other] if found.matches(key)] == fitting


@pytest.mark.parametrize(
    ("pattern", "key"), [("Notes/*", "notes/x"), ("caf\u00e9*", "cafe\u0301/x"), ("n/*", "N/\u200dx")]
)
def test_keys_that_name_one_document_match_alike(pattern: str, key: str) -> None:
    """Neither case nor form nor joiners count."""
    assert patterns.read(pattern).matches(key)


@pytest.mark.parametrize("pattern", ["", "  ", "/work/*", "a\nb", "a\0", "\ud800", "x" * 513])
def test_what_no_key_could_match_is_no_pattern(pattern: str) -> None:
    """It is refused, rather than never matched."""
    with pytest.raises(Refusal, match="can't be a pattern of keys"):
        patterns.read(pattern)


def test_several_patterns_are_each_taken_once() -> None:
    """Those that fold alike are the same; there may be twenty."""
    assert [found.text for found in patterns.read_all(["work/*", "Work/*", "a"])] == ["Work/*", "a"]
    with pytest.raises(Refusal, match="at most 20"):
        patterns.read_all(f"{number}/" for number in range(21))
