"""The log on a real server: what is acknowledged stays, what is expected holds, many share a batch."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest
from nats.js.api import DiscardPolicy

from mycelium_kernel import headers, subjects, testing
from mycelium_kernel.appending import Appended
from mycelium_kernel.clock import system_clock
from mycelium_kernel.connections import Connection
from mycelium_kernel.errors import DeadlinePassed, StoreFull, Unavailable, WrongSequence
from mycelium_kernel.log import BATCH_FROM, Log
from mycelium_kernel.tail import RawFact, Tail

ENTITY = subjects.fact("test", "room", "thing", "one")
POSTS = subjects.posts("room")


@contextlib.asynccontextmanager
async def writing(connection: Connection, batches: list[int] | None = None) -> AsyncIterator[Log]:
    log = Log(connection, system_clock, on_batch=(batches if batches is not None else []).append)
    log.start()
    try:
        yield log
    finally:
        await log.stop()


async def append(log: Log, subject: str, expect: int | None = None, key: str = "", seconds: float = 10) -> Appended:
    stored = {headers.TYPE: "x"} | ({headers.MESSAGE_ID: key} if key else {})
    return await log.append(
        subject, b"data", stored, expect=expect, deadline=system_clock() + timedelta(seconds=seconds)
    )


@pytest.fixture
async def prepared(connection: Connection) -> Connection:
    await connection.prepare()
    return connection


async def test_many_waiting_facts_share_batches_and_keep_their_order(prepared: Connection) -> None:
    """A thousand facts handed over at once are stored in that order, in far fewer batches."""
    batches: list[int] = []
    async with writing(prepared, batches) as log:
        appended = await asyncio.gather(*(append(log, POSTS, key=f"k{n}") for n in range(1500)))

    assert [one.sequence for one in appended] == list(range(1, 1501))
    assert sum(batches) >= 1500 - BATCH_FROM
    assert len(batches) < 10


async def test_a_conditional_fact_waits_for_no_other(prepared: Connection) -> None:
    """While a free one is tried again and again, a conditional one is stored, and answered."""
    async with writing(prepared) as log:
        nowhere = asyncio.create_task(append(log, "nowhere.to.be.stored"))
        await asyncio.sleep(0)
        for before in range(3):
            assert (await append(log, ENTITY, expect=before)).sequence == before + 1
        assert not nowhere.done()
        nowhere.cancel()


async def test_two_claims_of_one_entity_never_both_pass(prepared: Connection) -> None:
    """Of two conditional facts of one entity handed over together with a full batch, one is stored."""
    async with writing(prepared) as log:
        for _ in range(20):
            before = await prepared.last_sequence(ENTITY)
            free = [append(log, POSTS) for _ in range(BATCH_FROM * 2)]
            claims = [append(log, ENTITY, expect=before) for _ in range(2)]
            outcomes = await asyncio.gather(*claims, *free, return_exceptions=True)

            assert sum(isinstance(outcome, WrongSequence) for outcome in outcomes[:2]) == 1
            assert all(isinstance(outcome, Appended) for outcome in outcomes[2:])


async def test_two_claims_forced_into_one_atomic_batch_are_refused_whole(prepared: Connection) -> None:
    """The server itself refuses two expectations of one subject in one batch, and stores nothing of it."""
    async with writing(prepared) as log:
        await append(log, ENTITY, expect=0)
        client = prepared.client
        common = {headers.BATCH_ID: "b1", headers.EXPECTED: "1"}
        await client.request(ENTITY, b"a", headers={**common, headers.BATCH_SEQUENCE: "1"}, timeout=5)
        answer = await client.request(
            ENTITY, b"b", headers={**common, headers.BATCH_SEQUENCE: "2", headers.BATCH_COMMIT: "1"}, timeout=5
        )

        assert b"error" in answer.data
        assert await prepared.last_sequence(None) == 1


async def test_a_batch_with_a_repeated_id_is_retried_one_by_one(prepared: Connection) -> None:
    """A repeat among many new facts costs nobody their fact, and gets the first place again."""
    async with writing(prepared) as log:
        first = await append(log, POSTS, key="again")
        keys = ["again" if n == 10 else f"new{n}" for n in range(40)]
        appended = await asyncio.gather(*(append(log, POSTS, key=key) for key in keys))

    assert appended[10] == Appended(first.sequence, duplicate=True)
    assert sorted(one.sequence for one in appended) == list(range(1, 41))
    assert await prepared.last_sequence(None) == 40


async def test_a_passed_deadline_stores_nothing(prepared: Connection) -> None:
    """The deadline is looked at again just before the append."""
    async with writing(prepared) as log:
        with pytest.raises(DeadlinePassed):
            await append(log, POSTS, seconds=-1)

    assert await prepared.last_sequence(None) == 0


async def test_acknowledged_facts_survive_a_killed_server(
    prepared: Connection, nats_server: testing.NatsServer
) -> None:
    """Facts appended around a SIGKILL of the server are all there once it is back, each once."""
    async with writing(prepared) as log:
        tasks = [asyncio.create_task(append(log, POSTS, key=f"k{n}")) for n in range(300)]
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        nats_server.kill()
        more = [asyncio.create_task(append(log, POSTS, key=f"m{n}")) for n in range(100)]
        await nats_server.start()
        appended = await asyncio.gather(*tasks, *more)

    assert len({one.sequence for one in appended}) == 400
    assert await prepared.last_sequence(None) == 400


async def test_a_tail_misses_and_repeats_nothing_through_a_killed_server(
    prepared: Connection, nats_server: testing.NatsServer
) -> None:
    """A follower of the log sees every fact once, in order, though the server dies twice meanwhile."""
    seen: list[int] = []
    done = asyncio.Event()

    def on_facts(facts: list[RawFact]) -> None:
        seen.extend(fact.sequence for fact in facts)
        if seen[-1] >= 300:
            done.set()

    tail = Tail(prepared, (subjects.ALL_FACTS,), on_facts)
    await tail.start(0)
    async with writing(prepared) as log:
        for part in range(3):
            await asyncio.gather(*(append(log, POSTS, key=f"{part}.{n}") for n in range(100)))
            if part < 2:
                nats_server.kill()
                await nats_server.start()
        async with asyncio.timeout(60):
            await done.wait()
    await tail.stop()

    assert seen == list(range(1, 301))


async def test_races_on_three_servers_have_one_winner(tmp_path: Path) -> None:
    """On a replicated log too, of many claims that expect the same state exactly one is stored."""
    async with testing.nats_cluster(tmp_path / "cluster") as servers:
        connections = [await Connection.open(server.settings(replicas=3)) for server in servers]
        await connections[0].prepare()
        async with contextlib.AsyncExitStack() as stack:
            logs = [await stack.enter_async_context(writing(connection)) for connection in connections]
            for _ in range(30):
                before = await connections[0].last_sequence(ENTITY)
                claims = [append(log, ENTITY, expect=before) for log in logs for _ in range(3)]
                outcomes = await asyncio.gather(*claims, return_exceptions=True)

                assert sum(isinstance(outcome, Appended) for outcome in outcomes) == 1
                assert sum(isinstance(outcome, WrongSequence) for outcome in outcomes) == len(claims) - 1
        for connection in connections:
            await connection.close()


async def test_a_caller_that_gives_up_does_not_disturb_the_others(
    prepared: Connection, nats_server: testing.NatsServer
) -> None:
    """Cancelled appends, waiting or under way, leave the writer at work; theirs may or may not be stored."""
    async with writing(prepared) as log:
        nats_server.pause()
        given_up = [asyncio.create_task(append(log, POSTS, key=f"g{n}")) for n in range(50)]
        given_up += [asyncio.create_task(append(log, ENTITY, expect=0))]
        kept = [asyncio.create_task(append(log, POSTS, key=f"k{n}")) for n in range(50)]
        await asyncio.wait(kept, timeout=0.05)
        for task in given_up:
            task.cancel()
        nats_server.resume()
        appended = await asyncio.gather(*kept)

        assert len({one.sequence for one in appended}) == 50
        assert isinstance(await append(log, POSTS), Appended)


async def test_a_stopped_log_answers_everybody(prepared: Connection, nats_server: testing.NatsServer) -> None:
    """What waits, and what was sent without an answer, is unavailable at the stop, and so is what comes later."""
    async with writing(prepared) as log:
        nats_server.pause()
        sent = [asyncio.create_task(append(log, POSTS)) for _ in range(5)]
        await asyncio.wait(sent, timeout=0.05)
        waiting = [asyncio.create_task(append(log, POSTS)) for _ in range(5)]
        await asyncio.wait(waiting, timeout=0.05)
        await log.stop()
        outcomes = await asyncio.gather(*sent, *waiting, return_exceptions=True)
        nats_server.resume()

        assert [type(outcome) for outcome in outcomes] == [Unavailable] * 10
        with pytest.raises(Unavailable):
            await append(log, POSTS)


async def test_a_deadline_is_held_though_the_server_hangs(
    prepared: Connection, nats_server: testing.NatsServer
) -> None:
    """Whoever waits is answered at its own deadline: sent, it may be stored; not sent, it is not."""
    async with writing(prepared) as log:
        nats_server.pause()
        sent = asyncio.create_task(append(log, POSTS, seconds=0.3))
        await asyncio.wait({sent}, timeout=0.05)
        with pytest.raises(DeadlinePassed):
            await append(log, POSTS, seconds=0.1)
        with pytest.raises(Unavailable) as unavailable:
            await sent
        nats_server.resume()

        assert type(unavailable.value) is Unavailable


async def test_an_append_whose_answer_was_lost_is_stored_once(
    prepared: Connection, nats_server: testing.NatsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tries of one fact have one effect, with a message id of the caller's or the log's own."""
    monkeypatch.setattr("mycelium_kernel.log.ATTEMPT_S", 0.1)
    async with writing(prepared) as log:
        nats_server.pause()
        appends = [asyncio.create_task(append(log, POSTS, key=key)) for key in ("", "", "key")]
        many = [asyncio.create_task(append(log, POSTS)) for _ in range(BATCH_FROM * 2)]
        await asyncio.wait(appends, timeout=0.5)
        nats_server.resume()
        first, second, _keyed, *_ = await asyncio.gather(*appends, *many)

        assert not first.duplicate
        assert not second.duplicate
    assert await prepared.last_sequence(None) == 3 + BATCH_FROM * 2


