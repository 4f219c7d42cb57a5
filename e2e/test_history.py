"""Looking back: filters, words, days of a zone, pages that end, texts as they were."""

from datetime import UTC, datetime, timedelta

import pytest

from e2e import bundle
from e2e.harness import Machine
from e2e.requirements import requirement
from e2e.room import Room

PAGE_BYTES = 512 * 1024


@pytest.fixture
def talk(room: Room) -> Room:
    """A room with messages of three senders, a thread and events."""
    room.join("sec", "planner")
    root = room.post("the roadmap", sender="planner")
    room.post("keychain or WebCrypto?", sender="sec")
    room.post("keychain, said @~sec", sender="planner")
    room.post("in the thread: keychain", sender="sec", thread=root["id"])
    room.post("rotate the keychain", sender="sec", message_type="event", metadata={"kind": "action"})
    room.post("the backup is old", sender="sec", message_type="event", metadata={"kind": "concern"})
    return room


@requirement("messages:history:filters")
def test_history_is_filtered_by_sender_kind_status_thread_and_words(talk: Room) -> None:
    """Alone and together; the channel without its threads, unless all of it is asked for."""
    thread = str(talk.page(all="true", q="roadmap")["items"][0]["id"])
    assert talk.found(sender="planner") == ["the roadmap", "keychain, said @~sec"]
    assert talk.found(thread=thread) == ["in the thread: keychain"]
    assert talk.found(thread=thread[-8:]) == ["in the thread: keychain"]
    assert talk.found(kind="action") == ["rotate the keychain"]
    assert talk.found(status="open") == ["rotate the keychain", "the backup is old"]
    assert talk.found(status="open", kind="concern") == ["the backup is old"]
    assert talk.found(q="keychain") == ["keychain or WebCrypto?", "keychain, said @~sec", "rotate the keychain"]
    assert talk.found(q="keychain", all="true", sender="sec") == [
        "keychain or WebCrypto?", "in the thread: keychain", "rotate the keychain"
    ]  # fmt: skip
    assert talk.found(sender="nobody") == talk.found(kind="none") == talk.found(status="expired") == []
    assert len(talk.found(all="true")) == len(talk.found()) + 1 == 6
    for wrong in ({"status": "done"}, {"kind": "No Kind"}, {"q": "!!"}, {"sender": "a b"}):
        assert talk.api.get(talk.at("messages", **wrong)).status == 422, wrong


@requirement("messages:history:filters")
def test_the_command_line_takes_the_same_filters(machine: Machine, talk: Room) -> None:
    """And the line for the next page repeats them."""

    def read(*words: str) -> list[str]:
        page = machine.run("room", "messages", talk.name, *words, "--json").json
        return [message["content"] for message in page["items"]][::-1]

    assert read("--sender", "@planner") == ["the roadmap", "keychain, said @~sec"]
    assert read("--kind", "action", "--status", "open") == ["rotate the keychain"]
    assert read("--search", "keychain", "--all", "--sender", "sec")[1] == "in the thread: keychain"
    first = machine.run("room", "messages", talk.name, "--sender", "sec", "--limit", "1").ok().out
    assert first.splitlines()[-1].startswith(
        f"older: mycelium room messages {talk.name} --limit 1 --sender sec --before"
    )
    assert machine.run("room", "messages", talk.name, "--status", "done").status == 2


@requirement("messages:history:search")
@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("CAFÉ", True),
        ("cafe", True),
        ("部屋", True),
        ("屋部", False),
        ('"second line"', True),
        ('"line second"', False),
        ("second café", True),
        ("sec", False),
        ("x' OR '1'='1", False),
        ("content:café", False),
        ("café NOT second", False),
        ("caf*", False),
    ],
)
def test_words_are_found_whatever_their_case_and_accents(room: Room, query: str, found: bool) -> None:
    """Ideographs without spaces between them too; what SQL or a query language would read is only words."""
    room.post("At the Café, 日本語の部屋\nsecond line")
    room.post("something else")
    assert bool(room.found(q=query)) is found


@requirement("messages:history:search", "messages:amend:original")
def test_an_amended_text_is_found_as_it_is_now(room: Room) -> None:
    """The old words find it no more."""
    message = room.post("the TTL is thirty")
    room.api.patch(room.at("messages", message["id"]), {"content": "the TTL is three hundred"}, handle="avery").ok(200)
    assert room.found(q="hundred") == ["the TTL is three hundred"]
    assert room.found(q="thirty") == []


