"""The table of contents of the rooms service: each request, fact and worker, and the function it is wired to."""

from __future__ import annotations

from pathlib import Path

from mycelium.rooms.v1 import (
    events_pb2,
    folders_pb2,
    issuers_pb2,
    join_pb2,
    leases_pb2,
    looks_pb2,
    notices_pb2,
    service_pb2,
    states_pb2,
    status_pb2,
    transfer_pb2,
)
from mycelium_kernel import subjects
from mycelium_kernel.service import Command, Evolution, LogQuery, Projection, Query, Service
from mycelium_rooms import (
    commands_deliveries,
    commands_events,
    commands_folders,
    commands_issuers,
    commands_join,
    commands_messages,
    commands_notices,
    commands_people,
    commands_rooms,
    commands_transfer,
    erasing,
    expiry,
    imports,
    joining,
    loads_deliveries,
    loads_events,
    loads_join,
    loads_messages,
    loads_notices,
    loads_rooms,
    loads_transfer,
    model,
    projection,
    queries_history,
    queries_leases,
    queries_messages,
    queries_rooms,
    queries_transfer,
    room_folders,
    search,
)
from mycelium_rooms.presence import Presences
from mycelium_rooms.waits import Waits

VERSION = "0.1.0"

PROJECTION = Projection(
    schemas=(Path(__file__).with_name("schema.sql"),),
    version=3,
    filters=(subjects.of_service(model.ROOMS),),
    apply={
        events_pb2.RoomCreated: projection.room_created,
        events_pb2.RoomChanged: projection.room_changed,
        events_pb2.RoomDeleted: projection.room_deleted,
        events_pb2.FactsImported: projection.facts_imported,
        events_pb2.RoomImported: projection.room_imported,
        events_pb2.FolderSet: projection.folder_set,
        events_pb2.UserSaved: projection.user_saved,
        events_pb2.MemberSaved: projection.member_saved,
        events_pb2.MemberRemoved: projection.member_removed,
        events_pb2.MessagePosted: projection.message_posted,
        events_pb2.MessageAmended: projection.message_amended,
        events_pb2.EventStatusSet: projection.event_status_set,
        events_pb2.DeliveryOffered: projection.delivery_offered,
        events_pb2.DeliveryMarked: projection.delivery_marked,
        join_pb2.JoinCodeMade: joining.join_code_made,
        join_pb2.JoinCodeUsed: joining.join_code_used,
    },
    entities={
        events_pb2.RoomCreated: (
            Evolution(events_pb2.NameState, model.evolve_name),
            Evolution(
                events_pb2.RoomState, model.evolve_room, seeds=lambda event: loads_rooms.settings_subject(event.room_id)
            ),
        ),
        events_pb2.RoomDeleted: (Evolution(events_pb2.NameState, model.evolve_name),),
        events_pb2.RoomChanged: (Evolution(events_pb2.RoomState, model.evolve_room),),
        events_pb2.FactsImported: (Evolution(states_pb2.ImportState, model.evolve_import),),
        events_pb2.RoomImported: (Evolution(states_pb2.ImportState, model.evolve_import),),
        events_pb2.FolderSet: (Evolution(states_pb2.FolderState, model.evolve_folder),),
        events_pb2.UserSaved: (Evolution(events_pb2.UserState, model.evolve_user),),
        events_pb2.MemberSaved: (Evolution(events_pb2.MemberState, model.join_member),),
        events_pb2.MemberRemoved: (Evolution(events_pb2.MemberState, model.leave_member),),
        issuers_pb2.HandleProven: (Evolution(issuers_pb2.ProofState, model.evolve_proof),),
        looks_pb2.LookTaken: (Evolution(looks_pb2.LookState, model.evolve_look),),
        events_pb2.EventStatusSet: (Evolution(states_pb2.EventState, model.evolve_event),),
        events_pb2.DeliveryOffered: (Evolution(events_pb2.QueueState, model.evolve_queue),),
        events_pb2.DeliveryMarked: (Evolution(events_pb2.QueueState, model.evolve_queue),),
        join_pb2.JoinCodeMade: (Evolution(join_pb2.JoinState, model.make_join_code),),
        join_pb2.JoinCodeUsed: (Evolution(join_pb2.JoinState, model.use_join_code),),
    },
    room_tables=("room", "member", "folder", "seen", "unread", "joining"),
    swept_tables={
        "message": "sequence",
        "revision": "room_id, message_id, sequence",
        "thread": "room_id, thread",
        "delivery": "room_id, queue, message_id",
        "holding": "room_id, queue, message_id, session",
    },
    tidy=search.merge_words,
    erased={events_pb2.RoomDeleted: lambda event: event.room_id},
)


def service(
    waits: Waits | None = None, presences: Presences | None = None, rooms_folder: Path | None = None
) -> Service:
    """The service, with a view of its own of the open waits, and of what members are doing.

    `rooms_folder` is where each room has a folder, on one machine; None keeps none.
    """
    waits = waits or Waits()
    presences = presences or Presences(waits)
    return Service(
        name=model.ROOMS,
        version=VERSION,
        projection=PROJECTION,
        commands=_commands(waits),
        queries=_queries(presences),
        reactions=(
            erasing.ERASER,
            joining.REGISTRAR,
            *((room_folders.reaction(rooms_folder),) if rooms_folder else ()),
        ),
        on_timer=erasing.erase_again,
        arm=erasing.arm,
        workers=(
            waits.watch,
            presences.watch_presence,
            expiry.watch_expiry,
            imports.watch_imports,
        ),
    )


