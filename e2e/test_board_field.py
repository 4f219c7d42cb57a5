"""What broke boards elsewhere, one test each."""

import json

from e2e import crowd
from e2e.requirements import requirement
from e2e.room import Document, Room
from e2e.tasks import Tasks
from e2e.waiting import until


def rows(room: Room, wanted: str = "all") -> dict[str, Document]:
    """The board's rows by key."""
    page = room.api.get(room.at("board", filter=wanted), handle="avery").ok(200).json
    return {row["key"]: row for row in page["items"]}


@requirement("board:field")
def test_two_agents_claim_within_the_same_millisecond(room: Room) -> None:
    """One has it, and the other is told so; ten times."""
    room.join("sec", "bob")
    tasks = Tasks(room)
    for number in range(10):
        key = f"work/wanted-{number}"
        tasks.write(key, status="open")
        target = room.at("tasks", *key.split("/"), "claim")
        sent = [crowd.request(room.api.url, "POST", target, {}, by, f"{key} {by}") for by in ("sec", "bob")]
        answers = crowd.ask_all(room.api.url, sent)
        assert sorted(answer.status for answer in answers) == [200, 409]
        assert len({json.loads(answer.body)["holder"] for answer in answers}) == 1


@requirement("board:field")
def test_one_releases_then_another_claims(room: Room) -> None:
    """At once, under a greater token, and whom it is for stays."""
    room.join("sec", "bob")
    tasks = Tasks(room)
    tasks.write("work/handed", status="open", assignee="@sec")
    first = tasks.do("claim", "work/handed", "sec").ok(200).json["token"]
    tasks.do("release", "work/handed", "sec", token=first).ok(200)
    second = tasks.do("claim", "work/handed", "bob").ok(200).json
    assert (second["holder"], second["token"] > first) == ("bob", True)
    assert rows(room)["work/handed"]["assignee"] == "sec"


@requirement("board:field")
def test_a_claim_ends_another_claims_and_the_first_renews_resolves_and_releases(room: Room) -> None:
    """Each is refused as a claim that is lost, and changes nothing."""
    room.join("sec", "bob")
    tasks = Tasks(room)
    tasks.write("work/slow", status="open")
    old = tasks.do("claim", "work/slow", "sec", ttl_s=1).ok(200).json["token"]
    until(lambda: tasks.do("claim", "work/slow", "bob").status == 200, "the first claim is over")
    assert tasks.refused_under(old, "work/slow", "sec") == ["lease.lost"] * 3
    row = rows(room)["work/slow"]
    assert (row["holder"], row["status"]) == ("bob", "open")


@requirement("board:field")
def test_a_blocked_row_is_not_offered_as_ready(room: Room) -> None:
    """Neither one that was blocked by a move, nor one whose document says so, nor one that nobody knows why."""
    room.join("sec")
    tasks = Tasks(room)
    tasks.write("work/free", status="open")
    tasks.write("work/moved", status="open")
    tasks.do("block", "work/moved", "sec", on="#502").ok(200)
    tasks.write("work/written", status="open", blocked_by="#503")
    tasks.write("work/unsaid", status="blocked")
    assert list(rows(room, "ready")) == ["work/free"]
    said = {key: row["reason"] for key, row in rows(room).items()}
    assert said == {
        "work/free": "", "work/moved": "waiting on #502", "work/written": "waiting on #503", "work/unsaid": "blocked",
    }  # fmt: skip


@requirement("board:field")
def test_a_parent_does_not_wait_for_its_own_child(room: Room) -> None:
    """Nor does a child that says it comes after its parent: both would wait for ever, and the row names the cycle."""
    tasks = Tasks(room)
    tasks.write("work/parent", status="open")
    tasks.write("work/child", **{"status": "open", "part-of": "work/parent"})
    tasks.write("work/after", **{"status": "open", "part-of": "work/parent", "depends-on": "work/parent"})
    assert rows(room, "ready").keys() == {"work/parent", "work/child", "work/after"}
    found = rows(room)
    assert found["work/parent"]["parts"] == ["work/after", "work/child"]
    assert sorted(found["work/after"]["cycle"]) == ["work/after", "work/parent"]
    assert found["work/child"]["cycle"] == []


@requirement("board:field")
def test_a_part_is_resolved_while_its_parent_is_blocked(room: Room) -> None:
    """The parent stays blocked, and who waited for the part goes on."""
    room.join("sec")
    tasks = Tasks(room)
    tasks.write("work/whole", status="open")
    tasks.do("block", "work/whole", "sec", on="#502").ok(200)
    tasks.write("work/piece", **{"status": "open", "part-of": "work/whole"})
    tasks.write("work/next", **{"status": "open", "depends-on": "work/piece"})
    assert rows(room)["work/next"]["reason"] == "after work/piece"
    token = tasks.do("claim", "work/piece", "sec").ok(200).json["token"]
    tasks.do("resolve", "work/piece", "sec", token=token).ok(200)
    found = rows(room)
    said = [(found[f"work/{name}"]["status"], found[f"work/{name}"]["ready"]) for name in ("whole", "piece", "next")]
    assert said == [("blocked", False), ("resolved", False), ("open", True)]


@requirement("board:field")
def test_one_agreement_files_two_tasks(room: Room) -> None:
    """Each has a thread of its own, and keeps it when the rows are written again."""
    tasks = Tasks(room)

    def agree() -> dict[str, str]:
        for key in ("work/schema", "work/migration"):
            tasks.write(key, status="open", agreement="ep-1")
        return {key: row["thread"] for key, row in rows(room).items()}

    threads = agree()
    assert len(set(threads.values())) == 2
    tasks.room.post("schema first", thread=threads["work/schema"])
    assert agree() == threads
    tasks.write("work/schema", status="open", title="Another title", thread_id="01900000-0000-7000-8000-000000000000")
    assert {key: row["thread"] for key, row in rows(room).items()} == threads
    assert [message["content"] for message in room.page(thread=threads["work/schema"])["items"]] == ["schema first"]
