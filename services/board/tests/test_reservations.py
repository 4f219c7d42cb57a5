"""Reservations: no path has two holders; what overlaps is refused with holder, pattern and end; tokens, notices."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from mycelium.board.v1 import reservations_pb2 as pb
from mycelium.board.v1 import views_pb2
from mycelium.rooms.v1 import events_pb2 as rooms_pb2
from mycelium.rooms.v1 import notices_pb2
from mycelium_board import commands_reservations, queries_reservations
from mycelium_board.model_reservations import State, known, subject
from mycelium_board.reactions_reservations import notices
from mycelium_kernel import clock, events, names, subjects
from mycelium_kernel.errors import Refusal
from services.board.tests.hub import START, Hub, moving, rebuilt
from services.board.tests.meaning import PATHS, PATTERNS, meaning, text_of

AUTH = "src/auth/**"


@pytest.fixture
def board() -> Hub:
    return Hub()


def reserving(*patterns: str, **fields: Any) -> pb.ReserveRequest:
    return pb.ReserveRequest(room="demo", patterns=patterns, **fields)


def reserve(board: Hub, *patterns: str, by: str = "sec", **fields: Any) -> list[pb.Reservation]:
    response: pb.ReserveResponse = board.ask(reserving(*patterns, **fields), by)
    return sorted(response.reserved, key=lambda one: one.pattern)


def renewing(*held: tuple[str, int], **fields: Any) -> pb.RenewReservationsRequest:
    proofs = [pb.Held(pattern=pattern, token=token) for pattern, token in held]
    return pb.RenewReservationsRequest(room="demo", held=proofs, **fields)


def releasing(*held: tuple[str, int], **fields: Any) -> pb.ReleaseReservationsRequest:
    proofs = [pb.Held(pattern=pattern, token=token) for pattern, token in held]
    return pb.ReleaseReservationsRequest(room="demo", held=proofs, **fields)


def listed(board: Hub, handle: str = "avery") -> list[tuple[str, str]]:
    """Holder and pattern of all that stand."""
    request = pb.ListReservationsRequest(room="demo")
    found = queries_reservations.list_reservations(board.tables, request, board.context(handle))
    assert not any(one.token for one in found.reservations), "what proves them is nobody else's"
    return [(one.holder, one.pattern) for one in found.reservations]


def conflicts(board: Hub, *paths: str, by: str = "builder") -> list[tuple[str, str, str]]:
    request = pb.CheckPathsRequest(room="demo", paths=paths)
    found = queries_reservations.check_paths(board.tables, request, board.context(by))
    return [(one.path, one.reservation.pattern, one.reservation.holder) for one in found.conflicts]


def expire(board: Hub) -> int:
    return int(board.ask(pb.ExpireReservationsRequest(room_id=board.room_id), "").expired)


def last_notices(board: Hub) -> list[notices_pb2.PostNoticeRequest]:
    """What the room is told of the last fact."""
    fact = board.facts[-1]
    event: Any = events.decode(fact.type, fact.data)
    return list(notices(event))


def test_a_reservation_has_a_token_and_an_end(board: Hub) -> None:
    """The token is the sequence of its fact, one for all patterns of a request; half an hour by default."""
    found = reserve(board, AUTH, "deploy:staging", "./docs//")
    assert [one.pattern for one in found] == ["deploy:staging", "docs", AUTH]
    assert {(one.holder, one.token, one.ttl_s) for one in found} == {("sec", len(board.facts), 1800)}
    assert clock.to_millis(found[0].expires_at) == (START.timestamp() + 1800) * 1000
    assert listed(board) == [("sec", "deploy:staging"), ("sec", "docs"), ("sec", AUTH)]


def test_what_overlaps_is_refused_with_holder_pattern_and_end(board: Hub) -> None:
    """All patterns of a request or none; and what was reserved stands."""
    reserve(board, AUTH, "port 8080")
    refusal = board.refused("reservation.held", reserving("docs", "src/**/*.py", "port 8080"), "builder")
    assert refusal.detail == "src/**/*.py is reserved by @sec as src/auth/** until 2026-01-05T12:30:00.000Z, and 1 more"
    assert refusal.extras == {"holder": ["sec"], "pattern": [AUTH], "expires_at": ["2026-01-05T12:30:00.000Z"]}
    assert "is reserved by @sec until" in board.refused("reservation.held", reserving("port 8080"), "builder").detail
    assert listed(board) == [("sec", "port 8080"), ("sec", AUTH)]
    assert reserve(board, "src/authors", "Port 8080", by="builder")


def test_who_reserves_the_same_again_gets_what_stands(board: Hub) -> None:
    """Beside what is new, which has a token of its own; what overlaps one's own is in nobody's way."""
    first = reserve(board, AUTH, task="")[0]
    board.later(minutes=5)
    before = len(board.facts)
    assert reserve(board, "src/auth/**", ttl_s=60) == [first]
    assert len(board.facts) == before, "nothing new was to be said"
    whole, again = reserve(board, AUTH, "src")
    assert (whole.pattern, whole.token, again) == ("src", len(board.facts), first)
    assert whole.token > first.token
    assert [one.pattern for one in board.ask(renewing((AUTH, first.token))).renewed] == [AUTH]


def test_force_takes_and_says_from_whom(board: Hub) -> None:
    """All that overlaps, and nothing else; under the old token nothing can be done; the one who lost it is told."""
    old = reserve(board, AUTH, "docs/**")
    taken = board.ask(reserving("src/auth/login.py", force=True), "builder").taken
    assert [(one.pattern, one.holder, one.token) for one in taken] == [(AUTH, "sec", 0)]
    assert listed(board) == [("sec", "docs/**"), ("builder", "src/auth/login.py")]
    notice = last_notices(board)[0]
    assert notice.content.endswith(", taken from @sec")
    assert [one.handle for one in notice.deliveries] == ["sec"]
    refusal = board.refused("lease.lost", renewing((AUTH, old[1].token)))
    assert refusal.detail.endswith("has ended; @builder has reserved src/auth/login.py now")
    assert board.ask(renewing(("docs/**", old[0].token))).renewed


def test_a_renewal_lasts_as_long_again_under_the_same_token(board: Hub) -> None:
    """Each as long as it was taken for, or as is asked; all of one's own when none is named."""
    one = reserve(board, AUTH, ttl_s=600)[0]
    two = reserve(board, "docs", ttl_s=60)[0]
    board.later(seconds=50)
    renewed = {held.pattern: held for held in board.ask(renewing()).renewed}
    assert {pattern: held.token for pattern, held in renewed.items()} == {AUTH: one.token, "docs": two.token}
    ends = {pattern: clock.to_millis(held.expires_at) / 1000 for pattern, held in renewed.items()}
    assert ends == {AUTH: START.timestamp() + 650, "docs": START.timestamp() + 110}
    assert board.ask(renewing(("docs/", two.token), ttl_s=7200)).renewed[0].ttl_s == 7200
    board.later(seconds=601)
    assert listed(board) == [("sec", "docs")]


