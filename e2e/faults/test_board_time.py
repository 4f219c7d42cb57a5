"""Claims and concerns end by their time, whatever happens to the hub and to its clock meanwhile."""

import json
from pathlib import Path

import pytest

from e2e.faults.builds import CLOCK, switched_on
from e2e.faults.conftest import MakeHub
from e2e.requirements import requirement
from e2e.room import Room
from e2e.tasks import Tasks
from e2e.waiting import until

pytestmark = [pytest.mark.faults, pytest.mark.timeout(180)]
HOUR_S = 3600
DAY_S = 24 * HOUR_S


@requirement("board:time")
def test_a_claim_ends_by_its_time_though_the_clock_jumps_and_the_hub_is_down(make_hub: MakeHub, tmp_path: Path) -> None:
    """An hour forwards and back again; then the hub is away for an hour. Old tokens are refused ever after.

    1. The clock jumps: half an hour is over, another claims it, once it is told.
    2. It jumps back: the other one holds it still; a claim of meanwhile lasts until its own end.
    3. The hub is killed, and its claim's time is over when it comes back.
    """
    clock = tmp_path / "clock.json"
    hub = make_hub(switched_on(CLOCK) | {"E2E_CLOCK": str(clock)})
    room = Room(hub.api, hub.machine, "time").create()
    room.join("sec", "bob")
    tasks = Tasks(room)
    for key in ("work/jump", "work/quiet", "work/meanwhile", "work/down"):
        tasks.write(key, status="open")
    old = tasks.do("claim", "work/jump", "sec").ok(200).json["token"]
    quiet = tasks.do("claim", "work/quiet", "sec").ok(200).json["token"]

    clock.write_text(json.dumps({"mycelium_": HOUR_S}))
    until(lambda: tasks.row("work/jump")["holder"] is None, "it is over")
    new = tasks.do("claim", "work/jump", "bob").ok(200).json
    assert (new["holder"], new["token"] > old) == ("bob", True)
    meanwhile = tasks.do("claim", "work/meanwhile", "bob").ok(200).json["token"]
    assert tasks.refused_under(old, "work/jump", "sec") == ["lease.lost"] * 3
    until(lambda: sorted(tasks.notices("work/quiet")) == ["claimed", "expired", "filed"], "it was told once")

    clock.write_text(json.dumps({"mycelium_": 0}))
    until(lambda: tasks.do("renew", "work/jump", "bob", token=new["token"]).status == 200, "the clocks agree")
    assert tasks.do("claim", "work/jump", "sec").refused(409, "claim.held")["holder"] == "bob"
    assert tasks.refused_under(old, "work/jump", "sec") == ["lease.lost"] * 3
    assert tasks.refused_under(quiet, "work/quiet", "sec") == ["lease.lost"] * 3
    assert tasks.do("claim", "work/meanwhile", "sec").refused(409, "claim.held")["holder"] == "bob"
    tasks.do("renew", "work/meanwhile", "bob", token=meanwhile).ok(200)

    down = tasks.do("claim", "work/down", "sec").ok(200).json["token"]
    hub.kill()
    clock.write_text(json.dumps({"mycelium_": HOUR_S}))
    hub.start()
    assert tasks.row("work/down")["holder"] is None
    assert tasks.refused_under(down, "work/down", "sec") == ["lease.lost"] * 3
    until(lambda: sorted(tasks.notices("work/down")) == ["claimed", "expired", "filed"], "it was told once")
    assert tasks.do("claim", "work/down", "bob").ok(200).json["token"] > down


@requirement("board:concerns")
def test_a_concern_that_nobody_takes_up_for_seven_days_is_closed(make_hub: MakeHub, tmp_path: Path) -> None:
    """By the hub, in the document too; what was held or changed meanwhile begins anew, and other tasks stay open."""
    clock = tmp_path / "clock.json"
    hub = make_hub(switched_on(CLOCK) | {"E2E_CLOCK": str(clock)})
    room = Room(hub.api, hub.machine, "worries").create()
    room.join("sec")
    tasks = Tasks(room)
    for key in ("work/worry", "work/held", "work/changed"):
        tasks.write(key, status="open", kind="concern")
    tasks.write("work/task", status="open")
    tasks.do("claim", "work/held", "sec").ok(200)

    clock.write_text(json.dumps({"mycelium_": 6 * DAY_S}))
    until(lambda: tasks.row("work/held")["holder"] is None, "six days are over")
    until(lambda: "expired" in tasks.notices("work/held"), "its end is told")
    tasks.write("work/changed", status="open", kind="concern", priority="high")
    assert {tasks.row(key)["status"] for key in ("work/worry", "work/held", "work/changed")} == {"open"}

    clock.write_text(json.dumps({"mycelium_": 8 * DAY_S}))
    until(lambda: tasks.row("work/worry")["status"] == "dismissed", "seven days are over")
    until(lambda: sorted(tasks.notices("work/worry")) == ["expired", "filed"], "it is told once")
    found = until(
        lambda: (one := tasks.document("work/worry"))["meta"]["status"] == "dismissed" and one, "its document"
    )
    assert found["updated_by"] == "hub"
    assert {tasks.row(key)["status"] for key in ("work/held", "work/changed", "work/task")} == {"open"}
