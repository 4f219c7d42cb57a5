"""The grammar of handles, seats, room names and ids. Commands check with it before anything is stored.

The rules are those of the design (handles, seats) and of the rooms documentation (room names). Keys of documents have
theirs in the memory service; what makes two of them one stands here, since whoever follows changes compares them too.
"""

from __future__ import annotations

import difflib
import ipaddress
import re
import unicodedata
from collections.abc import Iterable

from mycelium_kernel.errors import Refusal
from mycelium_kernel.lookalikes import mixed_alphabets, passes_for, plain

HANDLE = re.compile(r"[a-z0-9](?:[a-z0-9._-]{0,62}[a-z0-9_-])?")
SEAT = re.compile(r"[a-z0-9]{1,32}")
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_AS_HANDLE = re.compile(r"(?<!\w)@\w")  # not within an address of e-mail
SHORT_ID = re.compile(r"[0-9a-f]{8}")

JOINERS = "\u200c\u200d"  # invisible, but part of how some scripts and emoji are written
# What some disks leave out when they compare names, besides what no key may have: joiners, and how to draw a letter.
UNSEEN = dict.fromkeys(
    [*map(ord, JOINERS), 0x17B4, 0x17B5, *range(0x180B, 0x1810), *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)]
)
BLANK = frozenset("\u034f\u115f\u1160\u2800\u3164\uffa0")  # letters and marks that show nothing

ROOM_NAME_CHARACTERS = 100
ROOM_NAME_BYTES = 255
UNSPOKEN_HANDLES = frozenset({"all", "hub", "system"})  # never anybody's, so nobody speaks as one either
OPERATOR = "operator"  # who makes rooms from the objects of a cluster
# Handles that nobody gets: the hub's own, and words that address everybody.
HUB_HANDLES = UNSPOKEN_HANDLES | {"board", "everyone", "here", "memory", "mycelium", OPERATOR}
# The kinds of engines. An engine may be called so, and nobody else: who asks @aligner means the hub's.
ENGINE_HANDLES = frozenset({"aligner", "conductor", "hello", "persona", "synthesizer", "verifier", "worker"})

NEAR = 3  # names that are offered, and characters by which they may be longer or shorter
NEAR_CANDIDATES = 1_000
_NEAR_ENOUGH = 0.7


def handle(text: str) -> str:
    """The handle that `text` names: lower case, without a leading `@`. Refuses what the grammar does not allow."""
    folded = text.strip().removeprefix("@").lower()
    if not text.isascii() or not HANDLE.fullmatch(folded):  # the Kelvin sign is a `k` in lower case
        raise Refusal(
            "handle.invalid",
            f"{text!r} can't be a handle: use 1 to 64 of a-z 0-9 . _ -, first a letter or digit, no dot at the end",
        )
    return folded


def new_handle(text: str, *, engine: bool = False) -> str:
    """Like `handle`, for one that is about to be given out: the hub's own names are refused, and what passes for one.

    An engine may be called like an engine.
    """
    folded = handle(text)
    of = reserved(folded, engine=engine)
    if of == folded:
        what = "an engine of the hub" if of in ENGINE_HANDLES else "a name of the hub itself"
        raise Refusal("handle.invalid", f"@{folded} is {what}; take another handle")
    if of:
        raise Refusal("handle.invalid", f"@{folded} can be taken for @{of} of the hub itself; take another handle")
    return folded


def reserved(handle: str, *, engine: bool = False) -> str:
    """The name of the hub that a handle is, or can be taken for; empty when it is none."""
    own = HUB_HANDLES if engine else HUB_HANDLES | ENGINE_HANDLES
    return handle if handle in own else next((name for name in sorted(own) if passes_for(handle, name)), "")


def reserved_name(name: str) -> str:
    """The name of the hub that a person's name is, or can be taken for; empty when it is none."""
    return reserved(plain(name))


def seat(text: str) -> str:
    """The seat that `text` names, without a leading `#`; empty stays empty."""
    folded = text.strip().removeprefix("#").lower()
    if not text.isascii() or (folded and not SEAT.fullmatch(folded)):
        raise Refusal("handle.invalid", f"{text!r} can't be a seat: use 1 to 32 of a-z 0-9")
    return folded


def queue(handle: str, seat: str) -> str:
    """The name of a queue: a handle, or a handle's seat."""
    return f"{handle}#{seat}" if seat else handle