def test_an_old_token_is_refused_whoever_has_it_now(board: Hub) -> None:
    """After another had the path, after its end, after its release; all that was named stays as it was."""
    old = reserve(board, AUTH, ttl_s=60)[0]
    reserve(board, "docs", ttl_s=6000)
    board.later(seconds=60)
    assert "nobody has reserved it now" in board.refused("lease.lost", renewing((AUTH, old.token))).detail
    new = reserve(board, "src", by="builder")[0]
    assert new.token > old.token
    for request in (renewing(("docs", 0), (AUTH, old.token)), releasing(("docs", 0), (AUTH, old.token))):
        refusal = board.refused("lease.lost", request)
        assert refusal.extras == {"holder": ["builder"], "pattern": ["src"], "lost": [AUTH]}
    assert listed(board) == [("sec", "docs"), ("builder", "src")]
    reserve(board, AUTH, by="builder")
    for handle in ("sec", "builder"):
        board.refused("lease.lost", releasing((AUTH, old.token)), handle)
    assert len(listed(board)) == 3


def test_without_a_token_the_handle_counts(board: Hub) -> None:
    """Only the holder renews and releases; who has nothing is told so."""
    reserve(board, AUTH)
    assert (
        "@sec has reserved src/auth/** now" in board.refused("reservation.none", releasing((AUTH, 0)), "avery").detail
    )
    assert "has reserved nothing" in board.refused("reservation.none", renewing(), "avery").detail
    assert [one.pattern for one in board.ask(releasing(note="done")).released] == [AUTH]
    board.refused("reservation.none", releasing((AUTH, 0)))
    assert reserve(board, AUTH, by="builder")


