"""Links as the JSON that callers get."""

from __future__ import annotations

from mycelium.memory.v1 import links_pb2, views_pb2
from mycelium_gateway import shapes_memory
from mycelium_gateway.shapes import Json

KINDS = {
    views_pb2.LINK_KIND_WIKI: "wikilink",
    views_pb2.LINK_KIND_URL: "url",
    views_pb2.LINK_KIND_EMBED: "embed",
    views_pb2.LINK_KIND_FIELD: "field",
}
STATES = {number: name.removeprefix("LINK_STATE_").lower() for name, number in links_pb2.LinkState.items()}


def link(view: links_pb2.ResolvedLink) -> Json:
    """A link."""
    written = view.link
    return {
        "source": view.source,
        "key": view.key or None,
        "section": written.section or None,
        "text": written.text or None,
        "kind": KINDS[written.kind],
        "type": written.type or None,
        "room": written.room or None,
        "written": written.target,
        "state": STATES[view.state],
    }


def document(reply: links_pb2.GetLinksResponse) -> Json:
    """The links of a document and to it."""
    return {
        "key": reply.key,
        "exists": reply.exists,
        "links": [link(view) for view in reply.links],
        "backlinks": [link(view) for view in reply.backlinks],
        "next": reply.next or None,
    }


def graph(reply: links_pb2.GetGraphResponse) -> Json:
    """A page of the graph."""
    return {
        "nodes": [node(view) for view in reply.nodes],
        "edges": [link(view) for view in reply.edges],
        "documents": reply.documents,
        "links": reply.links,
        "next": reply.next or None,
    }


def node(view: links_pb2.Node) -> Json:
    """A document in the graph."""
    group, slash, _ = view.key.partition("/")
    return {"key": view.key, "group": group if slash else "", "version": view.version, "orphan": view.orphan}


def expanded(reply: links_pb2.ExpandDocumentResponse) -> Json:
    """A document with others in its text."""
    return {**shapes_memory.memory(reply.document), "unexpanded": [link(view) for view in reply.unexpanded]}
