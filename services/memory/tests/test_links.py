"""Links: what is written in a text or a field, where it stands, and what it leads to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mycelium_kernel.errors import Refusal
from mycelium_memory import linking, links, markdown
from mycelium_memory.linking import Target
from mycelium_memory.links import Link

KB512 = 512 * 1024


def written(body: str) -> str:
    """The links of a text in a short form: kind, target, section, text, each link apart by a space."""
    signs = {"wiki": "", "embed": "!", "url": "@"}
    return " ".join(
        signs[link.kind]
        + (f"{link.room}:" if link.room else "")
        + link.target
        + (f"#{link.section}" if link.section else "")
        + (f"|{link.text}" if link.text else "")
        for link in links.extract(body, {})
    )


@pytest.mark.parametrize(
    ("body", "found"),
    [
        # as documented
        ("We chose Postgres because of [[context/stack]].", "context/stack"),
        ("We chose Postgres because of myc://context/stack.", "@context/stack"),
        ("[[context/stack#vector-store|how retrieval works]]", "context/stack#vector-store|how retrieval works"),
        ("Our layer is fixed:\n\n![[glossary/vector-store]]\n", "!glossary/vector-store"),
        ("myc://rooms/other/decisions/db", "@other:decisions/db"),
        # where it may stand
        ("# About [[a]]\n\n- [[b]]\n  > **[[c]]**\n\n| x | [[d\\|e]] |\n", "a b c d|e"),
        ("Title [[a]]\n===\n", "a"),
        ("[see](myc://a/b) <myc://c> ![x](myc://d) (myc://e), **myc://f** _myc://g_", "@a/b @c @d @e @f @g"),
        ("[x]: myc://a\n", "@a"),
        ("[[myc://a#b|c]]", "a#b|c"),
        ("MYC://a", "@a"),
        ("myc://notes/two%20words#a%20b", "@notes/two words#a b"),
        ("myc://a/(b) myc://a/b?x=1#y", "@a/(b) @a/b#y"),
        ("<details>\n\n[[a]]\n\n</details>", "a"),
        ("[[ a # b | c ]]", "a#b|c"),
        ("[[#below]]", "#below"),
        ("[[[a]]]", "a"),
        ("![[[a]]", "a"),
        ("[[a]][[b]]![[c]]", "a b !c"),
        ("[[a|b|c]]", "a|b|c"),
        ("*[[a*b]]*", "a*b"),
        ("[[Why We Chose X]]", "Why We Chose X"),
        # where it is none
        ("`[[a]]` ``[[b]] ` [[c]]``", ""),
        ("```\n[[a]]\n```\n", ""),
        ("~~~md\nmyc://a\n~~~\n", ""),
        ("    [[a]]\n", ""),
        ("> ```\n> [[a]]\n", ""),
        ("<!-- [[a]] -->", ""),
        ("x <!-- [[a]]\nmyc://b --> [[c]]", "c"),
        ("<!--\n\n[[a]]\n\n-->\n\n[[b]]", "b"),
        ("<pre>\n[[a]]\n\n[[b]]\n</pre>", ""),
        (r"\[[a]] \![[b]] [\[c]] \myc://d", "b"),
        ("[[]] [[ ]] [[|x]] myc:// myc://rooms/other myc:///", ""),
        ("[[a\nb]]", ""),
        ("[[a [b] c]]", ""),
        ("xmyc://a", ""),
        ("[[" + "x" * 1_001 + "]]", ""),
        # what never ends
        ("` [[a]]", "a"),
        ("x <!-- [[a]]", "a"),
        ("[[a]] [[b", "a"),
        ("```\n[[a]]", ""),
    ],
)
def test_links_in_a_text(body: str, found: str) -> None:
    assert written(body) == found


@given(
    st.lists(
        st.sampled_from(
            ["[[a#b|c]]", "![[d/e]]", "myc://f/g ", "- ", "> ", "# ", "word ", "\n", "\n\n", "\r\n", "  ", "1. ", "\t"]
        )
    )
)
def test_a_link_stands_where_it_says(parts: list[str]) -> None:
    """Marks of lists and quotes, indents and the line ends of another system are counted right."""
    body = "".join(parts)
    for link in links.extract(body, {}):
        expected = {"a": "[[a#b|c]]", "d/e": "![[d/e]]", "f/g": "myc://f/g"}
        assert body[link.start : link.end] == expected[link.target]


@given(st.text(st.sampled_from("[]!|#\\`<>-myc:/a \n*_(")))
def test_any_text_is_read(body: str) -> None:
    for link in links.extract(body, {}):
        assert 0 <= link.start < link.end <= len(body)
        assert body[link.start : link.end].startswith(("[[", "![[", "myc://"))


@pytest.mark.parametrize(
    ("meta", "found"),
    [
        ({"supersedes": "decisions/db-v1"}, [Link("decisions/db-v1", "field", type="supersedes")]),
        ({"part-of": "[[work/a#b|c]]"}, [Link("work/a", "field", "b", "c", "part-of")]),
        ({"relates-to": "myc://a/b"}, [Link("a/b", "field", type="relates-to")]),
        ({"depends-on": ["work/a", "work/b"]}, [Link(f"work/{name}", "field", type="depends-on") for name in "ab"]),
        ({"depends-on": [["work/a"]]}, [Link("work/a", "field", type="depends-on")]),
        ({"superseded-by": ""}, []),
        ({"depends-on": None, "part-of": 5}, []),
        ({"source": "myc://a/b#c", "note": "see myc://d, and [[e]]"}, [Link("a/b", "field", "c"), Link("d", "field")]),
        ({"nested": {"deep": ["myc://a"]}}, [Link("a", "field")]),
        ({"relates-to": "myc://rooms/other/x"}, [Link("x", "field", type="relates-to", room="other")]),
        ({"title": "depends-on a"}, []),
    ],
)
def test_links_in_fields(meta: dict[str, Any], found: list[Link]) -> None:
    assert links.extract("", meta) == found


def test_fields_come_before_the_text() -> None:
    assert [link.target for link in links.extract("[[b]]", {"part-of": "a"})] == ["a", "b"]


def test_a_document_may_have_a_thousand_links() -> None:
    assert len(links.extract("[[a]] " * 999, {"part-of": "a"})) == 1_000
    with pytest.raises(Refusal) as caught:
        links.extract("[[a]] " * 1_000, {"part-of": "a"})
    assert caught.value.slug == "memory.links_too_many"


@pytest.mark.parametrize("line", ["- a\n", "> a\n", "1. a\n", "- - - a\n", "word\n", "\r"])
def test_a_text_that_would_take_too_long_is_refused_when_it_has_links(line: str) -> None:
    body = line * (markdown.LINES + 1)
    assert links.extract(body, {}) == []
    with pytest.raises(Refusal, match="split it") as caught:
        links.extract(body + "\n\n[[a]]", {})
    assert caught.value.slug == "content.too_large"


@pytest.mark.parametrize("part", ["[", "[[a", "[[]]", "` ", "``` ` ", "<!-- -->", "<!--", "myc://)", "*a ", "<a "])
def test_no_text_takes_long(part: str) -> None:
    """What is hard to read is read once: a rule that looked at it again and again would not end in a test's time."""
    marks = len(links.STOP.findall(part))
    times = links.MARKS // (marks + 1) if marks else KB512 // len(part)
    body = "see [[the/start]] " + part * times
    assert links.extract(body, {})[0].target == "the/start"


