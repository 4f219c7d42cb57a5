"""A section as the texts that are embedded: short enough that the model reads them to the end. Pure.

A model reads 256 tokens, about a thousand characters, and drops the rest without a word; so a long section becomes
several texts, cut where a paragraph, a sentence or at least a word ends, each beginning with what it is about.
"""

from __future__ import annotations

from collections.abc import Iterator

MOST = 800  # characters of a piece
ABOUT = 160  # characters at most of what it is about
LEAST = 400  # a cut is not looked for before that
ENDS = ("\n\n", "\n", ". ", "? ", "! ", "。", " ")


def pieces(about: str, text: str) -> list[str]:
    """The texts to embed for a section; `about` names the document and the heading. Never none."""
    said = about.strip()[:ABOUT]
    parts = list(_cut(text.strip())) or [""]
    return [f"{said}\n{part}".strip() for part in parts]


def _cut(text: str) -> Iterator[str]:
    while len(text) > MOST:
        end = _end(text)
        yield text[:end].strip()
        text = text[end:].strip()
    if text:
        yield text


def _end(text: str) -> int:
    for mark in ENDS:
        place = text.rfind(mark, LEAST, MOST)
        if place >= 0:
            return place + len(mark)
    return MOST