@requirement("messages:amend:original")
def test_the_texts_of_an_amended_message_can_be_looked_up(machine: Machine, room: Room) -> None:
    """Readers see one message; its history has every text, the first one first."""
    message = room.post("one")
    target = room.at("messages", message["id"])
    for text in ("two", "three"):
        room.api.patch(target, {"content": text}, handle="avery").ok(200)
    assert room.contents() == ["three"]
    told = room.api.get(room.at("messages", message["id"], history="true")).ok(200).json
    assert [text["content"] for text in told["history"]] == ["one", "two", "three"]
    assert told["history"][0] == {"content": "one", "created_at": message["created_at"]}
    assert told["history"][2]["edited_at"] == told["edited_at"]
    assert "history" not in room.api.get(target).json
    shown = machine.run("room", "messages", room.name, "--history", message["id"][-8:]).ok().out
    lines = [line.strip() for line in shown.splitlines()]
    assert lines.index("one") < lines.index("two") < lines.index("three")


@requirement("messages:history:page-bytes")
def test_a_page_ends_at_512_kb(room: Room) -> None:
    """With a cursor, and never with nothing: the largest message comes alone if it must."""
    large = [f"{number}" + "x" * 100_000 for number in range(12)]
    for text in large:
        room.post(text)
    read, pages, before = list[str](), 0, ""
    while True:
        query: dict[str, str | int] = {"limit": 500} | ({"before": before} if before else {})
        reply = room.api.get(room.at("messages", **query)).ok(200)
        assert len(reply.body) < PAGE_BYTES + 256 * 1024
        page = reply.json
        assert page["items"]
        read += [message["content"] for message in page["items"]]
        pages, before = pages + 1, page["older_before"]
        if not before:
            break
    assert read == large[::-1]
    assert pages >= 3


@requirement("messages:history:zones")
def test_a_time_means_the_same_moment_in_every_zone(room: Room) -> None:
    """With any offset, and in a zone without one."""
    stamp = room.post("now")["created_at"]
    moment = datetime.fromisoformat(stamp)
    for offset in ("+14:00", "-12:00", "+05:45"):
        there = moment.astimezone(datetime.fromisoformat(f"2026-01-01T00:00{offset}").tzinfo)
        assert room.found(since=there.isoformat()) == ["now"]
        assert room.found(before=there.isoformat()) == []
    naive = moment.astimezone(UTC).replace(tzinfo=None).isoformat()
    assert room.found(since=naive, tz="UTC") == ["now"]
    for zone in ("Nowhere/Land", "../etc/passwd", "/etc/localtime", "x" * 300):
        room.api.get(room.at("messages", since="today", tz=zone)).refused(422, "request.invalid")


@requirement("messages:history:zones")
def test_today_begins_at_midnight_of_the_readers_zone(machine: Machine, room: Room) -> None:
    """Of a zone where it is about noon now, so that no midnight comes between."""
    zone = f"Etc/GMT{datetime.now(UTC).hour - 12:+d}".replace("+0", "")
    room.post("now")
    assert room.found(since="today", tz=zone) == room.found(since="yesterday", tz=zone) == ["now"]
    assert room.found(before="today", tz=zone) == room.found(since="yesterday", before="today", tz=zone) == []
    words = ("room", "messages", room.name, "--json", "--since", "today")
    assert [message["content"] for message in machine.run(*words, env={"TZ": zone}).json["items"]] == ["now"]


@requirement("messages:history:window")
@pytest.mark.parametrize("age", ["90s", "30m", "2h", "1d"])
def test_ages_are_taken_as_documented(room: Room, age: str) -> None:
    """As both ends of a window."""
    room.post("now")
    assert room.found(since=age) == ["now"]
    assert room.found(before=age) == room.found(since="1d", before=age) == []


@requirement("messages:history:window")
def test_what_is_no_time_is_refused(machine: Machine, room: Room) -> None:
    """With the forms that are."""
    for wrong in ("5", "1w", "1.5h", "-1h", "2026-13-01", "2026-02-30T00:00:00Z", "~", "2026-09-03~-1"):
        for end in ("since", "before"):
            problem = room.api.get(room.at("messages", **{end: wrong})).refused(422, "request.invalid")
            assert (end in problem["detail"], "90s, 30m, 2h or 1d" in problem["detail"]) == (True, True), wrong
    typed = machine.run("room", "messages", room.name, "--since", "1w")
    assert (typed.status, len(typed.err.splitlines()), "1w" in typed.err) == (2, 1, True)


