"""Children are kept running, with growing pauses, and die with the one who keeps them."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from mycelium_hub import address, processes
from mycelium_hub.supervisor import PAUSE_FIRST_S, PAUSE_MOST_S, Child, ChildCommand, StartFailed, pause_after

BOUND_S = 60.0
Wait = Callable[[Callable[[], object]], None]
# Writes its process id, then stays.
STAYS = "import os, sys, signal; print(os.getpid(), file=open(sys.argv[1], 'a'), flush=True); signal.pause()"


def test_pauses_double_and_end_at_the_longest() -> None:
    """A child that dies at once is started ever more slowly, up to a bound."""
    pauses = [PAUSE_FIRST_S]
    for _ in range(10):
        pauses.append(pause_after(pauses[-1], ran_s=0.1))
    assert pauses[:4] == [0.05, 0.1, 0.2, 0.4]
    assert pauses[-1] == PAUSE_MOST_S


def test_a_long_run_forgives_what_was_before() -> None:
    """After ten healthy seconds the next pause is the first again."""
    assert pause_after(PAUSE_MOST_S, ran_s=10.0) == PAUSE_FIRST_S


def _pids(path: Path) -> list[int]:
    return [int(line) for line in path.read_text().splitlines()] if path.exists() else []


async def _until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(BOUND_S):
        while not condition():  # noqa: ASYNC110 - another process makes it so
            await asyncio.sleep(0.01)


async def _started(told: Path, times: int) -> None:
    await _until(lambda: len(_pids(told)) == times)


@pytest.fixture
async def child(tmp_path: Path) -> AsyncIterator[tuple[Child, Path]]:
    told = tmp_path / "pids"

    async def ready() -> None:
        await _until(lambda: _pids(told))

    made = Child(ChildCommand("child", [sys.executable, "-c", STAYS, str(told)], ready))
    yield made, told
    await made.stop()


async def test_a_killed_child_is_started_again(child: tuple[Child, Path]) -> None:
    """SIGKILL, and another one is there."""
    kept, told = child
    await kept.start()
    for count in (1, 2, 3):
        await _started(told, count)
        os.kill(_pids(told)[-1], signal.SIGKILL)
    await _started(told, 4)
    assert kept.restarts == 3


async def test_stopping_ends_the_child_for_good(child: tuple[Child, Path]) -> None:
    """A stopped child is gone when `stop` returns, and does not come back."""
    kept, told = child
    await kept.start()
    await kept.stop()
    assert kept.process is not None
    assert kept.process.returncode == -signal.SIGTERM
    assert not processes.command_line(_pids(told)[0])


async def _echo(port: int) -> None:
    """Return when the child on `port` greets, or nobody is there."""
    with contextlib.suppress(OSError):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        with contextlib.closing(writer):
            await reader.readline()


# Writes its process id, then greets whoever calls.
GREETS = """
import os, socket, sys
server = socket.create_server(("127.0.0.1", int(sys.argv[2])))
print(os.getpid(), file=open(sys.argv[1], "a"), flush=True)
while True:
    caller, _ = server.accept()
    caller.sendall(b"hello\\n")
    caller.close()
"""


@pytest.fixture
async def greeter(tmp_path: Path) -> AsyncIterator[tuple[Child, Path]]:
    told, port = tmp_path / "pids", address.free_ports(1)[0]

    async def ready() -> None:
        await _until(lambda: _pids(told))

    command = [sys.executable, "-c", GREETS, str(told), str(port)]
    made = Child(ChildCommand("greeter", command, ready, answers=lambda: _echo(port), look_s=0.3))
    await made.start()
    yield made, told
    await made.stop()


async def test_a_frozen_child_is_killed_and_started_again(greeter: tuple[Child, Path]) -> None:
    """It runs, but answers nobody for five looks; a working one is left alone meanwhile."""
    kept, told = greeter
    await asyncio.wait_for(_started(told, 1), BOUND_S)
    os.kill(_pids(told)[0], signal.SIGSTOP)
    await _started(told, 2)
    assert kept.restarts == 1
    assert not processes.command_line(_pids(told)[0])


async def test_stopping_does_not_wait_for_a_frozen_child(greeter: tuple[Child, Path]) -> None:
    """It would not hear the signal, so it is killed at once."""
    kept, told = greeter
    os.kill(_pids(told)[0], signal.SIGSTOP)
    async with asyncio.timeout(5):
        await kept.end_if_frozen()
        assert kept.process is not None
        assert kept.process.returncode == -signal.SIGKILL
        await kept.stop()
    assert len(_pids(told)) == 1


async def test_a_child_can_be_started_anew(greeter: tuple[Child, Path]) -> None:
    """In its own way, and once."""
    kept, told = greeter
    await kept.restart()
    await _started(told, 2)
    assert kept.restarts == 1


async def test_a_child_that_ends_before_it_is_ready_fails_the_start() -> None:
    """The first start has to succeed; the reason is told instead of trying for ever."""

    async def never() -> None:
        await asyncio.Event().wait()

    failing = Child(ChildCommand("child", [sys.executable, "-c", "raise SystemExit(3)"], never))
    with pytest.raises(StartFailed, match="child ended with status 3 before it was ready"):
        await failing.start()


def test_a_child_dies_with_a_parent_that_was_killed(tmp_path: Path, wait: Wait) -> None:
    """The kernel ends it, whatever the parent could still do."""
    told = tmp_path / "pids"
    parent = f"""
import subprocess, sys, signal
from mycelium_hub import address, processes
subprocess.Popen([sys.executable, "-c", {STAYS!r}, {str(told)!r}], preexec_fn=processes.dies_with_parent())
signal.pause()
"""
    with subprocess.Popen([sys.executable, "-c", parent]) as process:
        wait(lambda: _pids(told))
        process.kill()
    wait(lambda: not processes.command_line(_pids(told)[0]))
