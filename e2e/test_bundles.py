"""Rooms that travel: out as one bundle, in on another hub, with everything that nobody had read yet."""

import gzip
import hashlib
import json
import socket
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from e2e import bundle
from e2e.disk import content as content_of
from e2e.disk import files, holders
from e2e.harness import Hub, Machine
from e2e.requirements import requirement
from e2e.room import Document, Room
from e2e.waiting import until
from e2e.web import Reply, path

Unique = Callable[[str], str]
IMPORT = path("rooms", "import")


def exported(room: Room) -> bytes:
    """The bundle of a room."""
    return room.api.get(room.at("export"), handle=room.owner).ok(200).body


def lively(room: Room) -> Room:
    """With members, a thread, an event, an amended text, and queues in every state."""
    room.join("sec", description="security", team="core", owner="avery")
    room.join("planner", "gone")
    room.api.delete(room.at("members", "gone"), handle="avery").ok(204)
    root = room.post("a task", sender="planner")
    room.post("in the thread", sender="sec", thread=root["id"], reply_to=root["id"])
    concern = room.post("old backup", message_type="event", metadata={"kind": "concern", "payload": {"n": 1}})
    room.api.patch(room.at("messages", concern["id"]), {"status": "in_progress"}, handle="avery").ok(200)
    amended = room.post("the TTL is 30s")
    room.api.patch(room.at("messages", amended["id"]), {"content": "the TTL is 300s"}, handle="avery").ok(200)
    for text in ("acknowledged", "given out", "unread"):
        room.post(f"@sec {text}")
    for _ in range(2):
        room.take("sec", session="s1")
    return room


def content(room: Room) -> list[Document]:
    """The history as far as it is the same on every hub."""
    page = room.page(all="true", limit=500)
    return [
        {name: value for name, value in message.items() if name not in {"seq", "room"}} for message in page["items"]
    ]


def refused(room: Room, body: bytes, name: str, **said: str) -> Reply:
    """An import that must make no room: none is there after it, and the name is free."""
    target = path("rooms", "import", name=name)
    headers = {"Content-Type": bundle.kind(body)} | {key.replace("_", "-"): value for key, value in said.items()}
    reply = room.api.post(target, body, handle=headers.pop("handle", "avery"), headers=headers)
    assert reply.status >= 400, reply
    room.api.get(path("rooms", name), handle="avery").refused(404, "room.not_found")
    return reply


@requirement("rooms:export", "rooms:import:unread")
def test_a_room_goes_to_another_hub_with_all_that_it_is(own_hub: Hub, room: Room, unique: Unique) -> None:
    """Texts, times, ids, authors, thread, event, amendment with its original; members; queues as they were."""
    lively(room)
    name = unique("moved")
    found = bundle.bring(own_hub.api, exported(room), name)
    assert (found["name"], found["created_by"], found["private"]) == (name, "avery", False)
    there = Room(own_hub.api, room.machine, name)
    assert content(there) == content(room)
    assert found["id"] != room.api.get(room.at()).json["id"]
    changed = next(message for message in there.page()["items"] if message["edited_at"])
    texts = there.api.get(there.at("messages", changed["id"], history="true")).ok(200).json["history"]
    assert [text["content"] for text in texts] == ["the TTL is 30s", "the TTL is 300s"]
    members = {row["handle"]: row for row in there.api.get(there.at()).json["members_list"]}
    assert set(members) == {"sec", "planner"}
    assert (members["sec"]["description"], members["sec"]["team"], members["sec"]["owner"]) == (
        "security", "core", "avery",
    )  # fmt: skip
    assert there.found(q="backup", status="in_progress") == ["old backup"]
    again, unread = there.take("sec", session="s9"), there.take("sec", session="s9")
    assert again is not None
    assert unread is not None
    assert (again["message"]["content"], again["redelivered"]) == ("@sec given out", True)
    assert (unread["message"]["content"], unread["redelivered"]) == ("@sec unread", False)
    assert there.take("sec", session="s9") is None
    there.post("@planner and it goes on")
    assert there.take("planner") is not None


@requirement("rooms:import:unread", "rooms:import:marked")
def test_an_import_survives_the_hub_and_is_marked_in_its_log(own_hub: Hub, own_room: Room) -> None:
    """Killed right after it was told that the room is there; who reads the log can tell what was brought."""
    lively(own_room)
    before, body = content(own_room), exported(own_room)

    def marked() -> bool:
        blocks = [content_of(file) for file in files(own_hub.home / "nats") if file.suffix == ".blk"]
        return any(b"Myc-Imported" in block for block in blocks if block)

    assert not marked()
    bundle.bring(own_hub.api, body, "copy")
    own_hub.restart()
    assert marked()
    copy = Room(own_hub.api, own_room.machine, "copy")
    assert content(copy) == before
    own_room.api.delete(own_room.at(), handle="avery").ok(204)
    assert content(copy) == before
    assert copy.member("sec")["unread"] == 2


