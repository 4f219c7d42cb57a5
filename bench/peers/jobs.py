"""The jobs, each told once for every product: what is timed, on a store that is empty when it begins."""

from __future__ import annotations

import asyncio
import contextlib
import random
import statistics
import uuid
from dataclasses import dataclass, field

from bench.harness import now_ms, quantile
from bench.peers.face import BOUND_S, Peer, Refused, Sender, running

PAUSE_S = 0.01
WARM = 5
RECEIVED, WOKEN, COLD = 50, 6, 4
IN_SEQUENCE, SENDERS, EACH = 1_000, 16, 60
KILLS, KILL_SENDERS = 5, 2
DEAD = (OSError, EOFError, RuntimeError, Refused)


def text(mark: str) -> str:
    """A message of ordinary length that can be known again."""
    return f"{mark} {'about the usual things of a working day ' * 5}"


@dataclass
class Seen:
    """What is told beside the table, over all rounds."""

    took: list[float] = field(default_factory=list)
    refused: int = 0
    acknowledged: int = 0
    lost: int = 0
    kills: int = 0

    def times(self) -> str:
        """How long a send took, and how many were refused."""
        told = f"a send took p50 {statistics.median(self.took):.1f} ms, p99 {quantile(self.took, 0.99):.1f} ms"
        return f"{told}, n {len(self.took):,}" + (f", refused {self.refused}" if self.refused else "")

    def losses(self) -> str:
        """Acknowledged and lost."""
        return f"{self.lost:,} of {self.acknowledged:,} acknowledged messages lost in {self.kills} kills"


async def receive(product: type[Peer]) -> list[float]:
    """From the first byte of a send until the waiting receiver has the message."""
    async with running(product) as peer:
        sender, receiver = await peer.sender(), await peer.receiver()
        samples = []
        for _ in range(WARM + RECEIVED):
            mark = uuid.uuid4().hex
            receiving = asyncio.create_task(receiver.until(mark))
            await asyncio.sleep(PAUSE_S)
            began = now_ms()
            sending = asyncio.create_task(sender.send(text(mark)))
            await asyncio.wait_for(receiving, BOUND_S)
            samples.append(now_ms() - began)
            await sending
        await sender.close()
        await receiver.close()
        return samples[WARM:]


async def wake(product: type[Peer]) -> list[float]:
    """From the send until a process that waited has exited with the message."""
    async with running(product) as peer:
        samples = [await _wake(peer) for _ in range(1 + WOKEN)]
        return samples[1:]


async def _wake(peer: Peer) -> float:
    command, environment = peer.waiting_command()
    process = await asyncio.create_subprocess_exec(
        *command, env=environment, cwd=peer.folder, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL
    )
    async with asyncio.timeout(BOUND_S):
        while not await peer.is_waiting():
            await asyncio.sleep(PAUSE_S)
        mark = uuid.uuid4().hex
        # A new one each time: servers close a connection that was silent for seconds.
        sender = await peer.sender()
        began = now_ms()
        await sender.send(text(mark))
        out, _ = await process.communicate()
        took = now_ms() - began
    assert process.returncode == 0, process.returncode
    assert mark.encode() in out, out[:500]
    await sender.close()
    await peer.taken()
    return took


async def cold(product: type[Peer]) -> list[float]:
    """One send by a new process, from its start to its end."""
    async with running(product) as peer:
        samples = []
        for _ in range(1 + COLD):
            mark = uuid.uuid4().hex
            began = now_ms()
            await peer.send_cold(text(mark))
            samples.append(now_ms() - began)
            assert mark in await peer.stored()
        return samples[1:]


async def rate(product: type[Peer], seen: Seen, senders: int, each: int) -> list[float]:
    """Sends a second of so many senders, each waiting for its answer before the next."""
    async with running(product) as peer:
        connected = await asyncio.gather(*(peer.sender(number) for number in range(senders)))
        for sender in connected:
            await sender.send(text("warm"))
        before = len(seen.took)

        async def one(sender: Sender) -> None:
            for number in range(each):
                began = now_ms()
                try:
                    await sender.send(text(str(number)))
                except Refused:
                    seen.refused += 1
                else:
                    seen.took.append(now_ms() - began)

        began = now_ms()
        await asyncio.gather(*(one(sender) for sender in connected))
        took = now_ms() - began
        await asyncio.gather(*(sender.close() for sender in connected))
        return [(len(seen.took) - before) / took * 1000]


async def killed(product: type[Peer], seen: Seen) -> list[float]:
    """Some kills -9 in the midst of sends, on one store; what was acknowledged is looked for after the last start."""
    async with running(product) as peer:
        acknowledged: list[str] = []
        for _ in range(KILLS):
            await _sends_until_killed(peer, acknowledged)
            await peer.start()
        stored = await peer.stored()
        seen.kills += KILLS
        seen.acknowledged += len(acknowledged)
        seen.lost += sum(mark not in stored for mark in acknowledged)
        return [float(len(acknowledged))]


async def _sends_until_killed(peer: Peer, acknowledged: list[str]) -> None:
    connected = await asyncio.gather(*(peer.sender(number) for number in range(KILL_SENDERS)))
    dead = asyncio.Event()

    async def one(sender: Sender) -> None:
        with contextlib.suppress(*DEAD):
            while not dead.is_set():
                mark = uuid.uuid4().hex
                await sender.send(text(mark))
                acknowledged.append(mark)

    sending = [asyncio.create_task(one(sender)) for sender in connected]
    await asyncio.sleep(random.uniform(0.3, 0.9))
    await peer.kill()
    dead.set()
    await asyncio.wait_for(asyncio.gather(*sending), BOUND_S)
    for sender in connected:
        with contextlib.suppress(OSError):
            await sender.close()


async def syncs(product: type[Peer], strace: str) -> float:
    """How many times a send makes the kernel write to the disk, counted from outside; what a claim is worth."""
    sends = 20
    async with running(product) as peer:
        sender = await peer.sender()
        await sender.send(text("warm"))
        pids = peer.pids()
        counted = peer.folder / "syncs"
        command = [strace, "-f", "-e", "trace=fsync,fdatasync", "-o", str(counted), *(f"-p{pid}" for pid in pids)]
        tracing = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE)
        assert tracing.stderr
        attached = 0
        async with asyncio.timeout(BOUND_S):
            while attached < len(pids):
                line = await tracing.stderr.readline()
                assert line, "strace can't attach"
                attached += b"attached" in line
            for number in range(sends):
                await sender.send(text(str(number)))
            tracing.terminate()
            await tracing.communicate()
        await sender.close()
        lines = counted.read_text(encoding="utf-8", errors="replace").splitlines()
        return sum("sync(" in line for line in lines) / sends
