"""A document as a file: cases from the field, and laws over generated fields, texts and files by hand."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from mycelium_kernel.errors import Refusal
from mycelium_memory import fields, frontmatter, yaml_text
from mycelium_memory.yaml_text import Fault

ODD = [
    *(
        "",
        " ",
        "a: b",
        "Re: plan: phase 2",
        "yes",
        "no",
        "on",
        "null",
        "~",
        "true",
        "0123",
        "1e3",
        "1_000",
        "0x1F",
        "1.10",
    ),
    *(
        "2026-10-01",
        "2026-10-01T10:00:00.000Z",
        "12:30:45",
        "@julia",
        "#x",
        "a #b",
        "- a",
        "---",
        "...",
        "? a",
        "&a",
        "*a",
    ),
    *(
        "!a",
        "|",
        ">",
        "%a",
        "`a`",
        "'a'",
        '"a"',
        "{a}",
        "[a]",
        "a,b",
        "a\tb",
        "\ta",
        "a\n",
        "a\n\nb\n",
        "  a\n b",
        "\r\n",
    ),
    *(
        "\x00",
        "\x7f",
        "\x85",
        "\u2028",
        "\ufeff",
        "\ufffe",
        "🎉",
        "é",
        "=",
        "<<",
        ".inf",
        ".NaN",
        "-",
        ":",
        "a:",
        "\\",
        "y",
    ),
]
TEXTS = st.one_of(st.sampled_from(ODD), st.text(st.characters(exclude_categories=["Cs"]), max_size=12))
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), TEXTS
)  # fmt: skip
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(TEXTS, inner, max_size=4)),
    max_leaves=8,
)
NAMES = TEXTS.filter(lambda name: bool(name.strip()) and name not in frontmatter.MANAGED)
METAS = st.dictionaries(NAMES, VALUES.filter(lambda value: value is not None), max_size=5)
BODIES = st.text(st.sampled_from("ab-# :\n\r\t\ufeff`é"), max_size=40)
MANAGED = st.fixed_dictionaries(
    {"key": TEXTS, "version": st.integers(0, 9), "tags": st.lists(TEXTS, max_size=3), "expandable": st.booleans()}
)


def plain(value: Any) -> Any:
    """A value without the library's own kinds."""
    return json.loads(json.dumps(value))


def parsed(text: str) -> frontmatter.Parsed:
    found = frontmatter.parse(text)
    assert found.problems == ()
    return found


def by_hand(text: str) -> dict[str, Any]:
    return parsed(f"---\n{text}\n---\n\nbody\n").meta


@given(METAS)
def test_any_json_comes_back_from_its_yaml(meta: dict[str, Any]) -> None:
    assert fields.read(fields.write(meta)) == meta


@given(st.dictionaries(NAMES, st.one_of(TEXTS, st.lists(TEXTS, max_size=3)), max_size=5))
def test_another_reader_of_yaml_sees_the_same_texts(meta: dict[str, Any]) -> None:
    """What is written is YAML as everyone reads it: here the library's own reader, which knows dates and booleans."""
    text = fields.write(meta)
    assert plain(YAML(typ="safe", pure=True).load(text) or {}) == meta


@given(MANAGED, METAS, BODIES)
def test_a_file_gives_back_what_it_was_made_of(managed: dict[str, Any], meta: dict[str, Any], body: str) -> None:
    own = fields.write(meta)
    found = parsed(frontmatter.render(managed, own, body))
    assert found == frontmatter.Parsed(managed, own, meta, body)


@given(BODIES)
def test_a_file_of_text_alone_is_its_text(body: str) -> None:
    """Whatever a text begins with, it is not lost; the file that is made of it says the same."""
    found = frontmatter.parse(body)
    if not found.problems:
        assert parsed(frontmatter.render(found.managed, found.fields, found.body)) == found


@given(METAS, METAS)
def test_a_change_leaves_the_other_fields_to_the_letter(before: dict[str, Any], changes: dict[str, Any]) -> None:
    text = fields.write(before)
    after = fields.change(text, changes)
    assert fields.read(after) == {**before, **changes}
    for name in before.keys() - changes.keys():
        assert fields.write({name: before[name]}) in after
    assert fields.read(fields.change(after, dict.fromkeys(changes))) == {
        name: value for name, value in before.items() if name not in changes
    }


