"""Spans of time as people type them, and the zone of this machine."""

import os

from mycelium_cli.errors import usage

_UNITS_S = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_NAMES = {"s": "seconds", "m": "minutes"}  # of the units that a number alone may have
_ZONES = "/zoneinfo/"


def duration_s(typed: str, flag: str, unit: str = "s") -> float:
    """Seconds from `120`, `90s`, `30m`, `2h` or `14d`; `unit` is that of a number alone."""
    number, unit_s = typed.strip(), _UNITS_S[unit]
    if number and number[-1] in _UNITS_S:
        number, unit_s = number[:-1], _UNITS_S[number[-1]]
    if not (number.isascii() and number.replace(".", "", 1).isdigit()):
        raise usage(f'{flag} is {_NAMES[unit]}, or a time like 90s, 30m or 2h, not "{typed}"')
    return float(number) * unit_s


def zone() -> str:
    """The IANA name of $TZ, else of this machine's zone, by which `today` begins; empty when it has none."""
    named = os.environ.get("TZ", "").strip().lstrip(":")
    found = os.path.realpath(named if named.startswith("/") else "/etc/localtime")
    if named and not named.startswith("/"):
        return named if is_zone(named) else ""  # a rule such as CET-1CEST has no name that the hub could know
    return found.rpartition(_ZONES)[2] if _ZONES in found else ""


def is_zone(name: str) -> bool:
    """Whether a zone has this name. A machine that knows no zones at all leaves it to the hub."""
    if name == "UTC":
        return True
    import zoneinfo

    try:
        zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return "/" in name and not zoneinfo.available_timezones()
    return True
