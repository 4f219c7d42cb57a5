"""What `config set` takes the hub starts with: the two programs share no code, so both are given the same values."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mycelium_cli import setting_rules, setting_tables, setting_values
from mycelium_cli.errors import Failure
from mycelium_gateway import auth_settings, web_settings
from mycelium_gateway.identity import AGENT, USER
from mycelium_hub import settings, settings_file

ISSUER = {"issuer": "https://sso.example.com"}
TEXTS = (
    "", " ", "a", "a b", " a ", "\x01", "x\x7f", "é", "hub", "Avery Quinn", "@Avery, bo", "a,b", "a/b", "/x", "x/",
    "x" * (web_settings.SHORTEST_SECRET - 1), "x" * web_settings.SHORTEST_SECRET, "x" * 600, "minilm", "MINILM",
    "DEBUG",
)  # fmt: skip
NUMBERS = (
    "0", "1", "2", "16", "17", "-1", "0.5", "1.5", "1e3", "1e400", "nan", "inf", "1_000", "65536", "٣", " 8 ", "0.15",
    "1000000", "1000001", "1000000000001", "1000000000000001", "9223372036854775808", "true", "TRUE", "off", "maybe",
    "none",
)  # fmt: skip
ADDRESSES = (
    "http://a", "https://a.example/x/", " http://a ", "http://a b", "http://a?x=1", "http://u:p@h", "http://a:0", "http://",
    "http://a:99999", "http://[::1", "http://[::1]:80", "ftp://x", "HTTP://A", "localhost", "127.0.0.1", "::1", "[::1]",
    "fe80::1%eth0", "10.0.0.0/8", "10.0.0.0/33", "10.0.0.1/8, ::1", "*", "*.example.com", "host_1.local.", "-host",
)  # fmt: skip
TABLES = tuple(
    json.dumps(tables)
    for tables in (
        [], {}, [{}], [7], [ISSUER], [{"issuer": 7}], [{"issuer": ""}], [{"issuer": "https://a/"}], [ISSUER, ISSUER],
        [{"role": "user"}], [{"issuer": "a"}], [{"issuer": "a", "jwks_url": "http://k"}], [{**ISSUER, "jwks_url": "k"}],
        [{**ISSUER, "rol": "user"}], [{**ISSUER, "role": "boss"}], [{**ISSUER, "role": USER}, {"issuer": "https://b"}],
        [{**ISSUER, "audience": " a"}], [{**ISSUER, "audience": "a\nb"}], [{**ISSUER, "audience": None}],
        *([{**ISSUER, "audience": "x" * length}] for length in (auth_settings.LONGEST, auth_settings.LONGEST + 1)),
        *([{"issuer": f"https://a{n}"} for n in range(auth_settings.MOST_ISSUERS + more)] for more in (0, 1)),
        *([{**ISSUER, field: "user" if field == "role" else "https://x"}] for field in auth_settings.FIELDS),
    )
)  # fmt: skip
VALUES = TEXTS + NUMBERS + ADDRESSES + TABLES
TOGETHER = "needs runtime.split"  # `config set` warns of it: the other half may follow


def refused_by_the_hub(folder: Path, value: str) -> set[str]:
    """The settings that `config apply` would name were all of them set to this."""
    lines = [f"{setting.key} = {_toml(value)}\n" for setting in settings.SETTINGS]
    (folder / "config.toml").write_text("".join(lines), encoding="utf-8")
    return {fault.key for fault in settings_file.faults(folder) if TOGETHER not in fault.seen}


def _toml(value: str) -> str:
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def refused_by_the_command_line(value: str) -> set[str]:
    """The same settings that `config set` and `doctor` would refuse."""
    return {setting.key for setting in settings.SETTINGS if not _takes(setting.key, value)}


def _takes(key: str, value: str) -> bool:
    try:
        setting_values.parse(setting_values.find(key), value)
    except Failure:
        return False
    return True


@pytest.mark.parametrize("value", VALUES, ids=lambda value: ascii(value)[:60])
def test_a_value_is_right_for_the_command_line_and_for_the_hub_or_for_neither(tmp_path: Path, value: str) -> None:
    """Otherwise it is refused at the next start, by a hub that has just been stopped."""
    assert refused_by_the_command_line(value) == refused_by_the_hub(tmp_path, value)


def test_each_rule_of_the_hub_is_met_by_a_value_that_breaks_it() -> None:
    """A new rule needs a value above, or the test before this one would not see it."""
    ruled = {setting.key for setting in settings.SETTINGS if setting.fault or setting.unit == "url" or setting.choices}
    refused = {
        key
        for key in ruled
        for value in VALUES
        if "\x01" not in value and "\x7f" not in value and not _takes(key, value)
    }
    assert ruled == refused


def test_the_numbers_within_the_rules_are_the_hubs() -> None:
    """Fields, roles, counts and lengths."""
    assert setting_tables.FIELDS == auth_settings.FIELDS
    assert set(setting_tables.ROLES) == {USER, AGENT}
    assert (setting_tables.MOST, setting_tables.LONGEST) == (auth_settings.MOST_ISSUERS, auth_settings.LONGEST)
    assert setting_rules.SHORTEST_SESSION_SECRET == web_settings.SHORTEST_SECRET