def _commands(waits: Waits) -> tuple[Command, ...]:
    rooms, people, messages = commands_rooms, commands_people, commands_messages
    deliveries, events, filing = commands_deliveries, commands_events, commands_folders
    pb = service_pb2
    post, amend = loads_messages.for_post(waits), loads_messages.for_amend(waits)
    take, mark = loads_deliveries.for_take, loads_deliveries.for_mark
    # Fresh are those that may find that nothing is to be done, or nothing to be answered.
    return (
        Command(pb.CreateRoomRequest, loads_rooms.for_create_room, rooms.create_room, rooms.answer_create),
        Command(pb.ChangeRoomRequest, loads_rooms.for_change_room, rooms.change_room, rooms.answer_change, fresh=True),
        Command(pb.DeleteRoomRequest, loads_rooms.for_delete_room, rooms.delete_room, rooms.answer_delete),
        Command(
            folders_pb2.FileRoomRequest, loads_rooms.for_file_room, filing.file_room, filing.answer_file, fresh=True
        ),
        Command(pb.SaveUserRequest, loads_rooms.for_save_user, people.save_user, people.answer_save_user, fresh=True),
        Command(
            pb.SaveMemberRequest, loads_rooms.for_save_member, people.save_member, people.answer_save_member, fresh=True
        ),
        Command(
            pb.RemoveMemberRequest, loads_rooms.for_remove_member, people.remove_member, people.answer_remove_member
        ),
        Command(
            pb.PostMessageRequest, post, messages.post_message, messages.answer_post, fresh=messages.is_plain_response
        ),
        Command(pb.AmendMessageRequest, amend, messages.amend_message, messages.answer_amend, fresh=True),
        Command(
            status_pb2.SetEventStatusRequest, loads_events.for_set, events.set_status, events.answer_set, fresh=True
        ),
        Command(status_pb2.ExpireEventRequest, loads_events.for_expire, events.expire, events.answer_expire),
        Command(pb.TakeDeliveryRequest, take, deliveries.take_delivery, deliveries.answer_take, fresh=True),
        Command(pb.MarkDeliveryRequest, mark, deliveries.mark_delivery, deliveries.answer_mark),
        Command(
            notices_pb2.PostNoticeRequest,
            loads_notices.for_post,
            commands_notices.post_notice,
            commands_notices.answer_post,
            fresh=True,
            callers=("memory", "board"),
        ),
        Command(
            issuers_pb2.ProveHandleRequest,
            loads_rooms.for_prove,
            commands_issuers.prove_handle,
            commands_issuers.answer_prove,
            callers=("gateway",),
        ),
        *_joining(),
        *_imports(),
    )


def _joining() -> tuple[Command, ...]:
    pb, joins, own = join_pb2, commands_join, (model.ROOMS,)
    register = joins.register_joined
    return (
        Command(pb.MakeJoinCodeRequest, loads_join.for_make, joins.make_join_code, joins.answer_make, fresh=True),
        Command(
            pb.UseJoinCodeRequest,
            loads_join.for_use,
            joins.use_join_code,
            joins.answer_use,
            fresh=True,
            then=joining.register,
        ),
        Command(
            pb.RegisterJoinedRequest, loads_join.for_register, register, joins.answer_register, fresh=True, callers=own
        ),
    )


def _imports() -> tuple[Command, ...]:
    pb, moves, step = transfer_pb2, commands_transfer, loads_transfer.for_step
    return (
        Command(pb.ImportRoomRequest, loads_transfer.for_import_room, moves.import_room, moves.answer_import_room),
        Command(
            pb.ImportFactsRequest, loads_transfer.for_facts, moves.import_facts, moves.answer_import_facts, fresh=True
        ),
        Command(pb.FinishImportRequest, step, moves.finish_import, moves.answer_finish, fresh=True),
        Command(pb.AbandonImportRequest, step, moves.abandon_import, moves.answer_abandon),
    )


def _queries(presences: Presences) -> tuple[Query | LogQuery, ...]:
    return (
        Query(service_pb2.GetRoomRequest, queries_rooms.get_room(presences)),
        Query(service_pb2.ListRoomsRequest, queries_rooms.list_rooms),
        Query(service_pb2.GetUserRequest, queries_rooms.get_user),
        Query(service_pb2.ListUsersRequest, queries_rooms.list_users),
        Query(service_pb2.DescribeHandleRequest, queries_rooms.describe_handle),
        Query(service_pb2.GetMemberRequest, queries_rooms.get_member(presences)),
        Query(service_pb2.ListMembersRequest, queries_rooms.list_members(presences)),
        Query(service_pb2.GetMessageRequest, queries_messages.get_message),
        Query(service_pb2.ListMessagesRequest, queries_history.list_messages),
        Query(service_pb2.ListReceiptsRequest, queries_messages.list_receipts),
        Query(service_pb2.GetDeliveryRequest, queries_messages.get_delivery),
        Query(service_pb2.ReadFeedRequest, queries_messages.read_feed),
        Query(leases_pb2.FindNoticeRequest, queries_leases.find_notice),
        Query(join_pb2.FindJoinedRequest, joining.find_joined),
        LogQuery(transfer_pb2.ExportRoomRequest, queries_transfer.export_part, queries_transfer.export_room),
    )