def test_after_its_end_anybody_may_have_it(board: Hub) -> None:
    """Whether or not somebody has said so; the next reservation says it too, once."""
    reserve(board, AUTH, ttl_s=60)
    board.later(seconds=60)
    assert listed(board) == []
    assert conflicts(board, "src/auth/login.py") == []
    reserve(board, AUTH, by="builder")
    claimed, expired = last_notices(board)
    assert (claimed.kind, expired.kind, expired.content) == (
        "claimed",
        "expired",
        "@sec's reservation of src/auth/** is over",
    )
    assert expire(board) == 0


def test_ends_are_said_once_in_bounded_facts(board: Hub) -> None:
    """A hundred by one fact; then the rest, then nothing. Those that were renewed stay."""
    for number in range(6):
        patterns = [f"src/{number}/{name}" for name in range(commands_reservations.MOST_PATTERNS)]
        reserve(board, *patterns, by=("sec", "builder")[number % 2], ttl_s=60)
    board.ask(renewing(("src/0/0", 0), ttl_s=600))
    board.later(seconds=60)
    assert [expire(board), expire(board), expire(board)] == [100, 19, 0]
    assert listed(board) == [("sec", "src/0/0")]
    assert rebuilt(board.facts).dump() == board.tables.dump()


def test_a_task_that_is_closed_ends_what_was_reserved_for_it(board: Hub) -> None:
    """Only that, and nothing that was reserved after it was opened again; the holder is told."""
    thread = board.task("work/login")
    reserve(board, AUTH, task="login")
    reserve(board, "docs", task=thread[-8:], by="builder")
    reserve(board, "other")
    board.resolve("work/login", "avery")
    closed_by = len(board.facts)
    refusal = board.refused("task.closed", reserving("x", task="work/login"))
    assert refusal.next == "mycelium memory set work/login -m status=open --room demo"
    board.task("work/login", status="resolved", move=closed_by)
    board.task("work/login", status="open")
    reserve(board, "src/new", task="work/login")
    ending = pb.EndReservationsOfTaskRequest(room_id=board.room_id, thread=thread, closed_by=closed_by)
    assert board.ask(ending, "avery").ended == 2
    told = last_notices(board)
    assert {notice.content for notice in told} == {
        "@sec's reservation of src/auth/** ended with its task",
        "@builder's reservation of docs ended with its task",
    }
    assert [[one.handle for one in notice.deliveries] for notice in told] == [["sec"], ["builder"]]
    assert listed(board) == [("sec", "other"), ("sec", "src/new")]
    assert board.ask(ending, "avery").ended == 0


def test_the_room_is_told_what_was_reserved_and_what_ended(board: Hub) -> None:
    """In the channel, with the task's thread; nobody is woken by what they did themselves."""
    thread = board.task("work/login")
    reserve(board, *"abcde", task="work/login")
    (claimed,) = last_notices(board)
    assert (claimed.kind, claimed.thread, list(claimed.deliveries)) == ("claimed", "", [])
    assert claimed.content == "@sec reserved a, b, c and 2 more until 2026-01-05T12:30:00.000Z"
    assert json.loads(claimed.metadata_json) == {
        "task": "work/login", "kind": "claimed", "thread": thread, "by": "sec",
        "title": "a, b, c and 2 more", "row_kind": "reservation", "patterns": list("abcde"), "holder": "sec",
        "expires_at": "2026-01-05T12:30:00.000Z",
    }  # fmt: skip
    board.ask(releasing(("a", 0), note="done with a"))
    (released,) = last_notices(board)
    assert (released.kind, released.content, list(released.deliveries)) == ("released", "@sec released a", [])
    assert json.loads(released.metadata_json)["note"] == "done with a"
    board.later(hours=1)
    expire(board)
    (expired,) = last_notices(board)
    assert (expired.kind, expired.sender_handle, [one.handle for one in expired.deliveries]) == ("expired", "", ["sec"])


