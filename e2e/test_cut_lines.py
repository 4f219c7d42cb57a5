"""The line is cut after the hub has committed: the client tries again, and nothing happens twice."""

from pathlib import Path

from e2e.harness import Hub, Machine
from e2e.proxy import CuttingProxy
from e2e.requirements import requirement
from e2e.room import Room


@requirement("messages:key:cut-line")
def test_a_retried_post_is_stored_once(hub: Hub, room: Room, tmp_path: Path) -> None:
    """The command succeeds, and the answer it prints is the first one."""
    with CuttingProxy(hub.url, cuts=2) as proxy:
        sent = Machine(tmp_path / "cut", proxy.url).run("room", "send", "once", handle="ci", room=room.name).ok()
        assert [answer.split(b"\r\n")[0].split()[1] for answer in proxy.swallowed] == [b"201", b"201"]
    page = room.page()["items"]
    assert [message["content"] for message in page] == ["once"]
    assert sent.out.split()[1] == page[0]["id"][-8:]


@requirement("messages:key:cut-line")
def test_a_retried_room_is_created_once(hub: Hub, tmp_path: Path) -> None:
    """The retry of a create does not read that the name is taken."""
    with CuttingProxy(hub.url) as proxy:
        made = Machine(tmp_path / "cut", proxy.url).run("room", "create", "made-once", handle="ci").ok()
        assert len(proxy.swallowed) == 1
    assert "created room made-once" in made.out


@requirement("messages:key:cut-line", "await:vanished")
def test_a_delivery_whose_answer_was_lost_comes_again(hub: Hub, room: Room, tmp_path: Path) -> None:
    """The hub had given it out, nobody had it: the same wait under the same key gets it."""
    room.join("sec")
    room.post("@sec one")
    room.post("@sec two")
    with CuttingProxy(hub.url) as proxy:
        cut = Machine(tmp_path / "cut", proxy.url)
        turn = cut.run("await", "--timeout", "5", "--json", handle="sec", room=room.name).json
        assert len(proxy.swallowed) == 1
    assert turn["message"]["content"] == "@sec one"
    after = room.machine.run("await", "--timeout", "5", "--json", handle="sec", room=room.name).json
    assert after["message"]["content"] == "@sec two"
