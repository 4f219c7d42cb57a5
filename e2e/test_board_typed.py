"""The board as it is typed at a terminal: names that are empty, a board that is longer than the screen."""

import re
import signal

from e2e.harness import Machine
from e2e.processes import Result
from e2e.requirements import requirement
from e2e.room import Room
from e2e.signing_in import Terminal
from e2e.test_memory import put
from e2e.waiting import until


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


@requirement("board:watch")
def test_a_watched_board_fits_the_screen(room: Room, machine: Machine) -> None:
    """What needs a person stays in sight, however long the board is; another size of the window is seen at once."""
    for number in range(12):
        put(room, f"work/{number}", f"Task {number}").ok(201)
    put(room, "decisions/ttl", "TTL of tokens?").ok(201)
    terminal = Terminal(machine, "board", "--filter", "all", "--watch", "-r", room.name)
    terminal.resize(80, 12)
    try:
        terminal.until(r"more lines; Ctrl-C ends it")
        last = _screen(terminal)
        assert len(last) <= 12
        assert last[0].startswith(f"{room.name}   1 need you")
        assert "TTL of tokens?" in last[3]
        assert last[-1] == "… 22 more lines; Ctrl-C ends it"
        put(room, "decisions/refunds", "Refund at once?").ok(201)
        terminal.until(r"Refund at once\?[^\x0c]*24 more lines")
        terminal.resize(80, 60)
        terminal.until(r"Task 0\b")
        until(lambda: "more lines" not in "".join(_screen(terminal)), "all of it is shown")
    finally:
        terminal.type("\x03")
        assert terminal.ended() == 128 + signal.SIGINT
        terminal.close()


def _screen(terminal: Terminal) -> list[str]:
    """The lines that were drawn last."""
    return re.sub(r"\x1b\[[0-9;]*m", "", terminal.shown.rpartition("\x1b[2J")[2]).rstrip("\n").split("\n")


@requirement("board:reserve:rest")
def test_what_is_over_keeps_nobody_from_the_rest(room: Room, machine: Machine) -> None:
    """All that is still there is given back, or renewed; what was lost is told, by a renewal's status, too."""
    room.join("sec", "bob")

    def run(*words: str, handle: str = "sec") -> Result:
        return machine.run("board", "reserve", *words, "-r", room.name, handle=handle)

    def lost_one() -> None:
        run("docs", "src").ok()
        run("docs/a", "--force", handle="bob").ok()
        run("--release", handle="bob").ok()

    lost_one()
    renewed = run("--renew", "--ttl", "2h").failed(1)
    assert renewed.out.startswith("✓ src — yours until")
    assert "the reservation of docs that this token is of has ended" in renewed.err
    lost_one()
    given_back = run("--release").ok()
    assert given_back.out == "✓ released src\n"
    assert "the reservation of docs that this token is of has ended" in given_back.err
    assert room.api.get(room.at("reservations"), handle="sec").ok(200).json["items"] == []
