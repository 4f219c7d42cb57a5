"""The command loop on a real log: once, in order, under races and repeats."""

from __future__ import annotations

import asyncio

import pytest

from mycelium.rooms.v1 import service_pb2
from mycelium_kernel.bus import Bus
from mycelium_kernel.errors import DeadlinePassed, Internal, Refusal, Unavailable
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