HAND = st.lists(
    st.sampled_from(
        [
            "title: Storage # why",
            "# a comment",
            "",
            "list:\n  - a # first\n  # between\n  - b",
            "flow: [a, # inside\n  b]",
            "text: |\n  # not a comment\n  line\n",
            "keep: |+\n  line\n\n",
            'quoted: "a # b"',
            "nested:\n  deep:\n    deeper: 1 # one",
            "empty:",
            "version: 3 # managed",
            "tags: [x, y] # both",
            "expandable: true",
            "folded: >-\n  a\n  b",
            "anchor: &a [1, 2]",
        ]
    ),
    unique=True,
)


@given(HAND, st.sampled_from(["title", "list", "flow", "text", "nested", "new", "anchor"]), VALUES)
def test_what_a_person_wrote_stays_when_another_field_changes(blocks: list[str], name: str, value: Any) -> None:
    """Comments stay, untouched fields stay to the letter, and the hub's own fields are set apart."""
    text = "\n".join(blocks)
    found = parsed(f"---\n{text}\n---\n")
    after = fields.change(found.fields, {name: value})
    expected = {key: each for key, each in found.meta.items() if key != name}
    assert fields.read(after) == (expected if value is None else {**expected, name: value})
    for comment in ("# why", "# a comment", "# first", "# between", "# inside", "# one", "# managed", "# both"):
        assert after.count(comment) >= text.count(comment)
    for block in blocks:
        field = block.split(":")[0]
        if field not in {name, "version", "tags", "expandable"}:
            assert block.rstrip("\n") in after


@given(st.text(st.sampled_from("ab:-#[]{}&*!|>'\"%@`,?~ \n\t\\=<x01."), max_size=30))
@example("a: &b [*b]")
@example("a: !!int x")
@example('a: "\\UFFFFFFFF"')
@example("&a b: 1")
@example("? a\n: b")
@example("? - a\n: b")
@example("a: 1\n...\nb: 2")
@example("a: 1\n--- \nb: 2")
@example("%YAML 1.1\n")
def test_a_file_by_hand_is_kept_or_reported(text: str) -> None:
    """Whatever stands between the lines of a file: its fields come back the same, or it is said what is wrong."""
    found = frontmatter.parse(f"---\n{text}\n---\nbody\n")
    if found.problems:
        assert all(problem and "\n" not in problem for problem in found.problems)
    else:
        again = parsed(frontmatter.render(found.managed, found.fields, found.body))
        assert again == found


@pytest.mark.parametrize(
    ("text", "meta"),
    [
        ("title: Re: plan: phase 2", {"title": "Re: plan: phase 2"}),
        ("title: Re: plan: it's on # draft", {"title": "Re: plan: it's on"}),
        ("title: Note:", {"title": "Note:"}),
        ("owner: @julia", {"owner": "@julia"}),
        ("owners:\n  - @julia\n  - @sec: reviews", {"owners": ["@julia", "@sec: reviews"]}),
        ("run: `make`", {"run": "`make`"}),
        ("share: %5", {"share": "%5"}),
        ("a:\tb\nc: d\t# e", {"a": "b", "c": "d"}),
        ("on: yes\noff: no", {"on": "yes", "off": "no"}),
        ("zip: 0123\nprice: 1.50\nbig: 1e3\nhex: 0x1F", {"zip": "0123", "price": "1.50", "big": "1e3", "hex": "0x1F"}),
        ("n: 12\nf: 1.5\nt: true\nz: null\ne:", {"n": 12, "f": 1.5, "t": True, "z": None, "e": None}),
        ("due: 2026-10-01\nat: 2026-10-01 10:00:00", {"due": "2026-10-01", "at": "2026-10-01 10:00:00"}),
        ("color: '#x'\nbare: #x", {"color": "#x", "bare": None}),
        ("n: .inf\nm: .nan", {"n": ".inf", "m": ".nan"}),
        ("s: !!str 1\ni: !!int '5'\nc: !color red", {"s": "1", "i": 5, "c": "red"}),
        ("a: &x {b: 1}\nc: *x", {"a": {"b": 1}, "c": {"b": 1}}),
        ("{title: x, list: [1, 2]}", {"title": "x", "list": [1, 2]}),
        ("  title: x\n  list:\n    - 1", {"title": "x", "list": [1]}),
        ("text: |\n  one\n\n  two", {"text": "one\n\ntwo\n"}),
        ("text: >\n  one\n  two", {"text": "one two\n"}),
        ('"quoted name": 1\n? long\n: 2', {"quoted name": 1, "long": 2}),
        ("1: a\ntrue: b", {"1": "a", "true": "b"}),
        ("<<: a", {"<<": "a"}),
    ],
)
def test_fields_by_hand_are_read_as_people_mean_them(text: str, meta: dict[str, Any]) -> None:
    assert by_hand(text) == meta
    again = parsed(f"---\n{text}\n---\n")
    assert parsed(frontmatter.render({"version": 2}, again.fields, "")).meta == meta


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: 1\na: 2", "line 3: the field 'a' is there twice"),
        ("a: {b: 1, b: 2}", "line 2: 'b' is there twice"),
        ("list:\n\t- a", "line 3: found character a tab that cannot start any token"),
        ("version: 3\n\na: [1", "line 5: "),
        ("? [a]\n: b", "line 2: the name of a field has to be a text"),
        ("a: &a [*a]", "line 2: *a stands for nothing before it"),
        ("tags: &t [a]\nlabels: *t", "line 2: *t stands for nothing before it"),
        ("{a: 1, # why\n b: 2}", "comments within braces can't be kept: write each field on a line of its own"),
        ("a: x\x85y", "line 2: U+0085 can't be kept there"),
        ("tags: {a: 1}", "tags is neither a list of words nor words with commas between them"),
        ("expandable: maybe", "expandable is neither true nor false"),
        ("value: [1]", "it has a value and a text, and a document holds one of them"),
        ("version: 1\nversion: 2", "the field 'version' is there twice"),
        ("version: 1\na: 1\nversion: 2", "the field 'version' is there twice"),
        ("a: 1\n...", "line 3: the fields end before their text does"),
        ("a: " + "[" * 101, "line 2: more than 100 brackets are not closed"),
        ("a:\n" + "".join(" " * depth + "- \n" for depth in range(1, 60)), "line 53: more than 50 lists and mappings"),
        ("? " * 5_000, "more than 50 lists and mappings lie within each other"),
        ("- ? " * 4_000 + "a", "more than 50 lists and mappings lie within each other"),
        ("a: &a [" + "1," * 200 + "]\nb: [" + "*a," * 20 + "]", "line 3: there are more than 2,000 values"),
        ("a: " + "x" * 40_000, "the fields have 40,004 bytes, at most 32,768 are allowed"),
    ],
)
def test_what_cannot_be_kept_is_reported_with_its_line(text: str, problem: str) -> None:
    found = frontmatter.parse(f"---\n{text}\n---\nbody\n")
    assert len(found.problems) == 1
    assert found.problems[0].startswith(problem)


