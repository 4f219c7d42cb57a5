"""A room in use: posters, agents that wait, readers that follow; each goes on whatever happens to the hub.

They behave as good clients do: the same key until there is an answer, the last id when a line is cut. Nothing but a
cut line, 503 and a lost race is a reason to try again. All in one event loop, so that the load is cheap.
"""

import asyncio
import contextlib
import json
import random
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, Self
from urllib.parse import urlsplit

from e2e import crowd
from e2e.faults.record import Given, Posted, Record
from e2e.room import Document, Room

AGAIN = {0, 503}
ONE_POST_S = 90.0
ANSWER_S = 15.0
WAIT_S = 2.0
CAUGHT_UP_S = 60.0


@dataclass(frozen=True)
class Plan:
    """How many of each, and how often: pauses between two posts are up to `pause_s`."""

    posters: int = 6
    agents: int = 3
    readers: int = 3
    pause_s: float = 0.05
    mention_every: int = 5
    again: frozenset[int] = frozenset(AGAIN)


@dataclass
class Load:
    """Everybody who uses one room. `url` is where they call: the hub, or a proxy before it."""

    room: Room
    url: str
    record: Record
    plan: Plan = field(default_factory=Plan)

    def __post_init__(self) -> None:
        self.random = random.Random(self.record.seed)
        self.enough = asyncio.Event()
        self.over = asyncio.Event()
        self.posting: list[asyncio.Task[None]] = []
        self.others: list[asyncio.Task[None]] = []

    @property
    def handles(self) -> list[str]:
        """The agents that are mentioned."""
        return [f"agent{number}" for number in range(self.plan.agents)]

    def start(self) -> None:
        """Everybody begins; readers first, so that they see all."""
        self.others = [self._begin(self._follow(f"reader{number}")) for number in range(self.plan.readers)]
        self.others += [self._begin(self._take_part(handle)) for handle in self.handles]
        self.posting = [self._begin(self._post_on(f"poster{number}")) for number in range(self.plan.posters)]

    def _begin(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        return asyncio.create_task(work)

    async def end(self) -> None:
        """No more posts; return when all is read and given, or has been long enough in coming."""
        self.enough.set()
        await asyncio.gather(*self.posting)
        with contextlib.suppress(AssertionError):  # what is missing is found by those who count
            await self.until(self._has_all, "everything is read and given", CAUGHT_UP_S)
        self.over.set()
        await asyncio.gather(*self.others)

    async def stop(self) -> None:
        """Whatever happened, nobody goes on."""
        tasks = self.posting + self.others
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _has_all(self) -> bool:
        read = all(len(set(ids)) >= self.record.count for ids in self._reads())
        return read and all(
            self.record.mentions(handle) <= {given.message for given in self.record.given[handle]}
            for handle in self.handles
        )

    def _reads(self) -> list[list[str]]:
        return [self.record.read[f"reader{number}"] for number in range(self.plan.readers)]

    async def until(self, look: Callable[[], object], what: str, within_s: float = 90.0) -> None:
        """Return as soon as `look` is true; whoever of the load has failed fails here."""
        end_s = time.monotonic() + within_s
        while not look():
            for task in self.posting + self.others:
                if task.done() and not task.cancelled() and (error := task.exception()):
                    raise error
            assert time.monotonic() < end_s, f"not within {within_s:g} s: {what}"
            await asyncio.sleep(0.02)

    async def posts(self, more: int) -> None:
        """Return when so many more posts were acknowledged."""
        wanted = self.record.count + more
        await self.until(lambda: self.record.count >= wanted, f"{more} more posts", ONE_POST_S)

    async def rest(self, most_s: float, ends: asyncio.Event | None = None) -> None:
        """A pause as the seed says, cut short by the end."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self.random.uniform(0, most_s)):
                await (ends or self.over).wait()

    # Those who post.

    async def _post_on(self, name: str) -> None:
        await self.until(lambda: all(f"reader{n}" in self.record.read for n in range(self.plan.readers)), "readers")
        while not self.enough.is_set():
            number = len(self.record.posted[name])
            mentioned = f"@{self.random.choice(self.handles)} " if number % self.plan.mention_every == 0 else ""
            began_s, content = time.monotonic(), f"{mentioned}{name}.{number}"
            message = await self.post(content, name, key=f"{self.record.seed} {content}")
            self.record.posted[name].append(Posted(message["id"], content, began_s, time.monotonic()))
            await self.rest(self.plan.pause_s, self.enough)

    async def post(self, content: str, sender: str, key: str) -> Document:
        """The stored message, however often it has to be asked for."""
        found: Document = (await self.insist("POST", self.room.at("messages"), {"content": content}, sender, key)).ok
        return found

    async def insist(
        self, method: str, target: str, body: object, handle: str, key: str, session: str = ""
    ) -> "Insisted":
        """The first answer that is none of a passing trouble."""
        sent = crowd.request(self.url, method, target, body, handle, key, session)
        end_s = time.monotonic() + ONE_POST_S
        while True:
            self.record.tries += 1
            answer = await crowd.ask(self.url, sent, ANSWER_S)
            lost_race = answer.status == 409 and json.loads(answer.body)["slug"] == "conflict"
            if answer.status not in self.plan.again and not lost_race:
                return Insisted(answer)
            assert time.monotonic() < end_s, f"{method} {target} {body} was never answered: {answer}"
            await asyncio.sleep(0.02)

    # Those who wait.

    async def _take_part(self, handle: str) -> None:
        """Sessions of an agent, one after the other: some end in order, some in the middle of a call."""
        number = 0
        while not self.over.is_set():
            number += 1
            session = f"{handle}.{number}"
            for call in range(self.random.randint(1, 8)):
                await self._wait_once(handle, session, f"{session}.{call}")
            if self.random.random() < 0.5:
                await self._wait_and_die(handle, session)

    async def _wait_once(self, handle: str, session: str, key: str) -> None:
        if self.over.is_set():
            return
        answer = await self.insist("POST", self.room.at("await"), self._waiting(handle), handle, key, session)
        if answer.status == 204:
            return
        turn = answer.ok
        given = Given(turn["message"]["id"], session, turn["attempt"], turn["redelivered"])
        self.record.given[handle].append(given)

    async def _wait_and_die(self, handle: str, session: str) -> None:
        """The process ends before it has read its answer: nothing of that session ever calls again."""
        asked = crowd.request(
            self.url, "POST", self.room.at("await"), self._waiting(handle), handle, f"{session} dies", session
        )
        there = urlsplit(self.url)
        with contextlib.suppress(OSError, TimeoutError):
            _, writer = await asyncio.open_connection(there.hostname, there.port)
            writer.write(asked)
            await self.rest(0.3)
            writer.transport.abort()

    def _waiting(self, handle: str) -> Document:
        return {"handle": handle, "timeout_s": WAIT_S, "confirm": False}

    # Those who read.

    async def _follow(self, name: str) -> None:
        """Read live as a browser does: resume by the last id whenever the line is cut, or for no reason."""
        last_id = ""
        while not self.over.is_set():
            with contextlib.suppress(OSError, TimeoutError, EOFError):
                async with asyncio.timeout(self.random.uniform(0.2, 8.0)):
                    async for event in events(self.url, self.room.at("stream"), last_id):
                        assert event.get("event") != "reset", event
                        last_id = event.get("id", last_id)
                        seen = self.record.read[name]  # is there as soon as the reader has a place to resume from
                        if event.get("event") == "message":
                            seen.append(json.loads(event["data"])["id"])
            self.record.connects += 1
            await asyncio.sleep(0.01)


class Insisted(crowd.Answer):
    """An answer that was waited for."""

    def __new__(cls, answer: crowd.Answer) -> Self:
        """The same answer."""
        return super().__new__(cls, *answer)

    @property
    def ok(self) -> Document:
        """Its document, when it is one."""
        assert self.status in {200, 201}, f"{self.status}: {self.body[:500]!r}"
        found: Document = json.loads(self.body)
        return found


async def events(url: str, target: str, last_id: str = "") -> AsyncIterator[dict[str, str]]:
    """The events of one live stream until its line is cut; the first is its place, without a type."""
    there = urlsplit(url)
    reader, writer = await asyncio.open_connection(there.hostname, there.port)
    try:
        lines = [f"GET {target} HTTP/1.1", f"Host: {there.netloc}", "Accept: text/event-stream"]
        lines += [f"Last-Event-ID: {last_id}"] if last_id else []
        writer.write("\r\n".join([*lines, "", ""]).encode())
        head = await reader.readuntil(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 200"):
            assert head.startswith(b"HTTP/1.1 503"), head
            return
        text = b""
        while size := int(await reader.readuntil(b"\r\n"), 16):
            text += (await reader.readexactly(size + 2))[:-2]
            *whole, text = text.split(b"\n\n")
            for event in whole:
                rows = [row.partition(": ") for row in event.decode().split("\n") if not row.startswith(":")]
                if rows:
                    yield {name: value for name, _, value in rows}
    finally:
        writer.transport.abort()