@pytest.mark.parametrize("part", ["![[", "\\[[", "`", "<!--", "myc://)", "[[a]] "])
def test_a_text_of_nothing_but_marks_is_refused_when_it_may_have_links(part: str) -> None:
    """Each place where something may begin takes its time, and others wait meanwhile."""
    with pytest.raises(Refusal, match=r"brackets, backticks and the like, where 50,000 can be read; split it"):
        links.extract("[[a]]" + part * (links.MARKS + 1), {})


def test_many_links_in_a_long_line_are_placed_in_one_look_at_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looking at the whole line for each of its links takes seconds when it is half a megabyte."""
    looks: list[int] = []
    enter = links._Places._enter

    def counted(places: links._Places, line: int, begin: int) -> None:
        looks.append(line)
        enter(places, line, begin)

    monkeypatch.setattr(links._Places, "_enter", counted)
    body = "> " + "x" * 100_000 + " [[a]]" * 900 + "\n> [[b]]"
    assert [body[link.start : link.end] for link in links.extract(body, {})] == ["[[a]]"] * 900 + ["[[b]]"]
    assert looks == [0, 1]


DOCUMENTS = {
    "a": Target("# One\n\nfirst\n\n## Two\n\nsecond\n", expandable=True),
    "b": Target("not to be embedded"),
    "work/c": Target("c embeds ![[a]]\n", expandable=True),
    "issues/#1": Target("numbered", expandable=True),
    "big": Target("x" * KB512, expandable=True),
}


@pytest.mark.parametrize(
    ("body", "key", "state"),
    [
        ("[[a]]", "a", "ok"),
        ("[[b]]", "b", "ok"),
        ("[[Work/C]]", "work/c", "ok"),
        ("[[x]]", "x", "broken"),
        ("[[../x]]", "", "broken"),
        ("[[decisions/No Such Key]]", "", "broken"),
        ("[[a#two]]", "a", "ok"),
        ("[[a#Two]]", "a", "ok"),
        ("[[a#three]]", "a", "no_section"),
        ("[[#two]]", "a", "ok"),
        ("[[issues/#1]]", "issues/#1", "ok"),
        ("myc://issues/%231", "issues/#1", "ok"),
        ("myc://rooms/other/a", "a", "other_room"),
        ("[[rooms/other/a]]", "rooms/other/a", "broken"),
        ("![[b]]", "b", "not_expandable"),
        ("![[a]]", "a", "ok"),
        ("![[x]]", "x", "broken"),
    ],
)
def test_where_a_link_leads(body: str, key: str, state: str) -> None:
    (resolved,) = linking.resolve(links.extract(body, {}), DOCUMENTS.get, own="a")
    assert (resolved.key, resolved.state) == (key, state)


@pytest.mark.parametrize(
    ("body", "text", "problems"),
    [
        ("Fixed:\n\n![[a#two]]\n\nend", "Fixed:\n\n## Two\n\nsecond\n\nend", []),
        ("![[work/c]] and [[a]]", "c embeds ![[a]] and [[a]]", []),
        ("![[b]] ![[x]] ![[a#no]]", "![[b]] ![[x]] ![[a#no]]", ["not_expandable", "broken", "no_section"]),
        ("`![[a]]`", "`![[a]]`", []),
        ("![[#two]]", "## Two\n\nsecond", []),
        ("none", "none", []),
    ],
)
def test_embeds_are_expanded_one_level_deep_and_the_rest_is_reported(body: str, text: str, problems: list[str]) -> None:
    expanded = linking.expand(body, links.extract(body, {}), DOCUMENTS.get, own="a")
    assert expanded.text == text
    assert [problem.state for problem in expanded.problems] == problems


def test_an_expanded_text_has_a_limit() -> None:
    body = "![[big]]\n" * 10
    expanded = linking.expand(body, links.extract(body, {}), DOCUMENTS.get)
    assert [problem.state for problem in expanded.problems] == ["too_large"] * 6
    assert len(expanded.text) < linking.EXPANDED_BYTES + 100


def test_the_links_of_this_repository_are_read() -> None:
    """Documents as people write them."""
    root = Path(__file__).parents[3]
    for path in [*root.glob("docs/**/*.md"), root / "README.md", root / "ARCHITECTURE.md"]:
        text = path.read_text(encoding="utf-8")
        for link in links.extract(text, {}):
            assert text[link.start : link.end].startswith(("[[", "![[", "myc://"))
