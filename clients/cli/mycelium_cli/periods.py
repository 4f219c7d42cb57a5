"""Spans of time as people type them, and the zone of this machine."""

import os

from mycelium_cli.errors import usage

_UNITS_S = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_ZONES = "/zoneinfo/"


def duration_s(typed: str, flag: str) -> float:
    """Seconds from `120`, `90s`, `30m`, `2h` or `14d`."""
    number, unit_s = typed.strip(), 1
    if number and number[-1] in _UNITS_S:
        number, unit_s = number[:-1], _UNITS_S[number[-1]]
    if not (number.isascii() and number.replace(".", "", 1).isdigit()):
        raise usage(f'{flag} is seconds, or a time like 90s, 30m or 2h, not "{typed}"')
    return float(number) * unit_s


def zone() -> str:
    """The IANA name of this machine's time zone, by which `today` begins; empty when it has none."""
    named = os.environ.get("TZ", "").lstrip(":")
    found = os.path.realpath(named if named.startswith("/") else "/etc/localtime")
    if named and not named.startswith("/"):
        # A rule such as CET-1CEST has no name that the hub could know.
        return named if named == "UTC" or "/" in named else ""
    return found.rpartition(_ZONES)[2] if _ZONES in found else ""