@requirement("rooms:import:whole")
def test_a_bundle_that_was_cut_makes_no_room(room: Room, unique: Unique) -> None:
    """Wherever: between lines, in a line, without its end, empty; plain and packed."""
    lively(room)
    body = exported(room)
    plain = gzip.decompress(body) if bundle.kind(body) == "application/gzip" else body
    name = unique("cut")
    whole = plain.splitlines(keepends=True)
    cuts = [b"", whole[0], b"".join(whole[:-1]), b"".join(whole[:3]), plain[: len(plain) // 2], plain[:-3], plain[1:]]
    packed = gzip.compress(plain)
    cuts += [packed[: len(packed) // 2], packed[:-1], packed[:-4] + b"\0\0\0\0"]
    for cut in cuts:
        refused(room, cut, name)
    assert bundle.bring(room.api, plain, name)["name"] == name


@requirement("rooms:import:whole")
def test_a_bundle_that_was_altered_makes_no_room(room: Room, unique: Unique) -> None:
    """A byte, a line more or less, another order, another sum; also when the sum was made to fit."""
    lively(room)
    documents = bundle.lines(exported(room))
    facts = documents[1:-1]
    plain = b"".join(bundle.sealed(documents[:-1]))
    swapped = [facts[1], facts[0], *facts[2:]]
    unknown = {**facts[0], "type": "mycelium.rooms.v1.RoomDeleted"}
    garbled = {**facts[0], "data": "AAAA"}
    wrong_end = json.dumps({"end": len(facts), "sha256": "0" * 64}).encode()
    name = unique("altered")
    altered = {
        "a text": plain.replace(b'"entity":"message"', b'"entity":"massage"', 1),
        "a line less": b"".join(plain.splitlines(keepends=True)[:2] + plain.splitlines(keepends=True)[3:]),
        "a line twice": b"".join(plain.splitlines(keepends=True)[:2] + plain.splitlines(keepends=True)[1:]),
        "another sum": b"\n".join([*plain.splitlines()[:-1], wrong_end, b""]),
        "something after it": plain + plain,
        "another order": b"".join(bundle.sealed([documents[0], *swapped])),
        "an unknown fact": b"".join(bundle.sealed([documents[0], unknown, *facts[1:]])),
        "a fact that can't be read": b"".join(bundle.sealed([documents[0], garbled, *facts[1:]])),
        "another version": b"".join(bundle.sealed([{**documents[0], "version": 2}, *facts])),
        "another format": b"".join(bundle.sealed([{**documents[0], "format": "zip"}, *facts])),
        "no bundle": b"<html>hello</html>\n",
    }
    for what, body in altered.items():
        reply = refused(room, body, name)
        assert (reply.status, reply.json["slug"]) == (422, "room.import_refused"), what
    assert bundle.bring(room.api, plain, name)["name"] == name


@requirement("rooms:import:whole")
def test_a_refused_import_leaves_nothing_on_the_disk(own_hub: Hub, own_room: Room) -> None:
    """What came before the fault is erased like a room."""
    secret = "plugh-xyzzy-1174"
    own_room.post("hello")
    head = bundle.lines(exported(own_room))[0]
    at = datetime(2020, 9, 13, tzinfo=UTC)
    posts = [bundle.post(number, at, f"{secret} {number}") for number in range(1, 700)]
    body = b"".join(bundle.sealed([head, *posts]))
    refused(own_room, body[:-20], "refused")

    until(lambda: not holders(own_hub.home, secret), "nothing holds the text", 20)


@requirement("rooms:import:hidden")
def test_nobody_sees_a_room_before_it_is_complete(room: Room, unique: Unique) -> None:
    """Not its creator, not in a list, not by its name; when the line is cut there is nothing to see later either."""
    lively(room)
    plain = b"".join(bundle.sealed(bundle.lines(exported(room))[:-1]))
    for ends in (True, False):
        name = unique("hidden")
        there = urlsplit(room.api.url)
        head = (
            f"POST {path('rooms', 'import', name=name)} HTTP/1.1\r\nHost: {there.netloc}\r\nConnection: close\r\n"
            f"Mycelium-Handle: avery\r\nContent-Type: application/x-ndjson\r\nContent-Length: {len(plain)}\r\n\r\n"
        )
        with socket.create_connection((str(there.hostname), there.port or 80), timeout=20) as line:
            line.sendall(head.encode() + plain[:-10])
            for _ in range(5):
                room.api.get(path("rooms", name), handle="avery").refused(404, "room.not_found")
                listed = room.api.get(path("rooms"), handle="avery").ok(200).json["items"]
                assert name not in {row["name"] for row in listed}
            if ends:
                line.sendall(plain[-10:])
                assert b" 201 " in line.recv(100)
        if ends:
            room.api.get(path("rooms", name)).ok(200)
        else:
            until(lambda name=name: _is_free(room, name), "the name is free again")  # type: ignore[misc]


def _is_free(room: Room, name: str) -> bool:
    return room.api.post(path("rooms"), {"name": name}, handle="avery").status == 201


@requirement("rooms:import:who")
def test_only_the_operator_and_the_rooms_own_import_it(room: Room, unique: Unique) -> None:
    """Whoever calls on the hub's machine is the operator; through a proxy it takes the creator or a member."""
    lively(room)
    body, proxied = exported(room), "203.0.113.7"
    reply = refused(room, body, unique("foreign"), handle="stranger", X_Forwarded_For=proxied)
    assert reply.json["slug"] == "room.import_refused"
    for handle, headers in (("sec", {"X-Forwarded-For": proxied}), ("avery", {"Via": "1.1 x"}), ("stranger", {})):
        target = path("rooms", "import", name=unique("own"))
        said = {"Content-Type": bundle.kind(body), **headers}
        room.api.post(target, body, handle=handle, headers=said).ok(201)


@requirement("rooms:import:who", "private:members")
def test_a_private_room_stays_private(room: Room, unique: Unique) -> None:
    """Its members see it where it comes to, and nobody else."""
    private = Room(room.api, room.machine, unique("hidden"), "owner").create(private=True)
    private.join("member")
    private.post("the secret", sender="owner")
    name = unique("moved")
    bundle.bring(room.api, exported(private), name, handle="owner")
    assert Room(room.api, room.machine, name, "member").found() == ["the secret"]
    room.api.get(path("rooms", name), handle="stranger").refused(404, "room.not_found")


@requirement("rooms:import:whole")
def test_a_taken_or_wrong_name_is_refused(room: Room) -> None:
    """As for any new room; without a name it is the bundle's."""
    room.post("hello")
    body = exported(room)
    headers = {"Content-Type": bundle.kind(body)}
    room.api.post(IMPORT, body, handle="avery", headers=headers).refused(409, "room.name_taken")
    target = path("rooms", "import", name="a/b")
    room.api.post(target, body, handle="avery", headers=headers).refused(422, "name.invalid")
    room.api.delete(room.at(), handle="avery").ok(204)
    assert bundle.bring(room.api, body)["name"] == room.name
    assert room.contents() == ["hello"]


@requirement("rooms:export", "rooms:import:whole")
def test_export_and_import_by_command(machine: Machine, room: Room, tmp_path: Path, unique: Unique) -> None:
    """One file for one's own eyes; a cut one is told in a line."""
    lively(room)
    told = machine.run("room", "export", room.name, handle="avery", cwd=tmp_path).ok()
    file = tmp_path / f"{room.name}.mycelium-room.gz"
    assert str(file.name) in told.out
    assert file.stat().st_mode & 0o077 == 0
    assert machine.run("room", "export", room.name, handle="avery", cwd=tmp_path).status == 2
    name = unique("moved")
    made = machine.run("room", "import", str(file), "--name", name, handle="avery").ok()
    assert made.out.startswith(f"imported room {name}")
    assert content(Room(room.api, machine, name)) == content(room)
    cut = tmp_path / "cut"
    cut.write_bytes(file.read_bytes()[:-30])
    refused_ = machine.run("room", "import", str(cut), "--name", unique("cut"), handle="avery")
    assert (refused_.status, len(refused_.err.splitlines())) == (2, 1), refused_
    assert "cut" in refused_.err
    missing = machine.run("room", "export", unique("absent"), "-o", str(tmp_path / "x"), handle="avery")
    assert (missing.status, (tmp_path / "x").exists()) == (3, False)


@requirement("rooms:export")
@pytest.mark.parametrize("packed", [True, False])
def test_a_bundle_is_what_the_documents_say(room: Room, packed: bool) -> None:
    """Lines of JSON, packed when asked for: what the room is, its facts in order, their number and sum."""
    lively(room)
    accept = "application/gzip" if packed else "application/x-ndjson"
    reply = room.api.get(room.at("export"), handle="avery", headers={"Accept": accept}).ok(200)
    assert reply.headers["content-type"].startswith(accept)
    first, *facts, last = bundle.lines(reply.body)
    assert (first["format"], first["version"], first["room"]["name"]) == ("mycelium-room", 1, room.name)
    assert "folder" not in first["room"]
    assert last["end"] == len(facts)
    plain = gzip.decompress(reply.body) if packed else reply.body
    assert last["sha256"] == hashlib.sha256(plain[: plain.rstrip().rindex(b"\n") + 1]).hexdigest()
    assert [fact["sequence"] for fact in facts] == sorted(fact["sequence"] for fact in facts)
