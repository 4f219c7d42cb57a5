"""Live streams against the rooms service on a real log: no gap, no repeat, in order, through every kind of end."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx2
import pytest

from mycelium_gateway import stream as streams
from mycelium_gateway.settings import GatewaySettings
from mycelium_kernel import tables, testing
from services.gateway.tests.conftest import opened
from services.gateway.tests.door import SOON_S, Door, metric
from services.gateway.tests.watching import watching

AVERY = {"Mycelium-Handle": "avery"}
FROM_BOTH = pytest.mark.parametrize(
    "recent_bytes", [0, 6_000, GatewaySettings.stream_recent_bytes], ids=["feed", "a little memory", "memory"]
)


@pytest.fixture(autouse=True)
async def room(hub: Door) -> None:
    await hub.http.post("/api/rooms", json={"name": "demo"}, headers=AVERY)


async def post(http: httpx2.AsyncClient, text: str, room: str = "demo") -> dict[str, Any]:
    response = await http.post(f"/api/rooms/{room}/messages", json={"content": text}, headers=AVERY)
    assert response.status_code == 201
    found: dict[str, Any] = response.json()
    return found


async def test_a_watcher_gets_a_message_as_its_poster_got_it(hub: Door) -> None:
    """The live event and the answer to the post are the same message."""
    async with watching(hub.port, "demo") as stream:
        posted = await post(hub.http, "héllo\n😀")
        event = await stream.next()

    assert event is not None
    assert (event.name, event.data) == ("message", posted)
    assert event.id.rpartition("-")[2] == str(posted["seq"])
    assert "text/event-stream" in stream.head


async def test_a_watcher_sees_everything_that_happens_in_the_room(hub: Door) -> None:
    """One event a fact, in the log's order; deliveries are nobody's business."""
    http = hub.http
    async with watching(hub.port, "demo") as stream:
        await http.post("/api/rooms/demo/members", json={"handle": "bob", "team": "t"}, headers=AVERY)
        await http.patch("/api/rooms/demo/members/bob", json={"notes": "n"}, headers=AVERY)
        message = await post(http, "@bob hi")
        await http.post("/api/rooms/demo/await", json={"handle": "bob", "timeout_s": 0})
        await http.patch(f"/api/rooms/demo/messages/{message['id']}", json={"content": "hello"}, headers=AVERY)
        await http.patch("/api/rooms/demo", json={"title": "Demo"}, headers=AVERY)
        await http.delete("/api/rooms/demo/members/bob", headers=AVERY)
        events = await stream.facts(6)

    assert [event.name for event in events] == [
        "member_joined",
        "member_changed",
        "message",
        "message_amended",
        "room_changed",
        "member_left",
    ]
    assert all(event.data["room"] == "demo" for event in events)
    assert (events[0].data["team"], events[1].data["notes"]) == ("t", "n")
    assert (events[3].data["id"], events[3].data["content"]) == (message["id"], "hello")
    assert (events[4].data["title"], events[4].data["created_by"]) == ("Demo", "avery")
    assert events[5].data == {"room": "demo", "handle": "bob"}


@FROM_BOTH
async def test_a_watcher_that_comes_back_gets_what_it_missed(hub: Door) -> None:
    """In order, then live."""
    async with watching(hub.port, "demo") as stream:
        await post(hub.http, "one")
        first = await stream.next()
    missed = [(await post(hub.http, text))["seq"] for text in ("two", "three")]
    assert first is not None
    async with watching(hub.port, "demo", last_id=first.id) as stream:
        past = await stream.some(2)
        await post(hub.http, "four")
        live = await stream.next()

    assert [event.data["seq"] for event in past] == missed
    assert live is not None
    assert live.data["content"] == "four"


@FROM_BOTH
async def test_watchers_that_come_and_go_while_others_post_miss_nothing(hub: Door) -> None:
    """Each reads a little, leaves, and resumes by its last id: no gap, no repeat, in order."""
    total = 60

    async def poster() -> list[str]:
        return [(await post(hub.http, str(number)))["content"] for number in range(total)]

    async def watcher(read_at_once: int) -> list[str]:
        seen: list[str] = []
        last_id = first.id
        while len(seen) < total:
            async with watching(hub.port, "demo", last_id=last_id) as stream:
                for event in await stream.some(min(read_at_once, total - len(seen))):
                    seen.append(event.data["content"])
                    last_id = event.id
        return seen

    async with watching(hub.port, "demo") as stream:
        await post(hub.http, "first")
        begun = await stream.next()
    assert begun is not None
    first = begun
    posted, *seen = await asyncio.gather(poster(), watcher(1), watcher(7), watcher(total))

    assert all(one == posted for one in seen)


@FROM_BOTH
async def test_a_long_past_is_read_page_by_page(hub: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    """More facts than one page of the feed holds."""
    monkeypatch.setattr(streams, "FEED_PAGE", 100)
    async with watching(hub.port, "demo") as stream:
        await post(hub.http, "first")
        first = await stream.next()
    assert first is not None
    texts = [str(number) for number in range(150)]
    for start in range(0, 150, 50):
        await asyncio.gather(*(post(hub.http, text) for text in texts[start : start + 50]))
    async with watching(hub.port, "demo", last_id=first.id) as stream:
        past = await stream.some(150)

    sequences = [event.data["seq"] for event in past]
    assert sequences == sorted(sequences)
    assert sorted(event.data["content"] for event in past) == sorted(texts)


@pytest.mark.parametrize("last_id", ["another-log-7", "7", "{epoch}-999999999"])
async def test_an_id_of_another_log_is_answered_with_a_reset(hub: Door, last_id: str) -> None:
    """Then the stream is live."""
    async with watching(hub.port, "demo") as stream:
        await post(hub.http, "one")
        first = await stream.next()
    assert first is not None
    epoch = first.id.rpartition("-")[0]
    async with watching(hub.port, "demo", last_id=last_id.format(epoch=epoch)) as stream:
        reset = await stream.next()
        await stream.ping()
        await post(hub.http, "two")
        live = await stream.next()

    assert reset is not None
    assert (reset.name, reset.id) == ("reset", "")
    assert live is not None
    assert live.data["content"] == "two"


@pytest.mark.parametrize("recent_bytes", [0])
async def test_a_watcher_that_was_away_for_longer_than_the_feed_goes_back_is_told(
    hub: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It reads the rooms again, instead of taking what is left for all there was; then the stream is live."""
    async with watching(hub.port, "demo") as stream:
        await post(hub.http, "one")
        first = await stream.next()
    assert first is not None
    for number in range(10):
        await post(hub.http, f"missed {number}")
    monkeypatch.setattr(tables, "KEPT_FACTS", 5)
    async with watching(hub.port, "demo", last_id=first.id) as stream:
        reset = await stream.next()
        await stream.ping()
        await post(hub.http, "two")
        live = await stream.next()

    assert reset is not None
    assert (reset.name, reset.id, reset.data["reason"]) == (
        "reset", "", "what came after the last id is no longer kept; read the rooms again",
    )  # fmt: skip
    assert live is not None
    assert live.data["content"] == "two"


