"""Links between documents as HTTP has them: of one, to one, the graph of a room, a text with others in it."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from mycelium_gateway.schemas.memory import MEMORY, Memory
from mycelium_gateway.schemas.shape import Parameters, Shape, shown_as

State = Literal["ok", "broken", "no_section", "not_expandable", "other_room", "too_large"]
LINK = {
    "source": "decisions/db",
    "key": "context/stack",
    "section": "vector-store",
    "text": "how retrieval works",
    "kind": "wikilink",
    "type": None,
    "room": None,
    "written": "context/stack",
    "state": "ok",
}
PART = {**LINK, "section": None, "text": None, "kind": "field", "type": "part-of"}
LEFT = {**LINK, "key": "glossary/draft", "section": None, "text": None, "kind": "embed", "written": "glossary/draft"}
NODE = {"key": "decisions/db", "group": "decisions", "version": 3, "orphan": True}


class Link(Shape):
    """A link and what it leads to now."""

    model_config = shown_as(LINK)

    source: str = Field(description="The key of the document that has it.")
    key: str | None = Field(
        description="The key that it leads to, or would if it were there; null for what can't be a key."
    )
    section: str | None = Field(description="The section of it that is meant, as written.")
    text: str | None = Field(description="What is shown in its place.")
    kind: Literal["wikilink", "url", "embed", "field"] = Field(
        description="How it is written: `[[key]]`, `myc://key`, `![[key]]`, or in a field."
    )
    type: str | None = Field(description="What the field that it stands in means, such as `supersedes`.")
    room: str | None = Field(description="Another room that it names; it leads nowhere, whether or not there is one.")
    written: str = Field(description="The key as written; empty for the document itself.")
    state: State = Field(
        description="`broken`: no such document. `no_section`: it has no such section. `not_expandable`: it may not be "
        "embedded. `too_large`: the embedded texts have no room for it."
    )


class DocumentLinks(Shape):
    """What a document links to, and a page of what links to it."""

    model_config = shown_as(
        {
            "key": "decisions/db",
            "exists": True,
            "links": [LINK],
            "backlinks": [{**PART, "source": "work/api"}],
            "next": None,
        }
    )

    key: str
    exists: bool = Field(
        description="Whether the document is there; one that is not is shown while something links to it."
    )
    links: list[Link] = Field(description="In order, those of its fields first.")
    backlinks: list[Link] = Field(description="Those in other documents, by their keys.")
    next: str | None = Field(description="Cursor of the next page of `backlinks`, or null.")


class Node(Shape):
    """A document in the graph."""

    model_config = shown_as(NODE)

    key: str
    group: str = Field(description="What its key has before the first slash; empty without one.")
    version: int
    orphan: bool = Field(description="Whether no other document links to it.")


class Graph(Shape):
    """A page of the graph: some documents by key, and every link that they have."""

    model_config = shown_as({"nodes": [NODE], "edges": [LINK], "documents": 1, "links": 1, "next": None})

    nodes: list[Node]
    edges: list[Link]
    documents: int = Field(description="How many documents were looked at for this page.")
    links: int = Field(description="How many links they have.")
    next: str | None = Field(description="Cursor of the next page, or null.")


class GraphWanted(Parameters):
    """What of the graph a page holds."""

    problems: bool = Field(
        False, description="Only documents that nothing links to, and links that don't lead to a document."
    )
    limit: int = Field(500, ge=1, le=5000, description="How many documents are looked at for a page, at most.")
    cursor: str = Field("", description="`next` of the page before.")


class ExpandedMemory(Memory):
    """A document in whose text stand the texts that it embeds."""

    model_config = shown_as({**MEMORY, "unexpanded": [{**LEFT, "state": "not_expandable"}]})

    unexpanded: list[Link] = Field(description="The embeds that were left as they are written.")