def room_name(text: str) -> str:
    """The room name that `text` gives, trimmed and in NFC. Refuses names that the documentation rules out."""
    name = unicodedata.normalize("NFC", text.strip())
    if not name:
        raise Refusal("name.invalid", "a room's name can't be blank")
    reason = _room_name_fault(name)
    if reason:
        shown = name if len(name) <= ROOM_NAME_CHARACTERS else name[:40] + "…"
        raise Refusal("name.invalid", f"{shown!r} can't be a room's name: {reason}")
    return name


def _room_name_fault(name: str) -> str:
    if name in {".", ".."}:
        return "it would not be a folder of its own"
    if "/" in name or "\\" in name:
        return "it can't contain slashes"
    if any(unicodedata.category(character) in {"Cc", "Cs", "Zl", "Zp"} for character in name):
        return "it can't contain control characters"
    if any(character in BLANK or _is_hidden(character) for character in name) or name.strip(JOINERS) != name:
        return "it can't contain characters that nobody sees"
    if ":session:" in name.casefold():
        return "it can't contain `:session:`"
    if UUID.fullmatch(name.casefold()):
        return "it looks like a room's id"
    if len(name) > ROOM_NAME_CHARACTERS:
        return f"it has {len(name)} characters, at most {ROOM_NAME_CHARACTERS} are allowed"
    if len(name.encode()) > ROOM_NAME_BYTES:
        return f"it has {len(name.encode())} bytes in UTF-8, at most {ROOM_NAME_BYTES} are allowed"
    return ""


def person_name(text: str) -> str:
    """The name of a person as it is shown, trimmed and in NFC; empty stays empty. Refuses what deceives a reader."""
    name = unicodedata.normalize("NFC", text.strip())
    reason = _person_name_fault(name)
    if reason:
        raise Refusal("request.invalid", f"{name[:40]!r} can't be a person's name: {reason}")
    return name


def _person_name_fault(name: str) -> str:
    if any(unicodedata.category(character) in {"Cc", "Cs", "Cn", "Co", "Zl", "Zp"} for character in name):
        return "it can't contain line breaks, control characters or letters that nobody knows"
    if any(character in BLANK or _is_hidden(character) for character in name) or name.strip(JOINERS) != name:
        return "it can't contain characters that nobody sees"
    if _AS_HANDLE.search(unicodedata.normalize("NFKC", name)):
        return "it can't name a handle with its @: handles are shown beside names"
    word = mixed_alphabets(name)
    return f"{word!r} mixes letters of several alphabets" if word else ""


def _is_hidden(character: str) -> bool:
    return unicodedata.category(character) == "Cf" and character not in JOINERS


def fold_room_name(name: str) -> str:
    """What two room names must not share: NFC and case folded, as a case-insensitive disk would see them.

    Joiners don't count: two names that look the same are the same.
    """
    seen = name.translate(dict.fromkeys(map(ord, JOINERS)))
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", seen).casefold())


def fold_key(key: str) -> str:
    """What two keys of one room must not share: what is left where neither case nor form nor joiners count."""
    seen = unicodedata.normalize("NFD", key).translate(UNSEEN)
    lower = unicodedata.normalize("NFD", seen.casefold().upper()).casefold()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFD", lower).translate(UNSEEN))


def is_id(text: str) -> bool:
    """Whether `text` is a full id."""
    return UUID.fullmatch(text) is not None


def short_id(identifier: str) -> str:
    """The form of an id that is printed: its last eight digits."""
    return identifier[-8:]


def is_short_id(text: str) -> bool:
    """Whether `text` has the form of a short id."""
    return SHORT_ID.fullmatch(text) is not None


def is_loopback(host: str) -> bool:
    """Whether a host is this machine by its very name, whatever a DNS server says."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def near(wanted: str, known: Iterable[str]) -> list[str]:
    """The names that are most like `wanted`, the likest first."""
    candidates = [name for name in known if abs(len(name) - len(wanted)) <= NEAR][:NEAR_CANDIDATES]
    return difflib.get_close_matches(wanted, candidates, n=NEAR, cutoff=_NEAR_ENOUGH)


def did_you_mean(similar: Iterable[str]) -> str:
    """The end of a refusal's line that offers what is known instead; empty when nothing is."""
    offered = " or ".join(similar)
    return f"; did you mean {offered}?" if offered else ""
