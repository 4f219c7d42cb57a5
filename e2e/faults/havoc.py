"""The faults: what is done to a hub under load, as a seed says. Each does one thing and notes it."""

import asyncio
import contextlib
import json
import os
import random
import signal
from collections.abc import AsyncIterator

from e2e.faults import count
from e2e.faults.load import Load, Plan
from e2e.faults.record import Record, Verdict
from e2e.harness import Hub
from e2e.processes import children, is_running
from e2e.room import Room

HUB = "hub"
LONG = bool(os.environ.get("LONG"))


class Havoc:
    """One hub under fire, and the load on it."""

    def __init__(self, hub: Hub, load: Load) -> None:
        self.hub = hub
        self.load = load
        self.record = load.record
        self.random = random.Random(self.record.seed + 1)
        self.hit: dict[str, int] = {}  # the process that was hit last, by name

    def identify(self) -> None:
        """Whom this talks to: the hub that was started here, and processes of its own, each with its home in view."""
        running = json.loads(self.hub.hub_file.read_text())
        assert running["pid"] == self.hub.pid, f"the home belongs to another hub: {running}"
        own = children(self.hub.pid)
        for name, pid in self.victims().items():
            assert name == HUB or pid in own, f"{name} is process {pid}, which is none of this hub's: {own}"
        told = self.hub.api.get("/health").ok(200).json
        assert told["version"] == running["version"], told
        assert not count.history_of(self.load.room), "the room is not new"

    def victims(self) -> dict[str, int]:
        """Every process of the hub by name, as it says itself."""
        try:
            items = json.loads((self.hub.home / "run" / "processes.json").read_text())["items"]
        except (OSError, ValueError):
            nats = [pid for pid, command in children(self.hub.pid).items() if "nats-server" in command]
            items = [{"name": "nats", "pid": pid} for pid in nats]
        return {HUB: self.hub.pid, **{item["name"]: item["pid"] for item in items}}

    async def moment(self, most: int = 10) -> None:
        """Some posts pass."""
        await self.load.posts(self.random.randint(1, most))

    async def found(self, name: str) -> int:
        """The process of that name, once the one that was hit last has a successor."""

        def there() -> bool:
            pid = self.victims().get(name, 0)
            return bool(pid) and pid != self.hit.get(name) and is_running(pid)

        await self.load.until(there, f"{name} is there again")
        return self.victims()[name]

    async def kill(self, name: str, number: signal.Signals = signal.SIGKILL) -> None:
        """End a process; the hub brings it back, and the hub itself is started again at the same address."""
        if name == HUB:
            self.record.note(f"{number.name} hub")
            end = self.hub.kill if number is signal.SIGKILL else self.hub.stop
            await asyncio.to_thread(end)
            await asyncio.to_thread(self.hub.start)
            self.hit.clear()
            return
        pid = await self.found(name)
        self.record.note(f"{number.name} {name}, process {pid}")
        self.hit[name] = pid
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)

    async def pause(self, name: str, for_s: float) -> None:
        """Stop a process in its tracks for so long, as a machine that swaps does. Its connections stay open."""
        pid = self.hub.pid if name == HUB else await self.found(name)
        self.record.note(f"SIGSTOP {name}, process {pid}, for {for_s:.1f} s")
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
            try:
                await self.passes(for_s)
            finally:
                os.kill(pid, signal.SIGCONT)

    async def passes(self, for_s: float) -> None:
        """So long, while the load goes on."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(for_s):
                await self.load.over.wait()

    async def all_well(self) -> None:
        """Every process is back, and health is green."""
        for name in self.victims():
            await self.found(name)

        def green() -> bool:
            with contextlib.suppress(OSError):
                return bool(self.hub.api.get("/health").json["status"] == "ok")
            return False

        await self.load.until(green, "health is green")


@contextlib.asynccontextmanager
async def under_fire(hub: Hub, seed: int, plan: Plan | None = None, url: str = "") -> AsyncIterator[Havoc]:
    """A new room of the hub under load for the time of the block; then it is calmed, and everything is counted."""
    record = Record(seed)
    plan = plan or Plan()
    room = Room(hub.api, hub.machine, f"fire {seed} {random.SystemRandom().randrange(10**9)}").create()
    load = Load(room, url or hub.url, record, plan)
    room.join(*load.handles)
    havoc = Havoc(hub, load)
    havoc.identify()
    load.start()
    try:
        await load.posts(10)
        yield havoc
        record.note("calm")
        await load.end()
    except AssertionError as error:
        if isinstance(error, Verdict):
            raise
        raise Verdict("stuck", str(error), record) from error
    finally:
        await load.stop()
    await asyncio.to_thread(count.everything, Room(hub.api, hub.machine, room.name), record)
    await asyncio.to_thread(count.whole, hub, record)
