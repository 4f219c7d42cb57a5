"""Search by words: what counts as one, which section comes first, how a search is narrowed, and what is forgotten."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mycelium_kernel.errors import Refusal
from mycelium_memory import queries_search, search, words
from mycelium_memory.search import question, rank
from mycelium_memory.vectors import Within
from services.memory.tests.hub import Hub, rebuilt, rows_of


def room_id(hub: Hub, name: str = "demo") -> str:
    row = hub.tables.one("SELECT room_id FROM room WHERE folded = ?", name)
    assert row is not None
    return str(row[0])


def found(hub: Hub, query: str, room: str = "demo", most: int = 10, **narrowed: object) -> list[str]:
    """Where the words stand, the best first: `key`, or `key#section`."""
    within = Within(rooms=(room_id(hub, room),), **narrowed)  # type: ignore[arg-type]
    places = rank(hub.tables, question(query), within, most)
    return [f"{key}#{section}" if section else key for key, section in places]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("decisions", "Decision"),
        ("Entscheidungen über CAFÉ", "entscheidungen uber cafe\u0301"),
        ("policies", "policy"),
        ("caches", "cache"),
        ("STRASSE", "straße"),
        ("ﬁle_name-2", "file name 2"),
        ("記憶と検索", "記 憶 と 検 索"),
    ],
)
def test_words_that_are_the_same_to_a_reader_are_the_same_here(one: str, other: str) -> None:
    """Case, accents, plurals, ligatures; a character of Chinese or Japanese is a word."""
    assert words.words(one) == words.words(other) != []


def test_what_only_ends_like_a_plural_stays() -> None:
    """`status` is not several of `statu`."""
    assert words.words("status class bus gas is series") == ["status", "class", "bus", "gas", "is", "sery"]


@given(st.text(max_size=60))
def test_every_text_has_words_that_the_index_takes_as_they_are(text: str) -> None:
    """No blank, no quote, no capital letter in them."""
    for word in words.words(text):
        assert word == word.casefold()
        assert not set(word) & set(' "*^:()\0')


def test_the_section_with_the_words_comes_first(demo: Hub) -> None:
    """By how rare a word is here, how often it is said, in how short a section; keys and headings count."""
    demo.write("notes/long", "# Redis\n\n" + "caching and other words " * 60)
    demo.write("decisions/cache", "# Cache\n\nIntro.\n\n## Why Redis\n\nIt lowers p99.\n\n## Costs\n\nNothing.\n")
    demo.write("notes/other", "Nothing of interest, with words.")
    assert found(demo, "why redis?")[0] == "decisions/cache#why-redis"
    assert found(demo, "what does the cache cost")[0] == "decisions/cache#costs"
    assert found(demo, "interest") == ["notes/other"]
    assert found(demo, "nowhere") == []


def test_words_that_every_question_has_count_only_alone(demo: Hub) -> None:
    """A question of nothing else is still one."""
    demo.write("a", "the what")
    demo.write("b", "storage")
    assert found(demo, "what storage") == ["b"]
    assert found(demo, "the what") == ["a"]


def test_what_is_quoted_has_to_be_there_as_it_is(demo: Hub) -> None:
    """In that order, within one section; the other words only rank."""
    demo.write("a", "The backup runs daily. Restore it weekly.")
    demo.write("b", "Runs of the backup: daily.")
    demo.write("c", "# One\n\nthe backup\n\n## Two\n\nruns daily")
    assert found(demo, '"backup runs" weekly') == ["a"]
    assert found(demo, '"runs daily"') == ["c#two", "a"]
    assert found(demo, '"Backup" "daily"') == ["b", "a"]
    assert found(demo, '"daily backup"') == []


def test_a_search_is_narrowed(demo: Hub) -> None:
    """By what keys begin with, by tags, by who wrote last, by time: in from its first moment, out at its last."""
    demo.write("work/a", "apple", by="kim", tags=["Red", "fruit"])
    demo.later(minutes=1)
    demo.write("work/ab", "apple", tags=["red"])
    demo.write("workshop", "apple", by="Kim")
    at = demo.tables.one("SELECT updated_at FROM document WHERE folded = 'work/ab'")
    assert at is not None
    assert set(found(demo, "apple", prefix="work/")) == {"work/a", "work/ab"}
    assert set(found(demo, "apple", prefix="work/a")) == {"work/a", "work/ab"}
    assert found(demo, "apple", tags=("red", "fruit")) == ["work/a"]
    assert set(found(demo, "apple", author="kim")) == {"work/a", "workshop"}
    assert set(found(demo, "apple", since_ms=at[0])) == {"work/ab", "workshop"}
    assert found(demo, "apple", until_ms=at[0]) == ["work/a"]
    assert found(demo, "apple", most=1) == ["workshop"] != found(demo, "apple", most=2)


def test_a_replaced_text_is_never_found_again(demo: Hub) -> None:
    """After an edit, a removal, a first section that is new; nor after tables are made from the log again."""
    demo.write("a", "# Title\n\nelephants\n\n## Below\n\nzebras", tags=["savanna"])
    assert found(demo, "zebra") == ["a#below"]
    demo.write("a", "# Title\n\ngiraffes", tags=[])
    assert found(demo, "elephants zebra savanna below") == []
    assert found(demo, "giraffe") == ["a#title"]
    demo.remove("a")
    assert found(demo, "giraffe") == []
    demo.write("a", "lions")
    again = Hub(tables=rebuilt(demo.facts))
    for hub in (demo, again):
        assert found(hub, "lions") == ["a"]
        assert found(hub, "elephants zebra savanna giraffe") == []


def test_other_rooms_change_neither_what_is_found_nor_its_order(demo: Hub) -> None:
    """Not by a word that is common there, not by how much there is."""
    demo.write("one", "alpha beta gamma")
    demo.write("two", "alpha alpha delta epsilon zeta")
    demo.write("three", "beta delta")
    asked = ("alpha", "beta delta", "alpha beta gamma delta")
    before = [found(demo, query) for query in asked]
    demo.room("secret", by="kim", private=True)
    for number in range(40):
        demo.write(f"x{number}", "beta gamma " * 30, by="kim", room="secret")
    assert [found(demo, query) for query in asked] == before
    assert found(demo, "gamma") == ["one"]
    assert len(found(demo, "gamma", "secret", most=50)) == 40


def test_a_question_looks_at_so_much_of_the_index_and_no_more(demo: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside rarer words, those that a large room has everywhere do not count; alone they find what is newest."""
    monkeypatch.setattr(search, "ENTRIES", 5)
    demo.write("rare", "quince")
    for number in range(10):
        demo.write(f"n{number}", "common")
    assert found(demo, "common quince") == ["rare"]
    assert found(demo, "common") == ["n9", "n8", "n7", "n6", "n5"]
    assert found(demo, "common", prefix="n1") == ["n1"]


