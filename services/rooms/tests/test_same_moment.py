"""Two who come at the same moment and can be taken for each other: one of them is let in, whatever each comes as."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.message import Message

from mycelium.rooms.v1 import events_pb2, join_pb2, looks_pb2, transfer_pb2, views_pb2
from mycelium.rooms.v1 import service_pb2 as pb
from mycelium_kernel import events, testing
from mycelium_kernel.errors import Refusal
from mycelium_kernel.service import Fact
from mycelium_kernel.tail import RawFact
from services.rooms.tests.hub import ENGINE, USER, Hub, rebuilt, rows_of
from services.rooms.tests.live import Ask, running
from services.rooms.tests.test_join import digest, make, use


def member(handle: str, room: str = "demo", **fields: Any) -> pb.SaveMemberRequest:
    return pb.SaveMemberRequest(room=room, handle=handle, **fields)


def user(handle: str, **fields: Any) -> pb.SaveUserRequest:
    return pb.SaveUserRequest(handle=handle, **fields)


BOTH_WAYS: list[tuple[Message, Message]] = [
    (member("scout"), member("sc0ut")),
    (member("scout"), member("s-cout", kind=ENGINE, engine_kind=views_pb2.ENGINE_KIND_HELLO)),
    (member("scout"), user("scout")),
    (member("scout"), user("sc0ut")),
    (member("scout", "other"), user("scout")),
    (user("scout"), user("sc0ut")),
    (user("kim-lee"), user("kim", name="Kim Lee")),
    (user("kim-lee"), user("avery", name="Kim Lee")),
    (user("lee", name="Kim L0e"), user("kim", name="Kim Loe")),
]
# A person may be called what an agent is called that was there before.
ONE_WAY: list[tuple[Message, Message]] = [
    (user("kim", name="Kim Lee"), member("kim-lee")),
    (user("avery", name="Avery 2"), member("avery-2")),
]
PAIRS = [*BOTH_WAYS, *((other, one) for one, other in BOTH_WAYS), *ONE_WAY]


def expected(decided: object) -> dict[str, int]:
    """The subjects whose last sequence a decision expects."""
    assert isinstance(decided, Fact)
    entities = [decided.on, *(also.on for also in decided.also)]
    return {entity.subject: entity.sequence for entity in entities if entity}


def clash(hub: Hub, first: Message, second: Message) -> None:
    """Both are let in by what is known now, and the log stores but one of them; the other is refused then."""
    ones, others = hub.decide(first), hub.decide(second)
    shared = expected(ones).keys() & expected(others).keys()
    assert shared
    assert isinstance(ones, Fact)
    hub.store(ones)
    lasts = {stored.subject: stored.sequence for stored in hub.facts}
    assert any(lasts[subject] > expected(others)[subject] for subject in shared)
    with pytest.raises(Refusal, match=r"handle\.taken|name\.taken"):
        hub.decide(second)


@pytest.mark.parametrize(("first", "second"), PAIRS, ids=str)
def test_of_two_that_look_alike_one_is_let_in(demo: Hub, first: Message, second: Message) -> None:
    """identity: agents, engines, people and their names, whichever comes first; the tables come back from the log."""
    demo.room("other")
    clash(demo, first, second)
    assert rows_of(rebuilt(demo.facts)) == rows_of(demo.tables)


def _event(fact: RawFact) -> Message:
    return events.decode(fact.type, fact.data)


def test_who_comes_back_and_a_user_of_the_same_handle(demo: Hub) -> None:
    """An agent that has left is none; both would be let in."""
    demo.agent("scout")
    demo.leave("scout")
    clash(demo, member("scout"), user("scout"))


def test_who_joins_by_a_code_and_a_likeness(demo: Hub) -> None:
    """What follows from a code is judged again when it is done; who came too late is told so and is no member."""
    demo.ask(make("scout"), "avery")
    answer = demo.ask(use(token="t"))
    register = join_pb2.RegisterJoinedRequest(room_id=answer.room_id, handle="scout", joined=len(demo.facts))
    ones, others = demo.decide(register), demo.decide(user("sc0ut"))
    assert expected(ones).keys() & expected(others).keys()
    assert isinstance(others, Fact)
    demo.store(others)
    assert demo.ask(register).refused
    assert demo.ask(join_pb2.FindJoinedRequest(token_digest=digest("t"))).handle == ""


def test_an_import_and_a_user_of_the_same_handle(demo: Hub) -> None:
    """A bundle's agents are agents of this hub."""
    demo.agent("scout")
    bundle = demo.ask(transfer_pb2.ExportRoomRequest(room="demo"), "avery")
    target = Hub()
    request = transfer_pb2.ImportRoomRequest(name="copy", operator=True)
    room_id = target.ask(request, "avery").room_id
    bring = transfer_pb2.ImportFactsRequest(room_id=room_id, facts=bundle.facts)
    ones, others = target.decide(bring, "avery"), target.decide(user("scout"))
    assert expected(ones).keys() & expected(others).keys()
    target.ask(bring, "avery")
    target.refused("handle.taken", user("scout"))
    assert rows_of(rebuilt(target.facts)) == rows_of(target.tables)


