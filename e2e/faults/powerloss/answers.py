"""What a disk answers to the kernel: no write is held back there, so that a sync finds everything here."""

import errno
import os
import stat
from collections import Counter
from collections.abc import Callable

from e2e.faults.powerloss import protocol
from e2e.faults.powerloss.disk import Disk, File, Folder, Node, Resize, Write
from e2e.faults.powerloss.protocol import Answer, Operation, Request

ROOT = 1
BLOCK = 4096
BLOCKS = 1 << 22  # 16 GB, none of it ever in use
SET_MODE, SET_SIZE = 1, 8
NO_REPLACE = 1


def fail(code: int) -> OSError:
    """What the kernel is told."""
    return OSError(code, os.strerror(code))


class Answers:
    """The answers of one disk in one mount: which node the kernel knows by which number."""

    def __init__(self, disk: Disk) -> None:
        self.disk = disk
        self.known: dict[int, Node] = {ROOT: disk.root}
        self.asked: Counter[int] = Counter()

    def table(self) -> dict[int, Answer]:
        """The answer to each operation. What is not here is not there, and the kernel does without."""
        said: dict[int, Callable[[Request], bytes]] = {
            Operation.LOOKUP: lambda request: self._entry(self._named(request, request.names()[0])),
            Operation.FORGET: lambda request: self._forget(request.node, int.from_bytes(request.body[:8], "little")),
            Operation.BATCH_FORGET: self._forget_several,
            Operation.GETATTR: lambda request: self._attributes(self.known[request.node]),
            Operation.SETATTR: self._set_attributes,
            Operation.MKDIR: self._make_folder,
            Operation.CREATE: self._create,
            Operation.UNLINK: self._remove,
            Operation.RMDIR: self._remove,
            Operation.RENAME: lambda request: self._rename(request, 8),
            Operation.RENAME2: lambda request: self._rename(request, 16),
            Operation.READ: self._read,
            Operation.WRITE: self._write,
            Operation.FSYNC: self._sync,
            Operation.FSYNCDIR: self._sync,
            Operation.READDIR: self._list,
            Operation.STATFS: lambda _: protocol.STATFS.pack(BLOCKS, BLOCKS, BLOCKS, 0, 0, BLOCK, 255, BLOCK, 0),
        }
        nothing = (Operation.RELEASE, Operation.RELEASEDIR, Operation.DESTROY, Operation.INTERRUPT)
        opened = (Operation.OPEN, Operation.OPENDIR)
        return said | dict.fromkeys(nothing, lambda _: b"") | dict.fromkeys(opened, lambda _: bytes(16))

    # Nodes and their numbers.

    def _folder(self, number: int) -> Folder:
        node = self.known[number]
        if not isinstance(node, Folder):
            raise fail(errno.ENOTDIR)
        return node

    def _file(self, number: int) -> File:
        node = self.known[number]
        if not isinstance(node, File):
            raise fail(errno.EISDIR)
        return node

    def _named(self, request: Request, name: str) -> Node:
        node = self._folder(request.node).now.get(name)
        if node is None:
            raise fail(errno.ENOENT)
        return node

    def _number(self, node: Node) -> int:
        return ROOT if node is self.disk.root else node.number + ROOT

    def _entry(self, node: Node) -> bytes:
        number = self._number(node)
        self.known[number] = node
        self.asked[number] += 1
        return protocol.ENTRY.pack(number, 0, 0, 0, 0, 0) + self._packed(node)

    def _forget(self, number: int, times: int) -> bytes:
        self.asked[number] -= times
        if self.asked[number] <= 0 and number != ROOT:
            del self.asked[number]
            self.known.pop(number, None)
        return b""

    def _forget_several(self, request: Request) -> bytes:
        count = int.from_bytes(request.body[:4], "little")
        for place in range(8, 8 + 16 * count, 16):
            number, times = (int.from_bytes(request.body[at : at + 8], "little") for at in (place, place + 8))
            self._forget(number, times)
        return b""

    # Attributes.

    def _packed(self, node: Node) -> bytes:
        size = len(node.now) if isinstance(node, File) else 0
        whole_s = int(node.changed)
        part_ns = int((node.changed - whole_s) * 1e9)
        links = 1 if isinstance(node, File) else 2
        return protocol.ATTRIBUTES.pack(
            self._number(node), size, -(-size // 512), *[whole_s] * 3, *[part_ns] * 3,
            node.mode, links, os.getuid(), os.getgid(), 0, BLOCK, 0,
        )  # fmt: skip

    def _attributes(self, node: Node) -> bytes:
        return protocol.VALID.pack(0, 0, 0) + self._packed(node)

    def _set_attributes(self, request: Request) -> bytes:
        valid, _, _, size, *_, mode, _, _, _, _ = protocol.SETATTR_IN.unpack_from(request.body)
        node = self.known[request.node]
        if valid & SET_MODE:
            node.mode = stat.S_IFMT(node.mode) | stat.S_IMODE(mode)
        if valid & SET_SIZE:
            self._file(request.node).edit(Resize(size))
        return self._attributes(node)

    # Names.

    def _make_folder(self, request: Request) -> bytes:
        mode = int.from_bytes(request.body[:4], "little")
        return self._entry(self._add(request, request.names(8)[0], Folder(stat.S_IFDIR | stat.S_IMODE(mode))))

    def _create(self, request: Request) -> bytes:
        _, mode, _, _ = protocol.CREATE_IN.unpack_from(request.body)
        name = request.names(protocol.CREATE_IN.size)[0]
        return self._entry(self._add(request, name, File(stat.S_IFREG | stat.S_IMODE(mode)))) + bytes(16)

    def _add(self, request: Request, name: str, node: Node) -> Node:
        folder = self._folder(request.node)
        if name in folder.now:
            raise fail(errno.EEXIST)
        self.disk.rename((folder, name, node))
        return node

    def _remove(self, request: Request) -> bytes:
        name = request.names()[0]
        node = self._named(request, name)
        if isinstance(node, Folder) and node.now:
            raise fail(errno.ENOTEMPTY)
        self.disk.rename((self._folder(request.node), name, None))
        return b""

    def _rename(self, request: Request, skip: int) -> bytes:
        flags = int.from_bytes(request.body[8:12], "little") if skip > 8 else 0
        folder, name = self._folder(request.node), request.names(skip)[0]
        other, new_name = self._folder(int.from_bytes(request.body[:8], "little")), request.names(skip)[1]
        node, there = self._named(request, name), other.now.get(new_name)
        if flags & ~NO_REPLACE:
            raise fail(errno.EINVAL)
        if there is not None and flags & NO_REPLACE:
            raise fail(errno.EEXIST)
        if isinstance(there, Folder) and there.now:
            raise fail(errno.ENOTEMPTY)
        self.disk.rename((folder, name, None), (other, new_name, node))
        return b""

    def _list(self, request: Request) -> bytes:
        _, offset, room, *_ = protocol.READ_IN.unpack_from(request.body)
        listed = b""
        for place, (name, node) in enumerate(sorted(self._folder(request.node).now.items())):
            encoded = os.fsencode(name)
            kind = stat.S_IFMT(node.mode) >> 12
            one = protocol.DIRENT.pack(self._number(node), place + 1, len(encoded), kind) + encoded
            one += bytes(-len(one) % 8)
            if place >= offset and len(listed) + len(one) > room:
                break
            listed += one if place >= offset else b""
        return listed

    # Contents.

    def _read(self, request: Request) -> bytes:
        _, offset, size, *_ = protocol.READ_IN.unpack_from(request.body)
        return bytes(self._file(request.node).now[offset : offset + size])

    def _write(self, request: Request) -> bytes:
        _, offset, size, _, _, flags, _ = protocol.WRITE_IN.unpack_from(request.body)
        file = self._file(request.node)
        file.edit(Write(offset, request.body[protocol.WRITE_IN.size :][:size]))
        if flags & (os.O_DSYNC | os.O_SYNC):
            self.disk.sync(file)
        return protocol.WRITTEN.pack(size)

    def _sync(self, request: Request) -> bytes:
        self.disk.sync(self.known[request.node])
        return b""
