"""The rows of a board: which a filter means, in which order, and what they say."""

from __future__ import annotations

from typing import Any

import pytest

from mycelium.board.v1 import service_pb2
from mycelium_board import queries
from mycelium_board.creating import slug
from mycelium_kernel.errors import Refusal
from services.board.tests.hub import Hub, rebuilt


def asked(board: Hub, **fields: Any) -> service_pb2.ListTasksResponse:
    """A page of the board."""
    request = service_pb2.ListTasksRequest(room="demo", **fields)
    return queries.list_tasks(board.tables, request, board.context("avery"))


def rows(board: Hub, wanted: service_pb2.Filter.ValueType, since: str = "") -> list[str]:
    """The keys of its first page."""
    return [row.key for row in asked(board, filter=wanted, closed_since=since).rows]


def test_filters_mean_what_a_person_looks_for() -> None:
    """Decisions first, then what is blocked, then reviews; claimed work; what was closed since a moment."""
    board = Hub()
    board.task("work/plain")
    board.task("work/review", status="in_review")
    board.task("work/stuck", status="blocked")
    board.task("decisions/ttl")
    board.task("work/done", status="resolved")
    board.task("context/stack", "no task")
    assert rows(board, service_pb2.FILTER_UNSPECIFIED) == ["decisions/ttl", "work/stuck", "work/review"]
    board.claim("work/plain", ttl_s=60)
    assert rows(board, service_pb2.FILTER_IN_FLIGHT) == ["work/plain"]
    board.later(seconds=61)
    assert rows(board, service_pb2.FILTER_IN_FLIGHT) == []
    assert rows(board, service_pb2.FILTER_RESOLVED) == ["work/done"]
    assert rows(board, service_pb2.FILTER_RESOLVED, "2026-01-05T12:00:00.001Z") == []
    assert rows(board, service_pb2.FILTER_RESOLVED, "2026-01-05T14:00:00+02:00") == ["work/done"]
    noon_ms = 1_767_614_400_000  # as gateways of before ask
    for since_ms, keys in ((noon_ms, ["work/done"]), (noon_ms + 1, [])):
        page = asked(board, filter=service_pb2.FILTER_RESOLVED, closed_since_ms=since_ms)
        assert [row.key for row in page.rows] == keys
    for nonsense in ("soon", "1969-01-01T00:00:00Z"):
        with pytest.raises(Refusal, match="closed_since is"):
            rows(board, service_pb2.FILTER_RESOLVED, nonsense)
    assert len(rows(board, service_pb2.FILTER_ALL)) == 5


def test_a_title_is_the_field_the_heading_or_the_first_line() -> None:
    """Whatever a person wrote."""
    board = Hub()
    board.task("work/a", "body", title="Re: plan: phase 2")
    board.task("work/b", "\n\nfirst line\nsecond")
    request = service_pb2.ListTasksRequest(room="demo", filter=service_pb2.FILTER_ALL)
    found = queries.list_tasks(board.tables, request, board.context("avery")).rows
    assert {row.key: row.title for row in found} == {"work/a": "Re: plan: phase 2", "work/b": "first line"}


def test_what_is_blocked_by_hand_needs_a_person() -> None:
    """Whoever writes `blocked_by` into a document means it, whatever its status says."""
    board = Hub()
    board.task("work/a", blocked_by="#502")
    assert rows(board, service_pb2.FILTER_UNSPECIFIED) == ["work/a"]
    assert rows(board, service_pb2.FILTER_READY) == []


