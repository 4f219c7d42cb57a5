"""Links as queries show them: where they lead now, what leads to a document, the graph, texts with others in them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mycelium.memory.v1 import links_pb2
from mycelium_kernel.errors import Refusal
from mycelium_memory import queries_links
from services.memory.tests.hub import Hub

STATES = {number: name for name, number in queries_links.STATES.items()}


def get(hub: Hub, key: str, by: str = "avery", **fields: Any) -> links_pb2.GetLinksResponse:
    """The links of a document and to it, page after page."""
    request = links_pb2.GetLinksRequest(room="demo", key=key, **fields)
    whole: links_pb2.GetLinksResponse = hub.ask(request, by)
    while whole.next:
        page = hub.ask(links_pb2.GetLinksRequest(room="demo", key=key, cursor=whole.next, **fields), by)
        whole.backlinks.extend(page.backlinks)
        whole.next = page.next
    return whole


def graph(hub: Hub, **fields: Any) -> links_pb2.GetGraphResponse:
    """The whole graph, page after page."""
    whole: links_pb2.GetGraphResponse = hub.ask(links_pb2.GetGraphRequest(room="demo", **fields))
    while whole.next:
        page = hub.ask(links_pb2.GetGraphRequest(room="demo", cursor=whole.next, **fields))
        whole.nodes.extend(page.nodes)
        whole.edges.extend(page.edges)
        whole.next = page.next
        whole.documents += page.documents
        whole.links += page.links
    return whole


def told(link: links_pb2.ResolvedLink) -> str:
    """A link in short: where it leads, or what is the matter."""
    section = f"#{link.link.section}" if link.link.section else ""
    return f"{link.source} > {link.key}{section} {STATES[link.state]}"


def expand(hub: Hub, key: str) -> tuple[str, list[str]]:
    """The text with what it embeds, and what was left."""
    response = hub.ask(links_pb2.ExpandDocumentRequest(room="demo", key=key))
    return response.document.content.body, [told(link) for link in response.unexpanded]


def orphans(hub: Hub) -> list[str]:
    return [node.key for node in graph(hub).nodes if node.orphan]


def test_links_and_backlinks_of_a_document(demo: Hub) -> None:
    """By text and by field, in the order written; those to it by their documents' keys."""
    demo.write("context/stack", "# Vector store\n\nSee [[procedures/deploy|how]] and [[nowhere]].")
    demo.write("procedures/deploy", "x")
    demo.write("work/api", "myc://context/stack#vector-store", fields_json='{"part-of": "context/stack"}')
    demo.write("decisions/db", "[[context/stack#gone]] `[[context/stack]]`\n\n    [[context/stack]]\n")
    found = get(demo, "context/stack")
    assert [told(link) for link in found.links] == [
        "context/stack > procedures/deploy ok",
        "context/stack > nowhere broken",
    ]
    assert [told(link) for link in found.backlinks] == [
        "decisions/db > context/stack#gone no_section",
        "work/api > context/stack ok",
        "work/api > context/stack#vector-store ok",
    ]
    assert [link.link.type for link in found.backlinks] == ["", "part-of", ""]
    assert [told(link) for link in get(demo, "context/stack", limit=1).backlinks] == list(map(told, found.backlinks))
    assert orphans(demo) == ["decisions/db", "work/api"]
    demo.remove("work/api")
    assert [told(link) for link in get(demo, "context/stack").backlinks] == [
        "decisions/db > context/stack#gone no_section"
    ]


def test_what_becomes_of_a_target_shows_at_once(demo: Hub) -> None:
    """It comes, its section goes, it is removed, it comes back."""
    demo.write("a", "[[b#one]]")
    states = []
    for step in (
        lambda: demo.write("b", "# One"),
        lambda: demo.write("b", "# Two"),
        lambda: demo.remove("b"),
        lambda: demo.write("B", "# one"),
    ):
        step()
        states += [told(link) for link in get(demo, "a").links]
    assert states == ["a > b#one ok", "a > b#one no_section", "a > b#one broken", "a > B#one ok"]
    demo.remove("B")
    gone = get(demo, "b")
    assert (gone.exists, [told(link) for link in gone.backlinks]) == (False, ["a > b#one broken"])
    demo.write("a", "nothing")
    demo.refused("memory.not_found", links_pb2.GetLinksRequest(room="demo", key="b"))
    assert orphans(demo) == ["a"]


def test_a_document_that_links_to_itself_is_still_an_orphan(demo: Hub) -> None:
    demo.write("a", "# One\n\n[[#one]] [[a]] [[A#one]] [[#two]]")
    assert [told(link) for link in get(demo, "a").links] == [
        "a > a#one ok",
        "a > a ok",
        "a > a#one ok",
        "a > a#two no_section",
    ]
    assert not get(demo, "a").backlinks
    assert orphans(demo) == ["a"]


