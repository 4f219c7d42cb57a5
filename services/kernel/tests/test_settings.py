"""Settings: where each value comes from, and what is told about a wrong one. And the forms of time and ids."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mycelium_kernel import clock, names, settings
from mycelium_kernel.settings import BadSetting, Setting, Sourced

PORT = Setting("runtime.port", "int", 8000, "the port", aliases=("OLD_PORT",))
RATE = Setting("rate", "float", 0.5, "a rate")
ON = Setting("on", "bool", False, "a switch")
NAME = Setting("name", "str", "", "a name")
ALL = (PORT, RATE, ON, NAME)


def test_each_value_says_where_it_comes_from(tmp_path: Path) -> None:
    """Default, then the file, then the environment by its old and its current name; an empty one counts for nothing."""
    assert settings.load([PORT], tmp_path, {}) == {"runtime.port": Sourced(8000, "default")}
    (tmp_path / "config.toml").write_text('on = true\nrate = "2.5"\n[runtime]\nport = 1\n')
    assert settings.load([PORT], tmp_path, {"MYCELIUM_RUNTIME_PORT": ""})["runtime.port"] == Sourced(1, "config.toml")
    old = {"OLD_PORT": "2"}
    assert settings.load([PORT], tmp_path, old)["runtime.port"] == Sourced(2, "OLD_PORT")
    new = {**old, "MYCELIUM_RUNTIME_PORT": "3"}
    assert settings.load([PORT], tmp_path, new)["runtime.port"] == Sourced(3, "MYCELIUM_RUNTIME_PORT")
    found = settings.load(ALL, tmp_path, {"MYCELIUM_NAME": "x"})
    assert [found[setting.key].value for setting in ALL] == [1, 2.5, True, "x"]


@pytest.mark.parametrize("raw", ["yes", "ON", "1", True])
def test_a_switch_is_written_in_several_ways(raw: object) -> None:
    """The usual words for on and off."""
    assert settings.parse(ON, raw, "x") is True


@pytest.mark.parametrize(
    ("setting", "raw"),
    [
        (PORT, "1.5"),
        (PORT, True),
        (PORT, "a"),
        (PORT, 10**400),
        (PORT, -(2**63)),
        (RATE, "nan"),
        (RATE, "inf"),
        (RATE, 10**400),
        (RATE, {}),
        (ON, "maybe"),
        (NAME, ["a"]),
        (NAME, "a\0b"),
        (NAME, "\x1b[2J"),
    ],
)
def test_a_wrong_value_is_named_with_its_source(setting: Setting, raw: object) -> None:
    """The sentence names the setting, the source, and what would be right."""
    with pytest.raises(BadSetting, match=rf"{setting.key} is .* in here: use "):
        settings.parse(setting, raw, "here")


@pytest.mark.parametrize("text", ["a = ", "\udcff", "a = 1" + "0" * 5000, "a = " + "[" * 3000])
def test_a_file_that_cant_be_read_is_named(tmp_path: Path, text: str) -> None:
    """A broken file is not taken for an empty one."""
    (tmp_path / "config.toml").write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(BadSetting, match=r"config\.toml can't be read"):
        settings.load(ALL, tmp_path, {})


@pytest.mark.parametrize("text", ["http://h", "https://h.example:8443/v1?a=b", "http://[::1]:80", "http://user@h"])
def test_a_web_address_can_be_called(text: str) -> None:
    """A scheme of the web and a host."""
    assert settings.is_web_address(text)


@pytest.mark.parametrize(
    "text", ["", "h", "ftp://h", "http://", "http://[", "http://[zz]/", "http://h:x", "http://h:70000"]
)
def test_what_nobody_could_call_is_no_web_address(text: str) -> None:
    """Also what can't even be taken apart."""
    assert not settings.is_web_address(text)


def test_without_a_home_there_is_no_file() -> None:
    """As in a pod, where all is said by the environment."""
    assert settings.load([PORT], Path("/dev/null"), {}) == {"runtime.port": Sourced(8000, "default")}


def test_a_value_inside_what_is_no_table_is_not_there(tmp_path: Path) -> None:
    """`runtime = 1` says nothing about `runtime.port`."""
    (tmp_path / "config.toml").write_text("runtime = 1\n")
    assert settings.load([PORT], tmp_path, {})["runtime.port"].source == "default"


def test_the_home_is_named_by_the_environment_or_usual() -> None:
    """The newer name first."""
    assert settings.home({"MYCELIUM_HOME": "/a", "MYCELIUM_DATA_DIR": "/b"}) == Path("/a")
    assert settings.home({"MYCELIUM_DATA_DIR": "/b"}) == Path("/b")
    assert settings.home({}) == Path.home() / ".mycelium"


@given(st.integers(min_value=0, max_value=4102444800000))
def test_a_moment_is_the_same_in_every_form(millis: int) -> None:
    """Milliseconds, protobuf, datetime and RFC 3339 hold the same moment."""
    timestamp = clock.from_millis(millis)
    moment = clock.from_timestamp(timestamp)
    assert clock.to_millis(timestamp) == millis
    assert clock.to_timestamp(moment) == timestamp
    assert datetime.fromisoformat(clock.rfc3339(millis)) == moment


def test_now_is_in_utc_and_whole_milliseconds() -> None:
    """What is shown is what is stored."""
    now = clock.system_clock()
    assert abs(datetime.now(UTC) - now) < timedelta(seconds=5)
    assert now.microsecond % 1000 == 0


def test_ids_sort_by_the_time_they_were_made() -> None:
    """UUIDv7, in the one form that the grammar knows."""
    ids = [clock.new_id() for _ in range(100)]
    assert ids == sorted(ids)
    assert all(names.is_id(identifier) for identifier in ids)


@pytest.mark.parametrize(
    ("bounds", "raw", "said"),
    [
        ({"least": 1, "most": 9}, 0, "use 1 to 9"),
        ({"least": 1, "most": 9}, "10", "use 1 to 9"),
        ({"least": 1}, 0, "use 1 or more"),
        ({"choices": (1, 3)}, 2, "use one of 1, 3"),
    ],
)
def test_a_value_out_of_bounds_is_refused_with_what_may_be(bounds: dict[str, Any], raw: object, said: str) -> None:
    """Wherever it stands; one within them is taken, a word in any case."""
    setting = Setting("a.b", "int", 1, "why", **bounds)
    with pytest.raises(BadSetting, match=f"a.b is {raw} in config.toml: {said}"):
        settings.parse(setting, raw, "config.toml")
    assert settings.parse(setting, 3, "config.toml") == 3
    assert settings.parse(Setting("a.b", "str", "", "why", choices=("low", "high")), "HIGH", "x") == "high"
    assert Setting("a.b", "str", "", "why").allowed == ""
