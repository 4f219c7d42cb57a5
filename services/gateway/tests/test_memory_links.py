"""Links over HTTP: of a document and to it, the graph, a text with others in it."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest
from pydantic import BaseModel

from mycelium_gateway.schemas import links as schemas
from services.gateway.tests.test_memory import AVERY, MEMORY, hub, put

__all__ = ["hub"]
GRAPH = "/api/rooms/demo/graph"
EMPTY: dict[str, Any] = {"section": None, "text": None, "type": None, "room": None, "state": "ok"}


async def read(http: httpx2.AsyncClient, shape: type[BaseModel], path: str, **query: str | int | bool) -> Any:
    """An answer that has the shape that is promised."""
    answer = await http.get(path, params=query)
    assert answer.status_code == 200, answer.text
    shape.model_validate_json(answer.content, strict=True)
    return answer.json()


async def test_links_of_a_document_and_to_it(hub: httpx2.AsyncClient) -> None:
    """As they are written, and what they lead to now; those to it in pages."""
    await put(hub, "context/stack", {"value": "# Vectors\n\nmyc://rooms/other/x"})
    await put(hub, "decisions/db", {"value": "[[context/stack#vectors|how]]", "meta": {"part-of": "context/stack"}})
    await put(hub, "work/api", {"value": "![[Context/Stack]] [[a//b]]"})

    found = await read(hub, schemas.DocumentLinks, f"{MEMORY}/context%2Fstack", view="links", limit=2)
    other = {"source": "context/stack", "key": "x", "kind": "url", "written": "x"}
    assert found["links"] == [{**EMPTY, **other, "room": "other", "state": "other_room"}]
    of_db = {**EMPTY, "source": "decisions/db", "key": "context/stack", "written": "context/stack"}
    assert found["backlinks"] == [
        {**of_db, "kind": "field", "type": "part-of"},
        {**of_db, "kind": "wikilink", "section": "vectors", "text": "how"},
    ]
    rest = await read(hub, schemas.DocumentLinks, f"{MEMORY}/context/stack", view="links", cursor=found["next"])
    (embed,) = rest["backlinks"]
    assert (embed["kind"], embed["written"], embed["state"]) == ("embed", "Context/Stack", "not_expandable")
    assert rest["next"] is None
    of_api = await read(hub, schemas.DocumentLinks, f"{MEMORY}/work/api", view="links")
    assert (of_api["links"][1]["key"], of_api["links"][1]["state"]) == (None, "broken")


async def test_a_removed_document_is_shown_while_something_links_to_it(hub: httpx2.AsyncClient) -> None:
    """So that one finds what is to be mended; after that it is not there."""
    await put(hub, "a", {"value": "[[b]]"})
    await put(hub, "b", {"value": "x"})
    await hub.delete(f"{MEMORY}/b", headers=AVERY)
    found = await read(hub, schemas.DocumentLinks, f"{MEMORY}/b", view="links")
    assert (found["exists"], [link["state"] for link in found["backlinks"]]) == (False, ["broken"])
    await put(hub, "a", {"value": "x"})
    assert (await hub.get(f"{MEMORY}/b", params={"view": "links"})).json()["slug"] == "memory.not_found"


async def test_the_graph_of_a_room(hub: httpx2.AsyncClient) -> None:
    """Documents by key with their groups, every link; or only what is the matter."""
    await put(hub, "context/stack", {"value": "[[none]]"})
    await put(hub, "top", {"value": "[[context/stack]]"})
    whole = await read(hub, schemas.Graph, GRAPH)
    assert whole["nodes"] == [
        {"key": "context/stack", "group": "context", "version": 1, "orphan": False},
        {"key": "top", "group": "", "version": 1, "orphan": True},
    ]
    assert [(edge["source"], edge["key"], edge["state"]) for edge in whole["edges"]] == [
        ("context/stack", "none", "broken"),
        ("top", "context/stack", "ok"),
    ]
    first = await read(hub, schemas.Graph, GRAPH, limit=1)
    second = await read(hub, schemas.Graph, GRAPH, limit=1, cursor=first["next"])
    assert first["nodes"] + second["nodes"] == whole["nodes"]
    problems = await read(hub, schemas.Graph, GRAPH, problems=True)
    assert ([node["key"] for node in problems["nodes"]], len(problems["edges"])) == (["top"], 1)
    assert (problems["documents"], problems["links"]) == (2, 2)


async def test_a_text_with_others_in_it(hub: httpx2.AsyncClient) -> None:
    """Without an ETag, since it changes while the version stays."""
    await put(hub, "glossary/v", {"value": "fastembed", "expandable": True})
    await put(hub, "a", {"value": "Fixed: ![[glossary/v]] ![[none]]"})
    found = await read(hub, schemas.ExpandedMemory, f"{MEMORY}/a", expand=True)
    assert found["value"] == "Fixed: fastembed ![[none]]"
    assert [link["written"] for link in found["unexpanded"]] == ["none"]
    answer = await hub.get(f"{MEMORY}/a", params={"expand": True})
    assert "etag" not in answer.headers
    assert "unexpanded" not in (await hub.get(f"{MEMORY}/a")).json()


@pytest.mark.parametrize(
    "query",
    [
        "expand=true&version=1",
        "expand=true&at=1h",
        "expand=true&view=raw",
        "view=links&version=1",
        "view=links&at=1h",
        "version=1&at=1h",
        "view=versions&cursor=x",
    ],
)
async def test_what_would_be_passed_over_is_refused(hub: httpx2.AsyncClient, query: str) -> None:
    """Rather than answered with something else than was asked for."""
    await put(hub, "a", {"value": "x"})
    refused = await hub.get(f"{MEMORY}/a?{query}")
    assert (refused.status_code, refused.json()["slug"]) == (422, "request.invalid")
