"""The device flow (RFC 8628): the person enters a code in a browser on any machine, while this one asks for the result.

Nothing is kept here, so an interrupted sign-in leaves nothing behind.
"""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

from mycelium_cli.errors import FORBIDDEN, REFUSED, Failure
from mycelium_cli.output import clean_line
from mycelium_cli.sign_in import asking, identity_token
from mycelium_cli.sign_in.asking import Said, Silent
from mycelium_cli.sign_in.granted import Attempt

_GRANT = "urn:ietf:params:oauth:grant-type:device_code"
_INTERVAL_S, _SLOWER_S, _LONGEST_INTERVAL_S = 5.0, 5.0, 60.0
_UNSAID_S, _LONGEST_S = 600.0, 3600.0


class Code(NamedTuple):
    """What the issuer gave: the person's code and this machine's, and how long and how often to ask."""

    device_code: str
    user_code: str
    address: str
    whole_address: str
    lasts_s: float
    interval_s: float


class Clock(NamedTuple):
    """Time as this flow sees it."""

    now_s: Callable[[], float] = time.monotonic
    pause: Callable[[float], None] = time.sleep


def sign_in(trying: Attempt, tell: Callable[[str], None], clock: Clock = Clock()) -> dict[str, Any]:  # noqa: B008 - a constant
    """The tokens of whoever enters the code, or why nobody did."""
    if not trying.at.device_endpoint:
        cause = f"the issuer {trying.at.issuer} has no sign-in by code (device flow)"
        raise Failure(cause, hint="mycelium login, on a machine with a browser")
    begun_s = clock.now_s()
    code = _code(trying)
    tell(
        f"open {clean_line(code.address)} in a browser on any machine, and enter the code {clean_line(code.user_code)}"
    )
    if code.whole_address:
        tell(f"or open {clean_line(code.whole_address)}, where it is filled in")
    tell(f"the code is good for {_period(code.lasts_s)}; waiting, Ctrl-C to give up")
    tokens = _wait(trying, code, tell, clock, begun_s + code.lasts_s)
    identity_token.check(trying.at, trying.program.client_id, tokens, wanted=False)
    return tokens


def _code(trying: Attempt) -> Code:
    form = {"scope": trying.scopes, "audience": trying.audience}
    said = asking.post(trying.at.device_endpoint, form, trying.program)
    told = said.document
    if said.status != 200 or not all(isinstance(told.get(name), str) for name in ("device_code", "user_code")):
        cause = f"the issuer {trying.at.issuer} gives no code to enter: {asking.refusal(said, form)}"
        client = clean_line(trying.program.client_id)
        hint = f"have the client {client} (login.client_id) at the issuer with the device grant, or use a browser"
        raise Failure(cause, exit_status=FORBIDDEN, hint=hint)
    return Code(
        device_code=told["device_code"],
        user_code=told["user_code"],
        address=str(told.get("verification_uri") or told.get("verification_url") or trying.at.issuer),
        whole_address=str(told.get("verification_uri_complete") or ""),
        lasts_s=_number(told.get("expires_in"), _UNSAID_S, _LONGEST_S),
        interval_s=_number(told.get("interval"), _INTERVAL_S, _LONGEST_INTERVAL_S),
    )


def _number(told: object, unsaid: float, most: float) -> float:
    # Compared before it is a float, for which it may be too large; NaN is the least.
    return float(min(max(1.0, told), most)) if isinstance(told, int | float) else unsaid


def _wait(trying: Attempt, code: Code, tell: Callable[[str], None], clock: Clock, end_s: float) -> dict[str, Any]:
    """Ask at the issuer's pace until it has an answer or the code has expired."""
    form = {"grant_type": _GRANT, "device_code": code.device_code, "audience": trying.audience}
    interval_s, silent = code.interval_s, False
    while clock.now_s() + interval_s < end_s:
        clock.pause(interval_s)
        try:
            said = asking.post(trying.at.token_endpoint, form, trying.program)
        except Silent as failure:
            if not silent:
                tell(f"{failure.cause}; asking again until the code expires")
            silent = True
            interval_s = min(interval_s * 2, _LONGEST_INTERVAL_S)
            continue
        if silent:
            tell("the issuer answers again")
            silent, interval_s = False, code.interval_s
        if said.status == 200:
            return said.document
        if said.error == "slow_down":
            interval_s += _SLOWER_S
        elif said.error != "authorization_pending":
            raise _over(said, form)
    raise _expired()


def _over(said: Said, form: dict[str, str]) -> Failure:
    if said.error == "expired_token":
        return _expired()
    if said.error == "access_denied":
        return Failure("not signed in: it was denied (access_denied)", exit_status=FORBIDDEN, hint="mycelium login")
    return Failure(
        f"not signed in: {asking.refusal(said, form)}", exit_status=FORBIDDEN, hint="mycelium login --device"
    )


def _expired() -> Failure:
    cause = "not signed in: the code expired before somebody entered it (expired_token)"
    return Failure(cause, exit_status=REFUSED, hint="mycelium login --device, for a new one")


def _period(seconds: float) -> str:
    return f"{seconds / 60:.0f} minutes" if seconds >= 120 else f"{seconds:.0f} s"
