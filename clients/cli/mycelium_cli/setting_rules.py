"""What a text may be as a setting, beyond its type and bounds: `config set`, `doctor` and every reader ask here.

The hub has the same rules for what it reads itself, in its own words; `tests/test_settings_agree.py` gives both the
same values and fails where one takes what the other would not.
"""

import ipaddress
import re
from collections.abc import Callable

from mycelium_cli import handles, setting_tables

SHORTEST_SESSION_SECRET = 32
NONE = "none"  # how the environment of a cluster says that there is none
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_HOST = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,252}[A-Za-z0-9_])?\.?")
_AMOUNT = re.compile(r"[0-9]{1,6}(\.[0-9]{1,6})?")


def fault_of(key: str, unit: str, text: str) -> str:
    """What is wrong with a text, to be read after the name of its setting; empty for nothing."""
    if _CONTROL.search(text):
        return "is a text without control characters; what came has some"
    if key == "auth.session_secret":
        return _session_secret(text)
    rule = _BY_UNIT.get(unit)
    return rule(text) if rule else ""


def is_web_address(text: str) -> bool:
    """Whether a program could be sent there: `http://` or `https://`, a host, perhaps a port and more."""
    from urllib.parse import urlsplit

    try:
        place = urlsplit(text)
        found = place.scheme in {"http", "https"} and bool(place.hostname) and place.port != 0
    except ValueError:  # brackets or a port that can't be
        return False
    return found and not any(letter.isspace() for letter in text)


def is_loopback(host: str) -> bool:
    """Whether a host is this machine by its very name, so that no other machine reaches it."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _session_secret(text: str) -> str:
    length = len(text.strip())
    least = SHORTEST_SESSION_SECRET
    return "" if not length or length >= least else f"has {least} characters or more; what came has {length}"


def _claim(text: str) -> str:
    return "" if text.strip() else "is the name of a claim, and not empty"


def _handles(text: str) -> str:
    wrong = next((one for one in _parts(text) if not handles.folded(one)), "")
    return f'holds "{wrong}", which is no handle ({handles.RULE})' if wrong else ""


def _networks(text: str) -> str:
    wrong = next((one for one in _parts(text) if one != "*" and not _is_network(one)), "")
    return f'holds "{wrong}": use addresses or networks parted by commas, or * for every proxy' if wrong else ""


def _is_network(text: str) -> bool:
    try:
        ipaddress.ip_network(text, strict=False)
    except ValueError:
        return False
    return True


def _host(text: str) -> str:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        if not _HOST.fullmatch(text):
            return f'is an address of this machine, such as 127.0.0.1, or 0.0.0.0 for all of them, not "{text}"'
    return ""


def _amount(text: str) -> str:
    said = text.strip()
    return (
        ""
        if said in {"", NONE} or _AMOUNT.fullmatch(said)
        else f'is an amount of US dollars, such as 0.15, not "{text}"'
    )


def _model(text: str) -> str:
    whole = not text or all(text.partition("/"))
    return "" if whole else f'is provider/model, such as anthropic/claude-sonnet-4-6, not "{text}"'


def _room(text: str) -> str:
    other = "/" in text or text in {".", ".."}  # no address of the hub could name it
    return f'is a room\'s name, without slashes and not dots alone, not "{text}"' if other else ""


def _parts(text: str) -> list[str]:
    return text.replace(",", " ").split()


_BY_UNIT: dict[str, Callable[[str], str]] = {
    setting_tables.UNIT: setting_tables.fault_of,
    "address": _host,
    "addresses": _networks,
    "claim": _claim,
    "handles": _handles,
    "provider/model": _model,
    "room": _room,
    "US dollars": _amount,
}
