"""The hub with every service in processes of its own, and with three NATS servers."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable

import pytest

from mycelium_hub import processes, roster
from services.hub.tests import calls
from services.hub.tests.conftest import HubCommand

Wait = Callable[[Callable[[], object]], None]
SPLIT = {"MYCELIUM_RUNTIME_SPLIT": "true", "MYCELIUM_RUNTIME_REPLICAS": "2"}
EVERYBODY = ["nats", "rooms", "rooms-2", "memory", "memory-2", "board", "board-2", "gateway", "gateway-2"]


def pids(hub: HubCommand) -> dict[str, int]:
    return {member.name: member.pid for member in roster.members(hub.home)}


def test_each_service_runs_in_as_many_processes_as_told_and_all_end_with_the_hub(hub: HubCommand) -> None:
    """One hub, one address, a process each; `down` ends them all."""
    hub.start(**SPLIT)
    calls.call(hub.url, "POST", "/api/rooms", {"name": "demo"})
    for number in range(10):
        calls.post(hub.url, f"{number}")

    assert list(pids(hub)) == EVERYBODY
    assert len(calls.texts(hub.url)) == 10
    _, health = calls.call(hub.url, "GET", "/health")
    assert (health["status"], health["services"]["rooms"]["detail"]) == ("ok", "2 of 2 replicas answer")
    assert hub("down").returncode == 0
    assert not hub.processes()


def test_a_killed_process_is_started_again_and_the_hub_answers_all_the_time(hub: HubCommand, wait: Wait) -> None:
    """Whoever dies, posts go on, health is well again, and the roster tells that it came back."""
    hub.start(**SPLIT)
    calls.call(hub.url, "POST", "/api/rooms", {"name": "demo"})
    for name in EVERYBODY:
        killed = pids(hub)[name]
        os.kill(killed, signal.SIGKILL)
        wait(lambda killed=killed: not processes.command_line(killed))  # type: ignore[misc]
        wait(lambda: _posts(hub))
        wait(lambda name=name, killed=killed: pids(hub).get(name, killed) != killed)  # type: ignore[misc]
        wait(lambda: _is_well(hub))
    assert {member.name: member.restarts for member in roster.listed(hub.home)} == dict.fromkeys(EVERYBODY, 1)


def _is_well(hub: HubCommand) -> bool:
    try:
        return bool(calls.call(hub.url, "GET", "/health")[1]["status"] == "ok")
    except calls.LOST:
        return False


def _posts(hub: HubCommand) -> bool:
    """Whether a post is taken; the connection of one that a killed gateway held is cut, an election takes seconds."""
    try:
        status, _ = calls.call(hub.url, "POST", "/api/rooms/demo/messages", {"content": "on"})
    except calls.LOST:
        return False
    return status == calls.CREATED


def test_three_servers_keep_each_fact_and_one_may_be_gone(hub: HubCommand, wait: Wait) -> None:
    """With three servers a log survives the loss of one of them, store and all."""
    hub.start(MYCELIUM_RUNTIME_NATS_SERVERS="3")
    calls.call(hub.url, "POST", "/api/rooms", {"name": "demo"})
    calls.post(hub.url, "kept")
    os.kill(pids(hub)["nats-2"], signal.SIGSTOP)
    wait(lambda: _posts(hub))

    assert [store.name for store in hub.home.stores] == ["nats", "nats-2", "nats-3"]
    assert calls.texts(hub.url)[-1] == "kept"


@pytest.mark.parametrize(("first", "then"), [("1", "3"), ("3", "1")])
def test_a_home_stays_with_its_number_of_servers(hub: HubCommand, first: str, then: str) -> None:
    """A log that one server keeps is not shown as an empty one by three."""
    hub.start(MYCELIUM_RUNTIME_NATS_SERVERS=first)
    hub("down")
    done = hub("up", "--detach", "--port", "0", "--nats-servers", then)
    assert done.returncode == 1
    assert "stays with that" in done.stderr


def test_split_and_together_take_turns_on_one_home(hub: HubCommand) -> None:
    """The same data, whichever way the services run."""
    hub.start(**SPLIT)
    calls.call(hub.url, "POST", "/api/rooms", {"name": "demo"})
    calls.post(hub.url, "apart")
    hub("down")
    hub.start()
    calls.post(hub.url, "together")
    hub("down")
    hub.start(**SPLIT)
    assert calls.texts(hub.url) == ["together", "apart"]


def test_each_process_writes_a_log_that_is_found_by_the_services_name(hub: HubCommand) -> None:
    """`logs rooms` shows every replica's."""
    hub.start(**SPLIT)
    shown = hub("logs", "rooms", "--json")
    names = {json.loads(line)["service"] for line in shown.stdout.splitlines()}
    assert names == {"rooms", "rooms-2"}


def test_replicas_without_split_are_refused_with_what_to_do(hub: HubCommand) -> None:
    """Not silently ignored."""
    done = hub("up", "--detach", "--port", "0", "--replicas", "2")
    assert done.returncode == 1
    assert "mycelium up --split" in done.stderr