def test_a_bomb_of_aliases_is_refused_at_once() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    assert "more than 2,000 values" in frontmatter.parse("---\n" + "\n".join(lines) + "\n---\n").problems[0]


@pytest.mark.parametrize(
    "text",
    [*("plain", "# Title\n\ntext", "---", "---\nHello\n---\nmore", "---\n- a\n---\n", "--- \n"),
     *("---\n\n---\n\nx", "---\na: 1", "a\n---\nb")],
)  # fmt: skip
def test_a_text_that_only_looks_like_fields_is_text(text: str) -> None:
    assert parsed(text) == frontmatter.Parsed(body=text.removesuffix("\n"))


def test_a_file_of_windows_is_the_same_file() -> None:
    lines = ["---", "title: x", "---", "", "one", "two", ""]
    assert parsed("\ufeff" + "\r\n".join(lines)) == parsed("\n".join(lines))
    assert parsed("\n".join(lines)).body == "one\ntwo"


def test_a_text_keeps_line_ends_that_are_its_own() -> None:
    assert parsed(frontmatter.render({"version": 1}, "", "a\r\nb\r")).body == "a\r\nb\r"


def test_the_hubs_fields_are_set_apart_and_written_first() -> None:
    found = parsed("---\ntitle: x\nversion: 3 # three\ntags:\n  - api\n  - db\nowner: y\n---\n\ntext\n")
    assert found.managed == {"version": 3, "tags": ["api", "db"]}
    assert found.tags == ("api", "db")
    assert found.fields == "title: x\n# three\nowner: y\n"
    managed = {"key": "a/b", "version": 4, "updated_at": "2026-10-01T10:00:00.000Z"}
    head = "key: a/b\nversion: 4\nupdated_at: 2026-10-01T10:00:00.000Z"
    text = frontmatter.render(managed, found.fields, "text")
    assert text == f"---\n{head}\ntitle: x\n# three\nowner: y\n---\n\ntext\n"
    assert parsed(text).managed == managed


@pytest.mark.parametrize(
    ("written", "tags"),
    [("[a, b]", ("a", "b")), ("a, b", ("a", "b")), ("", ()), ("a", ("a",)), ("[1, x]", ("1", "x")), ("[]", ())],
)
def test_tags_may_be_written_as_people_do(written: str, tags: tuple[str, ...]) -> None:
    assert parsed(f"---\ntags: {written}\n---\n").tags == tags
    assert parsed("---\na: 1\n---\n").tags is None


