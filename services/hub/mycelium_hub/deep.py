"""`mycelium-hub doctor --deep`: reads every byte of the log's stores and compares the tables with what it reads.

What a running hub changes meanwhile is no finding: what was seen wrong is looked at again.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from mycelium_hub import deep_mend
from mycelium_hub.deep_compare import Replica
from mycelium_hub.deep_rebuild import Rebuild
from mycelium_hub.deep_store import Damage, Store
from mycelium_hub.finding import NOTE, OK, WRONG, Finding
from mycelium_hub.home import Home
from mycelium_hub.services import projections

AGAIN_S = 0.5
LOOKS = 4
FEW = 5  # facts that are told one by one
RESTORE = "mycelium down, then bring back a copy of the home: a server that meets such a record drops what follows it"
COPY = "mycelium down && rm -r {store} && mycelium up: the other servers copy theirs"


def check(home: Home) -> list[Finding]:
    """What is wrong with what this home keeps, a line each; what is whole, a line for each store and table file."""
    found = _look(home)
    for _ in range(LOOKS):
        before = {finding.seen for finding in found if finding.state == WRONG}
        if home.owner() is None or not before:
            break
        time.sleep(AGAIN_S)
        found = [finding for finding in _look(home) if finding.state != WRONG or finding.seen in before]
        if before == {finding.seen for finding in found if finding.state == WRONG}:
            break
    return found


def _look(home: Home) -> list[Finding]:
    """Hold the tables first and read the stores then: those have whatever the tables have."""
    stores = [Store(path) for path in home.stores]
    if not stores:
        return [Finding("store", NOTE, "there is none yet", "mycelium up")]
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="mycelium-doctor-")))
        replicas = [
            Replica.open(path, name, projection)
            for name, projection in projections().items()
            for path in home.table_files(name)
        ]
        for replica in replicas:
            stack.callback(replica.close)
        chosen, rebuilds = _rebuild(stores, folder, [replica for replica in replicas if replica.is_open])
        for rebuild in rebuilds:
            stack.callback(rebuild.close)
        others = [line for store in stores if store is not chosen for line in _other(store, rebuilds)]
        said = [line for store in stores for line in _store(home, store, stores)] + others
        said += [line for replica in replicas for line in _lost(chosen, replica)]
        return said + [line for replica in replicas for line in _tables(home, replica)]


def _rebuild(stores: list[Store], folder: Path, replicas: list[Replica]) -> tuple[Store, list[Rebuild]]:
    """Make the tables from the first store that has every fact; from the last one when none has."""
    chosen, rebuilds = stores[0], list[Rebuild]()
    for place, store in enumerate(stores):
        for rebuild in rebuilds:
            rebuild.close()
        chosen = store
        rebuilds = [
            Rebuild(
                folder / f"{place}-{name}.sqlite",
                name,
                projection,
                store.epoch or next((replica.epoch for replica in replicas), ""),
                [replica for replica in replicas if replica.name == name],
            )
            for name, projection in projections().items()
        ]
        for fact in store.read():
            for rebuild in rebuilds:
                rebuild.take(fact)
        if _is_whole(store, replicas):
            break
    for rebuild in rebuilds:
        rebuild.finish(is_whole=_is_whole(chosen, replicas))
    return chosen, rebuilds


def _is_whole(store: Store, replicas: list[Replica]) -> bool:
    """Whether a store has every fact that the tables have read."""
    return not store.is_lossy and store.last >= max((one.position for one in replicas), default=0)


def _store(home: Home, store: Store, stores: list[Store]) -> Iterator[Finding]:
    """A store's own files."""
    for damage in store.damage:
        seen = f"{damage.path.relative_to(home.path)}: {damage.what}"
        yield Finding("store", WRONG, seen, _advice(damage, store, stores), deep_mend.of_store(home, damage))
    if store.kept:
        seen = f"{store.path.name}: {len(store.kept)} blocks were mended at a start with the loss of a record"
        yield Finding("store", NOTE, f"{seen}; as they were they are in {store.kept[0].parent}")
    if not store.damage:
        unsealed = f"; {store.unsealed} small files have none" if store.unsealed else ""
        seen = f"{store.path.name}: {store.facts} facts, {store.size / 1e6:.1f} MB, every checksum is right{unsealed}"
        yield Finding("store", OK, seen)


def _advice(damage: Damage, store: Store, stores: list[Store]) -> str:
    if damage.is_mendable:
        return deep_mend.NEXT
    return COPY.format(store=store.path) if len(stores) > 1 else RESTORE


def _other(store: Store, rebuilds: list[Rebuild]) -> Iterator[Finding]:
    """Another server's store, by the chains of the first."""
    facts = [] if store.is_read else list(store.read())
    for rebuild in rebuilds:
        for room, fact in list(rebuild.differing(facts))[:FEW]:
            seen = (
                f"{store.path.name}: fact {fact.sequence} of room {room}, or one before it, is not that of the others"
            )
            yield Finding("store", WRONG, seen, COPY.format(store=store.path))


def _lost(store: Store, replica: Replica) -> Iterator[Finding]:
    """What the tables have read that the store has no more."""
    lost = replica.lost
    if lost:
        listed = ", ".join(f"{sequence} of room {room}" for room, sequence in lost[:FEW])
        more = f" and {len(lost) - FEW} more" if len(lost) > FEW else ""
        seen = f"{store.path.name}: lacks fact {listed}{more}, which {replica.path.name} has read"
        yield Finding("store", WRONG, seen, RESTORE)


def _tables(home: Home, replica: Replica) -> Iterator[Finding]:
    name = replica.path.relative_to(home.path)
    mend = deep_mend.of_tables(home, replica.path)
    for seen in replica.found:
        yield Finding("contents", WRONG, f"{name}: {seen}", deep_mend.NEXT, mend)
    if not replica.found and replica.is_compared:
        yield Finding("contents", OK, f"{name}: row by row what the log says, up to fact {replica.position}")
    elif not replica.found:
        seen = f"{name}: up to fact {replica.position}; not compared, since the log lacks facts"
        yield Finding("contents", NOTE, seen, "")
