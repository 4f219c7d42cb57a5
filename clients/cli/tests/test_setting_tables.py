"""A setting that is a list of tables: set as JSON, written as tables, read back the same."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from clients.cli.tests.conftest import Run

ISSUERS = [{"issuer": "https://people.example", "role": "user"}, {"issuer": "https://agents.example", "role": "agent"}]


def test_tables_are_set_as_json_and_stand_as_tables_in_the_file(run: Run, home: Path) -> None:
    """What is set after them does not end up in the last of them; setting again replaces them all."""
    assert run("config", "set", "auth.audience", "mycelium").status == 0
    assert run("config", "set", "auth.issuers", json.dumps(ISSUERS)).status == 0
    assert run("config", "set", "auth.enabled", "true").status == 0
    text = (home / "config.toml").read_text()
    assert text.count("[[auth.issuers]]") == 2
    assert tomllib.loads(text)["auth"] == {"audience": "mycelium", "issuers": ISSUERS, "enabled": True}
    assert json.loads(run("config", "get", "auth.issuers").out) == ISSUERS
    shown = json.loads(run("config", "show", "--json").out)["items"]
    assert json.loads(next(row["value"] for row in shown if row["key"] == "auth.issuers")) == ISSUERS
    assert run("config", "set", "auth.issuers", json.dumps(ISSUERS[:1])).status == 0
    assert tomllib.loads((home / "config.toml").read_text())["auth"]["issuers"] == ISSUERS[:1]
    assert run("config", "unset", "auth.issuers").status == 0
    assert tomllib.loads((home / "config.toml").read_text())["auth"] == {"audience": "mycelium", "enabled": True}


@pytest.mark.parametrize(
    "value", ["https://people.example", "{}", "[1]", "[{}]", '[{"issuer": 7}]', '[{"issuer": "x"}', "[" * 100_000]
)
def test_what_is_no_list_of_tables_is_refused_with_one_that_is(value: str, run: Run, home: Path) -> None:
    """On one line, and nothing is written."""
    ran = run("config", "set", "auth.issuers", value)
    assert ran.status == 2
    assert "auth.issuers is a list of tables, as JSON" in ran.err
    assert "[[auth.issuers]]" in ran.err
    assert ran.err.strip().count("\n") == 0
    assert not home.exists()


def test_doctor_finds_nothing_wrong_with_tables(run: Run, home: Path) -> None:
    """Written by hand, as the documentation shows them."""
    home.mkdir()
    (home / "config.toml").write_text(
        "[auth]\nenabled = true\n\n[[auth.issuers]]\nissuer = 'https://people.example'\nrole = 'user'\n"
    )
    said = run("doctor", "--json").out
    settings = [row for row in json.loads(said)["items"] if row.get("part", row.get("check")) == "config"]
    assert settings, said
    assert all("auth.issuers" not in json.dumps(row) for row in settings), settings
