"""Tasks of a room, used over HTTP again and again until there is an answer, as good clients do."""

import asyncio
import time
from typing import Any

from e2e import crowd
from e2e.room import Document, Room
from e2e.web import Reply

PATIENCE_S = 60.0
ANSWER_S = 60.0


class Tasks:
    """The board of one room."""

    def __init__(self, room: Room) -> None:
        self.room = room

    def write(self, key: str, **fields: Any) -> Document:
        """A version of a task's document; fields that are not given stay."""
        reply = self.room.api.put(
            self.room.at("memory", *key.split("/")), {"value": key, "meta": fields}, handle="avery"
        )
        assert reply.status in {200, 201}, reply
        found: Document = reply.json
        return found

    def document(self, key: str) -> Document:
        """As memory has it."""
        found: Document = self.room.api.get(self.room.at("memory", *key.split("/"))).ok(200).json
        return found

    def row(self, key: str) -> Document:
        """As the board shows it."""
        rows = self.room.api.get(self.room.at("board", filter="all"), handle="avery").ok(200).json["items"]
        found: Document = next(row for row in rows if row["key"] == key)
        return found

    def do(self, what: str, key: str, by: str, under: str = "", **said: Any) -> Reply:
        """Ask once."""
        return self.room.api.post(self.room.at("tasks", *key.split("/"), what), said, handle=by, key=under)

    def insist(self, what: str, key: str, by: str, **said: Any) -> crowd.Answer:
        """Ask under one key until there is an answer that tells of no passing trouble."""
        target = self.room.at("tasks", *key.split("/"), what)
        sent = crowd.request(self.room.api.url, "POST", target, said, by, f"{what} {key} {by} {said}")
        end_s = time.monotonic() + PATIENCE_S
        while True:
            got = asyncio.run(crowd.ask(self.room.api.url, sent, ANSWER_S))
            if got.status not in {0, 503}:
                return got
            assert time.monotonic() < end_s, f"{what} {key} was never answered: {got}"

    def send_and_die(self, what: str, key: str, by: str, **said: Any) -> None:
        """Ask, and be gone before the answer."""
        target = self.room.at("tasks", *key.split("/"), what)
        sent = crowd.request(self.room.api.url, "POST", target, said, by, f"{what} {key} {by} {said}")

        async def send() -> None:
            _, writer = await asyncio.open_connection(self.room.api.host, self.room.api.port)
            writer.write(sent)
            await writer.drain()
            writer.close()

        asyncio.run(send())

    def notices(self, key: str) -> list[str]:
        """The kinds of what the channel was told of a task, oldest first."""
        page = self.room.page(limit=500)
        found = list(page["items"])
        while page["older_before"]:
            page = self.room.page(limit=500, before=page["older_before"])
            found += page["items"]
        told = [one["metadata"] for one in found[::-1] if one["message_type"] == "notice"]
        return [one["kind"] for one in told if one["task"] == key]

    def refused_under(self, token: int, key: str, by: str) -> list[str]:
        """As what everything that is asked under a token is refused."""
        replies = [self.do(what, key, by, token=token) for what in ("renew", "resolve", "release")]
        return [reply.json["slug"] if reply.status >= 400 else str(reply.status) for reply in replies]
