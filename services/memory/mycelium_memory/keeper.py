"""The process that holds the vectors of one model on one machine; `vectors_edge.EdgeVectors` starts it and asks it.

`python -m mycelium_memory.keeper <pid of the parent> <folder> <dimensions> <unindexed>`. A process, because qdrant-edge
holds the interpreter while it works, for a minute when it builds an index, and because a damaged file may end it; and
only one, because only one may have a shard open.
"""

from __future__ import annotations

import queue
import sys
import threading
from array import array
from collections.abc import Callable
from pathlib import Path
from typing import Any

import qdrant_edge as edge

from mycelium_memory.conditions import Conditions
from mycelium_memory.frames import Frame
from mycelium_memory.shard import LOOK_S, Shard
from mycelium_memory.standalone import Channel, open_channel
from mycelium_memory.vectors import Entry, Passage, Within, payload, point

PAGE = 250
WHERE = Conditions(edge)


def main() -> None:
    """Open the shard, say what was found, answer until the parent is gone."""
    folder, dimensions, unindexed = Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
    channel = open_channel()
    shard = Shard(folder, dimensions, unindexed)
    channel.send(Frame({"found": shard.found.value, "why": shard.why}))
    asked = _receive(channel)
    while True:
        try:
            frame = asked.get(timeout=LOOK_S)
        except queue.Empty:
            shard.look()
            continue
        if frame is None:
            shard.close()
            return
        run = VERBS[frame.body["verb"]]
        channel.answer(frame, lambda frame, run=run: run(shard, frame))  # type: ignore[misc]
        shard.worked(changed=frame.body["verb"] in CHANGES)


def _receive(channel: Channel) -> queue.SimpleQueue[Frame | None]:
    asked: queue.SimpleQueue[Frame | None] = queue.SimpleQueue()

    def receive() -> None:
        while (frame := channel.receive()) is not None:
            asked.put(frame)
        asked.put(None)

    threading.Thread(target=receive, name="receive", daemon=True).start()
    return asked


def _put(shard: Shard, frame: Frame) -> Frame:
    numbers = array("f", frame.blob)
    if sys.byteorder == "big":
        numbers.byteswap()
    for said in frame.body["entries"]:
        sections = said.pop("sections")
        size, first = shard.dimensions, said.pop("first")
        entry = Entry(**said, passages=tuple(Passage(section, b"") for section in sections))
        if _is_newer(shard, entry):
            continue
        points = [
            edge.Point(
                point(entry.room_id, entry.document, number),
                numbers[(first + number) * size : (first + number + 1) * size].tolist(),
                payload(entry, passage),
            )
            for number, passage in enumerate(entry.passages)
        ]
        if points:
            shard.change(edge.UpdateOperation.upsert_points(points))
        names = [point(entry.room_id, entry.document, number) for number in range(len(points))]
        shard.change(
            edge.UpdateOperation.delete_points_by_filter(WHERE.document(entry.room_id, entry.document, but=names))
        )
    return Frame({})


def _is_newer(shard: Shard, entry: Entry) -> bool:
    """Whether what is there of the document is of a later version."""
    there, _next = shard.edge.scroll(
        edge.ScrollRequest(limit=1, filter=WHERE.document(entry.room_id, entry.document), with_payload=["sequence"])
    )
    return any((record.payload or {})["sequence"] > entry.sequence for record in there)


def _delete(shard: Shard, frame: Frame) -> Frame:
    said = frame.body
    where = WHERE.document(said["room_id"], said["document"], up_to=said["sequence"])
    shard.change(edge.UpdateOperation.delete_points_by_filter(where))
    return Frame({})


def _delete_room(shard: Shard, frame: Frame) -> Frame:
    shard.change(edge.UpdateOperation.delete_points_by_filter(WHERE.room(frame.body["room_id"])))
    shard.forget()
    return Frame({})


def _search(shard: Shard, frame: Frame) -> Frame:
    said = frame.body
    vector = array("f", frame.blob)
    if sys.byteorder == "big":
        vector.byteswap()
    within = _within(said["within"])
    near = shard.edge.query(
        edge.QueryRequest(
            limit=said["most"],
            query=edge.Query.Nearest(vector.tolist()),
            filter=WHERE.within(within),
            with_payload=["room", "document", "section", "sequence"],
            params=edge.SearchParams(hnsw_ef=max(shard.ef, said["most"])),
        )
    )
    return Frame({"near": [_told(hit.payload, hit.score) for hit in near]})


def _within(said: dict[str, Any]) -> Within:
    return Within(**{**said, "rooms": tuple(said["rooms"]), "tags": tuple(said["tags"])})


def _told(said: Any, score: float) -> list[object]:
    return [said["room"], said["document"], said["section"], said["sequence"], score]


def _count(shard: Shard, frame: Frame) -> Frame:
    where = WHERE.rooms(frame.body["rooms"])
    return Frame({"count": shard.edge.count(edge.CountRequest(exact=True, filter=where))})


def _documents(shard: Shard, frame: Frame) -> Frame:
    page, following = shard.edge.scroll(
        edge.ScrollRequest(
            offset=frame.body["after"], limit=PAGE, with_payload=["room", "document", "sequence"], with_vector=False
        )
    )
    found = {(said["room"], said["document"], said["sequence"]) for record in page if (said := record.payload)}
    return Frame({"documents": sorted(found), "next": str(following) if following is not None else None})


def _state(shard: Shard, _frame: Frame) -> Frame:
    return Frame({"state": shard.state()})


VERBS: dict[str, Callable[[Shard, Frame], Frame]] = {
    "put": _put,
    "delete": _delete,
    "delete_room": _delete_room,
    "search": _search,
    "count": _count,
    "documents": _documents,
    "state": _state,
}
CHANGES = {"put", "delete", "delete_room"}

if __name__ == "__main__":
    main()
