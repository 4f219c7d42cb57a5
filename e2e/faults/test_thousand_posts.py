"""A thousand posts while the hub, NATS and a waiting agent are killed at random moments, and then counting.

Posters behave as the command line does: the same key until there is an answer. What the hub acknowledged has to be
there once, in the order in which it was acknowledged to each poster; a live reader who resumes sees exactly the
history; the agent gets every mention, the first time in order.
"""

import contextlib
import json
import os
import random
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from http.client import HTTPException
from pathlib import Path

import pytest

from e2e.faults.count import history_of
from e2e.harness import Hub, Machine
from e2e.processes import Background
from e2e.requirements import requirement
from e2e.room import Room
from e2e.waiting import until
from e2e.web import Reply

POSTS, POSTERS, MENTION_EVERY = 1000, 5, 10
WITHIN_S = 90.0
HUB_AWAY = 5


class Storm:
    """One hub under fire: posters, a live reader, an agent, and whoever kills them."""

    def __init__(self, hub: Hub, room: Room, seed: int) -> None:
        self.hub = hub
        self.room = room
        self.random = random.Random(seed)
        self.acknowledged: list[list[str]] = [[] for _ in range(POSTERS)]
        self.read: list[str] = []
        self.agents: list[Background] = []
        self.over = threading.Event()
        self.tries = 0
        self.told: list[str] = []
        self.posting: list[Future[None]] = []
        self.counting = threading.Lock()
        self.end_s = time.monotonic() + WITHIN_S

    @property
    def count(self) -> int:
        """How many posts were acknowledged."""
        return sum(map(len, self.acknowledged))

    def post_all(self, poster: int) -> None:
        """One poster's share, one after the other."""
        for number in range(POSTS // POSTERS):
            mention = "@sec " if number % MENTION_EVERY == 0 else ""
            self.acknowledged[poster].append(self.post_until_acknowledged(f"{mention}{poster}.{number}", poster))

    def post_until_acknowledged(self, text: str, poster: int) -> str:
        """The id of the stored message. Nothing but a cut line and 503 is a reason to try again."""
        while True:
            reply = self.try_post(text, poster)
            if reply is not None and reply.status != 503:
                return str(reply.ok(201).json["id"])
            assert time.monotonic() < self.end_s, f"{text} was never acknowledged: {reply}"
            time.sleep(0.02)

    def try_post(self, text: str, poster: int) -> Reply | None:
        """One try, under the key that this post has."""
        with self.counting:
            self.tries += 1
        try:
            return self.room.try_post(text, sender=f"poster-{poster}", key=f"{self.room.name} {text}")
        except (OSError, HTTPException):
            return None

    def read_live(self) -> None:
        """Follow the room as a browser does: resume by the last id whenever the line is cut."""
        last_id = ""
        while not self.over.is_set():
            try:
                with self.hub.api.stream(self.room.at("stream"), last_id, within_s=2.0) as stream:
                    self.read.append("connected")
                    while not self.over.is_set():
                        event = stream.next()
                        assert event.type != "reset", event
                        last_id = event.id or last_id
                        if event.type == "message":
                            self.read.append(event.data["id"])
            except (OSError, HTTPException, EOFError):
                time.sleep(0.02)

    def start_agent(self) -> None:
        """A new session of the agent, which goes on where the last one was."""
        session = f"session-{len(self.agents)}"
        words = ["await", "--loop", "--json", "--room", self.room.name]
        self.agents.append(self.room.machine.start(*words, handle="sec", session=session))

    def has_all(self, mentions: int) -> bool:
        """Whether the agent was given so many. One started while the hub was away has ended: it is started again."""
        if not self.agents[-1].alive:
            assert self.agents[-1].ended().status == HUB_AWAY
            self.start_agent()
        return len(set(self.given())) >= mentions

    def given(self) -> list[str]:
        """What the agent was given, all its sessions one after the other."""
        lines = [line for agent in self.agents for line in list(agent.out)]
        return [json.loads(line)["message"]["id"] for line in lines if line.endswith("\n")]

    # Those who kill.

    def kill_hub(self) -> None:
        """With everything in it; it comes back at the same address."""
        self.hub.restart()

    def kill_nats(self) -> None:
        """The hub brings it back."""
        os.kill(until(self.found_nats, "there is a NATS to kill"), signal.SIGKILL)

    def found_nats(self) -> int | None:
        """NATS, when it is not on its way back from the last kill."""
        try:
            return self.hub.nats()
        except AssertionError:
            return None

    def kill_agent(self) -> None:
        """In the middle of whatever it does."""
        self.agents[-1].kill()
        self.start_agent()

    def kill_everybody(self) -> None:
        """Each twice or more, at moments that the seed chooses."""
        kills: list[Callable[[], None]] = [self.kill_hub, self.kill_nats, self.kill_agent] * 2 + [self.kill_agent] * 2
        self.random.shuffle(kills)
        moments = sorted(self.random.sample(range(20, POSTS - 20), len(kills)))
        for moment, kill in zip(moments, kills, strict=True):
            until(lambda moment=moment: self.has_come(moment), f"{moment} posts", WITHIN_S)  # type: ignore[misc]
            self.told.append(f"{self.count}: {kill.__name__}")
            kill()

    def has_come(self, moment: int) -> bool:
        """Whether so many posts were acknowledged; a poster that has failed fails here."""
        for posting in self.posting:
            if posting.done():
                posting.result()
        return self.count >= moment

    def blow(self) -> None:
        """All of it, until every post was acknowledged, read and given."""
        self.start_agent()
        with ThreadPoolExecutor(POSTERS + 1) as pool:
            reading = pool.submit(self.read_live)
            try:
                until(lambda: bool(self.read), "the reader is connected")
                self.posting = [pool.submit(self.post_all, poster) for poster in range(POSTERS)]
                self.kill_everybody()
                for posting in self.posting:
                    posting.result(WITHIN_S)
                mentions = POSTS // MENTION_EVERY
                until(lambda: self.has_all(mentions), "every mention is given", 20)
                with contextlib.suppress(AssertionError):  # what is missing is told by the comparison with the history
                    until(lambda: len(self.messages_read()) >= POSTS or reading.done(), "every message is read", 10)
            finally:
                self.over.set()
            reading.result(10)

    def messages_read(self) -> list[str]:
        """What the live reader got."""
        return [one for one in list(self.read) if one != "connected"]


def difference(read: list[str], ids: list[str]) -> str:
    """What a reader got, as places in the history: ranges, and where its line was cut."""
    place = {one: number for number, one in enumerate(ids)}
    parts: list[str] = []
    first = last = -2
    for one in [*read, "end"]:
        here = place.get(one, -2)
        if here != last + 1 or here < 0:
            parts += [f"{first}-{last}"] if first >= 0 else []
            first = here
        last = here
        parts += ["cut"] if one == "connected" else []
    return f"{' '.join(parts)} of 0-{len(ids) - 1}"


def storm(hub: Hub, room: Room, seed: int) -> None:
    """Let it blow, then count."""
    room.join("sec")
    blown = Storm(hub, room, seed)
    try:
        blown.blow()
    except AssertionError as error:
        raise AssertionError(f"storm {seed}, {blown.count} posts, {blown.told}: {error}") from error
    assert blown.read.count("connected") > 2, "the reader was never cut: nothing was tried"
    assert blown.tries > POSTS, "no post was ever cut: nothing was tried"
    history = history_of(room)
    ids = [message["id"] for message in history]
    texts = [message["content"] for message in history]
    assert len(set(texts)) == len(texts) == POSTS, "a retry was stored twice, or something is lost"
    for poster, acknowledged in enumerate(blown.acknowledged):
        own = [message["id"] for message in history if message["sender_handle"] == f"poster-{poster}"]
        assert own == acknowledged, f"poster {poster}: what was acknowledged is not what is there, or in another order"
    mentions = [message["id"] for message in history if message["content"].startswith("@sec")]
    assert list(dict.fromkeys(blown.given())) == mentions, "a mention did not come, or came before an older one"
    assert blown.messages_read() == ids, f"the live reader saw something else: {difference(blown.read, ids)}"


@requirement("messages:post:survives-kill", "messages:post:one-order", "live:stream:restart", "await:killed-after")
@pytest.mark.timeout(120)
def test_nothing_acknowledged_is_lost_repeated_or_reordered(own_hub: Hub, own_room: Room) -> None:
    """SIGKILL of the hub, of NATS and of a waiting client during a thousand posts."""
    storm(own_hub, own_room, seed=4711)


@pytest.mark.long
@requirement("messages:post:survives-kill", "messages:post:one-order", "live:stream:restart", "await:killed-after")
@pytest.mark.timeout(600)
def test_other_storms_end_the_same_way(own_hub: Hub, tmp_path: Path) -> None:
    """Five more seeds, on one hub that gets older."""
    machine = Machine(tmp_path / "storms", own_hub.url)
    try:
        for seed in range(1, 6):
            storm(own_hub, Room(own_hub.api, machine, f"storm {seed}").create(), seed)
    finally:
        machine.close()
