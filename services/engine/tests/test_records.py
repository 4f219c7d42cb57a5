"""What is read of the facts that a run leaves."""

from __future__ import annotations

from mycelium.engine.v1 import events_pb2, runs_pb2
from mycelium_engine.records import last_told

RUN = runs_pb2.Run(id="r1", engine="greeter", kind="hello")


def test_the_first_fact_of_a_run_is_read_as_one_that_has_no_end() -> None:
    """Both facts have the same number for what both tell."""
    began = last_told(events_pb2.RunStarted(room_id="room", run=RUN).SerializeToString())
    assert (began.room_id, began.run, began.HasField("ended_at")) == ("room", RUN, False)
    assert last_told(b"") == events_pb2.RunEnded()
    shared = {field.name: field for field in events_pb2.RunEnded.DESCRIPTOR.fields}
    for field in events_pb2.RunStarted.DESCRIPTOR.fields:
        assert (shared[field.name].number, shared[field.name].message_type) == (field.number, field.message_type)
