"""The tail: no fact missed, none repeated, whatever NATS or an administrator does."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from mycelium_kernel import headers, subjects, tail, testing
from mycelium_kernel.clock import system_clock
from mycelium_kernel.connections import Connection
from mycelium_kernel.errors import Unavailable
from mycelium_kernel.log import Log
from mycelium_kernel.tail import Page, Part, RawFact, Tail
from services.kernel.tests import toy

POSTS = subjects.posts("room")


@pytest.fixture
async def log(connection: Connection) -> AsyncIterator[Log]:
    await connection.prepare()
    log = Log(connection, system_clock)
    log.start()
    yield log
    await log.stop()


async def write(log: Log, count: int, size: int = 1, subject: str = POSTS) -> None:
    deadline = system_clock() + timedelta(seconds=20)
    stored = {headers.TYPE: "x"}
    await asyncio.gather(
        *(log.append(subject, b"x" * size, stored, expect=None, deadline=deadline) for _ in range(count))
    )


@contextlib.asynccontextmanager
async def following(
    connection: Connection, after: int | None = 0, filters: tuple[str, ...] = (subjects.ALL_FACTS,)
) -> AsyncIterator[tuple[Tail, list[int]]]:
    seen: list[int] = []

    def note(facts: list[RawFact]) -> None:
        seen.extend(fact.sequence for fact in facts)

    follower = Tail(connection, filters, note)
    await follower.start(after)
    try:
        yield follower, seen
    finally:
        await follower.stop()


async def test_more_than_flow_control_lets_through_at_once_comes_whole(log: Log, connection: Connection) -> None:
    """Megabytes are followed at the reader's pace, in order."""
    await write(log, 600, 50_000)
    async with following(connection) as (_, seen):
        await toy.until(lambda: len(seen) >= 600)

    assert seen == list(range(1, 601))


async def test_only_what_is_asked_for_comes(log: Log, connection: Connection) -> None:
    """Filters and the beginning are held: from a place, or from now."""
    await write(log, 2)
    async with (
        following(connection, 1) as (_, after_one),
        following(connection, None) as (_, from_now),
        following(connection, 0, (subjects.of_service("other"),)) as (_, others),
    ):
        await write(log, 1)
        await write(log, 1, subject=subjects.fact("other", "room", "thing", "a"))
        await toy.until(lambda: others and len(from_now) == 2)

    assert after_one == [2, 3, 4]
    assert from_now == [3, 4]
    assert others == [4]


