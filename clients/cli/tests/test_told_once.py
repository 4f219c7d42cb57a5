"""What stands in one place for people and agents alike: warnings told once, what a token may be, what a hub says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from mycelium_cli import warnings_once
from mycelium_cli.health import SignIn, sign_in_of
from mycelium_cli.sign_in import bearer


@pytest.fixture(autouse=True)
def _as_a_new_command() -> Iterator[None]:
    warnings_once.forget()
    yield
    warnings_once.forget()


def test_a_warning_is_told_once_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    """And can't write to the terminal, since it may quote an issuer."""
    for _ in range(2):
        warnings_once.warn("the issuer said \x1b[2J")
    assert capsys.readouterr().err == "warning: the issuer said \\x1b[2J\n"


def test_nothing_is_told_while_the_shell_completes(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would stand in the middle of what is being typed."""
    monkeypatch.setenv("_MYCELIUM_COMPLETE", "bash_complete")
    warnings_once.warn("@ci has no token")
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("answer", "token"),
    [
        ({"access_token": "abc"}, "abc"),
        ({"access_token": "abc", "token_type": "Bearer"}, "abc"),
        ({"access_token": "abc", "token_type": "DPoP"}, ""),
        ({"access_token": "a b"}, ""),
        ({"access_token": "a\n"}, ""),
        ({"access_token": 7}, ""),
        ({"access_token": "x" * 50_001}, ""),
        ({}, ""),
    ],
)
def test_a_bearer_token_is_one_word_that_can_be_sent(answer: dict[str, Any], token: str) -> None:
    """Of people and of agents alike."""
    assert bearer.token_of(answer) == token


@pytest.mark.parametrize("said", [None, 0, -5, "soon", [], float("nan"), float("inf"), 10**400])
def test_a_time_that_is_none_counts_as_not_said(said: object) -> None:
    """It would be the end of a token that never ends, or a fault of this program."""
    assert bearer.lasts_s({"expires_in": said}) == 0.0


def test_a_time_may_be_a_number_or_a_text() -> None:
    """Some issuers write it so."""
    assert (bearer.lasts_s({"expires_in": 300}), bearer.lasts_s({"expires_in": "300"})) == (300.0, 300.0)


def test_what_a_hub_says_of_signing_in_is_read_in_one_way() -> None:
    """The last slash of an issuer makes no difference; its own way to write it is kept."""
    auth = {"enabled": True, "issuers": ["https://a/", "https://b"], "audience": "m", "localhost_bypass": True}
    said = sign_in_of({"auth": auth})
    assert said == SignIn(enabled=True, issuers=("https://a/", "https://b"), audience="m", localhost_bypass=True)
    assert (said.named("https://a"), said.named("https://c")) == ("https://a/", "")


@pytest.mark.parametrize("answer", [None, [], {}, {"auth": None}, {"auth": {}}, {"auth": {"enabled": 1, "issuers": 5}}])
def test_what_is_no_hubs_answer_says_nothing_of_signing_in(answer: object) -> None:
    """Another program may have the port."""
    assert sign_in_of(answer) is None
