"""Memory as it is typed: keys as the table has them, values from where one expects them, prefixes that are none."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from clients.cli.tests.conftest import Run
from clients.cli.tests.scripted import ScriptedHub, answer
from mycelium_cli.errors import Failure
from mycelium_cli.memory import keys

TABLE: dict[str, Any] = json.loads(
    (Path(__file__).parents[3] / "contracts" / "memory-keys.json").read_text(encoding="utf-8")
)
WRITTEN = {"key": "notes/a", "version": 1, "replaced": None}


def test_the_prefixes_and_the_rule_are_those_of_the_table() -> None:
    """The hub's are held to it too; this program can't import them."""
    assert list(keys.STRUCTURED) == TABLE["prefixes"]
    assert keys.PART.pattern == TABLE["part"]


@pytest.mark.parametrize("case", TABLE["cases"], ids=lambda case: ascii(case["key"]))
def test_a_key_is_what_the_table_says(case: dict[str, Any]) -> None:
    """In the form in which the hub stores it; refused here, or left to the hub."""
    if "is" in case or case.get("sent"):
        assert keys.checked(case["key"]) == case.get("is", case["key"])
    else:
        with pytest.raises(Failure) as raised:
            keys.checked(case["key"])
        assert raised.value.slug == "memory.key_invalid"


@pytest.mark.parametrize("key", [case["key"] for case in TABLE["cases"] if "is" not in case and not case.get("sent")])
def test_nothing_is_sent_under_a_key_that_breaks_the_rules(scripted: ScriptedHub, key: str, run: Run) -> None:
    """Whatever one wants to do with it."""
    for words in (("set", key, "x"), ("get", key), ("rm", key), ("history", key), ("links", key)):
        ran = run("memory", *words)
        assert (ran.status, ran.out) == (2, "")
        assert " breaks the rule for " in ran.err
    assert scripted.received == []


@pytest.mark.parametrize("prefix", ["../", "a/../b", "/", "/a", "./a", "work//"])
def test_a_prefix_that_no_key_can_have_is_refused(scripted: ScriptedHub, prefix: str, run: Run) -> None:
    """As a key would be; an empty list would say that there is nothing under it."""
    for words in (("ls", prefix), ("ls", "--prefix", prefix)):
        ran = run("memory", *words)
        assert (ran.status, ran.out) == (2, "")
        assert ran.err.startswith(f'error: "{prefix}" can\'t be the beginning of a key: ')
        assert ran.err.endswith(". Next: mycelium memory ls\n")
    assert scripted.received == []


@pytest.mark.parametrize("prefix", ["work/", "work/ap", "de", "custom/Why We", "a..b/", "a/b."])
def test_a_prefix_may_end_anywhere_in_a_key(scripted: ScriptedHub, prefix: str, run: Run) -> None:
    """It is asked for as it was typed."""
    scripted.play(answer(200, {"items": [], "next": None, "at": None}))
    assert run("memory", "ls", prefix).out == "nothing there\n"


@pytest.mark.parametrize(
    ("words", "value"), [(("-",), "piped"), (("--file", "-"), "piped"), (("text - more",), "text - more")]
)
def test_a_dash_is_stdin(
    scripted: ScriptedHub, words: tuple[str, ...], value: str, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As elsewhere; within a text it is one."""
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"piped\n")))
    scripted.play(answer(201, WRITTEN))
    assert run("memory", "set", "notes/a", *words) == (0, "set notes/a \xb7 version 1\n", "")
    assert scripted.received[0].document() == {"value": value}


def test_an_at_before_a_file_s_name_is_text_and_says_so(
    scripted: ScriptedHub, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may as well be a handle; what it may have been meant for is told."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "api notes.md").touch()
    scripted.play(answer(201, WRITTEN), answer(201, WRITTEN))
    ran = run("memory", "set", "notes/a", "@api notes.md")
    assert ran.err == "the text @api notes.md was stored; what the file holds: --file 'api notes.md'\n"
    assert run("memory", "set", "notes/a", "@julia").err == ""
    assert [one.document() for one in scripted.received] == [{"value": "@api notes.md"}, {"value": "@julia"}]


@pytest.mark.parametrize(
    ("typed", "body"),
    [
        ("--expandable", {"expandable": True}),
        ("--no-expandable", {"expandable": False}),
        ("--embed", {"embed": True}),
        ("--no-embed", {"embed": False}),
    ],
)
def test_what_is_switched_on_can_be_switched_off(
    scripted: ScriptedHub, typed: str, body: dict[str, bool], run: Run
) -> None:
    """Alone, without writing the text again; what is not given stays as it is."""
    scripted.play(answer(200, WRITTEN))
    assert run("memory", "set", "notes/a", typed).status == 0
    assert scripted.received[0].line.startswith("PATCH ")
    assert scripted.received[0].document() == body


@pytest.mark.parametrize("query", ["", " "])
def test_a_search_for_nothing_says_so(scripted: ScriptedHub, query: str, run: Run) -> None:
    """Before anything is asked: the hub would call the question missing, which it was not."""
    ran = run("memory", "search", query)
    assert (ran.status, ran.out) == (2, "")
    assert ran.err == "error: nothing to look for: the query is empty. Next: mycelium memory ls\n"
    assert scripted.received == []


def test_a_version_that_is_a_removal_is_told_with_where_it_came_from(scripted: ScriptedHub, run: Run) -> None:
    """In one bracket, whether or not there are words before it."""
    row = {"updated_by": "kim", "updated_at": "2020-01-01T00:00:00.000Z", "moved_from": None, "conflicted": False}
    removed = {**row, "version": 2, "removed": True, "summary": "", "origin": "file"}
    first = {**row, "version": 1, "removed": False, "summary": "said", "origin": "call"}
    scripted.play(answer(200, {"key": "notes/a", "items": [removed, first], "next": None}))
    lines = run("memory", "history", "notes/a").out.splitlines()
    assert [line.rpartition("ago")[2].strip() for line in lines[1:]] == ["(removed, edited as a file)", "said"]
