"""The command loop on a real log: once, in order, under races and repeats."""

from __future__ import annotations

import asyncio
import dataclasses

import pytest

from mycelium.rooms.v1 import events_pb2, service_pb2
from mycelium_kernel import decide, subjects
from mycelium_kernel.bus import Bus
from mycelium_kernel.errors import Conflict, DeadlinePassed, Internal, Refusal, Unavailable
from mycelium_kernel.service import Command, Context, Done, Entity, Fact, Service
from mycelium_kernel.tables import Tables
from services.kernel.tests import toy
from services.kernel.tests.toy import ACTOR, Start


def save(handle: str, name: str, *, create_only: bool = False) -> service_pb2.SaveUserRequest:
    return service_pb2.SaveUserRequest(handle=handle, name=name, create_only=create_only)


async def test_a_write_is_read_back_at_once(start: Start, bus: Bus) -> None:
    """A read sees every write that was answered before it."""
    async with start():
        for number in range(20):
            await bus.ask(save(f"u{number}", "x"), service_pb2.SaveUserResponse, actor=ACTOR)
            listed = await bus.ask(service_pb2.ListUsersRequest(), service_pb2.ListUsersResponse, actor=ACTOR)
            assert len(listed.message.users) == number + 1


async def test_a_repeat_gets_the_first_answer(start: Start, bus: Bus) -> None:
    """The same key answers the same, for a free fact and for an entity's."""
    async with start() as runtime:
        post = service_pb2.PostMessageRequest(content="hello")
        first = await bus.ask(post, service_pb2.PostMessageResponse, actor=ACTOR, key="k1")
        again = await bus.ask(post, service_pb2.PostMessageResponse, actor=ACTOR, key="k1")
        created = await bus.ask(save("a", "A", create_only=True), service_pb2.SaveUserResponse, actor=ACTOR, key="k2")
        repeat = await bus.ask(save("a", "A", create_only=True), service_pb2.SaveUserResponse, actor=ACTOR, key="k2")

        assert first.message == again.message
        assert first.sequence == again.sequence
        assert created == repeat
        assert await runtime.connection.last_sequence(None) == 2


async def test_many_repeats_at_once_have_one_effect(start: Start, bus: Bus) -> None:
    """Fifty tries of one key in flight together store one fact."""
    async with start() as runtime:
        post = service_pb2.PostMessageRequest(content="hello")
        asked = [bus.ask(post, service_pb2.PostMessageResponse, actor=ACTOR, key="k") for _ in range(50)]
        answers = await asyncio.gather(*asked)

        assert len({answer.message.message.id for answer in answers}) == 1
        assert await runtime.connection.last_sequence(None) == 1


async def test_another_body_under_a_used_key_is_refused(start: Start, bus: Bus) -> None:
    """A key belongs to one request."""
    async with start():
        await bus.ask(
            service_pb2.PostMessageRequest(content="a"), service_pb2.PostMessageResponse, actor=ACTOR, key="k"
        )
        with pytest.raises(Refusal) as refused:
            await bus.ask(
                service_pb2.PostMessageRequest(content="b"), service_pb2.PostMessageResponse, actor=ACTOR, key="k"
            )

        assert refused.value.slug == "key.reused"


async def test_of_many_creates_at_once_one_wins(start: Start, bus: Bus) -> None:
    """A race for one entity has one winner; the losers are told who it is."""
    async with start():
        tries = [
            bus.ask(save("a", f"n{n}", create_only=True), service_pb2.SaveUserResponse, actor=ACTOR) for n in range(20)
        ]
        outcomes = await asyncio.gather(*tries, return_exceptions=True)

        won = [outcome for outcome in outcomes if not isinstance(outcome, BaseException)]
        lost = [outcome for outcome in outcomes if isinstance(outcome, Refusal)]
        assert len(won) == 1
        assert {refusal.slug for refusal in lost} == {"handle.taken"}
        assert lost[0].extras["holder"] == [won[0].message.user.name]


async def test_a_bug_is_answered_without_its_words(start: Start, bus: Bus) -> None:
    """An unexpected error leaks nothing but the key under which it was logged."""
    async with start():
        with pytest.raises(Internal) as internal:
            await bus.ask(
                service_pb2.PostMessageRequest(content="bug"), service_pb2.PostMessageResponse, actor=ACTOR, key="k9"
            )

        assert internal.value.key == "k9"
        assert "ZeroDivision" not in str(internal.value)


async def test_a_deadline_in_the_past_appends_nothing(start: Start, bus: Bus) -> None:
    """A request whose deadline is over is refused before anything is stored."""
    async with start() as runtime:
        with pytest.raises((DeadlinePassed, Unavailable)):
            await bus.ask(
                service_pb2.PostMessageRequest(content="a"), service_pb2.PostMessageResponse, actor=ACTOR, timeout_s=0
            )

        assert await runtime.connection.last_sequence(None) == 0


async def test_without_a_service_the_caller_is_told(bus: Bus) -> None:
    """Nobody there is `unavailable`, after the caller's own deadline."""
    with pytest.raises(Unavailable):
        await bus.ask(save("a", "A"), service_pb2.SaveUserResponse, actor=ACTOR, timeout_s=0.2)


