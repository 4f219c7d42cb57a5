"""What is kept in the memory of several servers is made again when none of them leads it any more."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from pathlib import Path

import nats.errors
import nats.js.errors
import pytest

from mycelium_kernel import in_memory, run, subjects, tasks, testing
from mycelium_kernel.clock import system_clock
from mycelium_kernel.connections import Connection
from mycelium_kernel.in_memory import keep, keep_bucket, leave, look_after, open_bucket
from mycelium_kernel.run import Runtime
from services.kernel.tests import toy

BOUND_S = 60.0
BUCKET = "rooms_hints"


@contextlib.asynccontextmanager
async def connected(servers: list[testing.NatsServer], replicas: int) -> AsyncIterator[Connection]:
    connection = await Connection.open(testing.settings_of(servers, "rooms", replicas))
    try:
        yield connection
    finally:
        await connection.close()


@pytest.fixture
async def servers(tmp_path: Path) -> AsyncIterator[list[testing.NatsServer]]:
    """Three, with the stream of facts on each."""
    async with testing.nats_cluster(tmp_path / "nats") as servers, connected(servers, 3) as connection:
        await connection.prepare()
        yield servers


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits long, and all who look do so at the same moment."""
    for name, seconds in (("LOOK_S", 0.5), ("PATIENCE_S", 1.0), ("SPREAD_S", 0.0)):
        monkeypatch.setattr(in_memory, name, seconds)


async def leader(connection: Connection, stream: str) -> str:
    """The server that leads a stream; empty when none does."""
    try:
        info = await connection.jetstream.stream_info(stream)
    except (nats.js.errors.Error, nats.errors.Error):
        return ""
    return (info.cluster.leader if info.cluster else None) or ""


async def until(condition: Callable[[], Awaitable[object]]) -> None:
    async with asyncio.timeout(BOUND_S):
        while not await condition():  # noqa: ASYNC110 - what changes it is another process
            await asyncio.sleep(0.05)


@pytest.mark.timeout(180)
async def test_timers_without_a_leader_are_made_again_and_armed_anew(
    servers: list[testing.NatsServer], hurried: None, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """By two replicas that both look; health says so while it lasts, and each log once.

    The stream lies on two servers, of which the one is killed that leads it: the other may not lead alone.
    """
    fired: list[bytes] = []
    due = [system_clock() + timedelta(hours=1)]

    async def fire(_runtime: Runtime, _room: str, data: bytes) -> None:
        fired.append(data)

    async def arm(runtime: Runtime) -> None:
        await runtime.timers.arm(toy.ROOM, "a", due[0], b"a")

    async with contextlib.AsyncExitStack() as stack:
        connection = await stack.enter_async_context(connected(servers, 2))
        replicas = []
        for name in ("one", "two"):
            service = toy.service(on_timer=fire, arm=arm)
            replicas.append(await run.start(service, testing.settings_of(servers, "rooms", 2), tmp_path / name))
            stack.push_async_callback(replicas[-1].stop)
        await until(lambda: leader(connection, subjects.TIMER_STREAM))
        due[0] = system_clock() + timedelta(seconds=1)
        leads = await leader(connection, subjects.TIMER_STREAM)
        next(server for server in servers if server.name == leads).kill()

        async def told() -> bool:
            return any(subjects.TIMER_STREAM in replica.health()["detail"] for replica in replicas)

        async def well() -> bool:
            return bool(fired) and all(replica.health()["status"] == "ok" for replica in replicas)

        await until(told)
        await until(well)
    said = [one for one in caplog.messages if "made again and filled anew" in one]
    assert 1 <= len(said) <= len(replicas)


@pytest.mark.timeout(120)
async def test_who_fills_a_stream_is_told_when_it_is_another_one(
    servers: list[testing.NatsServer], hurried: None
) -> None:
    """Also when somebody else has made it again, and when it is gone altogether; until they want to hear no more."""
    made: list[str] = []

    def told() -> None:
        made.append("again")

    async with connected(servers, 3) as connection:
        await until(lambda: _opened(connection))
        keep_bucket(connection, BUCKET, told)
        looking = asyncio.create_task(look_after(connection, lambda *_: None))
        await toy.until(lambda: len(made) == 1)
        await connection.jetstream.delete_key_value(BUCKET)
        await until(lambda: _opened(connection))
        await toy.until(lambda: len(made) == 2)
        await connection.jetstream.delete_key_value(BUCKET)
        await toy.until(lambda: len(made) == 3)
        assert await leader(connection, subjects.bucket(BUCKET))
        leave(connection, told)
        await connection.jetstream.delete_key_value(BUCKET)
        await until(lambda: leader(connection, subjects.bucket(BUCKET)))
        await tasks.end([looking])
    assert len(made) == 3


async def _opened(connection: Connection) -> object:
    with contextlib.suppress(nats.js.errors.Error, nats.errors.Error):
        return await open_bucket(connection, BUCKET)
    return None


@pytest.mark.timeout(120)
async def test_what_can_not_be_made_now_is_tried_again(servers: list[testing.NatsServer], hurried: None) -> None:
    """A failure ends nobody's looking, and is told in health: not all servers are there, say."""
    tries: list[int] = []

    async def make() -> None:
        tries.append(len(tries))
        raise nats.errors.TimeoutError

    async with connected(servers, 3) as connection:
        keep(connection, "NOTHING", make)
        told: list[str] = []
        looking = asyncio.create_task(look_after(connection, lambda _part, fault, _for_s: told.append(fault)))
        await toy.until(lambda: len(tries) > 1 and told)
        await tasks.end([looking])
    assert "can't be made" in told[0]


async def test_a_server_alone_has_no_leader_to_lose(connection: Connection) -> None:
    """So there is nothing to look at."""
    keep_bucket(connection, BUCKET)
    async with asyncio.timeout(toy.BOUND_S):
        await look_after(connection, lambda *_: None)
