"""The hub's settings: flag, environment, config.toml, default; a bad value is refused with its source."""

from __future__ import annotations

from pathlib import Path

import pytest

from mycelium_hub.errors import Refused
from mycelium_hub.settings import HubSettings, load


def test_the_defaults_are_a_private_hub_on_port_8000(tmp_path: Path) -> None:
    """What is documented."""
    assert load(tmp_path, {}) == HubSettings(8000, "127.0.0.1", (), False, "info", "")


def test_a_flag_wins_over_the_environment_over_the_file(tmp_path: Path) -> None:
    """Also port 0, which is a value."""
    (tmp_path / "config.toml").write_text("[runtime]\nbackend_port = 8001\nbind_addr = '::1'\n")
    assert load(tmp_path, {}).port == 8001
    assert load(tmp_path, {"MYCELIUM_BACKEND_PORT": "8002"}).port == 8002
    assert load(tmp_path, {"MYCELIUM_BACKEND_PORT": "8002"}, {"runtime.backend_port": 0}).port == 0
    assert load(tmp_path, {}).host == "::1"
    names = load(tmp_path, {"MYCELIUM_RUNTIME_ALLOWED_HOSTS": "hub.example.com, *.lan"}).allowed_hosts
    assert names == ("hub.example.com", "*.lan")
    assert load(tmp_path, {"MYCELIUM_BIND_ADDR": "127.0.0.2"}).host == "127.0.0.2"


@pytest.mark.parametrize(
    ("environ", "message"),
    [
        ({"MYCELIUM_BACKEND_PORT": "many"}, r"runtime\.backend_port is 'many' in MYCELIUM_BACKEND_PORT"),
        (
            {"MYCELIUM_BACKEND_PORT": "70000"},
            r"runtime\.backend_port is 70000 in MYCELIUM_BACKEND_PORT: use 0 to 65535",
        ),
        ({"MYCELIUM_AUTH_INSECURE": "perhaps"}, r"auth\.insecure is 'perhaps'.*use true or false"),
        (
            {"MYCELIUM_LLM_MAX_TURNS_PER_ROOM": "-1"},
            r"llm\.max_turns_per_room is -1 in MYCELIUM_LLM_MAX_TURNS_PER_ROOM: use 0 or more",
        ),
        (
            {"MYCELIUM_LLM_USD_PER_MILLION_INPUT_TOKENS": "cheap"},
            r"llm\.usd_per_million_input_tokens is 'cheap' in MYCELIUM_.*: use an amount of US dollars, such as 0\.15",
        ),
        ({"MYCELIUM_LOG_LEVEL": "loud"}, r"log\.level is 'loud' in MYCELIUM_LOG_LEVEL: use one of debug, info"),
    ],
)
def test_a_bad_value_is_refused_with_its_source(tmp_path: Path, environ: dict[str, str], message: str) -> None:
    """The one who set it can find it."""
    with pytest.raises(Refused, match=message):
        load(tmp_path, environ)


def test_a_file_that_is_not_toml_is_refused(tmp_path: Path) -> None:
    """With the file and the place in it."""
    (tmp_path / "config.toml").write_text("port = = 1")
    with pytest.raises(Refused, match=r"config\.toml can't be read: .*line 1"):
        load(tmp_path, {})