async def test_several_rooms_come_over_one_stream(hub: Door) -> None:
    """Each event says which room it is of; a room that was not asked for is not shown."""
    for name in ("Café Team", "other"):
        await hub.http.post("/api/rooms", json={"name": name}, headers=AVERY)
    async with watching(hub.port, "demo", "Café Team") as stream:
        await post(hub.http, "not this", "other")
        await post(hub.http, "one")
        await post(hub.http, "two", "Café Team")
        events = await stream.some(2)

    assert [(event.data["room"], event.data["content"]) for event in events] == [("demo", "one"), ("Café Team", "two")]


async def test_the_stream_of_a_deleted_room_ends(hub: Door) -> None:
    """Its watchers are told; who watches another room too goes on with that."""
    await hub.http.post("/api/rooms", json={"name": "other"}, headers=AVERY)
    async with watching(hub.port, "demo") as alone, watching(hub.port, "demo", "other") as both:
        await hub.http.delete("/api/rooms/demo", headers=AVERY)
        told = [await alone.next(), await both.next()]
        await post(hub.http, "still here", "other")
        after = await both.next()
        end = await alone.next()

    assert [(event.name, event.data) for event in told if event] == [("room_deleted", {"room": "demo"})] * 2
    assert after is not None
    assert after.data["content"] == "still here"
    assert end is None


async def test_a_room_that_is_not_there_can_not_be_watched(hub: Door) -> None:
    """A problem, not a stream."""
    response = await hub.http.get("/api/rooms/nowhere/stream")
    assert (response.status_code, response.json()["slug"]) == (404, "room.not_found")


