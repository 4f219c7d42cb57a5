"""`mycelium-hub doctor`: everything that can be wrong with the hub of one home, in the order of cause and effect.

`mycelium doctor` runs it and adds what it sees from outside. A look that fails hides no other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping

from mycelium_hub import deep as deep_look
from mycelium_hub import examine_home, examine_log, examine_model, examine_tables, examine_tree
from mycelium_hub.finding import WRONG, Finding
from mycelium_hub.home import Home


def examine(home: Home, environ: Mapping[str, str], *, fix: bool = False, deep: bool = False) -> list[Finding]:
    """Every look's findings; `fix` mends what can be mended without asking, `deep` reads every byte that is kept."""
    found: list[Finding] = []
    for look in _looks(home, environ, deep=deep):
        try:
            seen = list(look())
        except Exception as error:
            seen = [Finding("doctor", WRONG, f"a look failed: {type(error).__name__}: {error}", "mycelium logs")]
        found += [finding.mended() for finding in seen] if fix else seen
    return found


def _looks(home: Home, environ: Mapping[str, str], *, deep: bool) -> Iterable[Callable[[], Iterable[Finding]]]:
    yield lambda: examine_home.check_settings(home)
    yield lambda: examine_home.check_files(home)
    yield lambda: examine_home.check_leftovers(home)
    yield lambda: examine_tree.check(home)
    yield lambda: examine_home.check_port(home, environ)
    yield lambda: examine_home.check_drift(home)
    yield lambda: examine_home.check_limits(home)
    told: list[examine_log.Told] = []  # what the server said is needed for the tables, too
    yield lambda: asyncio.run(examine_log.check(home, told))
    yield lambda: examine_tables.check(home, told[0] if told else None)
    yield lambda: examine_model.check(home, environ)
    if deep:
        yield lambda: deep_look.check(home)