def test_a_change_takes_no_look_and_a_log_from_before_is_read(demo: Hub) -> None:
    """Who is there is not judged; facts of before have no such fact beside them."""
    old = [fact for fact in demo.facts if not fact.type.endswith("LookTaken")]
    assert len(old) < len(demo.facts)
    hub = Hub()
    for fact in old:
        hub.append(fact.subject, _event(fact))
    for request in (member("engineer", notes="x"), user("avery", team="core"), member("avery", kind=USER)):
        decided = hub.decide(request)
        assert isinstance(decided, Fact)
        assert decided.also == ()
    hub.refused("handle.taken", member("eng1neer"))
    hub.refused("handle.taken", user("engineer"))
    hub.agent("scout")
    taken = [_event(fact) for fact in hub.facts if fact.type.endswith("LookTaken")]
    assert [type(event) for event in taken] == [looks_pb2.LookTaken]
    assert not any(b"scout" in fact.data for fact in hub.facts if fact.type.endswith("LookTaken"))
    assert isinstance(_event(hub.facts[-1]), events_pb2.MemberSaved)


async def test_of_many_that_look_alike_one_is_let_in_by_two_processes(
    nats_server: testing.NatsServer, tmp_path: Path, ask: Ask
) -> None:
    """Round after round, in one room, as agents and as a user: one; the others are told whom they look like."""
    async with running(nats_server, tmp_path / "a"), running(nats_server, tmp_path / "b"):
        await ask(pb.CreateRoomRequest(name="demo"))
        for round_ in range(4):
            looks = [f"scout{round_}", f"sc0ut{round_}", f"s-cout{round_}", f"scou-t{round_}"]
            asked = [ask(member(handle)) for handle in looks[:3]] + [ask(user(looks[3])), ask(user(looks[0]))]
            answers = await asyncio.gather(*asked, return_exceptions=True)
            refused = [answer for answer in answers if isinstance(answer, Refusal)]
            assert len(refused) == len(asked) - 1, answers
            assert {refusal.slug for refusal in refused} == {"handle.taken"}


async def test_one_handle_joins_many_rooms_at_once(nats_server: testing.NatsServer, tmp_path: Path, ask: Ask) -> None:
    """As an engine of every room does: each in its turn, none refused."""
    async with running(nats_server, tmp_path / "a"), running(nats_server, tmp_path / "b"):
        rooms = [f"room{number}" for number in range(12)]
        await asyncio.gather(*(ask(pb.CreateRoomRequest(name=room)) for room in rooms))
        answers = await asyncio.gather(*(ask(member("scout", room)) for room in rooms))
        assert all(answer.joined for answer in answers)
