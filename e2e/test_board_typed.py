"""The board as it is typed at a terminal: names that are empty, a board that is longer than the screen."""

from e2e.harness import Machine
from e2e.requirements import requirement
from e2e.room import Room


@requirement("board:blank")
def test_an_empty_name_is_no_other_place(room: Room, machine: Machine) -> None:
    """What was meant for a thread is not posted in the channel, a part is not filed without its parent."""
    room.join("sec")

    def refused(*words: str) -> None:
        err = machine.run(*words, "-r", room.name, handle="sec").failed(2).err
        assert "is empty: say which" in err
        assert len(err.splitlines()) == 1

    refused("board", "send", "", "the key is under the mat")
    refused("respond", "--task", "", "the key is under the mat")
    refused("board", "new", "Pick storage", "--parent", "")
    refused("board", "log", "--by", "")
    assert room.page()["items"] == []
    machine.run("board", "new", "Pick storage", "-r", room.name, handle="sec").ok()
    refused("board", "claim", "pick-storage", "--to", "")
    (row,) = room.api.get(room.at("board", filter="ready"), handle="sec").ok(200).json["items"]
    assert (row["key"], row["holder"]) == ("work/pick-storage", None)