async def test_a_deleted_consumer_is_noticed_and_made_anew(
    log: Log, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An administrator who deletes the consumer costs a moment, and no fact."""
    monkeypatch.setattr(tail, "HEARTBEAT_S", 0.1)
    monkeypatch.setattr(tail, "SILENCE_S", 0.4)
    async with following(connection) as (follower, seen):
        await write(log, 3)
        await toy.until(lambda: len(seen) == 3)
        await connection.jetstream.delete_consumer(subjects.STREAM, follower._consumer)
        await write(log, 3)
        await toy.until(lambda: len(seen) == 6)

    assert seen == [1, 2, 3, 4, 5, 6]


async def test_a_server_that_hangs_is_followed_on_when_it_goes_on(
    log: Log, connection: Connection, nats_server: testing.NatsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Silence makes a new consumer after the last fact seen; what the old one still sends is not taken twice."""
    monkeypatch.setattr(tail, "HEARTBEAT_S", 0.1)
    monkeypatch.setattr(tail, "SILENCE_S", 0.4)
    async with following(connection) as (follower, seen):
        await write(log, 3)
        await toy.until(lambda: len(seen) == 3)
        nats_server.pause()
        await toy.until(lambda: not follower.live)
        nats_server.resume()
        await write(log, 30)
        await toy.until(lambda: len(seen) >= 33)

    assert seen == list(range(1, 34))


async def test_lost_deliveries_are_noticed(log: Log, connection: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    """A gap shows in the next delivery, a loss at the end in the next heartbeat; either way nothing is skipped."""
    monkeypatch.setattr(tail, "HEARTBEAT_S", 0.1)
    async with following(connection) as (follower, seen):
        await write(log, 3)
        await toy.until(lambda: len(seen) == 3)
        consumer = follower._consumer
        follower._delivered -= 1  # as if the last delivery had been another one, unseen
        await write(log, 3)
        await toy.until(lambda: follower._consumer != consumer)
        await toy.until(lambda: len(seen) == 6)
        await toy.until(lambda: follower.live)
        consumer = follower._consumer
        follower._delivered -= 1
        await toy.until(lambda: follower._consumer != consumer)  # by the heartbeat, with nothing more delivered
        await write(log, 1)
        await toy.until(lambda: len(seen) == 7)

    assert seen == [1, 2, 3, 4, 5, 6, 7]


async def test_a_lost_answer_to_flow_control_is_given_again(log: Log, connection: Connection) -> None:
    """A consumer that waits for an answer names it in its heartbeat, and gets it."""
    async with following(connection) as (follower, seen):
        answered = await connection.client.subscribe(connection.client.new_inbox())
        await follower._on_heartbeat({"Nats-Consumer-Stalled": answered.subject, "Nats-Last-Consumer": "0"})
        await answered.next_msg(timeout=5)
        await write(log, 1)
        await toy.until(lambda: seen)


async def test_a_reader_that_fails_is_logged_and_the_next_facts_come(
    log: Log, connection: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    """A bug in who reads does not stop the tail, and is not silent."""
    seen: list[int] = []

    def fail_once(facts: list[RawFact]) -> None:
        seen.extend(fact.sequence for fact in facts)
        if len(seen) == 1:
            raise ZeroDivisionError

    follower = Tail(connection, (subjects.ALL_FACTS,), fail_once)
    await follower.start(0)
    with caplog.at_level(logging.ERROR):
        await write(log, 1)
        await toy.until(lambda: seen)
        await write(log, 1)
        await toy.until(lambda: len(seen) == 2)
    await follower.stop()

    assert "facts 1 to 1 were not taken" in caplog.text


async def test_a_tail_stops_without_nats(log: Log, connection: Connection, nats_server: testing.NatsServer) -> None:
    """Stopping does not wait for a server that is gone."""
    follower = Tail(connection, (subjects.ALL_FACTS,), lambda _facts: None)
    await follower.start(0)
    nats_server.kill()
    await toy.until(lambda: not connection.client.is_connected)
    async with asyncio.timeout(2):
        await follower.stop()


async def test_a_tail_stops_whose_start_was_ended_midway(
    log: Log, connection: Connection, nats_server: testing.NatsServer
) -> None:
    """The place to listen at is there, the consumer is not: there is nothing to delete."""
    follower = Tail(connection, (subjects.ALL_FACTS,), lambda _facts: None)
    nats_server.pause()
    starting = asyncio.create_task(follower.start(0))
    await toy.until(lambda: follower._subscription)
    starting.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await starting
    nats_server.resume()
    await follower.stop()
    assert not follower.live


def test_places_are_read_from_both_forms_of_an_acknowledgement_subject() -> None:
    """With and without a domain (NATS ADR-15)."""
    assert tail._numbers("$JS.ACK.FACTS.c.1.17.5.1700000000.0") == (17, 5, 1700000000)
    assert tail._numbers("$JS.ACK.domain.hash.FACTS.c.1.17.5.1700000000.0.x") == (17, 5, 1700000000)


async def test_a_page_holds_the_facts_of_its_filters_after_a_place(log: Log, connection: Connection) -> None:
    """In the log's order, with the place of the last one there is; erased facts are not there."""
    other = subjects.posts("other")
    for subject in (POSTS, other, POSTS, subjects.fact("rooms", "room", "member", "a"), POSTS):
        await write(log, 1, subject=subject)
    await connection.jetstream.delete_msg(subjects.STREAM, 3)
    filters = (POSTS, subjects.of_entities("rooms", "room", "member"))

    async def read(after: int, limit: int) -> tuple[list[int], int]:
        page = await tail.read(connection, Part(filters, after, limit))
        return [fact.sequence for fact in page.facts], page.last

    assert await read(0, 10) == ([1, 4, 5], 5)
    assert await read(0, 2) == ([1, 4], 5)
    assert await read(1, 1) == ([4], 5)
    assert await read(5, 10) == ([], 5)
    fact = (await tail.read(connection, Part((other,), 0, 1))).facts[0]
    assert (fact.subject, fact.type, fact.data) == (other, "x", b"x")
    assert await tail.read(connection, Part((subjects.posts("none"),), 0, 1)) == Page([], 0)
    assert not await connection.jetstream.consumers_info(subjects.STREAM)


async def test_a_page_ends_by_its_size_and_holds_one_fact_at_least(
    log: Log, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Large facts come in more pages, however large they are."""
    monkeypatch.setattr(tail, "PAGE_BYTES", 100_000)
    await write(log, 5, 40_000)
    await write(log, 1, 200_000)
    seen, counts = 0, []
    while (page := await tail.read(connection, Part((POSTS,), seen, 10))).facts:
        counts.append(len(page.facts))
        assert page.facts[0].sequence == seen + 1
        seen = page.facts[-1].sequence
    assert (counts, seen) == ([2, 2, 1, 1], 6)


async def test_a_page_can_not_be_read_without_nats(log: Log, connection: Connection) -> None:
    """The caller is told to come back."""
    await write(log, 1)
    await connection.close()
    with pytest.raises(Unavailable):
        await tail.read(connection, Part((POSTS,), 0, 1))
