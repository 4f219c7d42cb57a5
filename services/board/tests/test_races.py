"""Three boards as processes of their own race for the same tasks, on one NATS server and on three that replicate."""

from __future__ import annotations

import asyncio
import os
from datetime import timedelta
from pathlib import Path

import pytest

from mycelium.board.v1 import service_pb2, views_pb2
from mycelium.memory.v1.views_pb2 import ORIGIN_IMPORT
from mycelium_board.service import service
from mycelium_kernel import events, headers, run, subjects
from mycelium_kernel.appending import Appended
from mycelium_kernel.clock import system_clock
from mycelium_kernel.errors import Refusal, WrongSequence
from mycelium_kernel.log import Log
from mycelium_kernel.run import Runtime
from mycelium_kernel.service import Actor, Context, Fact
from services.board.tests.hub import Hub
from services.board.tests.processes import boards, log

KEY = "work/race"
CLIENTS = 100
ROUNDS = {1: 100, 3: 10}  # on one server, and on three
TIMES = 10 if os.environ.get("LONG") else 1
AGENTS = [f"agent{number}" for number in range(CLIENTS)]


def crowded(*keys: str) -> Hub:
    """A room with a hundred agents and some tasks, of which boards tell nobody: they were filed elsewhere."""
    hub = Hub()
    for handle in AGENTS:
        hub.join(handle)
    for key in keys:
        hub.task(key, origin=ORIGIN_IMPORT)
    return hub


@pytest.mark.timeout(120 * TIMES)
@pytest.mark.parametrize("replicas", ROUNDS)
async def test_of_a_hundred_who_claim_within_one_millisecond_one_holds_it(tmp_path: Path, replicas: int) -> None:
    """Again and again; all others are told of that one and of one end, and every token is greater than the last.

    Where each wants a task of its own, nobody loses.
    """
    own = {f"work/own-{handle}": handle for handle in AGENTS}
    async with log(tmp_path, replicas) as servers, boards(tmp_path, servers, crowded(KEY, *own)) as asked:
        claims = await asyncio.gather(*(asked.claim(key, handle) for key, handle in own.items()))
        assert [claim.holder for claim in claims if isinstance(claim, views_pb2.Claim)] == AGENTS
        last = 0
        for _ in range(ROUNDS[replicas] * TIMES):
            answers = (await asked.claim_at_once(KEY, AGENTS)).values()
            (claim,) = [answer for answer in answers if isinstance(answer, views_pb2.Claim)]
            refusals = [answer for answer in answers if isinstance(answer, Refusal)]
            assert {refusal.slug for refusal in refusals} == {"claim.held"}
            assert {tuple(refusal.extras["holder"]) for refusal in refusals} == {(claim.holder,)}
            assert len({tuple(refusal.extras["expires_at"]) for refusal in refusals}) == 1
            assert claim.token > last
            last = claim.token
            await asked.release(KEY, claim.holder, last)


@pytest.mark.parametrize("replicas", [1, 3])
async def test_two_claims_beside_a_batch_of_posts_have_one_winner(tmp_path: Path, replicas: int) -> None:
    """Decided from one state by two who know nothing of each other, and given to the writer of the log at once."""
    async with log(tmp_path, replicas) as servers:
        runtime = await run.start(service(), servers[-1].settings("board", replicas), None)
        try:
            for fact in crowded(KEY).facts:
                await runtime.connection.jetstream.publish(fact.subject, fact.data, headers=fact.headers)
            assert runtime.projector
            for number in range(20):
                await runtime.projector.catch_up()
                claims = [_decided(runtime, AGENTS[2 * number]), _decided(runtime, AGENTS[2 * number + 1])]
                outcomes = await asyncio.gather(
                    *(_post(runtime.log) for _ in range(40)),
                    *(_append(runtime.log, claim) for claim in claims),
                    *(_post(runtime.log) for _ in range(40)),
                    return_exceptions=True,
                )
                assert sum(isinstance(outcome, Appended) for outcome in outcomes) == 81
                assert sum(isinstance(outcome, WrongSequence) for outcome in outcomes) == 1
        finally:
            await runtime.stop()


def _decided(runtime: Runtime, by: str) -> Fact:
    """A claim by force, from the tables as they are."""
    request = service_pb2.ClaimTaskRequest(room="demo", task=KEY, force=True)
    command = next(command for command in runtime.service.commands if command.request is type(request))
    now = system_clock()
    context = Context(Actor(by, by), "", now, runtime.new_id, now + timedelta(seconds=10))
    assert runtime.tables
    fact = command.decide(command.load(runtime.tables, request, context), request, context)
    assert isinstance(fact, Fact)
    return fact


async def _append(log: Log, fact: Fact) -> Appended:
    assert fact.on
    stored, deadline = {headers.TYPE: events.type_name(fact.event)}, system_clock() + timedelta(seconds=10)
    data = fact.event.SerializeToString()
    return await log.append(fact.on.subject, data, stored, expect=fact.on.sequence, deadline=deadline)


async def _post(log: Log) -> Appended:
    stored, deadline = {headers.TYPE: "x"}, system_clock() + timedelta(seconds=10)
    return await log.append(subjects.posts("elsewhere"), b"x", stored, expect=None, deadline=deadline)
