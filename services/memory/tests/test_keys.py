"""Keys: the table of cases, and laws over generated ones."""

from __future__ import annotations

import json
import sys
import unicodedata
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from mycelium_kernel.errors import Refusal
from mycelium_memory import keys

TABLE: dict[str, Any] = json.loads(
    (Path(__file__).parents[3] / "contracts" / "memory-keys.json").read_text(encoding="utf-8")
)
LEGAL = [
    ("agents/sec/notes", "agents/sec/notes"),
    ("cafe\u0301", "caf\u00e9"),
    ("l9/0f3a", "l9/0f3a"),
    ("notes/README.md", "notes/README.md"),
    ("meetings/10:30", "meetings/10:30"),
    ("notes/👩\u200d💻", "notes/👩\u200d💻"),
    ("x" * 252, "x" * 252),
    ("x" * 255 + "/y", "x" * 255 + "/y"),
    ("issues/#12", "issues/#12"),
    ("console/x", "console/x"),
    ("WORK", "WORK"),
    ("日本語/メモ", "日本語/メモ"),
]
ILLEGAL = [
    "",
    " ",
    "/",
    "/a",
    "//a",
    "a/",
    "a//b",
    ".",
    "..",
    "../a",
    "a/../b",
    "a/..",
    "a/./b",
    ".git/config",
    "a/.hidden",
    "\u200d.git/x",
    ".g\u200cit/x",
    "C:/Windows",
    "c:x",
    "a\\b",
    "..\\a",
    "a\0b",
    "a\nb",
    "a\x85b",
    "a\u2028b",
    "a\u202eb",
    "a\ufeffb",
    "a\u3164",
    "a\ud800",
    "con",
    "CON/x",
    "a/nul.txt",
    "a/Com1",
    "a/com¹",
    "a/aux .x",
    "a/b.",
    "a./b",
    "a /b",
    "a/ b",
    "a\u00a0/b",
    "x" * 253,
    "x" * 256 + "/y",
    "é" * 127,
    "/".join("x" * 17),
    "/".join(["x" * 200] * 3),
    "x" * 1_000_000,
    "notes.md/x",
    "notes.MD/x",
]

WORDS = st.text(st.sampled_from("aAbBéÉe\u0301ſK\u212aßıİΣς./-_ :\\~\u200d\ufe0f日#"), min_size=1, max_size=12)
ANY = st.one_of(
    WORDS,
    st.text(max_size=20),
    st.builds("/".join, st.lists(st.one_of(WORDS, st.text(max_size=6), st.sampled_from(keys.PREFIXES)), max_size=4)),
)


def legal(key: str) -> str:
    """The key's stored form; the example is left out when it has none."""
    fault = fault_of(key)
    assume(fault is None)
    return keys.check(key)


def fault_of(key: str) -> Refusal | None:
    try:
        keys.check(key)
    except Refusal as refusal:
        return refusal
    return None


@pytest.mark.parametrize("case", TABLE["cases"], ids=lambda case: case["key"])
def test_a_key_of_the_contract_is_stored_as_it_says(case: dict[str, Any]) -> None:
    """The Structured Memory Guide's rules; the command line is held to the same table."""
    if "is" in case:
        assert keys.check(case["key"]) == case["is"]
    else:
        with pytest.raises(Refusal, match="can't be a key") as caught:
            keys.check(case["key"])
        assert caught.value.slug == "memory.key_invalid"


def test_the_contract_names_the_prefixes_and_the_pattern() -> None:
    assert tuple(TABLE["prefixes"]) == keys.PREFIXES
    assert TABLE["part"] == keys.STRUCTURED_PART.pattern


def test_a_structured_key_that_is_refused_comes_with_the_nearest_that_is_not() -> None:
    with pytest.raises(Refusal) as caught:
        keys.check("decisions/Why We Chose X")
    assert caught.value.extras["near"] == ["decisions/why-we-chose-x"]
    assert caught.value.next == "mycelium memory set decisions/why-we-chose-x …"


