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


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"rol": "user"}, "rol is no field; did you mean role?"),
        ({"color": "red"}, "color is no field; there are issuer, jwks_url, "),
        ({"role": "boss"}, 'role is "boss", and is user or agent'),
        ({"jwks_url": "keys"}, 'jwks_url is "keys", which is no http:// or https:// address'),
        ({"issuer": "sso"}, "say by jwks_url where its keys are"),
        ({"issuer": ""}, "issuer is missing"),
        ({"audience": " a"}, "audience is no text of at most 500 letters without blanks around it"),
    ],
)
def test_a_table_that_the_hub_would_not_take_is_refused_at_once(
    fields: dict[str, str], said: str, run: Run, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the number of the issuer; `doctor` says the same of one that stands in the file."""
    tables = [ISSUERS[0], {**ISSUERS[1], **fields}]
    ran = run("config", "set", "auth.issuers", json.dumps(tables))
    assert (ran.status, ran.out) == (2, "")
    assert ran.err.startswith("error: auth.issuers holds what can't be, issuer 2: ")
    assert said in ran.err
    assert " Next: mycelium config set auth.issuers JSON, or " in ran.err
    assert not home.exists()
    monkeypatch.setattr("sys.executable", "/nowhere/python")  # a hub's own program says it in its own words
    monkeypatch.setenv("PATH", "/nowhere")
    home.mkdir()
    lines = [line for table in tables for line in ("[[auth.issuers]]", *(f"{key} = '{table[key]}'" for key in table))]
    (home / "config.toml").write_text("\n".join(lines), encoding="utf-8")
    assert said in run("doctor").out


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
