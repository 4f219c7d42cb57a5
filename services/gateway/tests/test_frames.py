"""Facts as live events, and the ids by which a watcher resumes."""

from __future__ import annotations

import pytest

from mycelium.rooms.v1 import events_pb2
from mycelium_gateway import frames


def test_a_fact_is_one_event_with_its_place_as_id() -> None:
    """One line each for id, name and data, however many the text has."""
    fact = events_pb2.MessageAmended(message_id="m", content="one\ntwo\u2028three")

    lines = frames.frame("e1", 7, fact, "demo").decode().split("\n")

    assert lines[:2] == ["id: e1-7", "event: message_amended"]
    assert lines[2].startswith('data: {"id":"m","room":"demo","content":"one\\ntwo')
    assert lines[3:] == ["", ""]


def test_an_arrival_and_a_change_of_a_member_have_their_own_names() -> None:
    """The one fact tells both."""
    fact = events_pb2.MemberSaved(joined=True)
    assert b"event: member_joined\n" in frames.frame("e", 1, fact, "demo")
    fact.joined = False
    assert b"event: member_changed\n" in frames.frame("e", 1, fact, "demo")


@pytest.mark.parametrize(
    ("text", "sequence"),
    [
        ("e-1-7", 7),
        (" e-1-7 ", 7),
        ("e-1-0", 0),
        ("e-2-7", None),
        ("7", None),
        ("e-1-", None),
        ("e-1--7", None),
        ("e-1-x", None),
        ("e-1-٧", None),
        ("e-1-" + "9" * 30, None),
        ("", None),
    ],
)
def test_only_an_id_of_this_log_names_a_place(text: str, sequence: int | None) -> None:
    """Anything else begins anew, with a reset."""
    assert frames.read_identifier(text, "e-1") == sequence