def test_a_key_may_have_the_sign_of_a_section(demo: Hub) -> None:
    """Such a document is meant only as long as there is none of the key before the sign."""
    demo.write("list", "[[issues/#1]] [[a#b]]")
    demo.write("issues/#1", "x")
    demo.write("a#b", "x")
    assert [told(link) for link in get(demo, "a#b").backlinks] == ["list > a#b#b ok"]
    assert orphans(demo) == ["list"]
    demo.write("a", "x")
    assert not get(demo, "a#b").backlinks
    assert [told(link) for link in get(demo, "a").backlinks] == ["list > a#b no_section"]
    assert orphans(demo) == ["a#b", "list"]
    demo.remove("a")
    demo.remove("a#b")
    demo.refused("memory.not_found", links_pb2.GetLinksRequest(room="demo", key="a#b"))
    assert [told(link) for link in get(demo, "a").backlinks] == ["list > a#b broken"]


@pytest.mark.parametrize("there", ["nothing", "private", "public"])
def test_a_link_to_another_room_says_nothing_of_it(demo: Hub, there: str) -> None:
    """Whether there is such a room, and such a document in it, or not."""
    if there != "nothing":
        demo.room("other", by="kim", private=there == "private")
        demo.write("secret", "![[secret]] text", by="kim", room="other", expandable=True)
    demo.write("a", "myc://rooms/other/secret\n\n![[myc://rooms/other/secret]]", fields_json='{"part-of": "secret"}')
    assert [told(link) for link in get(demo, "a").links] == [
        "a > secret broken",
        "a > secret other_room",
        "a > secret other_room",
    ]
    assert expand(demo, "a") == (
        "myc://rooms/other/secret\n\n![[myc://rooms/other/secret]]",
        ["a > secret other_room"],
    )
    assert {node.key for node in graph(demo).nodes} == {"a"}
    demo.write("Secret", "one of this room, of the same name", expandable=True)
    demo.write("a", "myc://rooms/other/secret ![[myc://rooms/other/secret]]", fields_json='{"part-of": null}')
    assert [told(link) for link in get(demo, "a").links] == ["a > secret other_room"] * 2
    assert not get(demo, "Secret").backlinks
    assert orphans(demo) == ["a", "Secret"]


def test_problems_alone(demo: Hub) -> None:
    """Orphans and links that lead nowhere, with how much was looked at."""
    demo.write("a", "[[b]] [[b#x]] ![[b]] [[no]] myc://rooms/r/k")
    demo.write("b", "[[a]]")
    demo.write("c", "x")
    found = graph(demo, problems=True)
    assert [node.key for node in found.nodes] == ["c"]
    assert [told(link) for link in found.edges] == [
        "a > b#x no_section",
        "a > b not_expandable",
        "a > no broken",
        "a > k other_room",
    ]
    assert (found.documents, found.links) == (3, 6)


