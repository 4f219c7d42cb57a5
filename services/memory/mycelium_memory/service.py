"""The table of contents of the memory service: each request, fact and worker, and the function it is wired to."""

from __future__ import annotations

from pathlib import Path

from mycelium.memory.v1 import (
    catchup_pb2,
    changes_pb2,
    events_pb2,
    files_pb2,
    links_pb2,
    moves_pb2,
    search_pb2,
    service_pb2,
    subscriptions_pb2,
    transfer_pb2,
)
from mycelium.rooms.v1 import events_pb2 as rooms_pb2
from mycelium_kernel import rooms_seen, subjects
from mycelium_kernel.service import Command, Direct, Evolution, LogQuery, Projection, Query, Service
from mycelium_memory import (
    commands_documents,
    commands_files,
    commands_moves,
    commands_subscriptions,
    commands_transfer,
    loads,
    model,
    projection,
    queries_catchup,
    queries_changes,
    queries_documents,
    queries_links,
    queries_transfer,
    reactions,
    subscriptions,
    words,
)
from mycelium_memory.index import Index
from mycelium_memory.nearest import Elsewhere, Here
from mycelium_memory.queries_search import Search
from mycelium_memory.settings import IndexSettings
from mycelium_memory.tree import keeper
from mycelium_memory.tree_problems import lister

VERSION = "0.1.0"

PROJECTION = Projection(
    schemas=(rooms_seen.SCHEMA, Path(__file__).with_name("schema.sql")),
    owner=model.MEMORY,
    version=3,
    filters=(subjects.of_service(model.MEMORY), *rooms_seen.FILTERS),
    apply={
        events_pb2.DocumentWritten: projection.document_written,
        events_pb2.DocumentRemoved: projection.document_removed,
        events_pb2.SubscriptionSet: subscriptions.set_,
        events_pb2.SubscriptionEnded: subscriptions.end,
        **rooms_seen.APPLY,
    },
    entities={
        events_pb2.DocumentWritten: (Evolution(events_pb2.DocumentState, model.write),),
        events_pb2.DocumentsImported: (Evolution(events_pb2.DocumentsImportState, model.move_import),),
        events_pb2.DocumentRemoved: (Evolution(events_pb2.DocumentState, model.remove),),
        events_pb2.SubscriptionSet: (Evolution(events_pb2.SubscriptionState, model.move_subscription),),
        events_pb2.SubscriptionEnded: (Evolution(events_pb2.SubscriptionState, model.move_subscription),),
    },
    room_tables=(*rooms_seen.ROOM_TABLES, "subscription", "shelf"),
    swept_tables={
        "document": "room_id, document_id",
        "version": "room_id, document_id, version",
        "tag": "room_id, tag, folded",
        "passage": "passage",
        "link": "room_id, target, source, number",
    },
    tidy=words.merge,
    erased={rooms_pb2.RoomDeleted: lambda event: event.room_id},
    feed=False,
)


def service(owned: IndexSettings | None = None, tree: Path | None = None) -> Service:
    """The service. `owned`: this replica keeps the index of meaning, which the others ask; one replica is told to.

    `tree`: where each room has a folder whose files are its documents; of several replicas one keeps it.
    """
    index = Index(owned) if owned else None
    here = Here(index) if index else None
    search = Search(here or Elsewhere())
    return Service(
        name=model.MEMORY,
        version=VERSION,
        projection=PROJECTION,
        commands=_commands(),
        queries=_queries(),
        direct=(
            Direct(search_pb2.SearchDocumentsRequest, search.run),
            Direct(files_pb2.ListProblemsRequest, lister(tree)),
            *(here.answers() if here else ()),
        ),
        reactions=(reactions.WAKER,),
        workers=(*((index.work,) if index else ()), *((keeper(tree),) if tree else ())),
    )


def _commands() -> tuple[Command, ...]:
    pb, documents = service_pb2, commands_documents
    return (
        Command(
            pb.WriteDocumentRequest,
            loads.for_write,
            documents.write_document,
            documents.answer_write,
            fresh=lambda request: request.HasField("expect") and not request.expect,  # one key, several documents
        ),
        Command(pb.RemoveDocumentRequest, loads.for_remove, documents.remove_document, documents.answer_remove),
        Command(
            subscriptions_pb2.SubscribeRequest,
            subscriptions.load,
            commands_subscriptions.subscribe,
            commands_subscriptions.answer_subscribe,
            fresh=True,
        ),
        Command(
            subscriptions_pb2.UnsubscribeRequest,
            subscriptions.load,
            commands_subscriptions.unsubscribe,
            commands_subscriptions.answer_unsubscribe,
        ),
        Command(
            transfer_pb2.ImportDocumentsRequest,
            loads.for_import,
            commands_transfer.import_documents,
            commands_transfer.answer_import,
            fresh=True,
        ),
        Command(
            files_pb2.TakeFileRequest,
            loads.for_own,
            commands_files.take_file,
            commands_files.answer_take,
            fresh=True,
        ),
        Command(
            moves_pb2.FollowMoveRequest,
            loads.for_own,
            commands_moves.follow_move,
            commands_moves.answer_follow,
            fresh=True,
            callers=("board",),
        ),
    )


def _queries() -> tuple[Query | LogQuery, ...]:
    queries = queries_documents
    return (
        Query(service_pb2.GetDocumentRequest, queries.get_document),
        LogQuery(service_pb2.GetVersionRequest, queries.version_part, queries.get_version),
        Query(service_pb2.ListDocumentsRequest, queries.list_documents),
        Query(service_pb2.ListVersionsRequest, queries.list_versions),
        LogQuery(transfer_pb2.ExportDocumentsRequest, queries_transfer.export_part, queries_transfer.export_documents),
        Query(service_pb2.FindThreadRequest, queries.find_thread),
        Query(catchup_pb2.CatchUpRequest, queries_catchup.catch_up),
        Query(subscriptions_pb2.ListSubscriptionsRequest, subscriptions.list_subscriptions),
        Query(changes_pb2.ListChangesRequest, queries_changes.list_changes),
        Query(links_pb2.GetLinksRequest, queries_links.get_links),
        Query(links_pb2.GetGraphRequest, queries_links.get_graph),
        Query(links_pb2.ExpandDocumentRequest, queries_links.expand_document),
    )
