"""What is kept in memory for watchers who were cut off for a moment."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mycelium_gateway.recent import BESIDE_BYTES, Recent
from mycelium_kernel.tail import RawFact

NAMES = {"a": "Alpha", "b": "Beta", "c": "Gamma"}
SIZE = 10


def frame(fact: RawFact, name: str) -> bytes:
    return b"%d %b" % (fact.sequence, name.encode())


def fact(sequence: int) -> RawFact:
    return RawFact(sequence, "", "", b"x" * SIZE, {})


def test_each_fact_is_made_into_bytes_once() -> None:
    """However many missed it."""
    made: list[int] = []

    def count(fact: RawFact, name: str) -> bytes:
        made.append(fact.sequence)
        return frame(fact, name)

    recent = Recent(count, 100_000)
    for sequence in (1, 2, 3):
        recent.add("a", fact(sequence))
    assert recent.after(1, {"a": "Alpha"}) == recent.after(1, {"a": "Alpha"}) == [b"2 Alpha", b"3 Alpha"]
    assert made == [2, 3]


def test_what_was_before_the_start_is_not_known() -> None:
    """Nor is anything of the log that was there before another one."""
    recent = Recent(frame, 100_000)
    recent.start(7)
    recent.add("a", fact(8))
    assert recent.after(6, NAMES) is None
    assert recent.after(7, NAMES) == [b"8 Alpha"]
    recent.start(2)
    assert recent.after(1, NAMES) is None
    assert recent.after(2, NAMES) == []


def test_nothing_is_kept_of_an_erased_room() -> None:
    """Its text is in nobody's memory, made into bytes or not; other rooms stay."""
    recent = Recent(frame, 100_000)
    for sequence, room_id in enumerate("aabab", start=1):
        recent.add(room_id, fact(sequence))
    recent.after(1, NAMES)
    recent.forget("a")
    assert recent.after(0, NAMES) == [b"3 Beta", b"5 Beta"]
    assert not any(kept.fact or kept.frame for kept in recent._all if kept.room_id == "a")


def test_rooms_that_come_and_go_for_ever_take_no_memory() -> None:
    """What is kept of each is nothing, and that is not kept without end."""
    recent = Recent(frame, 100_000)
    for sequence in range(1, 1000):
        recent.add("a", fact(sequence))
        recent.forget("a")
    assert len(recent._all) <= 100


ADDED = st.tuples(st.just("add"), st.sampled_from("abc"))
OTHERS = st.one_of(
    st.tuples(st.just("forget"), st.sampled_from("abc")),
    st.tuples(st.just("look"), st.sampled_from(["a", "ab", "abc"])),
)


@given(st.lists(st.one_of(ADDED, OTHERS), max_size=40), st.integers(0, 20 * (BESIDE_BYTES + SIZE)))
def test_it_gives_all_that_came_after_a_place_or_says_that_it_can_not(steps: list[tuple[str, str]], limit: int) -> None:
    """Never a part, in the log's order, within its bytes; whoever was at the log's end is always served."""
    recent, all_facts, sequence = Recent(frame, limit), list[tuple[int, str]](), 0
    for step, rooms in steps:
        if step == "add":
            sequence += 1
            recent.add(rooms, fact(sequence))
            all_facts.append((sequence, rooms))
        elif step == "forget":
            recent.forget(rooms)
            all_facts = [(number, room_id) for number, room_id in all_facts if room_id != rooms]
        else:
            for place in range(sequence + 1):
                got = recent.after(place, {room_id: NAMES[room_id] for room_id in rooms})
                wanted = [(n, room_id) for n, room_id in all_facts if n > place and room_id in rooms]
                assert got is None or got == [b"%d %b" % (n, NAMES[room_id].encode()) for n, room_id in wanted]
        assert recent._size == sum(kept.size for kept in recent._all) <= limit
        assert recent.after(sequence, NAMES) == []