def test_the_check_names_what_others_have_reserved(board: Hub) -> None:
    """Each path with each pattern that is in its way; one's own is not; a path is no pattern."""
    reserve(board, AUTH, "src/**/*.py", "docs")
    assert conflicts(board, "src/auth/a.py", "README.md", "docs/x", "src/*", by="builder") == [
        ("src/auth/a.py", "src/**/*.py", "sec"),
        ("src/auth/a.py", AUTH, "sec"),
        ("docs/x", "docs", "sec"),
    ]
    assert conflicts(board, "src/Makefile", "src") == []
    assert conflicts(board, "src/auth/a.py", by="sec") == []
    assert conflicts(board, "docs/x", by="") == [("docs/x", "docs", "sec")]
    assert conflicts(board) == []


def test_a_check_has_bounds(board: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    """Paths, their length, and what is answered."""
    reserve(board, "src", "src/a")
    for paths in (["x"] * 1001, ["x" * 5000], ["x" * 200] * 501, ["a/../b"], [""]):
        with pytest.raises(Refusal) as refused:
            conflicts(board, *paths)
        assert refused.value.slug == "request.invalid"
    monkeypatch.setattr(queries_reservations, "MOST_CONFLICTS", 3)
    request = pb.CheckPathsRequest(room="demo", paths=["src/a", "src/a/b"])
    found = queries_reservations.check_paths(board.tables, request, board.context("builder"))
    assert (len(found.conflicts), found.more) == (3, True)


@pytest.mark.parametrize(
    "request_",
    [
        reserving(),
        reserving(""),
        reserving("a", "../b"),
        reserving("[z-a]"),
        reserving(*map(str, range(commands_reservations.MOST_PATTERNS + 1))),
        reserving("a", ttl_s=7 * 24 * 3600 + 1),
        renewing(("..", 0)),
    ],
)
def test_what_can_not_be_is_refused(board: Hub, request_: Any) -> None:
    """Nothing at all, what is no pattern, too much, for ever."""
    assert board.refused("request.invalid", request_).detail


def test_a_room_and_a_holder_have_bounds(board: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    """So many of one holder, so many in all, so many that end by force; what is over does not count."""
    monkeypatch.setattr(commands_reservations, "MOST_HELD", 3)
    monkeypatch.setattr(commands_reservations, "MOST", 4)
    monkeypatch.setattr(commands_reservations, "MOST_OVER", 2)
    reserve(board, "a/1", "a/2", "a/3", ttl_s=60)
    assert board.refused("reservation.full", reserving("a/4")).next == "mycelium board reserve --room demo"
    board.refused("reservation.full", reserving("b", "c"), "builder")
    assert reserve(board, "b", by="builder", ttl_s=60)
    assert "would end 3" in board.refused("request.invalid", reserving("a", force=True), "builder").detail
    assert len(reserve(board, "a/1", "a/2", by="avery", force=True)) == 2
    board.later(hours=1)
    assert reserve(board, "c/1", "c/2", "c/3")


def test_strangers_reserve_nothing_and_see_nothing_of_a_private_room(board: Hub) -> None:
    """Neither do those who are nobody."""
    board.refused("handle.unregistered", reserving("a"), "stranger")
    board.refused("handle.missing", reserving("a"), "")
    hidden = Hub(private=True)
    reserve(hidden, "a")
    for request in (reserving("b"), renewing(), releasing()):
        hidden.refused("room.not_found", request, "stranger")
    with pytest.raises(Refusal, match=r"^room\.not_found"):
        listed(hidden, "stranger")
    with pytest.raises(Refusal, match=r"^room\.not_found"):
        conflicts(hidden, "a", by="stranger")


def test_nothing_is_left_of_a_deleted_room(board: Hub) -> None:
    """Its reservations are gone with it; a late end finds nothing."""
    reserve(board, AUTH)
    board.append(subjects.room_name(names.fold_room_name("demo")), rooms_pb2.RoomDeleted(room_id=board.room_id))
    assert board.tables.all("SELECT * FROM reservation") == []
    board.refused("room.not_found", pb.ExpireReservationsRequest(room_id=board.room_id), "")
    assert rebuilt(board.facts).dump() == board.tables.dump()


def test_tables_are_the_same_from_zero(board: Hub) -> None:
    """After all kinds of facts."""
    board.task("work/login")
    first = reserve(board, AUTH, "docs", task="work/login", ttl_s=60)
    board.ask(renewing((AUTH, first[1].token), ttl_s=600))
    board.ask(reserving("docs/a", force=True), "builder")
    board.later(seconds=61)
    reserve(board, "x", ttl_s=1)
    board.later(seconds=1)
    reserve(board, "y")
    board.ask(moving(views_pb2.MOVE_DISMISSED, "work/login"))
    board.ask(releasing(("y", 0)))
    assert rebuilt(board.facts).dump() == board.tables.dump()


HANDLES = st.sampled_from(["avery", "sec", "builder"])
PLACES = st.integers(0, 20)


class Reservations(RuleBasedStateMachine):
    """Whatever members do at whatever times, no path has two holders."""

    def __init__(self) -> None:
        super().__init__()
        self.board = Hub()
        self.meanings: dict[str, Callable[[list[str]], bool]] = {}
        self.given: list[tuple[str, int]] = []
        self.last = 0

    def tried(self, request: Any, by: str) -> Any:
        try:
            return self.board.ask(request, by)
        except Refusal as refusal:
            if refusal.slug in {"reservation.held", "reservation.none", "lease.lost", "request.invalid"}:
                return None
            raise

    @rule(by=HANDLES, wanted=st.lists(PATTERNS, min_size=1, max_size=3), ttl_s=st.integers(1, 90), force=st.booleans())
    def reserve(self, by: str, wanted: list[Any], ttl_s: int, *, force: bool) -> None:
        texts = [text_of(atoms) for atoms in wanted]
        answer = self.tried(reserving(*texts, ttl_s=ttl_s, force=force), by)
        if answer is None:
            return
        for text, atoms in zip(texts, wanted, strict=True):
            self.meanings[commands_reservations.canonical(text)] = meaning(atoms)
        fresh = {one.token for one in answer.reserved} - {token for _, token in self.given}
        assert all(token > self.last for token in fresh), "tokens only grow"
        self.last = max({self.last, *fresh})
        self.given += [(one.pattern, one.token) for one in answer.reserved]

    @rule(by=HANDLES, place=PLACES, is_known=st.booleans())
    def renew(self, by: str, place: int, *, is_known: bool) -> None:
        """By a token that was given out once, or by the handle alone."""
        named = [self.given[place % len(self.given)]] if is_known and self.given else []
        self.tried(renewing(*named), by)

    @rule(by=HANDLES, place=PLACES, is_known=st.booleans())
    def release(self, by: str, place: int, *, is_known: bool) -> None:
        named = [self.given[place % len(self.given)]] if is_known and self.given else []
        self.tried(releasing(*named), by)

    @rule(seconds=st.integers(1, 60))
    def wait(self, seconds: int) -> None:
        self.board.later(seconds=seconds)

    @rule()
    def expire(self) -> None:
        expire(self.board)

    @invariant()
    def no_path_has_two_holders(self) -> None:
        holders: dict[str, list[Callable[[list[str]], bool]]] = {}
        for holder, pattern in listed(self.board):
            holders.setdefault(holder, []).append(self.meanings[pattern])
        for parts in PATHS[:183]:
            having = [holder for holder, meant in holders.items() if any(one(parts) for one in meant)]
            assert len(having) < 2, (parts, having)

    @invariant()
    def the_state_and_the_tables_agree(self) -> None:
        entity = self.board.tables.entity(subject(self.board.room_id), State)
        state = sorted((one.pattern, one.token, one.holder) for one in known(entity))
        assert state == self.board.tables.all("SELECT pattern, token, holder FROM reservation ORDER BY 1, 2")

    def teardown(self) -> None:
        assert rebuilt(self.board.facts).dump() == self.board.tables.dump()


TestReservations = Reservations.TestCase
TestReservations.settings = settings(max_examples=30, stateful_step_count=25, deadline=None)
