"""Rooms live: over SSE and by `room watch`, through cut lines and restarts."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from e2e.harness import Hub, Machine
from e2e.requirements import requirement
from e2e.room import Room
from e2e.waiting import until
from e2e.web import Api, Event, path

Unique = Callable[[str], str]


@requirement("live:stream:at-once")
def test_a_watcher_gets_everything_as_it_happens(room: Room) -> None:
    """Messages and amendments as history shows them, members coming, changing and leaving."""
    with room.api.stream(room.at("stream")) as stream:
        room.join("sec")
        joined = stream.next()
        assert (joined.type, joined.data["handle"], joined.data["room"]) == ("member_joined", "sec", room.name)
        message = room.post("@sec hello")
        live = stream.next("message")
        assert live.data == message
        room.api.patch(room.at("messages", message["id"]), {"content": "@sec bye"}, handle="avery").ok(200)
        amended = stream.next("message_amended")
        assert amended.data.items() <= room.page()["items"][0].items()
        assert amended.data["content"] == "@sec bye"
        room.api.patch(room.at("members", "sec"), {"description": "security"}, handle="avery").ok(200)
        assert stream.next("member_changed").data["description"] == "security"
        room.api.delete(room.at("members", "sec"), handle="avery").ok(204)
        assert stream.next("member_left").data["handle"] == "sec"
        assert all(event.id for event in (joined, live, amended))


@requirement("live:stream:at-once", "messages:post:one-order")
def test_history_and_every_watcher_have_the_same_order(hub: Hub, room: Room) -> None:
    """Eight posters at once, three watchers, one order."""

    def post(poster: int) -> None:
        for number in range(10):
            room.post(f"{poster}.{number}", sender=f"poster-{poster}")

    streams = [hub.api.stream(room.at("stream")) for _ in range(3)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(post, range(8)))
    room.post("end")
    seen = [[event.data["content"] for event in stream.until("end")] for stream in streams]
    for stream in streams:
        stream.close()
    history = room.contents()
    assert len(history) == 81
    assert seen == [history] * 3
    for poster in range(8):
        own = [text for text in history if text.startswith(f"{poster}.")]
        assert own == [f"{poster}.{number}" for number in range(10)]


@requirement("live:stream:resumed")
def test_a_watcher_that_comes_back_misses_nothing_and_gets_nothing_twice(room: Room) -> None:
    """Wherever it was cut, by header and by query, while posting goes on."""
    with room.api.stream(room.at("stream")) as stream:
        for number in range(12):
            room.post(f"message {number}")
        events = [stream.next("message") for _ in range(12)]
    assert len({event.id for event in events}) == 12
    for cut in (0, 5, 11):
        room.post(f"after {cut}")
        with room.api.stream(room.at("stream"), last_id=events[cut].id) as stream:
            room.post(f"live {cut}")
            read = [event.data["content"] for event in stream.until(f"live {cut}")]
        assert read == room.contents()[cut + 1 :]
    with room.api.stream(room.at("stream", last_event_id=events[11].id)) as stream:
        assert stream.next("message").data["content"] == "after 0"


@requirement("live:stream:resumed")
def test_resuming_in_the_middle_of_a_flood_has_no_gap_and_no_repeat(room: Room) -> None:
    """The join of past and present happens while both move."""

    def flood() -> None:
        for number in range(120):
            room.post(f"{number}")
        room.post("end")

    with ThreadPoolExecutor(1) as pool:
        last_id, read = "", list[Event]()
        with room.api.stream(room.at("stream")) as stream:
            flooding = pool.submit(flood)
            read.append(stream.next("message"))
        while read[-1].data["content"] != "end":
            last_id = read[-1].id
            with room.api.stream(room.at("stream"), last_id) as stream:
                for _ in range(7):
                    read.append(stream.next("message"))
                    if read[-1].data["content"] == "end":
                        break
        flooding.result(30)
    assert [event.data["content"] for event in read] == [*(str(number) for number in range(120)), "end"]


@requirement("live:stream:restart")
def test_resuming_works_across_a_killed_hub(own_hub: Hub, own_room: Room) -> None:
    """The id of before is good after."""
    with own_room.api.stream(own_room.at("stream")) as stream:
        own_room.post("one")
        last_id = stream.next("message").id
    own_room.post("two")
    own_hub.restart()
    own_room.post("three")
    with own_room.api.stream(own_room.at("stream"), last_id) as stream:
        own_room.post("four")
        assert [event.data["content"] for event in stream.until("four")] == ["two", "three", "four"]


@requirement("live:stream:several")
def test_one_stream_carries_several_rooms(machine: Machine, room: Room, unique: Unique) -> None:
    """Each event with its room, in one order; a missing room is refused."""
    other = Room(room.api, machine, unique("other")).create()
    target = path("stream", room=[room.name, other.name])
    with room.api.stream(target) as stream:
        room.post("one")
        other.post("two")
        room.post("three")
        events = [stream.next("message") for _ in range(3)]
    assert [(event.data["room"], event.data["content"]) for event in events] == [
        (room.name, "one"),
        (other.name, "two"),
        (room.name, "three"),
    ]
    with room.api.stream(target, last_id=events[0].id) as stream:
        assert [stream.next("message").data["content"] for _ in range(2)] == ["two", "three"]
    room.api.get(path("stream", room=[room.name, "no-such-room"])).refused(404, "room.not_found")


@requirement("live:stream:foreign-id")
def test_an_id_that_is_not_of_this_log_is_said(room: Room) -> None:
    """`reset`, then live: the watcher reads the room again."""
    room.post("old")
    with room.api.stream(room.at("stream")) as stream:
        room.post("one")
        epoch = stream.next("message").id.rpartition("-")[0]
    for foreign in ("0000-1", "nonsense", f"{epoch}-99999999"):
        with room.api.stream(room.at("stream"), last_id=foreign) as stream:
            reset = stream.next()
            assert (reset.type, reset.id) == ("reset", "")
            room.post("two")
            assert stream.next("message").data["content"] == "two"


@requirement("live:watch:prints")
def test_watch_prints_what_happens_through_a_restart(own_hub: Hub, own_room: Room) -> None:
    """Text for people, a line an event for programs; nothing missing, nothing twice."""
    own_room.machine.run("iam", "avery", "--name", "Avery Quinn").ok()
    watching = own_room.machine.start("room", "watch", "demo")
    reading = own_room.machine.start("room", "watch", "demo", "--json")
    numbers = iter(range(1000))

    def both_watch() -> bool:
        own_room.post(f"are you there? {next(numbers)}")
        return bool(watching.out and reading.out)

    until(both_watch, "both watch")
    own_room.post("before", sender="avery")
    watching.line(lambda line: line == "  before\n", "the message")
    own_hub.restart()
    own_room.join("sec")
    own_room.post("after", sender="sec")
    watching.line(lambda line: line == "  after\n", "the message after the restart", 20)
    reading.line(lambda line: '"after"' in line, "the event after the restart", 20)
    text = "".join(watching.out)
    assert text.index("Avery Quinn (@avery) · ") < text.index("  before\n") < text.index("@sec is in the room")
    assert text.count("  before\n") == 1
    assert '"event":"member_joined"' in "".join(reading.out)
    assert "back on the line" in "".join(watching.err)
    assert Api(own_hub.url).get("/healthz").status == 200
