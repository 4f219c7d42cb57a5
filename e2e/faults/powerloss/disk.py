"""Files and folders, each twice: as programs see them now, and as they are on the disk.

What lies between is a list of edits. A sync of a file carries out the file's edits; a sync of a folder those of its
names. A cut forgets the rest, or lets some of it survive: a beginning, torn at a sector, or sectors here and there.
Modes and times are not lost: nothing depends on them.
"""

import random
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import count

SECTOR = 512
_NUMBERS = count(1)


@dataclass(eq=False)
class Node:
    """What a file and a folder have in common."""

    mode: int
    number: int = field(default_factory=lambda: next(_NUMBERS))
    changed: float = field(default_factory=time.time)


@dataclass(frozen=True)
class Write:
    """Bytes at a place of a file."""

    at: int
    data: bytes

    def carry_out(self, content: bytearray) -> None:
        """Write them; what lies between the end and the place is zeros."""
        if len(content) < self.at:
            content.extend(bytes(self.at - len(content)))
        content[self.at : self.at + len(self.data)] = self.data

    def sectors(self) -> Iterator["Write"]:
        """Itself in pieces, as a disk writes them: in one go, or not."""
        begin = 0
        while begin < len(self.data):
            end = min(len(self.data), (self.at + begin) // SECTOR * SECTOR + SECTOR - self.at)
            yield Write(self.at + begin, self.data[begin:end])
            begin = end


@dataclass(frozen=True)
class Resize:
    """A file cut off, or made longer by zeros."""

    size: int

    def carry_out(self, content: bytearray) -> None:
        """Do it."""
        if len(content) < self.size:
            content.extend(bytes(self.size - len(content)))
        del content[self.size :]

    def sectors(self) -> Iterator["Resize"]:
        """It is done, or not."""
        yield self


Edit = Write | Resize


@dataclass(eq=False)
class File(Node):
    """Bytes."""

    now: bytearray = field(default_factory=bytearray)
    kept: bytearray = field(default_factory=bytearray)
    pending: list[Edit] = field(default_factory=list)

    def edit(self, edit: Edit) -> None:
        """Change what programs see."""
        edit.carry_out(self.now)
        self.pending.append(edit)
        self.changed = time.time()

    def sync(self) -> None:
        """Have it on the disk."""
        for edit in self.pending:
            edit.carry_out(self.kept)
        self.pending = []

    def lose(self, survivors: Iterable[Edit]) -> None:
        """What was on the disk, and the edits that survive, are all there is."""
        for edit in survivors:
            edit.carry_out(self.kept)
        self.pending = []
        self.now = bytearray(self.kept)


@dataclass(eq=False)
class Folder(Node):
    """Names."""

    now: dict[str, Node] = field(default_factory=dict)
    kept: dict[str, Node] = field(default_factory=dict)


Name = tuple[Folder, str]


@dataclass(frozen=True, eq=False)
class Renaming:
    """Names that change in one step; None: the name goes."""

    names: tuple[tuple[Folder, str, Node | None], ...]

    def touches(self, names: set[Name]) -> bool:
        """Whether one of these is among them."""
        return any((folder, name) in names for folder, name, _ in self.names)


Wanted = Callable[[Renaming], bool]


@dataclass
class Lost:
    """What a cut took: bytes and changes of names that were not synced, and how many survived all the same."""

    written: int = 0
    names: int = 0
    edits_survived: int = 0
    names_survived: int = 0


class Disk:
    """A tree of folders. `journal`: any sync carries out all changes of names, as journals of file systems do.

    Without it a name is on the disk only after a sync of its folder: what POSIX says, and not more.
    """

    def __init__(self, *, journal: bool = False) -> None:
        self.root = Folder(stat.S_IFDIR | 0o700)
        self.journal = journal
        self.pending: list[Renaming] = []

    def rename(self, *names: tuple[Folder, str, Node | None]) -> None:
        """Change names, in one step."""
        for folder, name, node in names:
            _set(folder.now, name, node)
            folder.changed = time.time()
        self.pending.append(Renaming(names))

    def sync(self, node: Node) -> None:
        """Have a file's content or a folder's names on the disk."""
        if isinstance(node, File):
            node.sync()
        if self.journal:
            self._keep(lambda _: True)
        elif isinstance(node, Folder):
            self._keep(lambda change: any(folder is node for folder, _, _ in change.names))

    def _keep(self, wanted: Wanted) -> int:
        """Carry out the changes of names that are wanted, and before each the earlier ones of the same names."""
        needed: set[Name] = set()
        chosen = []
        for change in reversed(self.pending):
            if wanted(change) or change.touches(needed):
                needed.update((folder, name) for folder, name, _ in change.names)
                chosen.append(change)
        for change in reversed(chosen):
            for folder, name, node in change.names:
                _set(folder.kept, name, node)
        self.pending = [change for change in self.pending if change not in chosen]
        return len(chosen)

    def is_unsynced(self) -> bool:
        """Whether a file that would be there after a cut has something that is not synced."""
        return any(isinstance(node, File) and node.pending for node in _below(self.root))

    def cut(self, chance: random.Random | None = None) -> Lost:
        """Lose what was not synced; with `chance`, some of it survives."""
        lost = Lost()
        if chance:
            lost.names_survived = self._keep(self._spared(chance))
        lost.names = len(self.pending)
        self.pending = []
        for node in _below(self.root):
            if isinstance(node, Folder):
                node.now = dict(node.kept)
            elif isinstance(node, File):
                survivors = _survivors(node.pending, chance) if chance else []
                written = sum(len(edit.data) for edit in node.pending if isinstance(edit, Write))
                lost.written += written - sum(len(edit.data) for edit in survivors if isinstance(edit, Write))
                lost.edits_survived += len(survivors)
                node.lose(survivors)
        return lost

    def _spared(self, chance: random.Random) -> Wanted:
        """A journal keeps the first so many; without one, any may be kept."""
        first = chance.randint(0, len(self.pending))
        if self.journal or chance.random() < 0.5:
            spared = self.pending[:first]
        else:
            spared = [change for change in self.pending if chance.random() < 0.5]
        return lambda change: change in spared


def _set(names: dict[str, Node], name: str, node: Node | None) -> None:
    if node is None:
        names.pop(name, None)
    else:
        names[name] = node


def _below(folder: Folder) -> Iterator[Node]:
    yield folder
    for node in folder.kept.values():
        if isinstance(node, Folder):
            yield from _below(node)
        else:
            yield node


def _survivors(edits: list[Edit], chance: random.Random) -> list[Edit]:
    """What is left of edits that were under way: a beginning that ends at some sector, or sectors of any."""
    pieces: list[Edit] = [piece for edit in edits for piece in edit.sectors()]
    if chance.random() < 0.5:
        return pieces[: chance.randint(0, len(pieces))]
    return [piece for piece in pieces if chance.random() < 0.5]
