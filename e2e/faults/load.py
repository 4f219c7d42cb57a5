"""A room in use: posters, agents that wait, readers that follow; each goes on whatever happens to the hub.

They behave as good clients do: the same key until there is an answer, the last id when a line is cut. Nothing but a
cut line, 503 and a lost race is a reason to try again. All in one event loop, so that the load is cheap.
"""

import asyncio
import contextlib
import functools
import json
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from e2e import crowd
from e2e.faults.calls import Insisted, events
from e2e.faults.count import one_winner
from e2e.faults.record import Given, Posted, Record
from e2e.room import Document, Room
from e2e.web import path

ONE_POST_S = 90.0
ANSWER_S = 15.0
WAIT_S = 2.0
QUIET_S = 12.0  # when nothing more has come for so long, it does not come any more


@dataclass(frozen=True)
class Plan:
    """How many of each, and how often: pauses between two posts are up to `pause_s`.

    An agent has one session at a time; a pair is an agent with two. Rivals want the same name for a room at once.
    """

    posters: int = 6
    agents: int = 2
    pairs: int = 1
    rivals: int = 3
    races: int = 1  # for how many names at once
    readers: int = 3
    calls: int = 8  # at most in one session of an agent; half of the sessions die within one more
    pause_s: float = 0.05
    mention_every: int = 5
    broadcast: bool = False  # mentions are of everybody
    follow_s: float = 8.0  # the longest that a reader stays before it hangs up and comes back
    again: frozenset[int] = frozenset({0, 503})

    @property
    def agent_names(self) -> list[str]:
        """Who is mentioned and takes turns alone."""
        return [f"agent{number}" for number in range(self.agents)]

    @property
    def pair_names(self) -> list[str]:
        """Who is mentioned and asks twice at once."""
        return [f"pair{number}" for number in range(self.pairs)]

    @property
    def reader_names(self) -> list[str]:
        """Who follows the room live."""
        return [f"reader{number}" for number in range(self.readers)]