async def test_a_silent_stream_is_kept_open(hub: Door) -> None:
    """Proxies close what says nothing."""
    async with watching(hub.port, "demo") as stream:
        await stream.ping()

    assert stream.comments == [": connected", ": ping"]


async def test_what_a_watcher_held_is_freed_when_it_leaves(hub: Door) -> None:
    """At once, without waiting for the next write."""
    async with watching(hub.port, "demo") as stream:
        await metric(hub.http, "mycelium_live_watchers", 1.0)
        stream.leave()
        await metric(hub.http, "mycelium_live_watchers", 0.0)


async def test_a_reader_that_is_too_slow_is_closed_and_resumes(nats_server: testing.NatsServer, hub: Door) -> None:
    """Others are not held up, and what it missed it gets when it comes back."""
    settings = GatewaySettings(port=0, stream_buffer_bytes=200_000)
    async with opened(nats_server, settings) as door, watching(door.port, "demo") as stream:
        await post(door.http, "first")
        first = await stream.next()
        assert first is not None
        texts = [f"{number:03d}" + "x" * 100_000 for number in range(80)]
        for text in texts:  # more than the sockets' buffers and the stream's own
            await post(door.http, text)
        await metric(door.http, "mycelium_live_watchers", 0.0)
        async with watching(door.port, "demo", last_id=first.id, limit=2**20) as again:
            got = [event.data["content"] for event in await again.some(80)]

    assert got == texts


async def test_a_restart_of_nats_is_not_seen_by_a_watcher(nats_server: testing.NatsServer, hub: Door) -> None:
    """Nothing is missed and nothing comes twice."""
    async with watching(hub.port, "demo") as stream:
        await post(hub.http, "before")
        nats_server.kill()
        await nats_server.start()
        await post(hub.http, "after")
        events = await stream.some(2)
        await post(hub.http, "later")
        later = await stream.next()

    assert [event.data["content"] for event in events] == ["before", "after"]
    assert later is not None
    assert later.data["content"] == "later"


async def test_a_hub_that_stops_ends_its_streams_at_once(nats_server: testing.NatsServer, hub: Door) -> None:
    """Their watchers come back to the next process, which knows the same ids."""
    async with opened(nats_server, GatewaySettings(port=0)) as door:
        reading = watching(door.port, "demo")
        stream = await reading.__aenter__()
        await post(door.http, "one")
        first = await stream.next()
        stopping = asyncio.ensure_future(door.stop())
        async with asyncio.timeout(SOON_S):
            await stopping
    assert await stream.next() is None
    await reading.__aexit__(None, None, None)
    assert first is not None
    async with opened(nats_server, GatewaySettings(port=0)) as door:
        await post(door.http, "two")
        async with watching(door.port, "demo", last_id=first.id) as stream:
            event = await stream.next()
    assert event is not None
    assert event.data["content"] == "two"


async def test_a_watcher_that_had_no_event_yet_knows_its_place(hub: Door) -> None:
    """What is posted between the cut of a new watcher and its return is shown, though it never saw an event."""
    async with watching(hub.port, "demo") as stream:
        place = (await stream.block()).decode()
    posted = await post(hub.http, "while it was away")
    async with watching(hub.port, "demo", last_id=place.removeprefix("id: ")) as stream:
        seen = await stream.next()

    assert place.startswith("id: ")
    assert seen is not None
    assert seen.data == posted


async def test_a_post_in_a_thread_is_told_with_a_ping_to_who_watches(hub: Door) -> None:
    """Right after the message, without an id; who comes back later gets the message alone."""
    root = await post(hub.http, "a task")
    async with watching(hub.port, "demo") as stream:
        place = (await stream.block()).decode().removeprefix("id: ")
        body = {"content": "on it", "thread": root["id"]}
        said = (await hub.http.post("/api/rooms/demo/messages", json=body, headers=AVERY)).json()
        await post(hub.http, "in the channel")
        events = await stream.some(3)
    async with watching(hub.port, "demo", last_id=place) as stream:
        again = await stream.some(2)

    assert [(event.name, bool(event.id)) for event in events] == [("message", True), ("ping", False), ("message", True)]
    assert events[1].data == {
        "room": "demo",
        "thread": root["id"],
        "sender_handle": "avery",
        "sender_name": "",
        "message_id": said["id"],
        "created_at": said["created_at"],
    }
    assert [event.name for event in again] == ["message", "message"]