async def test_many_changes_of_one_entity_at_once_all_happen(start: Start, bus: Bus) -> None:
    """Within one process nobody loses a race to a neighbour, however many they are; a repeat has one effect."""
    async with start() as runtime:
        keys = [f"k{number // 2}" for number in range(100)]
        asked = [toy.save(bus, "a", key, key=key) for key in keys]
        answers = await asyncio.gather(*asked)

        assert [answer.message.user.name for answer in answers] == keys
        assert await runtime.connection.last_sequence(None) == len(set(keys))


async def test_changes_of_one_entity_by_replicas_all_happen_or_say_conflict(start: Start, bus: Bus) -> None:
    """A lost race is run again on what is there now; whoever loses too often is told, and nothing of theirs stored."""
    async with start(folder="one") as runtime, start(folder="two"):
        outcomes = await asyncio.gather(*(toy.save(bus, "a", f"n{n}") for n in range(30)), return_exceptions=True)

        won = [outcome for outcome in outcomes if not isinstance(outcome, BaseException)]
        lost = [outcome for outcome in outcomes if isinstance(outcome, Refusal)]
        assert len(won) + len(lost) == 30
        assert len(won) > decide.RACES
        assert {refusal.slug for refusal in lost} <= {"conflict"}
        assert await runtime.connection.last_sequence(None) == len(won)


def always_late() -> Service:
    """A service whose command decides from a state that is never the newest."""

    def load(tables: Tables, request: service_pb2.SaveUserRequest, _context: Context) -> Entity[events_pb2.UserState]:
        return dataclasses.replace(tables.entity(toy.user_subject(request.handle), events_pb2.UserState), sequence=0)

    return toy.service(commands=(Command(service_pb2.SaveUserRequest, load, toy.save_user, toy.answer_user),))


async def test_a_race_that_is_always_lost_ends_in_conflict(start: Start, bus: Bus) -> None:
    """After the last try the caller is told; the entity is as it was."""
    async with start(always_late()) as runtime:
        await toy.save(bus, "a")
        with pytest.raises(Refusal) as refused:
            await toy.save(bus, "a", "other")

        assert refused.value.slug == Conflict("").slug
        assert await runtime.connection.last_sequence(None) == 1


async def test_two_replicas_decide_as_one(start: Start, bus: Bus) -> None:
    """Requests spread over two processes with tables of their own: one winner an entity, all rows in both."""
    async with start(folder="one") as one, start(folder="two") as two:
        creates = [toy.save(bus, f"u{n % 10}", str(n), create_only=True) for n in range(60)]
        outcomes = await asyncio.gather(*creates, return_exceptions=True)

        assert sum(not isinstance(outcome, BaseException) for outcome in outcomes) == 10
        for runtime in (one, two):
            assert runtime.projector
            await runtime.projector.catch_up()
        assert one.tables
        assert two.tables
        assert one.tables.dump() == two.tables.dump()


@pytest.mark.parametrize("create_only", [True, False])
async def test_a_repeat_on_another_replica_gets_the_first_answer(start: Start, bus: Bus, create_only: bool) -> None:
    """The process that answered first may be gone; whoever is asked again gives its answer."""
    async with start(folder="one"):
        created = await toy.save(bus, "a", "A", key="k", create_only=create_only)
        said = await toy.say(bus, "hello", key="k2")
    async with start(folder="two") as other:
        assert await toy.save(bus, "a", "A", key="k", create_only=create_only) == created
        assert await toy.say(bus, "hello", key="k2") == said
        with pytest.raises(Refusal) as refused:
            await toy.say(bus, "something else", key="k2")
        assert refused.value.slug == "key.reused"
        assert await other.connection.last_sequence(None) == 2


async def test_a_repeat_of_what_was_erased_is_refused(start: Start, bus: Bus) -> None:
    """A key whose fact is no longer there is not answered from nothing, and not done again."""
    async with start() as runtime:
        said = await toy.say(bus, "hello", key="k")
        await runtime.connection.jetstream.delete_msg(subjects.STREAM, said.sequence)
        with pytest.raises(Refusal) as refused:
            await toy.say(bus, "hello", key="k")

        assert refused.value.slug == "key.reused"


async def test_a_fact_that_answers_no_repeat_is_decided_again(start: Start, bus: Bus) -> None:
    """A command may say that its fact must not answer a repeat; then the repeat is a request like any other."""

    def post(_loaded: None, request: service_pb2.PostMessageRequest, context: Context) -> Fact:
        return dataclasses.replace(toy.post(None, request, context), answers=False)

    command = Command(service_pb2.PostMessageRequest, lambda *_: None, post, toy.answer_post)
    async with start(toy.service(commands=(command,))):
        first = await toy.say(bus, "hello", key="k")
        second = await toy.say(bus, "hello", key="k")

        assert (first.sequence, second.sequence) == (1, 2)


async def test_what_needs_no_fact_stores_none(start: Start, bus: Bus) -> None:
    """A command may answer without a fact; one that is `fresh` sees everything that was stored before."""

    def look(entity: Entity[events_pb2.UserState], _request: object, _context: Context) -> Done:
        return Done(service_pb2.SaveUserResponse(user=entity.state.user if entity.state else None))

    command = Command(service_pb2.SaveUserRequest, toy.load_user, look, toy.answer_user, fresh=True)
    async with start(toy.service(commands=(command,))) as runtime:
        for number in range(20):
            event = events_pb2.UserSaved(handle="a", name=str(number))
            await toy.store(runtime, toy.user_subject("a"), event, expect=number)
            reply = await toy.save(bus, "a")
            assert (reply.message.user.name, reply.sequence) == (str(number), 0)
