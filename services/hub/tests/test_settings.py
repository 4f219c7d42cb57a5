"""The hub's settings: flag, environment, config.toml, default; a bad value is refused with its source."""

from __future__ import annotations

from pathlib import Path

import pytest

from mycelium_gateway.issuers import AuthSettings, Issuer
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
            r"llm\.max_turns_per_room is -1 in MYCELIUM_LLM_MAX_TURNS_PER_ROOM: use 0 to 1000000000000",
        ),
        (
            {"MYCELIUM_LLM_USD_PER_MILLION_INPUT_TOKENS": "cheap"},
            r"llm\.usd_per_million_input_tokens is 'cheap' in MYCELIUM_.*: use an amount of US dollars, such as 0\.15",
        ),
        ({"FORWARDED_ALLOW_IPS": "proxy"}, r"runtime\.trusted_proxies in FORWARDED_ALLOW_IPS: 'proxy' is no address"),
        ({"MYCELIUM_AUTH_ISSUERS": "https://a.example"}, r"auth\.issuers in MYCELIUM_AUTH_ISSUERS is no JSON"),
        ({"MYCELIUM_AUTH_ISSUERS": "{}"}, r"auth\.issuers in .*: use tables, each begun by \[\[auth\.issuers\]\]"),
        ({"MYCELIUM_AUTH_HANDLE_CLAIM": " "}, r"auth\.handle_claim in .*: use the name of a claim"),
        ({"MYCELIUM_AUTH_LEEWAY_S": "3600"}, r"auth\.leeway_s is 3600 in .*: use 0 to 600"),
        ({"MYCELIUM_LOG_LEVEL": "loud"}, r"log\.level is 'loud' in MYCELIUM_LOG_LEVEL: use one of debug, info"),
    ],
)
def test_a_bad_value_is_refused_with_its_source(tmp_path: Path, environ: dict[str, str], message: str) -> None:
    """The one who set it can find it."""
    with pytest.raises(Refused, match=message):
        load(tmp_path, environ)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("role = 'user'", r"issuer 1: issuer is missing"),
        ("issuer = 'https://a.example'\nrole = 'boss'", r"issuer 1: role is 'boss': use user or agent"),
        ("issuer = 'https://a.example'\njwks_uri = 'x'", r"jwks_uri is no field; did you mean jwks_url\?"),
        ("issuer = 'https://a.example'\nleeway = 'x'", r"leeway is no field; there are issuer, jwks_url, audience"),
        ("issuer = 'https://a.example'\njwks_url = 'keys'", r"jwks_url is 'keys': use an http:// or https:// address"),
        ("issuer = 'people'", r"issuer is 'people', no http:// or https:// address: say by jwks_url"),
        ("issuer = 7", r"issuer is 7: use a text"),
        ("issuer = ' https://a.example'", r"use a text without blanks around it"),
        ("issuer = 2026-01-01", r"auth\.issuers in config\.toml: use texts"),
        ("issuer = 'https://a.example'\n[[auth.issuers]]\nissuer = 'https://a.example'", r"issuer 2: .* there twice"),
    ],
)
def test_an_issuer_that_cant_be_is_refused_in_one_line(tmp_path: Path, table: str, message: str) -> None:
    """With its place in the list, what is wrong, and what would do."""
    (tmp_path / "config.toml").write_text(f"[[auth.issuers]]\n{table}\n")
    with pytest.raises(Refused, match=message) as refused:
        load(tmp_path, {})
    assert "\n" not in str(refused.value)


def test_issuers_are_tables_of_the_file_or_json_of_the_environment(tmp_path: Path) -> None:
    """Both make the same; what a table leaves out is empty."""
    (tmp_path / "config.toml").write_text(
        "[auth]\nenabled = true\naudience = 'mycelium'\nleeway_s = 5\n"
        "[[auth.issuers]]\nissuer = 'https://people.example'\nrole = 'user'\n"
        "[[auth.issuers]]\nissuer = 'agents'\njwks_url = 'https://agents.example/keys'\nhandle_claim = 'azp'\n"
    )
    people = Issuer("https://people.example", role="user")
    agents = Issuer("agents", "https://agents.example/keys", handle_claim="azp")
    wanted = AuthSettings(enabled=True, issuers=(people, agents), audience="mycelium", leeway_s=5)
    assert load(tmp_path, {}).auth == wanted
    written = '[{"issuer": "https://people.example", "role": "user"}]'
    assert load(tmp_path, {"MYCELIUM_AUTH_ISSUERS": written}).auth.issuers == (people,)
    assert load(tmp_path, {"MYCELIUM_AUTH_ISSUERS": "[]"}).auth.issuers == ()


def test_sign_in_is_off_by_default_and_as_documented(tmp_path: Path) -> None:
    """The defaults of every setting of auth."""
    found = load(tmp_path, {})
    assert found.auth == AuthSettings(False, (), "", True, "sub", "mycelium_role", 60, 300)
    assert found.trusted_proxies == ""


def test_a_file_that_is_not_toml_is_refused(tmp_path: Path) -> None:
    """With the file and the place in it."""
    (tmp_path / "config.toml").write_text("port = = 1")
    with pytest.raises(Refused, match=r"config\.toml can't be read: .*line 1"):
        load(tmp_path, {})


SESSION = "only-for-tests-0123456789abcdef-WXYZ"


def test_each_secret_has_a_file_of_its_own_and_is_shown_by_its_end(tmp_path: Path) -> None:
    """The environment wins over the file, the file over `config.toml`; nothing that is told holds it whole."""
    (tmp_path / "secrets").mkdir()
    (tmp_path / "config.toml").write_text(
        f"[oidc]\nissuer = 'https://sso.example'\n[auth]\nsession_secret = '{SESSION}-file'\n"
    )
    found = load(tmp_path, {})
    assert found.web.session_secret == f"{SESSION}-file"
    (tmp_path / "secrets" / "auth_session_secret").write_text(f"{SESSION}\n")
    (tmp_path / "secrets" / "oidc_client_secret").write_text("of-the-client-1234\n")
    found = load(tmp_path, {})
    assert (found.web.session_secret, found.web.client_secret) == (SESSION, "of-the-client-1234")
    assert found.web.is_on
    assert (found.found["auth.session_secret"].value, found.found["auth.session_secret"].source) == (
        "…WXYZ",
        "secrets/auth_session_secret",
    )
    assert load(tmp_path, {"AUTH_SESSION_SECRET": "e" * 40}).web.session_secret == "e" * 40
    assert SESSION not in repr(found)
    assert "of-the-client" not in repr(found)


def test_a_secret_that_cant_be_is_refused_without_being_repeated(tmp_path: Path) -> None:
    """Too short to seal anything with, or with characters that no file should hold."""
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "auth_session_secret").write_text("short-words\n")
    wrong: tuple[dict[str, str], ...] = (
        {},
        {"AUTH_SESSION_SECRET": "short-words"},
        {"AUTH_SESSION_SECRET": "short-words\x07" + "x" * 40},
    )
    for environ in wrong:
        with pytest.raises(Refused, match="session_secret") as refused:
            load(tmp_path, environ)
        assert "short-words" not in str(refused.value)
