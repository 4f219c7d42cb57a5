"""Links between memories: what is one, where it leads now, what is broken, texts with others in them, the graph."""

import json
import re

import pytest

from e2e.harness import Hub, Machine
from e2e.requirements import requirement
from e2e.room import Document, Room
from e2e.test_memory import put
from e2e.waiting import until

WRITTEN = re.compile(r'"(version|updated_at)": [^,]+,')
STACK = "# Stack\n\n## Vector store\n\nfastembed\n"


def linked(room: Room, key: str) -> Document:
    """What HTTP tells of a memory's links."""
    found: Document = room.api.get(room.at("memory", *key.split("/"), view="links")).ok(200).json
    return found


def graph(room: Room, **query: str | int) -> Document:
    """The whole graph, read page by page."""
    whole: Document = room.api.get(room.at("graph", **query)).ok(200).json
    while whole["next"]:
        page = room.api.get(room.at("graph", cursor=whole["next"], **query)).ok(200).json
        whole = {"nodes": whole["nodes"] + page["nodes"], "edges": whole["edges"] + page["edges"], "next": page["next"]}
    return whole


@requirement("memory:links:forms")
def test_what_is_a_link(room: Room, machine: Machine) -> None:
    """Written in each documented way, by a machine; and what only looks like one."""
    text = "See [[context/stack#vector-store|retrieval]], myc://context/stack and ![[glossary/v]].\n\n"
    text += "`[[code]]`\n\n```\n[[fenced]] myc://fenced\n```\n\n<!-- [[comment]] -->\n\n    [[indented]]\n"
    typed = ["-m", "supersedes=decisions/db-v1", "-m", "source=myc://work/api"]
    machine.run("memory", "set", "decisions/db", text, *typed, handle="avery", room=room.name).ok()
    found = [
        (link["kind"], link["type"], link["key"], link["section"]) for link in linked(room, "decisions/db")["links"]
    ]
    assert found == [
        ("field", "supersedes", "decisions/db-v1", None),
        ("field", None, "work/api", None),
        ("wikilink", None, "context/stack", "vector-store"),
        ("url", None, "context/stack", None),
        ("embed", None, "glossary/v", None),
    ]


@requirement("memory:links:shown")
def test_links_of_a_memory_and_to_it(room: Room, machine: Machine) -> None:
    """As the manual prints them; what leads nowhere is marked; as JSON what HTTP says."""
    put(room, "context/stack", f"{STACK}\n[[procedures/deploy]] [[gone]] [[procedures/deploy#no]]").ok(201)
    put(room, "procedures/deploy", "x").ok(201)
    put(room, "decisions/db", "[[context/stack]] and [[context/stack]]").ok(201)
    put(room, "work/api", "x", meta={"part-of": "context/stack"}).ok(201)
    words = ["memory", "links", "context/stack"]
    assert machine.run(*words, room=room.name).ok().out.splitlines() == [
        "context/stack",
        "",
        "→ links to",
        "  ✓ procedures/deploy       wikilink",
        "  ✗ gone                    wikilink  no such memory",
        "  ✗ procedures/deploy#no    wikilink  no such section",
        "",
        "← referenced by (2)",
        "  decisions/db              wikilink",
        "  work/api                  part-of",
    ]
    only = machine.run(*words, "--backlinks", room=room.name).ok().out.splitlines()
    assert [line.strip() for line in only[2:]] == [
        "← referenced by (2)",
        "decisions/db    wikilink",
        "work/api        part-of",
    ]
    shown = json.loads(machine.run(*words, "--json", room=room.name).ok().out)
    assert shown == {key: value for key, value in linked(room, "context/stack").items() if key != "next"}
    everything = machine.run("memory", "links", room=room.name).ok().out
    assert "work/api\n  ✓ context/stack    part-of\n" in everything
    assert machine.run("memory", "links", "none", room=room.name).status == 3
    assert machine.run("memory", "links", "--backlinks", room=room.name).status == 2


@requirement("memory:links:at-once", "memory:links:check")
def test_what_becomes_of_a_target_shows_at_once(room: Room, machine: Machine) -> None:
    """Removed, renamed, back again, without its section: by the next question, in status and text."""
    put(room, "decisions/db", "[[context/stack#vector-store]]").ok(201)
    check = ["memory", "links", "--check"]

    def checked() -> tuple[int, list[str]]:
        result = machine.run(*check, "--json", room=room.name)
        return result.status, [f"{link['key']} {link['state']}" for link in json.loads(result.out)["broken"]]

    assert checked() == (1, ["context/stack broken"])
    put(room, "context/stack", STACK).ok(201)
    assert checked() == (0, [])
    put(room, "context/stack", "# Stack\n").ok(200)
    assert checked() == (1, ["context/stack no_section"])
    put(room, "context/new-stack", STACK).ok(201)  # what a rename is: a new key, and the old one removed
    machine.run("memory", "rm", "context/stack", handle="avery", room=room.name).ok()
    assert checked() == (1, ["context/stack broken"])
    gone = machine.run("memory", "links", "context/stack", room=room.name).ok().out
    assert gone.startswith("context/stack (not there)\n")
    put(room, "context/stack", STACK).ok(201)
    assert checked() == (0, [])