def test_pages_of_the_graph_end_by_documents_and_by_links(demo: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    """And all together are the graph."""
    for number in range(12):
        demo.write(f"k{number:02}", f"[[k{(number + 1) % 12:02}]] [[k00]] [[none]]")
    whole = graph(demo)
    assert (whole.documents, whole.links) == (12, 36)
    assert graph(demo, limit=5) == whole
    assert demo.ask(links_pb2.GetGraphRequest(room="demo", limit=5)).documents == 5
    monkeypatch.setattr(queries_links, "LINKS_PER_PAGE", 7)
    first = demo.ask(links_pb2.GetGraphRequest(room="demo"))
    assert (first.documents, first.next) == (2, "k01")
    assert graph(demo) == whole


def test_embeds_stand_in_the_text_as_they_are_now(demo: Hub) -> None:
    """One level deep; what can't be embedded is left as it is written, and reported."""
    demo.write("glossary/v", "# V\n\nfastembed\n\n## More\n\n![[glossary/w]]\n", expandable=True)
    demo.write("glossary/w", "w", expandable=True)
    demo.write("closed", "not to be embedded")
    demo.write("value", expandable=True, value_json='{"a": "# no"}')
    demo.write("a", "![[glossary/v#more]] é ![[closed]] ![[none]] `![[glossary/w]]` ![[value]] ![[value#no]]")
    assert expand(demo, "a") == (
        '## More\n\n![[glossary/w]] é ![[closed]] ![[none]] `![[glossary/w]]` {"a":"# no"} ![[value#no]]',
        ["a > closed not_expandable", "a > none broken", "a > value#no no_section"],
    )
    demo.write("closed", "open now", expandable=True)
    demo.write("glossary/v", "changed")
    text, left = expand(demo, "a")
    assert "é open now" in text
    assert left[0] == "a > glossary/v#more no_section"
    assert expand(demo, "value") == ("", [])
    demo.refused("memory.not_found", links_pb2.ExpandDocumentRequest(room="demo", key="none"))


def test_a_limit_beyond_the_most_is_refused(demo: Hub) -> None:
    demo.refused("request.invalid", links_pb2.GetLinksRequest(room="demo", key="a", limit=10_000))
    demo.refused("request.invalid", links_pb2.GetGraphRequest(room="demo", limit=10_000))


def test_many_links_in_one_document_and_to_one_document(demo: Hub) -> None:
    """A thousand each; none is lost between pages, none shown twice."""
    demo.write("hub", "[[spoke]] " * 1_000)
    demo.write("spoke", "".join(f"[[hub|{number}]] " for number in range(1_000)))
    found = get(demo, "hub")
    assert len(found.links) == 1_000
    assert [link.link.text for link in found.backlinks] == [str(number) for number in range(1_000)]


# The law: the graph is the one that is computed from what the documents hold, whatever was done to them.

KEYS = ("a", "b", "B", "c/d", "c/d#one", "work/x", "é", "e\u0301")
SECTIONS = ("", "", "one", "two")
TITLES = ("", "# One\n\n", "# Two\n\n", "# One\n\n# Two\n\n")
FIELDS = ("", "part-of", "supersedes")


def folded(key: str) -> str:
    """As a disk may take these keys."""
    return key.lower().replace("e\u0301", "é")


class Model:
    """The documents of a room as plain values: key, what each links to, its sections, if it may be embedded."""

    def __init__(self) -> None:
        self.documents: dict[str, tuple[str, list[tuple[str, str, bool]], str, bool]] = {}

    def edges(self) -> list[tuple[str, str, str]]:
        """Source, target and state of every link, as the documentation says."""
        found = []
        for key, links, _, _ in self.documents.values():
            found += [(key, *self._state(*link)) for link in links]
        return sorted(found)

    def _state(self, target: str, section: str, embedded: bool) -> tuple[str, str]:
        there = self.documents.get(folded(target))
        if there is None and section:
            there, section = self.documents.get(folded(f"{target}#{section}")), ""
        if there is None:
            return (folded(target), "broken")
        if section and f"# {section.title()}" not in there[2]:
            return (there[0], "no_section")
        return (there[0], "not_expandable" if embedded and not there[3] else "ok")

    def orphans(self) -> list[str]:
        linked = {target for source, target, state in self.edges() if source != target and state != "broken"}
        return sorted({key for key, *_ in self.documents.values()} - linked)


def document(draw: Callable[[Any], Any]) -> tuple[str, dict[str, str | None], list[tuple[str, str, bool]], str, bool]:
    """A text, fields, the links that they mean, the text's headings, and whether it may be embedded."""
    fields: dict[str, str | None] = dict.fromkeys(FIELDS[1:])
    links: list[tuple[str, str, bool]] = []
    name, target = draw(st.sampled_from(FIELDS)), draw(st.sampled_from(KEYS[:4]))
    if name:
        fields[name] = target
        links.append((target, "", False))
    body = draw(st.sampled_from(TITLES))
    headings = body
    for _ in range(draw(st.integers(0, 4))):
        target, section = draw(st.sampled_from(KEYS)), draw(st.sampled_from(SECTIONS))
        section = "" if "#" in target else section
        written = f"{target}#{section}" if section else target
        form = draw(
            st.sampled_from(("[[%s]]", "![[%s]]", "[[%s|text]]", "`[[%s]]`", "\n\n    [[%s]]\n\n", "<!-- [[%s]] -->"))
        )
        body += f"word {form % written}\n\n"
        if form in ("[[%s]]", "![[%s]]", "[[%s|text]]"):
            target, section = target.partition("#")[0], section or target.partition("#")[2]
            links.append((target, section, form.startswith("!")))
    return body, fields, links, headings, draw(st.booleans())


def step(hub: Hub, model: Model, draw: Callable[[Any], Any]) -> None:
    """One write, or one removal, of one that may not be there."""
    key = draw(st.sampled_from(KEYS))
    if draw(st.integers(0, 3)) == 0:
        hub.remove(key)
        del model.documents[folded(key)]
        return
    body, fields, links, headings, expandable = document(draw)
    key_there = model.documents.get(folded(key), (key,))[0]
    hub.write(key, body, fields_json=json.dumps(fields), expandable=expandable)
    model.documents[folded(key)] = (key_there.replace("e\u0301", "é"), links, headings, expandable)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_the_graph_is_the_one_computed_from_scratch(data: st.DataObject) -> None:
    """Nodes, edges, states, orphans, and each document's backlinks."""
    hub, model = Hub(), Model()
    hub.room()
    for _ in range(data.draw(st.integers(1, 12))):
        try:
            step(hub, model, data.draw)
        except Refusal:
            continue
    found = graph(hub, limit=data.draw(st.integers(1, 4)))
    edges = sorted(
        (link.source, link.key if STATES[link.state] != "broken" else folded(link.key), STATES[link.state])
        for link in found.edges
    )
    assert edges == model.edges()
    assert sorted(node.key for node in found.nodes) == sorted(key for key, *_ in model.documents.values())
    assert sorted(node.key for node in found.nodes if node.orphan) == model.orphans()
    for node in found.nodes:
        backlinks = sorted((link.source, STATES[link.state]) for link in get(hub, node.key, limit=2).backlinks)
        wanted = [(source, state) for source, target, state in edges if target == node.key != source]
        assert backlinks == sorted(wanted)