@dataclass
class Load:
    """Everybody who uses one room. `url` is where they call: the hub, or a proxy before it."""

    room: Room
    url: str
    record: Record
    plan: Plan = field(default_factory=Plan)

    def __post_init__(self) -> None:
        self.random = random.Random(self.record.seed)
        self.handles = self.plan.agent_names + self.plan.pair_names
        self.enough = asyncio.Event()
        self.over = asyncio.Event()
        self.posting: list[asyncio.Task[None]] = []
        self.others: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Everybody begins; readers first, so that they see all."""
        works = [self._follow(name) for name in self.plan.reader_names]
        works += [self._take_part(name, name) for name in self.plan.agent_names]
        works += [self._take_part(name, f"{name}{side}") for name in self.plan.pair_names for side in "ab"]
        self.others = [asyncio.create_task(work) for work in works]
        works = [self._post_on(f"poster{number}") for number in range(self.plan.posters)]
        works += [self._race(f"race {number}") for number in range(self.plan.races if self.plan.rivals else 0)]
        self.posting = [asyncio.create_task(work) for work in works]

    async def end(self) -> None:
        """No more posts; return when all is read and given, or nothing more comes."""
        self.enough.set()
        await asyncio.gather(*self.posting)
        seen = -1
        while seen < self._seen() and not self._has_all():
            seen = self._seen()
            with contextlib.suppress(AssertionError):  # what is missing is found by those who count
                await self.until(self._has_all, "everything is read and given", QUIET_S)
        self.over.set()
        await asyncio.gather(*self.others)

    async def stop(self) -> None:
        """Whatever happened, nobody goes on."""
        tasks = self.posting + self.others
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _seen(self) -> int:
        return sum(len(seen) for kind in (self.record.read, self.record.given) for seen in kind.values())

    def _has_all(self) -> bool:
        read = all(len(set(self.record.read[name])) >= self.record.count for name in self.plan.reader_names)
        return read and all(
            self.record.mentions(handle) <= {given.message for given in self.record.given[handle]}
            for handle in self.handles
        )

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

    async def rest(self, most_s: float, ends: asyncio.Event) -> None:
        """A pause as the seed says, cut short by an end."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self.random.uniform(0, most_s)):
                await ends.wait()

    async def insist(
        self, method: str, target: str, body: object, handle: str, key: str, session: str = ""
    ) -> Insisted:
        """The first answer that tells of no passing trouble, however often it has to be asked for."""
        sent = crowd.request(self.url, method, target, body, handle, key, session)
        end_s = time.monotonic() + ONE_POST_S
        while True:
            self.record.tries += 1
            answer = Insisted(await crowd.ask(self.url, sent, ANSWER_S))
            if answer.status not in self.plan.again and answer.slug != "conflict":
                return answer
            assert time.monotonic() < end_s, f"{method} {target} {body} was never answered: {answer}"
            await asyncio.sleep(0.02)

    # Those who write.

    async def _post_on(self, name: str) -> None:
        await self.until(lambda: self.record.read.keys() >= set(self.plan.reader_names), "readers have their places")
        while not self.enough.is_set():
            number = len(self.record.posted[name])
            mentions = self.handles and number % self.plan.mention_every == 0
            handle = "all" if self.plan.broadcast else self.random.choice(self.handles or [""])
            mentioned = f"@{handle} " if mentions else ""
            await self.post(f"{mentioned}{name}.{number}", name)
            await self.rest(self.plan.pause_s, self.enough)

    async def post(self, content: str, name: str) -> None:
        """Post it until it is acknowledged."""
        began_s, key = time.monotonic(), f"{self.record.seed} {content}"
        message = (await self.insist("POST", self.room.at("messages"), {"content": content}, name, key)).document
        self.record.posted[name].append(Posted(message["id"], content, began_s, time.monotonic()))

    async def _race(self, word: str) -> None:
        """Several create a room of the same name at once, again and again; the name is one that nobody had."""
        number = 0
        while not self.enough.is_set():
            number += 1
            name = f"{self.room.name} {word} {number}"
            rivals = [f"rival{one}" for one in range(self.plan.rivals)]
            asked = [self.insist("POST", path("rooms"), {"name": name}, rival, f"{name} {rival}") for rival in rivals]
            answers = await asyncio.gather(*asked)
            self.record.won[name] = [answer.document["id"] for answer in answers if answer.slug != "room.name_taken"]
            one_winner(self.record)  # at once: with two, a service may have nothing more to say
            await self.rest(self.plan.pause_s * 10, self.enough)

    # Those who wait.

    async def _take_part(self, handle: str, name: str) -> None:
        """Sessions of an agent, one after the other: some end in order, some in the middle of a call."""
        number = 0
        while not self.over.is_set():
            number += 1
            session = f"{name}.{number}"
            for call in range(self.random.randint(1, self.plan.calls)):
                await self._wait_once(handle, session, f"{session}.{call}")
            if self.random.random() < 0.5:
                await self._wait_and_die(handle, session)

    async def _wait_once(self, handle: str, session: str, key: str) -> None:
        if self.over.is_set():
            return
        body = {"handle": handle, "timeout_s": WAIT_S}
        answer = await self.insist("POST", self.room.at("await"), body, handle, key, session)
        if answer.status != 204:
            turn = answer.document
            given = Given(turn["message"]["id"], session, turn["attempt"], turn["redelivered"])
            self.record.given[handle].append(given)

    async def _wait_and_die(self, handle: str, session: str) -> None:
        """The process ends before it has read its answer; nobody of that session ever calls again."""
        body: Document = {"handle": handle, "timeout_s": WAIT_S}
        asked = crowd.request(self.url, "POST", self.room.at("await"), body, handle, f"{session} dies", session)
        there = urlsplit(self.url)
        with contextlib.suppress(OSError):
            _, writer = await asyncio.open_connection(there.hostname, there.port)
            writer.write(asked)
            await self.rest(0.3, self.over)
            writer.transport.abort()

    # Those who read.

    async def _follow(self, name: str) -> None:
        """Read live as a browser does: resume by the last id whenever the line is cut, or for no reason."""
        last_id = ""
        while not self.over.is_set():
            with contextlib.suppress(OSError, EOFError):  # a time-out is an OSError
                async with asyncio.timeout(self._patience_s(name)) as patience:
                    stays = functools.partial(self._stays, patience)
                    async for event in events(self.url, self.room.at("stream"), last_id, stays):
                        assert event.get("event") != "reset", event
                        last_id = event.get("id", last_id)
                        seen = self.record.read[name]  # is there as soon as the reader has a place to resume from
                        if event.get("event") == "message":
                            seen.append(json.loads(event["data"])["id"])
            self.record.connects += 1
            await asyncio.sleep(0.01)

    def _patience_s(self, name: str) -> float:
        """How long a reader waits for its stream to begin: one in ten leaves before, once it has a place."""
        leaves = name in self.record.read and not self.enough.is_set() and self.random.random() < 0.1
        return self.random.uniform(0, 0.1) if leaves else ANSWER_S

    def _stays(self, patience: asyncio.Timeout) -> None:
        """From now on it reads, for a while; to the end when nothing more is posted."""
        if not self.enough.is_set():
            patience.reschedule(asyncio.get_running_loop().time() + self.random.uniform(0, self.plan.follow_s))