@pytest.mark.parametrize(("key", "stored"), LEGAL)
def test_other_keys_are_free(key: str, stored: str) -> None:
    assert keys.check(key) == stored


@pytest.mark.parametrize("key", ILLEGAL, ids=lambda key: repr(key[:20]))
def test_no_key_leaves_its_folder_or_is_a_name_that_some_disk_refuses(key: str) -> None:
    with pytest.raises(Refusal) as caught:
        keys.check(key)
    assert caught.value.slug == "memory.key_invalid"
    assert len(caught.value.detail) < 300


@given(ANY)
def test_a_refusal_is_one_short_line_and_says_what_to_do(key: str) -> None:
    fault = fault_of(key)
    if fault:
        assert fault.slug == "memory.key_invalid"
        assert fault.next.isprintable()
        assert fault.detail.isprintable()
        assert len(fault.detail) < 300


@given(ANY)
def test_the_stored_form_is_stored_as_it_is(key: str) -> None:
    stored = legal(key)
    assert keys.check(stored) == stored
    assert keys.fold(stored) == keys.fold(key)


@given(ANY)
def test_a_key_and_its_file_name_each_other(key: str) -> None:
    stored = legal(key)
    file = keys.path(stored)
    assert keys.of_path(file) == stored
    assert not file.is_absolute()
    assert ".." not in file.parts
    assert not any(part.startswith(".") for part in file.parts)
    assert all(len(part.encode()) <= 255 for part in file.parts)
    assert file == PurePosixPath(unicodedata.normalize("NFC", str(file)))


@given(ANY, ANY)
def test_the_file_of_one_key_is_no_folder_of_another(one: str, other: str) -> None:
    file, beside = keys.path(keys.fold(legal(one))), keys.path(keys.fold(legal(other)))
    assert file not in beside.parents


@given(ANY)
def test_keys_that_a_disk_takes_for_one_have_one_fold(key: str) -> None:
    for form in ("NFC", "NFD"):
        spelled = unicodedata.normalize(form, key)
        for same in (spelled, spelled.lower(), spelled.upper(), spelled.casefold(), spelled.swapcase()):
            assert keys.fold(same) == keys.fold(key)
    assert keys.fold(keys.fold(key)) == keys.fold(key)


def test_every_character_folds_as_its_other_cases_and_forms() -> None:
    """Whatever a disk compares by, upper or lower case, composed or not: it is the same to `fold`."""
    wrong = []
    for code in range(sys.maxunicode + 1):
        character = chr(code)
        if unicodedata.category(character) in {"Cn", "Cs", "Co"}:
            continue
        fold = keys.fold(character)
        same = {character.upper(), character.lower(), character.casefold(), unicodedata.normalize("NFD", character)}
        if any(keys.fold(other) != fold for other in same) or keys.fold(fold) != fold:
            wrong.append(hex(code))
    assert wrong == []


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Alpha", "alpha"),
        ("caf\u00e9", "cafe\u0301"),
        ("CAFÉ", "cafe\u0301"),
        ("straße", "STRASSE"),
        ("❤\ufe0f", "❤"),
        ("ΣΑΣ", "σας"),
    ],
)
def test_pairs_that_fold_together(one: str, other: str) -> None:
    assert keys.fold(one) == keys.fold(other)


def test_keys_that_differ_have_different_folds() -> None:
    assert len({keys.fold(key) for key in ("a", "b", "a/b", "ab", "a-b", "a_b", "á", "a.b")}) == 8


@pytest.mark.parametrize("path", ["a", "a.txt", "a.MD", ".md", "a/.md", ".git/a.md", "../a.md", "/a.md", "a.md/b.md"])
def test_a_file_that_no_document_has_is_refused(path: str) -> None:
    with pytest.raises(Refusal):
        keys.of_path(PurePosixPath(path))


def test_a_file_may_be_named_otherwise_than_its_key() -> None:
    """The tree sees by this that a file has to be renamed."""
    path = PurePosixPath("Work/API.md")
    assert keys.of_path(path) == "work/api"
    assert keys.path("work/api") != path
