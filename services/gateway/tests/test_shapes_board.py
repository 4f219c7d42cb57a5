"""Rows that come from no document, as JSON."""

from __future__ import annotations

import pytest

from mycelium.board.v1 import views_pb2
from mycelium.rooms.v1 import views_pb2 as rooms_pb2
from mycelium_gateway import shapes_board
from mycelium_gateway.schemas.tasks import Task
from mycelium_kernel.clock import from_millis

RUN = views_pb2.RunRow(
    run="6f0c2a7e9b1d4c3f8a5e2b7d5d1e9c04", engine="greeter", kind="hello", task="work/login", title="Login",
    thread="0199f2a1-5b7c-7a10-8f42-3d1e9c04b7aa", asked_by="avery", started_at=from_millis(1_788_453_600_000),
)  # fmt: skip
MEMBER = rooms_pb2.Member(handle="scout", presence=rooms_pb2.PRESENCE_WORKING, presence_note="reading")


def test_a_run_says_which_engine_works_for_whom_where_and_since_when() -> None:
    """It has every field of a row, as the schema has them; in the channel it is in no task."""
    row = shapes_board.running(RUN, "")
    assert Task.model_validate(row).model_dump() == row
    assert (row["key"], row["source"]) == ("runs/5d1e9c04", {"kind": "run", "ref": RUN.run})
    assert (row["title"], row["status"]) == ("@greeter answers @avery in work/login", "running")
    assert (row["created_at"], row["thread"], row["meta"]["task"]) == (
        "2026-09-03T16:40:00.000Z", RUN.thread, "work/login",
    )  # fmt: skip
    alone = shapes_board.running(views_pb2.RunRow(run=RUN.run, engine="greeter", asked_by="avery"), "")
    assert (alone["title"], alone["thread"], alone["meta"]["task"]) == ("@greeter answers @avery", None, None)


@pytest.mark.parametrize(
    ("field", "of_run", "of_member"),
    [
        ("source", "run", "member"),
        ("owner", "greeter", "scout"),
        ("created_by", "avery", "scout"),
        ("updated_by", "greeter", "scout"),
        ("kind", "hello", "agent"),
        ("status", "running", "working"),
        ("ready", "false", "false"),
        ("version", "0", "0"),
        ("task", "work/login", "-"),
        ("engine", "greeter", "-"),
        ("priority", "-", "-"),
    ],
)
def test_rows_of_no_document_stand_under_the_values_that_they_show(field: str, of_run: str, of_member: str) -> None:
    """And under a dash where they have none."""
    assert shapes_board.running(RUN, field)["group"] == [of_run]
    assert shapes_board.active(MEMBER, field)["group"] == [of_member]