def hours(first: str, count: int) -> list[tuple[datetime, str]]:
    """A message at every full hour of UTC."""
    begin = datetime.fromisoformat(first).replace(tzinfo=UTC)
    return [(begin + timedelta(hours=number), f"hour {number}") for number in range(count)]


@requirement("messages:history:zones")
@pytest.mark.parametrize(
    ("day", "after", "length"),
    [("2026-03-29", "2026-03-30", 23), ("2025-10-26", "2025-10-27", 25), ("2026-06-01", "2026-06-02", 24)],
)
def test_a_day_on_which_clocks_change_has_the_hours_that_it_has(room: Room, day: str, after: str, length: int) -> None:
    """23 in spring and 25 in autumn, by `--since` and `--before` with the reader's zone."""
    old = Room(room.api, room.machine, f"{room.name} of {day}")
    begin = datetime.fromisoformat(day) - timedelta(days=1)
    bundle.made(room.api, old.name, hours(begin.isoformat(), 72))
    words = ("room", "messages", old.name, "--json", "--since", f"{day}T00:00:00", "--before", f"{after}T00:00:00")
    page = old.machine.run(*words, env={"TZ": "Europe/Berlin"}).json
    assert len(page["items"]) == length
    assert len(old.found(since=f"{day}T00:00:00", before=f"{after}T00:00:00", tz="UTC")) == 24
    assert {message["created_at"][14:] for message in page["items"]} == {"00:00.000Z"}


@requirement("messages:history:zones")
def test_times_around_a_change_of_clocks_mean_what_they_say(room: Room) -> None:
    """Two hours of autumn have the same name: with an offset each is told; the hour that spring leaves out is none."""
    old = Room(room.api, room.machine, f"{room.name} of autumn")
    bundle.made(room.api, old.name, hours("2025-10-25T23:00:00", 4))  # 01:00, 02:00, 02:00 again and 03:00 in Berlin
    zone = "Europe/Berlin"
    assert old.found(since="2025-10-26T02:00:00+02:00", tz=zone) == ["hour 1", "hour 2", "hour 3"]
    assert old.found(since="2025-10-26T02:00:00+01:00", tz=zone) == ["hour 2", "hour 3"]
    assert old.found(since="2025-10-26T02:00:00", tz=zone)[-2:] == ["hour 2", "hour 3"]
    assert old.found(since="2025-10-26T03:00:00", tz=zone) == ["hour 3"]
    assert old.found(before="2025-10-26T02:00:00", tz=zone)[0] == "hour 0"
    spring = Room(room.api, room.machine, f"{room.name} of spring")
    bundle.made(room.api, spring.name, hours("2026-03-28T23:00:00", 4))  # 00:00, 01:00, 03:00 and 04:00 in Berlin
    assert spring.found(since="2026-03-29T02:00:00", tz=zone) == ["hour 2", "hour 3"]
    assert spring.found(since="2026-03-29T03:00:00", tz=zone) == ["hour 2", "hour 3"]


@requirement("messages:history:zones")
def test_today_and_yesterday_are_days_of_the_readers_zone(room: Room) -> None:
    """Where it is noon: what was 13 hours ago was yesterday, what was 37 hours ago was the day before."""
    old = Room(room.api, room.machine, f"{room.name} of old")
    now = datetime.now(UTC)
    posts = [(now - timedelta(hours=age), f"{age} hours ago") for age in (49, 37, 35, 25, 13, 11, 1)]
    bundle.made(room.api, old.name, posts)
    zone = f"Etc/GMT{now.hour - 12:+d}"
    assert old.found(since="today", tz=zone) == ["11 hours ago", "1 hours ago"]
    assert old.found(since="yesterday", before="today", tz=zone) == ["35 hours ago", "25 hours ago", "13 hours ago"]
    assert old.found(since="1d") == ["13 hours ago", "11 hours ago", "1 hours ago"]
    assert old.found(since="2d", before="30h") == ["37 hours ago", "35 hours ago"]
