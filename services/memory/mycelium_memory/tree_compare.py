"""Compares what lies in a room's folder with what was noted of it, and keeps the list of what is left alone."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath

from mycelium_kernel.callers import RoomRow
from mycelium_memory import keys, tree_scan
from mycelium_memory.model import document_id
from mycelium_memory.tree_base import Bases, Noted
from mycelium_memory.tree_disk import Disk, Illegal, Place, Signature
from mycelium_memory.tree_swap import Clash

SETTING = ".mycelium"
MANY = 20  # paths of one room, from which on its whole folder is looked at


@dataclass(frozen=True)
class Slot:
    """A document of a room, or a file that may become one, under the key that names the file."""

    room: RoomRow
    document_id: str
    key: str

    @classmethod
    def of(cls, room: RoomRow, key: str) -> Slot:
        return cls(room, document_id(keys.fold(key)), key)

    def named(self, key: str) -> Slot:
        return replace(self, key=key)

    @property
    def path(self) -> str:
        """The path of its file under the room's folder."""
        return str(keys.path(self.key))

    @property
    def place(self) -> Place:
        return Place((self.room.name, *self.path.split("/")))


@dataclass
class Scanned:
    """A room's folder, or some paths in it."""

    changed: list[Slot] = field(default_factory=list)  # to be settled, whatever the documents are at
    versions: dict[str, int] = field(default_factory=dict)  # of documents whose files are as they were
    hidden: list[Place] = field(default_factory=list)
    first: bool = False  # nothing was noted of the folder before


@dataclass
class Comparing:
    """One look at a room's folder."""

    disk: Disk
    bases: Bases
    room: RoomRow
    found: Scanned = field(default_factory=Scanned)

    def run(self, paths: Collection[str]) -> Scanned:
        """What is not as it was at some paths and in them; "" is the whole folder."""
        self.found.first = not self.bases.is_known(self.room.id)
        for path in [""] if "" in paths or len(paths) > MANY else sorted(paths):
            self._look(path)
        return self.found

    def _look(self, path: str) -> None:
        key = path.removesuffix(keys.ENDING)
        noted = {path_of(one.key): one for one in self.bases.noted(self.room.id, key)}
        if key != path:
            noted = {name: one for name, one in noted.items() if name == path}
        seen = tree_scan.scan(self.disk, self.room.name, path, noted)
        places: dict[str, str] = {}
        for name, now in seen.files.items():
            self._file(name, now, noted.get(name), places, seen.problems)
        for name, one in noted.items():
            if name not in seen.files and one.document_id not in places:
                self.found.changed.append(Slot(self.room, one.document_id, one.key))
        self._problems(path, seen)
        self.found.hidden += seen.hidden

    def _file(
        self, name: str, now: Signature, noted: Noted | None, places: dict[str, str], problems: dict[str, str]
    ) -> None:
        """A file that may be a document: as it was noted, or to be looked at."""
        slot = (
            Slot(self.room, noted.document_id, noted.key)
            if noted
            else Slot.of(self.room, keys.of_path(PurePosixPath(name)))
        )
        other = places.setdefault(slot.document_id, name)
        if other != name or (noted is None and self._is_other(slot, name)):
            problems[name] = f"a disk may take it for {other if other != name else self._noted(slot)!r}; rename it"
        elif noted and self._is_as_noted(slot, noted, now):
            self.found.versions[noted.document_id] = noted.version
        else:
            self.found.changed.append(slot)

    def _noted(self, slot: Slot) -> str:
        base = self.bases.get(slot.room.id, slot.document_id)
        return slot.named(base.key).path if base else slot.path

    def _is_other(self, slot: Slot, name: str) -> bool:
        """Whether the document has a file of another spelling, which is still there."""
        right = self._noted(slot)
        return right not in (name, slot.path) and self.disk.is_there(Place((self.room.name, *right.split("/"))))

    def _is_as_noted(self, slot: Slot, noted: Noted, now: Signature) -> bool:
        if not noted.exact:
            return False
        if noted.is_as(now):
            return True
        try:
            base, found = self.bases.get(slot.room.id, slot.document_id), self.disk.read(slot.place)
        except (Illegal, Clash):
            return False
        if base is None or found is None or found.digest != base.digest:
            return False
        self.bases.put(slot.room.id, slot.document_id, base, found.signature)
        return True

    def _problems(self, path: str, seen: tree_scan.Seen) -> None:
        for name in self.bases.problems(self.room.id, path):
            if name not in seen.problems and name not in seen.files and name != SETTING:
                self.bases.mend(self.room.id, name)
        for name, reason in seen.problems.items():
            self.bases.report(self.room.id, self.room.name, name, reason)


def path_of(key: str) -> str:
    """The path of a key's file."""
    return str(keys.path(key))
