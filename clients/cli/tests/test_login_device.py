"""The device flow at an issuer that says everything which it may, and at one that goes away."""

from __future__ import annotations

import json

import pytest

from clients.cli.tests.issuing import KEY, SECRETS, attempt_at, form, granted, identity, keys, refused
from clients.cli.tests.scripted import CUT, ScriptedHub, answer
from mycelium_cli.errors import FORBIDDEN, REFUSED, Failure
from mycelium_cli.sign_in import device
from mycelium_cli.sign_in.device import Clock

CODE = {
    "device_code": "the-device-code",
    "user_code": "ABCD-EFGH",
    "verification_uri": "https://id.example/device",
    "verification_uri_complete": "https://id.example/device?user_code=ABCD-EFGH",
    "expires_in": 600,
    "interval": 1,
}


class Waiting:
    """Time that passes only by pauses, and what the person was told."""

    def __init__(self) -> None:
        self.now_s = 100.0
        self.pauses: list[float] = []
        self.told: list[str] = []

    @property
    def clock(self) -> Clock:
        return Clock(lambda: self.now_s, self._pause)

    def _pause(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now_s += seconds


def run(server: ScriptedHub, *script: bytes) -> tuple[Waiting, dict[str, object] | Failure]:
    """A sign-in against these answers."""
    server.play(*script)
    waiting = Waiting()
    try:
        return waiting, device.sign_in(attempt_at(server.url), waiting.told.append, waiting.clock)
    except Failure as failure:
        return waiting, failure


@pytest.fixture
def issuer(scripted: ScriptedHub) -> ScriptedHub:
    return scripted


@pytest.mark.parametrize("told", [b"1e999", b"-1e999", b"NaN", b"1" * 400, b"-" + b"1" * 400, b"true", b"[]", b'"5"'])
def test_numbers_that_are_none_are_no_bug(issuer: ScriptedHub, told: bytes) -> None:
    """Whatever JSON can hold."""
    code = json.dumps(CODE | {"expires_in": "E", "interval": "I"}).encode()
    waiting, _ = run(issuer, answer(200, code.replace(b'"E"', told).replace(b'"I"', told)), granted())
    assert all(1 <= pause <= 60 for pause in waiting.pauses)


def test_the_person_is_told_where_to_enter_what_and_the_issuer_is_asked_at_its_pace(issuer: ScriptedHub) -> None:
    """Address, code, the address with the code in it; then one question each interval."""
    pending = refused("authorization_pending")
    waiting, tokens = run(issuer, answer(200, CODE), pending, pending, granted())
    assert isinstance(tokens, dict)
    assert tokens["access_token"] == SECRETS[0]
    assert waiting.told == [
        "open https://id.example/device in a browser on any machine, and enter the code ABCD-EFGH",
        "or open https://id.example/device?user_code=ABCD-EFGH, where it is filled in",
        "the code is good for 10 minutes; waiting, Ctrl-C to give up",
    ]
    assert waiting.pauses == [1, 1, 1]
    asked = form(issuer.received[0])
    assert asked == {"client_id": "mycelium-cli", "scope": "profile offline_access", "audience": "mycelium"}
    polled = form(issuer.received[1])
    assert polled["grant_type"] == "urn:ietf:params:oauth:grant-type:device_code"
    assert polled["device_code"] == "the-device-code"


def test_slow_down_adds_five_seconds_each_time_for_good(issuer: ScriptedHub) -> None:
    """As RFC 8628 says; without an interval the first is five."""
    slow, pending = refused("slow_down"), refused("authorization_pending")
    without = {name: value for name, value in CODE.items() if name != "interval"}
    waiting, tokens = run(issuer, answer(200, without), slow, pending, slow, granted())
    assert isinstance(tokens, dict)
    assert waiting.pauses == [5, 10, 10, 15]


@pytest.mark.parametrize(
    ("error", "status", "said", "hint"),
    [
        ("access_denied", FORBIDDEN, "not signed in: it was denied (access_denied)", "mycelium login"),
        (
            "expired_token",
            REFUSED,
            "not signed in: the code expired before somebody entered it (expired_token)",
            "mycelium login --device, for a new one",
        ),
        ("invalid_grant", FORBIDDEN, "not signed in: invalid_grant", "mycelium login --device"),
    ],
)
def test_an_end_is_told_with_what_to_do(issuer: ScriptedHub, error: str, status: int, said: str, hint: str) -> None:
    """Denied, expired, or something else."""
    _, failure = run(issuer, answer(200, CODE), refused("authorization_pending"), refused(error))
    assert isinstance(failure, Failure)
    assert (failure.exit_status, failure.cause, failure.hint) == (status, said, hint)


def test_a_code_that_nobody_enters_ends_by_itself(issuer: ScriptedHub) -> None:
    """Also at an issuer that would say `pending` for ever."""
    pending = [refused("authorization_pending")] * 10
    waiting, failure = run(issuer, answer(200, CODE | {"expires_in": 4}), *pending)
    assert isinstance(failure, Failure)
    assert "expired" in failure.cause
    assert waiting.pauses == [1, 1, 1]


def test_a_lost_network_is_waited_out_ever_more_slowly(issuer: ScriptedHub) -> None:
    """Cut lines, an overloaded issuer: told once, and asked again until the code expires."""
    busy = answer(503, {"error": "temporarily_unavailable"})
    pending = refused("authorization_pending")
    waiting, tokens = run(issuer, answer(200, CODE), CUT, busy, CUT, pending, granted())
    assert isinstance(tokens, dict)
    assert waiting.pauses == [1, 2, 4, 8, 1]
    assert waiting.told[3].startswith(f"the issuer at {issuer.url} can't be reached (")
    assert waiting.told[3].endswith("; asking again until the code expires")
    assert waiting.told[4:] == ["the issuer answers again"]


def test_a_network_that_stays_lost_ends_with_the_code(issuer: ScriptedHub) -> None:
    """Not later, and not with a traceback."""
    waiting, failure = run(issuer, answer(200, CODE | {"expires_in": 60}), *[CUT] * 20)
    assert isinstance(failure, Failure)
    assert failure.exit_status == REFUSED
    assert waiting.now_s <= 160
    assert len(waiting.told) == 4


def test_a_client_that_may_not_use_codes_is_told(issuer: ScriptedHub) -> None:
    """With the issuer's own words, and without what was sent coming back."""
    no = refused("unauthorized_client", error_description="mycelium-cli has no\x1b[31m device grant")
    _, failure = run(issuer, no)
    assert isinstance(failure, Failure)
    assert failure.exit_status == FORBIDDEN
    assert failure.cause.endswith(
        "gives no code to enter: unauthorized_client: mycelium-cli has no\\x1b[31m device grant"
    )
    hint = "have the client mycelium-cli (login.client_id) at the issuer with the device grant, or use a browser"
    assert failure.hint == hint


def test_an_issuer_without_codes_is_told(issuer: ScriptedHub) -> None:
    """Before anything is asked."""
    with pytest.raises(Failure, match="has no sign-in by code"):
        device.sign_in(attempt_at(issuer.url, device_endpoint=""), print)
    assert issuer.received == []


def test_an_issuers_secrets_do_not_come_back_in_its_errors(issuer: ScriptedHub) -> None:
    """It may repeat what it was sent."""
    told = refused("invalid_grant", error_description="code the-device-code is not known")
    _, failure = run(issuer, answer(200, CODE), told)
    assert isinstance(failure, Failure)
    assert failure.cause == "not signed in: invalid_grant: code … is not known"


def test_what_is_no_token_is_not_taken_for_one(issuer: ScriptedHub) -> None:
    """An identity token that comes along must hold, though nobody has to send one here."""
    _, tokens = run(issuer, answer(200, CODE), granted(id_token=identity(issuer.url)), keys(KEY))
    assert isinstance(tokens, dict)
    _, failure = run(issuer, answer(200, CODE), granted(id_token=identity(issuer.url, aud="other")), keys(KEY))
    assert isinstance(failure, Failure)
    assert "does not hold (invalid_claim, aud)" in failure.cause