def test_what_is_ready_can_be_begun_and_the_rest_says_why_not() -> None:
    """Nothing blocked, waiting, held or closed is offered; each row gives its reason."""
    board = Hub()
    board.task("work/a")
    links: dict[str, Any] = {"depends-on": "work/a", "part-of": "work/top"}
    board.task("work/b", **links)
    board.task("work/top")
    board.task("work/stuck", status="blocked", blocked_by="#502")
    board.task("work/mine")
    board.task("work/done", status="resolved")
    board.claim("work/mine")
    assert sorted(rows(board, service_pb2.FILTER_READY)) == ["work/a", "work/top"]
    found = {row.key: row for row in asked(board, filter=service_pb2.FILTER_ALL).rows}
    assert {key: row.reason for key, row in found.items()} == {
        "work/a": "",
        "work/b": "after work/a",
        "work/top": "",
        "work/stuck": "waiting on #502",
        "work/mine": "held by @sec until 2026-01-05T12:30:00.000Z",
        "work/done": "resolved",
    }
    assert all(row.ready == (not row.reason) for row in found.values())
    assert (found["work/b"].parent, list(found["work/top"].parts)) == ("work/top", ["work/b"])


@pytest.mark.parametrize(
    ("zone", "shown"),
    [
        ("", ["work/noon"]),
        ("UTC", ["work/noon"]),
        ("Pacific/Kiritimati", ["work/noon"]),  # there it is the sixth, two in the morning
        ("Pacific/Pago_Pago", ["work/noon", "work/midnight"]),  # there the fifth began at eleven
    ],
)
def test_what_was_closed_stays_for_the_readers_day(zone: str, shown: list[str]) -> None:
    """Of two tasks, closed just before midnight in UTC and at noon, each reader sees those of their own day."""
    board = Hub()
    board.later(hours=-12, milliseconds=-1)  # 2026-01-04T23:59:59.999Z
    board.task("work/midnight", status="resolved")
    board.later(hours=12, milliseconds=1)
    board.task("work/noon", status="resolved")
    if zone == "Pacific/Pago_Pago":
        board.later(hours=-1, milliseconds=-1)  # one in the night is the day before there
    found = asked(board, filter=service_pb2.FILTER_RESOLVED, zone=zone)
    assert [row.key for row in found.rows] == shown
    assert found.resolved == len(shown)


def test_a_comment_on_what_is_closed_closes_it_no_later() -> None:
    """It leaves the board at the end of the day on which it was closed; opened and closed again, it is closed anew."""
    board = Hub()
    board.task("work/a", status="resolved")
    board.later(days=1)
    board.task("work/a", "with a remark", status="resolved")
    assert rows(board, service_pb2.FILTER_RESOLVED) == []
    board.task("work/a", status="open")
    board.task("work/a", status="dismissed")
    assert rows(board, service_pb2.FILTER_RESOLVED) == ["work/a"]


def test_what_a_move_closed_is_closed_before_its_document_says_so() -> None:
    """The document follows; the row's place and the numbers don't wait for it."""
    board = Hub()
    board.task("work/a", status="in_review")
    board.resolve("work/a")
    found = asked(board, filter=service_pb2.FILTER_RESOLVED)
    assert ([row.key for row in found.rows], found.needs_you, found.resolved) == (["work/a"], 0, 1)
    assert rebuilt(board.facts).dump() == board.tables.dump()