async def test_a_fact_that_can_never_be_sent_fails_at_once_and_alone(prepared: Connection) -> None:
    """A bug in one caller's fact is that caller's, and the writer goes on."""
    async with writing(prepared) as log:
        bad = log.append("not a subject", b"", {}, expect=None, deadline=system_clock() + timedelta(seconds=30))
        good = append(log, POSTS)
        outcomes = await asyncio.gather(bad, good, return_exceptions=True)

        assert type(outcomes[0]).__name__ == "BadSubjectError"
        assert outcomes[1] == Appended(1)


async def test_too_many_waiting_facts_are_refused(prepared: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    """What waits for the log is bounded."""
    monkeypatch.setattr("mycelium_kernel.log.QUEUE_LIMIT", 2)
    async with writing(prepared) as log:
        outcomes = await asyncio.gather(*(append(log, POSTS) for _ in range(5)), return_exceptions=True)

    assert [type(outcome) for outcome in outcomes] == [Appended, Appended, Unavailable, Unavailable, Unavailable]


async def test_a_log_that_is_full_says_so(prepared: Connection) -> None:
    """A limit of the server's is told as what it is, at once."""
    config = (await prepared.jetstream.stream_info(subjects.STREAM)).config
    config.max_bytes, config.discard = 2000, DiscardPolicy.NEW
    await prepared.jetstream.update_stream(config)
    async with writing(prepared) as log:
        outcomes = [await asyncio.gather(append(log, POSTS), return_exceptions=True) for _ in range(30)]

    assert isinstance(outcomes[-1][0], StoreFull)


async def test_a_batch_is_cut_at_its_limits(prepared: Connection) -> None:
    """Megabytes handed over at once are stored in several batches."""
    batches: list[int] = []
    data = b"x" * 1_000_000
    deadline = system_clock() + timedelta(seconds=20)
    async with writing(prepared, batches) as log:
        await asyncio.gather(*(log.append(POSTS, data, {}, expect=None, deadline=deadline) for _ in range(40)))

    assert await prepared.last_sequence(None) == 40
    assert max(batches, default=0) <= 4