@requirement("memory:links:at-once")
def test_a_file_that_is_renamed_by_hand_shows(hub: Hub, room: Room) -> None:
    """The links to it are broken, its own go on under its new key."""
    put(room, "context/stack", "[[decisions/db]]").ok(201)
    put(room, "decisions/db", "[[context/stack]]").ok(201)
    file = hub.home / "rooms" / room.name / "context/stack.md"
    until(file.exists, "the file of the memory is there")
    file.rename(file.with_name("moved.md"))

    def edges() -> list[tuple[str, str, str]]:
        return [(edge["source"], edge["key"], edge["state"]) for edge in graph(room)["edges"]]

    wanted = [("context/moved", "decisions/db", "ok"), ("decisions/db", "context/stack", "broken")]
    until(lambda: edges() == wanted, "the graph shows the file's new name")


@requirement("memory:links:check")
def test_a_check_names_everything(room: Room, machine: Machine) -> None:
    """Of the room or of one memory. What nothing links to is told, and is nothing wrong."""
    check = ["memory", "links", "--check"]
    assert machine.run(*check, room=room.name).ok().out == "no broken links in 0 memories, 0 links\n"
    put(room, "a", "[[b]] [[a]] myc://rooms/elsewhere/x").ok(201)
    put(room, "b", "x").ok(201)
    fine = machine.run(*check, room=room.name).ok().out
    assert fine == "nothing links to (1)\n  a\nno broken links in 2 memories, 3 links\n"
    put(room, "b", "[[none]] ![[a]] [[a#no]]").ok(200)
    result = machine.run(*check, room=room.name)
    assert (result.status, result.out.splitlines()) == (
        1,
        [
            "broken links (3)",
            "  b → none    wikilink  no such memory",
            "  b → a       embed  not expandable",
            "  b → a#no    wikilink  no such section",
            "looked at 2 memories, 6 links",
        ],
    )
    assert machine.run(*check, "b", room=room.name).status == 1
    machine.run(*check, "a", room=room.name).ok()


@requirement("memory:links:one-room")
def test_a_link_tells_nothing_of_another_room(room: Room, machine: Machine) -> None:
    """Where it names a private room, one that is not there, or one that anybody sees."""
    private = Room(room.api, machine, f"{room.name}-vault", owner="kim").create(private=True)
    public = Room(room.api, machine, f"{room.name}-open", owner="kim").create()
    for other in (private, public):
        put(other, "plan", "![[plan]] secret text", "kim", expandable=True).ok(201)
    answers = set()
    for name in (private.name, public.name, f"{room.name}-none"):
        put(room, "a", f"myc://rooms/{name}/plan ![[myc://rooms/{name}/plan]]")
        room.api.get(room.at("memory", "plan", view="links")).refused(404, "memory.not_found")
        shown = [
            room.api.get(room.at("memory", "a", **query), handle=handle).ok(200).json
            for query in ({"view": "links"}, {"expand": "true"})
            for handle in ("kim", "stranger")
        ]
        shown += [graph(room), machine.run("memory", "links", "a", room=room.name).ok().out]
        answers.add(WRITTEN.sub("", json.dumps(shown)).replace(name, "ROOM"))
    assert len(answers) == 1
    assert "secret" not in answers.pop()
    room.api.get(private.at("graph"), handle="stranger").refused(404, "room.not_found")


@requirement("memory:embeds")
def test_embeds_are_read_where_they_stand(room: Room, machine: Machine) -> None:
    """One level deep, as they are now; what can't be embedded stays as it is written, and is told."""
    words = ["memory", "set", "glossary/vector-store", "fastembed ![[glossary/b]]", "--expandable"]
    machine.run(*words, handle="avery", room=room.name).ok()
    put(room, "glossary/b", "b", expandable=True).ok(201)
    put(room, "closed", "not to be embedded").ok(201)
    text = "Our layer:\n\n![[glossary/vector-store]]\n\n![[closed]] ![[none#x]] `![[glossary/b]]`"
    put(room, "decisions/db", text).ok(201)
    expand = ["memory", "get", "decisions/db", "--expand"]
    found = machine.run(*expand, room=room.name).ok()
    assert found.out == text.replace("![[glossary/vector-store]]", "fastembed ![[glossary/b]]") + "\n"
    assert found.err.splitlines()[1:] == [
        "left as it is written: ![[closed]]: not expandable",
        "left as it is written: ![[none#x]]: no such memory",
    ]
    put(room, "glossary/vector-store", "changed").ok(200)
    shown = json.loads(machine.run(*expand, "--json", room=room.name).ok().out)
    assert shown["value"].startswith("Our layer:\n\nchanged\n")
    assert [link["written"] for link in shown["unexpanded"]] == ["closed", "none"]
    assert machine.run("memory", "get", "decisions/db", room=room.name).ok().out == f"{text}\n"
    assert machine.run(*expand, "--raw", room=room.name).status == 2


@requirement("memory:graph")
@pytest.mark.parametrize("limit", [7, 500])
def test_the_graph_of_many_memories(room: Room, limit: int) -> None:
    """A ring of forty, each with a broken link and one to the first: the same in small pages and in one."""
    for number in range(40):
        put(room, f"work/n{number:02}", f"[[work/n{(number + 1) % 40:02}]] [[work/n00]] [[gone-{number}]]").ok(201)
    put(room, "alone", "x").ok(201)
    found = graph(room, limit=limit)
    assert [node["key"] for node in found["nodes"]] == ["alone", *(f"work/n{number:02}" for number in range(40))]
    assert [node["key"] for node in found["nodes"] if node["orphan"]] == ["alone"]
    assert {node["group"] for node in found["nodes"]} == {"", "work"}
    assert [edge["state"] for edge in found["edges"]] == ["ok", "ok", "broken"] * 40
    assert [edge["source"] for edge in found["edges"] if edge["key"] == "work/n00"] == [
        *(f"work/n{number:02}" for number in range(39)),
        *["work/n39"] * 2,
    ]
