"""The table of contents of the board service: each request, fact and worker, and the function it is wired to."""

from __future__ import annotations

from pathlib import Path

from mycelium.board.v1 import events_pb2, finding_pb2, log_pb2, service_pb2
from mycelium.engine.v1 import events_pb2 as engine_pb2
from mycelium.memory.v1 import events_pb2 as memory_pb2
from mycelium.rooms.v1 import events_pb2 as rooms_pb2
from mycelium_board import (
    commands_claims,
    commands_edits,
    commands_moves,
    creating,
    expiry,
    loads,
    model,
    notices,
    projection,
    projection_log,
    queries,
    queries_finding,
    queries_log,
    reactions,
    runs,
    service_reservations,
    turns,
)
from mycelium_kernel import rooms_seen, subjects
from mycelium_kernel.service import Command, Direct, Evolution, Projection, Query, Service

VERSION = "0.1.0"

PROJECTION = Projection(
    schemas=(
        rooms_seen.SCHEMA,
        *(Path(__file__).with_name(name) for name in ("schema.sql", "schema_log.sql", "schema_runs.sql")),
        service_reservations.SCHEMA,
    ),
    owner=model.BOARD,
    version=7,
    filters=(
        subjects.of_service(model.BOARD),
        subjects.of_kind("memory", "document"),
        subjects.all_posts(),
        turns.RUNS,
        *rooms_seen.FILTERS,
    ),
    apply={
        events_pb2.TaskMoved: projection_log.both(projection.task_moved, projection_log.task_moved),
        events_pb2.ClaimRenewed: projection.claim_renewed,
        memory_pb2.DocumentWritten: projection_log.both(projection.document_written, projection_log.document_written),
        memory_pb2.DocumentRemoved: projection_log.both(projection.document_removed, projection_log.document_removed),
        rooms_pb2.MessagePosted: projection_log.message_posted,
        engine_pb2.RunStarted: runs.run_started,
        engine_pb2.RunEnded: runs.run_ended,
        **service_reservations.APPLY,
        **rooms_seen.APPLY,
    },
    entities={
        events_pb2.TaskMoved: (Evolution(events_pb2.TaskState, model.move),),
        events_pb2.ClaimRenewed: (Evolution(events_pb2.TaskState, model.renew),),
        **service_reservations.ENTITIES,
    },
    room_tables=(*rooms_seen.ROOM_TABLES, *service_reservations.ROOM_TABLES, "claim", "asked", "edit", "run"),
    swept_tables={
        "task": "room_id, document_id",
        "edge": "room_id, document_id, number",
        "log_count": "room_id, quarter, handle",
        "log_entry": "room_id, at, sequence",
    },
    erased={rooms_pb2.RoomDeleted: lambda event: event.room_id},
    feed=False,
)


def service(*, is_gated: bool = False) -> Service:
    """The service as the kernel runs it. `is_gated`: a task that waits for another can be claimed by force alone."""
    return Service(
        name=model.BOARD,
        version=VERSION,
        projection=PROJECTION,
        commands=(*_commands(is_gated=is_gated), *_of_itself(), *service_reservations.COMMANDS),
        queries=(
            Query(service_pb2.ListTasksRequest, queries.list_tasks),
            Query(finding_pb2.FindTaskRequest, queries_finding.find_task),
            Query(log_pb2.ReadLogRequest, queries_log.read_log),
            *service_reservations.QUERIES,
        ),
        direct=(Direct(service_pb2.CreateTaskRequest, creating.create_task),),
        reactions=(
            reactions.AFTER,
            reactions.TELLER,
            notices.NOTICES,
            turns.TURNS,
            *service_reservations.REACTIONS,
        ),
        workers=(expiry.watch_claims, expiry.watch_concerns, *service_reservations.WORKERS),
    )


def _commands(*, is_gated: bool) -> tuple[Command, ...]:
    pb, claims = service_pb2, commands_claims
    return (
        Command(
            pb.ClaimTaskRequest,
            loads.for_gated_claim if is_gated else loads.for_claim,
            claims.claim_task,
            claims.answer_claim,
            fresh=True,
            then=reactions.follow,
        ),
        Command(pb.RenewClaimRequest, loads.for_holder, claims.renew_claim, claims.answer_renew, fresh=True),
        Command(pb.ReleaseTaskRequest, loads.for_holder, claims.release_task, claims.answer_release, fresh=True),
        Command(
            pb.MoveTaskRequest,
            loads.for_move,
            commands_moves.move_task,
            commands_moves.answer_move,
            fresh=True,
            then=reactions.follow,
        ),
    )


def _of_itself() -> tuple[Command, ...]:
    """What reactions and due times ask for."""
    pb, claims, edits = service_pb2, commands_claims, commands_edits
    own = (model.BOARD,)
    return (
        Command(pb.ExpireClaimRequest, loads.for_expire, claims.expire_claim, claims.answer_expire, callers=own),
        Command(pb.RecordEditRequest, loads.for_edit, edits.record_edit, edits.answer_edit, fresh=True, callers=own),
        Command(
            pb.UnblockTaskRequest, loads.for_unblock, edits.unblock_task, edits.answer_unblock, fresh=True, callers=own
        ),
        Command(
            pb.ExpireConcernRequest,
            loads.for_concern,
            edits.expire_concern,
            edits.answer_concern,
            fresh=True,
            callers=own,
            then=reactions.follow,
        ),
    )
