"""Which names look like others: the skeleton of a handle or of a person's name, and what no name may hold.

Two texts with one skeleton can be taken for each other. It is the skeleton of UTS 39 in short: handles are ASCII
anyway, so of its table only what decides here is kept (docs/decisions, "Names that look like others").
"""

from __future__ import annotations

import re
import unicodedata

APART = "\ue000"  # stands between two numbers: 1-11 is not 11-1, and nobody takes agent-1-1 for agent-11
_TO_LATIN = str.maketrans(
    {
        **dict(zip("АВЕЅІЈКМНОРСТУХаеѕіјкморсухԁԛԝһӏѵвнтьпг", "ABESIJKMHOPCTYXaesijkmopcyxdqwhlvbhtbnr", strict=True)),
        **dict(zip("ΑΒΕΖΗΙΚΜΝΟΡΤΥΧαγειηκνορτυχωβϲϳ", "ABEZHIKMNOPTYXayeinkvoptuxwbcj", strict=True)),
        **dict(zip("ՏՍՕԼօսոոհզցյ", "SUOLounnhqgj", strict=True)),
        **dict(zip("ꓐꓑꓓꓖꓗꓙꓚꓛꓜꓝꓠꓡꓢꓣꓤꓦꓧꓪꓬꓮꓰꓲꓳꓴꓵꓟ", "BPDGKJCCZFNLSRRVHWYAEIOUUM", strict=True)),
        **dict(zip("ᎪᎬᎻᎫᏦᏞᎷᏢᏚᎢᏙᏔᏃᏴ", "AEHJKLMPSTVWZB", strict=True)),
        **dict(zip("ıɩɑɡℓƖǀ", "iiagllI".lower(), strict=True)),
    }
)
_PAIRS = (("rn", "m"), ("vv", "w"))
_ALIKE = str.maketrans({"0": "o", "1": "l", "i": "l"})
_NUMBERS_APART = re.compile(r"(?<=[0-9])[^\w]+(?=[0-9])|(?<=[0-9])_(?=[0-9])")
# Alphabets whose letters pass for each other's. Within a word nobody mixes them but to deceive.
_SCRIPTS = frozenset({"LATIN", "CYRILLIC", "GREEK", "COPTIC", "ARMENIAN", "CHEROKEE", "LISU"})
_WORDS = re.compile(r"[^\W\d_]+")


def skeleton(text: str) -> str:
    """What is left of a handle or name where neither case nor accents nor separators nor which of like letters count.

    Of a skeleton it is the same again.
    """
    joined = plain(text)
    for pair, letter in _PAIRS:
        joined = joined.replace(pair, letter)
    return joined.translate(_ALIKE)


def plain(text: str) -> str:
    """The letters and digits of a name as a handle would have them, where it can: small, Latin, without accents."""
    latin = _bare(_bare(text).translate(_TO_LATIN).casefold()).translate(_TO_LATIN).casefold()
    return "".join(filter(_counts, _NUMBERS_APART.sub(APART, latin)))


def _bare(text: str) -> str:
    """Letters as they are written plainly: no ligatures, no full width, no accents."""
    apart = unicodedata.normalize("NFKD", text)
    return "".join(character for character in apart if not unicodedata.combining(character))


def _counts(character: str) -> bool:
    return character == APART or character.isalnum() or unicodedata.category(character) in {"Mn", "Mc"}


def same_name(one: str, other: str) -> bool:
    """Whether two people are called the same, whatever the case and accents: that is no imitation."""
    return _spelled(one) == _spelled(other)


def _spelled(name: str) -> str:
    return " ".join(_bare(_bare(name).casefold()).split())


def passes_for(handle: str, known: str) -> bool:
    """Whether a handle is `known` with digits in place of letters, or with other separators.

    Stricter than the skeleton, since `known` is a word of the hub and `handle` may well be a word of its own: @ali is
    not @all.
    """
    one, other = _joined(handle), _joined(known)
    return len(one) == len(other) and all(map(_is_like, one, other))


def _joined(handle: str) -> str:
    joined = re.sub("[._-]", "", handle)
    for pair, letter in _PAIRS:
        joined = joined.replace(pair, letter)
    return joined


def _is_like(letter: str, known: str) -> bool:
    return letter == known or (letter, known) in {("0", "o"), ("1", "i"), ("1", "l")}


def mixed_alphabets(text: str) -> str:
    """The first word that is written in letters of several alphabets that look alike; empty when there is none."""
    for word in _WORDS.findall(unicodedata.normalize("NFKC", text)):
        if len({unicodedata.name(letter, "?").split()[0] for letter in word} & _SCRIPTS) > 1:
            return str(word)
    return ""