def test_a_value_is_json_on_one_line() -> None:
    """As in the coordination skill: a memory that is a JSON object."""
    value = {"choice": "REST", "rationale": "simpler"}
    text = frontmatter.render({"key": "decision/api-style", "value": value}, "", "")
    assert text == '---\nkey: decision/api-style\nvalue: {"choice": "REST", "rationale": "simpler"}\n---\n'
    assert parsed(text).managed["value"] == value
    by_hand = parsed("---\nvalue:\n  choice: REST\n  rationale: simpler\n---\n")
    assert by_hand.managed["value"] == value


def test_a_large_value_is_kept() -> None:
    """It is not put through the reader of YAML, which would take seconds and refuses that much."""
    value = {f"name {number}": ["x" * 20, number] for number in range(10_000)}
    text = frontmatter.render({"version": 1, "value": value}, "", "")
    assert len(text) > 10 * yaml_text.TEXT_BYTES
    assert parsed(text).managed["value"] == value


@pytest.mark.parametrize(
    "line",
    ['value: {"a": 1, "a": 2}', "value: [1e999]", "value: [NaN]", 'value: ["\\ud800"]', "value: " + "[" * 99_999],
)
def test_json_that_cannot_be_kept_is_not_believed(line: str) -> None:
    found = frontmatter.parse(f"---\n{line}\n---\n")
    assert found.problems or found.managed["value"] in (["1e999"], ["NaN"])


@pytest.mark.parametrize(
    ("text", "managed", "own"),
    [
        ("keep: |+\n  line\n\nexpandable: true\n\n", {"expandable": True}, "keep: |+\n  line\n\n"),
        ("expandable: true\n\ntitle: x\n", {"expandable": True}, "\ntitle: x\n"),
        ("key: a\n  b\ntitle: x\n", {"key": "a b"}, "title: x\n"),
        ("x: y\ntags: # both\n  - a # one\n\n  - b\n# end\n", {"tags": ["a", "b"]}, "x: y\n# both\n# one\n# end\n"),
        ("title: x\nkey: |\n  a\n\n# last\n", {"key": "a\n"}, "title: x\n# last\n"),
    ],
)  # fmt: skip
def test_the_hubs_fields_are_cut_out_without_touching_others(text: str, managed: dict[str, Any], own: str) -> None:
    found = parsed(f"---\n{text}---\n")
    assert (found.managed, found.fields) == (managed, own)


def test_a_sign_within_a_word_begins_no_comment() -> None:
    assert fields.change("a: &x#y 1\nb: c#d\n", {"a": 2, "b": 3}) == "a: 2\nb: 3\n"
    assert fields.change("a: 'b # c' # d\n", {"a": 2}) == "a: 2  # d\n"


@pytest.mark.parametrize("name", frontmatter.MANAGED)
def test_the_hubs_fields_cannot_be_set_as_the_users(name: str) -> None:
    with pytest.raises(Refusal) as caught:
        fields.change("a: 1\n", {name: "x"})
    assert caught.value.slug == "memory.field_managed"


@pytest.mark.parametrize(
    ("text", "changes"),
    [
        ("a: &x 1\nb: *x\n", {"a": 2}),
        ("", {"a": float("nan")}),
        ("", {"a": "\ud800"}),
        ("", {"": 1}),
        ("", {" ": 1}),
        ("", {"a": "x" * 40_000}),
        ("", {"a": {"k" * 2_000: 1}}),
        ("a: [", {"b": 1}),
        ("- a", {"b": 1}),
    ],
)
def test_a_change_that_cannot_be_kept_is_refused(text: str, changes: dict[str, Any]) -> None:
    with pytest.raises(Refusal) as caught:
        fields.change(text, changes)
    assert caught.value.slug == "memory.field_invalid"
    assert "\n" not in caught.value.detail


def test_cutting_tells_what_is_no_mapping() -> None:
    assert fields.cut("- a") is None
    assert fields.cut("# only\n") == ({}, "# only\n")
    with pytest.raises(Fault):
        fields.cut("a: [")


def test_a_number_that_is_too_long_is_named() -> None:
    """Whoever reads that something refers to it would look for what is not there."""
    with pytest.raises(Refusal, match="'n' could not be read back as it is; make its numbers shorter, or texts"):
        fields.change("a: 1\n", {"b": 1, "n": [10**400]})