def test_rows_say_under_which_values_of_a_field_they_stand() -> None:
    """Fields of the row and of its document; each of several; `-` without one; the owner is the holder, if unsaid."""
    board = Hub()
    board.task("work/a", priority="high", tags_of_mine=["x", "", "y", "x"], estimate=3, owner="@julia")
    board.task("work/b", assignee="@Sec")
    board.claim("work/b", by="builder")

    def grouped(field: str) -> dict[str, list[str]]:
        found = asked(board, filter=service_pb2.FILTER_ALL, group=field)
        return {row.key: list(row.group) for row in found.rows}

    assert grouped("priority") == {"work/a": ["high"], "work/b": ["-"]}
    assert grouped("tags_of_mine") == {"work/a": ["x", "y"], "work/b": ["-"]}
    assert grouped("estimate") == {"work/a": ["3"], "work/b": ["-"]}
    assert grouped("owner") == {"work/a": ["julia"], "work/b": ["builder"]}
    assert grouped("assignee") == {"work/a": ["-"], "work/b": ["sec"]}
    assert grouped("status") == {"work/a": ["open"], "work/b": ["open"]}
    assert grouped("") == {"work/a": [], "work/b": []}
    assert grouped("key") == {"work/a": ["work/a"], "work/b": ["work/b"]}
    assert grouped("title") == {"work/a": ["Do it"], "work/b": ["Do it"]}
    assert grouped("source") == {"work/a": ["memory"], "work/b": ["memory"]}
    assert grouped("ready") == {"work/a": ["true"], "work/b": ["false"]}
    assert grouped("version") == {"work/a": ["1"], "work/b": ["1"]}
    assert grouped("parts") == {"work/a": ["-"], "work/b": ["-"]}
    assert grouped("reason") == {"work/a": ["-"], "work/b": ["held by @builder until 2026-01-05T12:30:00.000Z"]}
    assert grouped("expires_at") == {"work/a": ["-"], "work/b": ["2026-01-05T12:30:00.000Z"]}
    assert grouped("updated_at") == {key: ["2026-01-05T12:00:00.000Z"] for key in ("work/a", "work/b")}


def test_several_values_are_several_groups_however_they_are_written() -> None:
    """As a list, as text that is one, as handles between commas; one is counted once."""
    board = Hub()
    board.task("work/a", assignee="@Sec, scout", squad='["red", "blue", "red"]')
    board.task("work/b", assignee=["@sec", "builder"], squad=[["red"], "{}"])

    def grouped(field: str) -> list[list[str]]:
        found = asked(board, filter=service_pb2.FILTER_ALL, group=field)
        return [list(row.group) for row in sorted(found.rows, key=lambda row: row.key)]

    assert grouped("assignee") == [["sec", "scout"], ["sec", "builder"]]
    assert grouped("squad") == [["red", "blue"], ["red", "{}"]]


def test_a_row_of_no_document_can_t_be_changed() -> None:
    """The refusal says what it is; a handle that is nobody's is no task either."""
    board = Hub()
    for named in ("members/sec", "@Sec"):
        refused = board.refused("row.unchangeable", service_pb2.ClaimTaskRequest(room="demo", task=named))
        assert (
            refused.detail
            == "@sec is a member of 'demo', no task: its row shows what it does, and can't be changed here"
        )
        assert refused.next == "mycelium agent show sec --room demo"
    for named in ("@nobody", "sec"):
        board.refused("task.not_found", service_pb2.ClaimTaskRequest(room="demo", task=named))


@pytest.mark.parametrize(
    "wrong",
    [
        {"group": "thread"},
        {"group": "thread_state"},
        {"group": "x" * 101},
        {"zone": "Nowhere/None"},
        {"limit": 5_001},
        {"cursor": "nonsense"},
        {"cursor": "3~~work/a"},
    ],
)
def test_what_can_t_be_read_is_refused(wrong: dict[str, Any]) -> None:
    """With what was wrong; fields of threads are shown on a row, and can't be grouped by."""
    board = Hub()
    with pytest.raises(Refusal) as caught:
        asked(board, **wrong)
    assert caught.value.slug == "request.invalid"
    if wrong == {"group": "thread"}:
        assert caught.value.detail == "rows can't be grouped by 'thread': it is the thread's, and no field of the task"


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("Ship passkey login", "ship-passkey-login"),
        ("Don't panic!", "dont-panic"),
        ("Café über alles", "cafe-uber-alles"),
        ("Größe in Straßen", "grosse-in-strassen"),
        ("🚀", ""),
        ("x" * 70, "x" * 60),
        ("many words " * 10, "many-words-many-words-many-words-many-words-many-words-many"),
    ],
)
def test_a_key_is_made_of_the_titles_words(title: str, expected: str) -> None:
    """In plain letters; nothing when nothing is left."""
    assert slug(title) == expected
