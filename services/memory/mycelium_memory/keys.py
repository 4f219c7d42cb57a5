"""The grammar of keys: which a document may have, which are the same on some disk, and the file that holds each.

`check` gives the one form in which a key is stored, or refuses it; everything that takes a key from outside calls it.
`fold` is equal for keys that a disk would take for one: there may be one document of a fold in a room, and the tree
looks up a file's key by it. `path` and `of_path` go between a key and its file under the room's folder. A key that a
file's name gives may be another than the file's (`work/API.md` is `work/api`): then `path(of_path(p)) != p`.

Under the five structured prefixes a key is as the Structured Memory Guide has it. The command line checks that much
before anything is sent. It imports nothing of ours, so it has the rule a second time, as `PREFIXES` and one pattern
for a part (`[a-z0-9][a-z0-9._-]*`, after lower-casing); contracts/memory-keys.json is the table of cases that a test
holds each of the two to. Everything else is checked here alone.

Other keys may have any characters but those that some disk, the tree or git would not take as they are. A name that
only one system can't write (`a:b`) is let through, unless it is that system's name of a disk.
"""

from __future__ import annotations

import re
import unicodedata
from pathlib import PurePosixPath

from mycelium_kernel import names
from mycelium_kernel.errors import Refusal

PREFIXES = ("work", "decisions", "context", "status", "procedures")
STRUCTURED_PART = re.compile(r"[a-z0-9][a-z0-9._-]*")
STRUCTURED_RULE = "lower-case letters, digits, - . and _, first a letter or digit"

ENDING = ".md"
KEY_BYTES = 512  # with the room's and the home's it stays under the 1,024 bytes that some systems allow a path
PART_BYTES = 255
PARTS = 16  # each is a folder that is watched
SHOWN = 60

# Names that one system keeps for devices, whatever their ending, `COM¹` as `COM1`.
DEVICES = frozenset(
    ["con", "prn", "aux", "nul", "conin$", "conout$"]
    + [f"{device}{number}" for device in ("com", "lpt") for number in "0123456789"]
)
DISK = re.compile(r"[A-Za-z]:")

fold = names.fold_key  # what two keys of one room must not share


def check(key: str) -> str:
    """The form in which a key is stored: NFC, and lower case under a structured prefix. Refuses what can't be one."""
    if len(key) > KEY_BYTES:  # before anything is done with a text of any length
        raise _refused(key, f"it has {len(key):,} characters, at most {KEY_BYTES} bytes are allowed")
    parts = unicodedata.normalize("NFC", key).split("/")
    fault = _fault(parts)
    if fault:
        raise _refused(key, fault)
    if len(parts) > 1 and fold(parts[0]) in PREFIXES:
        parts = _structured(key, parts)
    return "/".join(parts)


def is_structured(key: str) -> bool:
    """Whether a legal key is under one of the prefixes that the guide has rules for."""
    return "/" in key and key.split("/", 1)[0] in PREFIXES


def path(key: str) -> PurePosixPath:
    """The file of a legal key, under the room's folder."""
    return PurePosixPath(key + ENDING)


def of_path(path: PurePosixPath) -> str:
    """The key of a file under the room's folder. Refuses a file that no key has."""
    text = str(path)
    if not text.endswith(ENDING):
        raise _refused(text, f"the file of a document ends in {ENDING}")
    return check(text.removesuffix(ENDING))


def _fault(parts: list[str]) -> str:
    """What is wrong with a key in NFC; empty for nothing."""
    key = "/".join(parts)
    if any(unicodedata.category(character) == "Cs" for character in key):
        return "it can't contain half a character"
    if len(key.encode()) > KEY_BYTES:
        return f"it has {len(key.encode())} bytes in UTF-8, at most {KEY_BYTES} are allowed"
    if len(parts) > PARTS:
        return f"it has {len(parts)} parts, at most {PARTS} are allowed"
    if not key.strip():
        return "it is empty"
    if key.startswith("/"):
        return "it begins with a slash, and keys begin at the room"
    if DISK.match(key):
        return "it begins with the name of a disk, and keys begin at the room"
    folders = parts[:-1]
    for folder in folders:
        if folder.casefold().endswith(ENDING):
            return f"{_shown(folder)} would be a folder with a document's name"
    return next(filter(None, map(_part_fault, parts)), "") or _too_long(folders, parts[-1])


def _part_fault(part: str) -> str:
    if not part:
        return "nothing stands before, between or after its slashes"
    if "\\" in part:
        return "it can't contain backslashes; parts are set apart by /"
    if any(unicodedata.category(character) in {"Cc", "Zl", "Zp"} for character in part):
        return "it can't contain control characters"
    if any(_is_unseen(character) for character in part) or part.strip(names.JOINERS) != part:
        return "it can't contain characters that nobody sees"
    if part.startswith("."):
        return f"{_shown(part)} begins with a dot: such files are left alone"
    if part.strip() != part or part.endswith("."):
        return f"{_shown(part)} begins or ends with a space, or ends with a dot"
    if unicodedata.normalize("NFKC", part.split(".", 1)[0].rstrip()).casefold() in DEVICES:
        return f"{_shown(part)} is the name of a device on some systems"
    return ""


def _is_unseen(character: str) -> bool:
    hidden = unicodedata.category(character) == "Cf" and character not in names.JOINERS
    return hidden or character in names.BLANK


def _too_long(folders: list[str], last: str) -> str:
    for part, most in [*((folder, PART_BYTES) for folder in folders), (last, PART_BYTES - len(ENDING))]:
        if len(part.encode()) > most:
            return f"{_shown(part)} has {len(part.encode())} bytes in UTF-8, at most {most} are allowed between slashes"
    return ""


def _structured(key: str, parts: list[str]) -> list[str]:
    """The parts of a key under a structured prefix, in lower case."""
    lower = [fold(parts[0]), *(part.lower() if part.isascii() else part for part in parts[1:])]
    wrong = next((part for part in lower[1:] if not STRUCTURED_PART.fullmatch(part)), None)
    if wrong is None:
        return lower
    near = "/".join([lower[0], *filter(None, map(_slug, lower[1:]))])
    fault = f"after {lower[0]}/ it may have {STRUCTURED_RULE}; {_shown(wrong)} is not such"
    raise _refused(key, fault, near if "/" in near else f"{lower[0]}/name")


def _slug(part: str) -> str:
    """The nearest that a part under a structured prefix could be."""
    plain = unicodedata.normalize("NFKD", part).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9._]+", "-", plain).strip("-._")


def _shown(text: str) -> str:
    return repr(text if len(text) <= SHOWN else text[:SHOWN] + "…")


def _refused(key: str, fault: str, near: str = "") -> Refusal:
    detail = f"{_shown(key)} can't be a key: {fault}"
    if near:
        return Refusal("memory.key_invalid", detail, f"mycelium memory set {near} …", near=near)
    return Refusal("memory.key_invalid", detail, "mycelium memory set notes/first-steps …")