def test_no_search_looks_at_all_that_a_room_has(demo: Hub) -> None:
    """A section is found from its document, and ranking reads no texts."""
    entries = search.PLACES.format(terms="(?, ?)")
    for sql, values, wanted in (
        (queries_search.SECTION, 3, "passage_document (room_id=? AND document_id=? AND slug=?"),
        (search.PHRASED, 4, "passage_document (room_id=? AND document_id=? AND slug=?"),
        (search.RANKED.format(entries=entries), 5, "COVERING INDEX passage_length (passage=?)"),
        (
            search.NARROWLY.format(entries=entries, narrowed=""),
            5,
            "document USING PRIMARY KEY (room_id=? AND document_id=?)",
        ),
    ):
        plan = [row[3] for row in demo.tables.all(f"EXPLAIN QUERY PLAN {sql}", *["x"] * values)]
        assert any(wanted in step for step in plan), plan
        assert not [step for step in plan if step.startswith("SCAN") and step.split()[1] in {"passage", "document"}]
        assert not [step for step in plan if step.endswith("(room_id=?)")], plan


def test_a_deleted_room_s_words_leave_the_tables(demo: Hub) -> None:
    """Also the index, whose pages would keep them until they are written anew."""
    demo.room("other")
    demo.write("a", "aubergine")
    demo.write("a", "aubergine, quince")
    demo.write("b", "kept", room="other")
    demo.delete_room(room_id(demo))
    demo.sweep()
    pages = demo.tables.all("SELECT hex(block) FROM passage_words_data")
    assert not [page for (page,) in pages if b"ubergine".hex().upper() in page]
    assert demo.tables.all("SELECT slug FROM passage") == [("",)]
    assert found(demo, "kept", "other") == ["b"]
    assert rows_of(demo.tables)["passage"] == rows_of(rebuilt(demo.facts))["passage"]


@pytest.mark.parametrize("query", ["", "  ", "?!", '""', "x" * 2_001, "word " * 101])
def test_a_question_without_words_or_with_too_many_is_refused(query: str) -> None:
    """With what may be asked."""
    with pytest.raises(Refusal, match=r"request\.invalid"):
        question(query)
