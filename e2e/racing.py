"""Many who write, read and remove a few memories at once: what each asked, what it was told, and when."""

import asyncio
import json
import random
import time
from collections import defaultdict
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

from e2e import crowd, linear
from e2e.linear import Call
from e2e.register import Answer, Asked, History, State, step
from e2e.room import Document, Room

ANSWER_S = 10.0
Stir = Callable[["Race"], Coroutine[Any, Any, None]]


@dataclass
class Race:
    """One run: `racers` with so many `calls` each, on so many `keys`; what each does follows from the seed."""

    room: Room
    seed: int
    racers: int = 12
    calls: int = 30
    keys: int = 3
    patience_s: float = 60.0  # for one answer
    history: History = field(default_factory=list)
    more: asyncio.Condition = field(default_factory=asyncio.Condition)
    unanswered: str = ""  # what was given up, and with it the race

    def run(self, stir: Stir | None = None) -> None:
        """To the end; `stir` does something to the hub meanwhile."""
        asyncio.run(self._run(stir))

    async def _run(self, stir: Stir | None) -> None:
        stirring = asyncio.create_task(stir(self)) if stir else None
        await asyncio.gather(*(self._race(f"racer{number}") for number in range(self.racers)))
        if stirring:
            await stirring

    async def reach(self, share: float) -> None:
        """Return when so much of it is done."""
        async with self.more:
            await self.more.wait_for(lambda: len(self.history) >= share * self.racers * self.calls)

    async def _race(self, name: str) -> None:
        chance = random.Random(f"{self.seed} {name}")
        seen: defaultdict[str, int] = defaultdict(int)  # the version that it saw last of each
        for number in range(self.calls):
            if self.unanswered:
                return
            key = f"race/k{chance.randrange(self.keys)}"
            what = chance.choices(["set", "get", "rm"], [5, 4, 1])[0]
            expect = seen[key] if what != "get" and chance.random() < 0.5 else None
            asked = Asked(what, None, f"{name}.{number}" if what == "set" else "", name, expect)
            await self._ask(key, asked, seen, f"{self.seed} {name} {number}")

    async def _ask(self, key: str, asked: Asked, seen: dict[str, int], under: str) -> None:
        """Ask until there is an answer, always under one key of idempotency."""
        sent, began = self._request(key, asked, under), time.monotonic()
        answer, ended = None, linear.NEVER
        while answer is None and not self.unanswered:
            got = await crowd.ask(self.room.api.url, sent, ANSWER_S)
            answer, now = told(got), time.monotonic()
            if answer is None and now > began + self.patience_s:
                self.unanswered = f"{asked}: {got}"
            elif answer is None:
                await asyncio.sleep(0.02)
            else:
                seen[key], ended = 0 if answer.said in {"removed", "absent"} else answer.version, now
        self.history.append(Call(key, asked._replace(answer=answer), began, ended))
        async with self.more:
            self.more.notify_all()

    def _request(self, key: str, asked: Asked, under: str) -> bytes:
        method = {"set": "PUT", "get": "GET", "rm": "DELETE"}[asked.what]
        expected = {} if asked.expect is None else {"expect": asked.expect}
        query = expected if asked.what == "rm" else {}
        body = {"value": asked.value, **expected} if asked.what == "set" else None
        target = self.room.at("memory", *key.split("/"), **query)
        return crowd.request(
            self.room.api.url, method, target, body, asked.author, "" if asked.what == "get" else under
        )

    def verdict(self) -> None:
        """The history fits one order on each key, and what was written is what is kept."""
        found = linear.fault(self.history, State(), step)
        assert found is None, f"seed {self.seed}: {found}\n  what is kept\n{self._told(found.on)}"
        assert not self.unanswered, f"seed {self.seed}: never answered: {self.unanswered}"
        for key in sorted({call.on for call in self.history}):
            kept = {row["version"]: row["summary"] for row in self._kept(key)}
            assert sorted(kept) == list(range(1, len(kept) + 1)), f"seed {self.seed}: versions of {key}: {sorted(kept)}"
            lost = [call.asked for call in self.history if call.on == key and _is_lost(call.asked, kept)]
            assert not lost, f"seed {self.seed}: acknowledged, and not kept under {key}: {lost}"

    def _kept(self, key: str) -> list[Document]:
        """Every version, the newest first."""
        rows: list[Document] = []
        cursor: str | None = ""
        while cursor is not None:
            query: dict[str, Any] = {"view": "versions", "limit": 1000, **({"cursor": cursor} if cursor else {})}
            page = self.room.api.get(self.room.at("memory", *key.split("/"), **query))
            if page.status != 200:
                return rows
            rows += page.json["items"]
            cursor = page.json["next"]
        return rows

    def _told(self, key: str) -> str:
        """Every version in a line: what a fault is compared with."""
        said = ("version", "updated_by", "origin", "summary", "removed")
        return "\n".join(f"    {[row[name] for name in said]}" for row in self._kept(key))


def _is_lost(asked: Asked, kept: dict[int, str]) -> bool:
    return bool(asked.answer and asked.answer.said == "written" and kept.get(asked.answer.version) != asked.value)


def told(got: crowd.Answer) -> Answer | None:
    """What an answer says; None for what has to be asked again: a cut line, a hub on its way, three lost races."""
    if got.status in {0, 409, 503}:
        return None
    if got.status == 204:
        return Answer("removed")
    said = json.loads(got.body)
    if got.status == 404:
        assert said["slug"] == "memory.not_found", said
        return Answer("absent")
    if got.status == 412:
        return Answer("stale", int(said["version"]), author=said.get("updated_by", ""))
    assert got.status in {200, 201}, got
    if "replaced" in said:
        return Answer("written", said["version"], replaced=said["replaced"]["version"] if said["replaced"] else 0)
    return Answer("found", said["version"], value=said["value"], author=said["updated_by"])
