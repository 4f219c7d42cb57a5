"""The hub with every service in processes of its own, and with three NATS servers."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator

import pytest

from mycelium_hub import processes, roster
from services.hub.tests import calls
from services.hub.tests.conftest import HubCommand, wait_for

Wait = Callable[[Callable[[], object]], None]
SPLIT = {"MYCELIUM_RUNTIME_SPLIT": "true", "MYCELIUM_RUNTIME_REPLICAS": "2"}
EVERYBODY = ["nats", "rooms", "rooms-2", "memory", "memory-2", "board", "board-2", "gateway", "gateway-2"]


def pids(hub: HubCommand) -> dict[str, int]:
    return {member.name: member.pid for member in roster.members(hub.home)}


@pytest.fixture(scope="module")
def _kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HubCommand]:
    """A home whose first hub ran as one process, and had a post."""
    hub = HubCommand(tmp_path_factory.mktemp("split") / "home")
    hub.start()
    calls.call(hub.url, "POST", "/api/rooms", {"name": "demo"})
    calls.post(hub.url, "together")
    hub("down")
    yield hub
    for pid in hub.processes():
        os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not hub.processes())


@pytest.fixture
def split(_kept: HubCommand) -> HubCommand:
    """A hub of nine processes that tests share while it runs: it costs as much as nine hubs."""
    if not _kept.home.running():
        _kept.start(**SPLIT)
    return _kept


def test_each_service_runs_in_as_many_processes_as_told(split: HubCommand) -> None:
    """One hub, one address, a process each, all of them in use."""
    before = len(calls.texts(split.url))
    for number in range(10):
        calls.post(split.url, f"{number}")

    assert list(pids(split)) == EVERYBODY
    assert len(calls.texts(split.url)) == before + 10
    _, health = calls.call(split.url, "GET", "/health")
    assert (health["status"], health["services"]["rooms"]["detail"]) == ("ok", "2 of 2 replicas answer")


def test_each_process_writes_a_log_that_is_found_by_the_services_name(split: HubCommand) -> None:
    """`logs rooms` shows every replica's."""
    shown = split("logs", "rooms", "--json", "--tail", "1000")
    names = {json.loads(line)["service"] for line in shown.stdout.splitlines()}
    assert names >= {"rooms-2"}
    assert names <= {"rooms", "rooms-2"}


def test_a_killed_process_is_started_again_and_the_hub_answers_all_the_time(split: HubCommand, wait: Wait) -> None:
    """Whoever dies, posts go on, health is well again, and the roster tells that it came back."""
    hub = split
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


def test_split_and_together_take_turns_on_one_home(split: HubCommand) -> None:
    """The same data, whichever way the services run; `down` ends every process."""
    assert calls.texts(split.url)[-1] == "together"
    calls.post(split.url, "apart")
    assert split("down").returncode == 0
    assert not split.processes()
    split.start()
    texts = calls.texts(split.url)
    assert (texts[0], texts[-1]) == ("apart", "together")
    split("down")


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


def test_replicas_without_split_are_refused_with_what_to_do(hub: HubCommand) -> None:
    """Not silently ignored."""
    done = hub("up", "--detach", "--port", "0", "--replicas", "2")
    assert done.returncode == 1
    assert "mycelium up --split" in done.stderr
