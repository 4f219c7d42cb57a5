"""Many who claim, renew, give back and resolve a few tasks at once: what each asked, what it was told, and when."""

import asyncio
import json
import random
import time
from collections import defaultdict
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from e2e import crowd, linear
from e2e.lease import Answer, Asked, History, State, step
from e2e.linear import Call
from e2e.room import Room

ANSWER_S = 10.0
LATE_S = 15.0  # an attempt whose answer was lost may still be under way for so long: the hub gives it up before
AGAIN = {0, 429, 503}  # a cut line, too many at once, a hub on its way
SLUGS = {"claim.held": "held", "lease.lost": "lost", "claim.none": "none", "task.closed": "closed"}
Stir = Callable[["ClaimRace"], Coroutine[Any, Any, None]]


@dataclass
class ClaimRace:
    """One run: so many `calls` by so many `racers`, on so many tasks at a time; what each does follows from the seed.

    A task that was resolved is replaced by a new one. `url` is where they call: the hub, or a proxy before it.
    """

    room: Room
    seed: int
    racers: int = 16
    calls: int = 1000
    tasks: int = 2
    url: str = ""
    least_s: float = 3.0  # it goes on for so long at least: some claims have to come to their end
    patience_s: float = 60.0  # for one answer
    history: History = field(default_factory=list)
    more: asyncio.Condition = field(default_factory=asyncio.Condition)
    done: int = 0
    ends_s: float = 0.0
    unanswered: str = ""  # what was given up, and with it the race

    def __post_init__(self) -> None:
        self.url = self.url or self.room.api.url
        self.names = [f"racer{number}" for number in range(self.racers)]
        self.open = [f"work/race-{number}" for number in range(self.tasks)]
        self.tokens: defaultdict[tuple[str, str], list[int]] = defaultdict(list)  # of a racer on a task, newest last

    async def run(self, stir: Stir | None = None) -> None:
        """To the end; `stir` does something to the hub meanwhile."""
        self.room.join(*self.names)
        for key in self.open:
            await self._file(key)
        self.ends_s = time.monotonic() + self.least_s
        stirring = asyncio.create_task(stir(self)) if stir else None
        await asyncio.gather(*(self._race(name) for name in self.names))
        if stirring:
            await stirring

    async def reach(self, share: float) -> None:
        """Return when so much of it is done, or it was given up."""
        async with self.more:
            await self.more.wait_for(lambda: self.unanswered or self.done >= share * self.calls)

    async def _race(self, name: str) -> None:
        chance = random.Random(f"{self.seed} {name}")
        number = 0
        while (self.done < self.calls or time.monotonic() < self.ends_s) and not self.unanswered:
            number += 1
            place = chance.randrange(self.tasks)
            key = self.open[place]
            told = await self._ask(key, self._choice(key, name, chance), f"{self.seed} {name} {number}")
            closes = told.asked.what == "resolve" and told.asked.answer and told.asked.answer.said == "done"
            if (closes or told.asked.answer == Answer("closed")) and self.open[place] == key:
                self.open[place] = f"work/race-{int(key.rsplit('-', 1)[1]) + self.tasks}"
                await self._file(self.open[place])

    async def _file(self, key: str) -> None:
        """Make a task; whoever comes first makes it, and others are told that it is missing until then."""
        body = {"value": "race", "meta": {"status": "open"}, "expect": 0}
        target = self.room.at("memory", *key.split("/"))
        sent = crowd.request(self.url, "PUT", target, body, self.names[0], f"{self.seed} {key}")
        await self._until_answered(sent, f"make {key}")

    def _choice(self, key: str, name: str, chance: random.Random) -> Asked:
        """What to do next; a token is mostly the newest that this racer knows, now and then an old one.

        On every second task nobody is in a hurry: there, claims last until their time is over.
        """
        known, is_quick = self.tokens[name, key], int(key.rsplit("-", 1)[1]) % 2 == 0
        weights = [50, 25, 18, 5, 2] if is_quick else [50, 35, 3, 11, 1]
        what = chance.choices(["claim", "renew", "release", "look", "resolve"], weights)[0]
        asked = Asked(what, name, ttl_s=chance.choice([1, 1, 2, 60] if is_quick else [1, 1, 2]))
        if what == "claim":
            to = chance.choice(self.names) if is_quick and chance.random() < 0.05 else ""
            return asked._replace(to=to, force=is_quick and chance.random() < 0.1)
        proves = known and chance.random() < (0.5 if what == "resolve" else 0.9)
        token = chance.choice([known[-1], known[-1], chance.choice(known)]) if proves else 0
        return asked._replace(token=token)

    async def _ask(self, key: str, asked: Asked, under: str) -> Call[Asked]:
        """Ask until there is an answer, always under one key of idempotency; write down what was told."""
        sent, began = self._request(key, asked, under), time.time()
        got, tries = await self._until_answered(sent, str(asked))
        ended = time.time() if got else linear.NEVER
        answer = told(asked, key, got) if got else None
        until_ms = millis(time.time()) + 1
        call = Call(key, asked._replace(answer=answer, since=millis(began) - 1, until=until_ms), began, ended)
        self.history.append(call)
        if tries > 1 and not asked.token and answer and answer.said in {"held", "none"}:
            self._may_come_late(call)
        if answer and answer.said == "claim" and answer.token and asked.what == "claim":
            self._learn(key, asked.by, answer.token)
        self.done += 1
        async with self.more:
            self.more.notify_all()
        return call

    def _may_come_late(self, call: Call[Asked]) -> None:
        """An attempt whose answer was lost, before the one that was refused: it may still be done, for a while."""
        late = call.ended + LATE_S
        asked = call.asked._replace(answer=None, until=millis(late))
        self.history.append(Call(call.on, asked, call.began, late, may_fail=True))

    def _learn(self, key: str, name: str, token: int) -> None:
        known = self.tokens[name, key]
        if token not in known:
            known.append(token)

    async def _until_answered(self, sent: bytes, what: str) -> tuple[crowd.Answer | None, int]:
        """The first answer that tells of no passing trouble, and after how many tries in doubt; None when given up."""
        end_s, tries = time.monotonic() + self.patience_s, 1
        while not self.unanswered:
            got = await crowd.ask(self.url, sent, ANSWER_S)
            if got.status not in AGAIN and slug(got) != "conflict" and slug(got) != "task.not_found":
                return got, tries
            tries += got.status in {0, 503}
            if time.monotonic() > end_s:
                self.unanswered = f"{what}: {got}"
            await asyncio.sleep(0.02)
        return None, tries

    def _request(self, key: str, asked: Asked, under: str) -> bytes:
        if asked.what == "look":
            return crowd.request(self.url, "GET", self.room.at("board", filter="in-flight"), None, asked.by)
        body: dict[str, Any] = {"token": asked.token} if asked.token else {}
        if asked.what in {"claim", "renew"}:
            body["ttl_s"] = asked.ttl_s
        if asked.what == "claim":
            body |= {"force": asked.force} | ({"to": asked.to} if asked.to else {})
        target = self.room.at("tasks", *key.split("/"), asked.what)
        return crowd.request(self.url, "POST", target, body, asked.by, under)

    def verdict(self) -> None:
        """The history of each task fits one order; what was resolved is so in its document, once."""
        found = linear.fault(self.history, State(), step)
        assert found is None, f"seed {self.seed}: {found}"
        assert not self.unanswered, f"seed {self.seed}: never answered: {self.unanswered}"
        closing = [call for call in self.history if call.asked.what == "resolve" and call.asked.answer]
        for key in sorted({call.on for call in closing if call.asked.answer and call.asked.answer.said == "done"}):
            document = self.room.api.get(self.room.at("memory", *key.split("/"))).ok(200).json
            assert (document["meta"]["status"], document["version"]) == ("resolved", 2), f"{self.seed}: {document}"

    def said(self) -> set[str]:
        """Every kind of answer that there was."""
        return {call.asked.answer.said for call in self.history if call.asked.answer}


def slug(got: crowd.Answer) -> str:
    """Of a refusal."""
    return str(json.loads(got.body)["slug"]) if got.status >= 400 else ""


def told(asked: Asked, key: str, got: crowd.Answer) -> Answer:
    """What an answer says, in the words of the model."""
    said = json.loads(got.body) if got.body else {}
    if got.status >= 400:
        assert slug(got) in SLUGS, got
        return Answer(SLUGS[slug(got)], said.get("holder") or "", ends=moment(said.get("expires_at")))
    if asked.what == "look":
        row = next((row for row in said["items"] if row["key"] == key), None)
        return Answer("row", row["holder"], ends=moment(row["expires_at"])) if row else Answer("row")
    if "expires_at" in said:
        return Answer("claim", said["holder"], said["token"] or 0, moment(said["expires_at"]))
    return Answer("done", "" if asked.what == "release" else said.get("held_by") or "")


def moment(text: str | None) -> int:
    """Milliseconds since 1970 of a moment as the hub writes it; 0 for none."""
    return millis(datetime.fromisoformat(text).timestamp()) if text else 0


def millis(seconds: float) -> int:
    """Whole milliseconds."""
    return round(seconds * 1000)
