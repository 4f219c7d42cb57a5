"""What one row of the tables of promises holds. `requirements.py` says what they are for."""

from typing import NamedTuple


class Requirement(NamedTuple):
    """One promise. `deferred` says why nothing proves it yet."""

    id: str
    row: str
    promise: str
    source: str
    deferred: str = ""
