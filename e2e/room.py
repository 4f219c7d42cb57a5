"""A room to test in: what tests do in one again and again, over HTTP or as processes of the command line."""

import itertools
from collections.abc import Iterator
from typing import Any

from e2e.harness import SPLIT, Machine
from e2e.processes import Background
from e2e.waiting import until
from e2e.web import Api, Reply, path

Document = dict[str, Any]
LOOKS = 12 if SPLIT else 1


class Room:
    """One room of one hub, used from one machine."""

    def __init__(self, api: Api, machine: Machine, name: str, owner: str = "avery") -> None:
        self.api = api
        self.machine = machine
        self.name = name
        self.owner = owner

    def create(self, **fields: Any) -> "Room":
        """Make it."""
        self.api.post(path("rooms"), {"name": self.name, **fields}, handle=self.owner).ok(201)
        return self

    def at(self, *parts: str, **query: str | int | list[str]) -> str:
        """A path below the room."""
        return path("rooms", self.name, *parts, **query)

    def join(self, *handles: str, **fields: Any) -> None:
        """Make handles agents of the room."""
        for handle in handles:
            body = {"handle": handle, "kind": "agent", **fields}
            self.api.post(self.at("members"), body, handle=self.owner).ok(201)

    def try_post(self, content: str, sender: str = "avery", key: str = "", **fields: Any) -> Reply:
        """Post, whatever the answer."""
        return self.api.post(self.at("messages"), {"content": content, **fields}, handle=sender, key=key)

    def post(self, content: str, sender: str = "avery", **fields: Any) -> Document:
        """Post; the message as stored."""
        message: Document = self.try_post(content, sender, **fields).ok(201).json
        return message

    def page(self, **query: str | int) -> Document:
        """One page of history, newest first."""
        found: Document = self.api.get(self.at("messages", **query), handle=self.owner).ok(200).json
        return found

    def found(self, **query: str | int) -> list[str]:
        """The texts of one page of history, oldest first."""
        return [message["content"] for message in self.page(**query)["items"]][::-1]

    def contents(self) -> list[str]:
        """The whole history's texts, oldest first, read page by page."""
        found: list[str] = []
        page = self.page(limit=500)
        found += [message["content"] for message in page["items"]]
        while page["older_before"]:
            page = self.page(limit=500, before=page["older_before"])
            found += [message["content"] for message in page["items"]]
        return found[::-1]

    def member(self, handle: str) -> Document:
        """A member's record."""
        found: Document = self.api.get(self.at("members", handle), handle=self.owner).ok(200).json
        return found

    def receipts(self, message: Document) -> dict[str, Document]:
        """What became of a message, by recipient."""
        target = self.at("messages", message["id"], "receipts")
        rows = self.api.get(target, handle=self.owner).ok(200).json["items"]
        return {row["handle"]: row for row in rows}

    def state(self, message: Document, handle: str) -> str:
        """What became of a message at one recipient."""
        return str(self.receipts(message)[handle]["state"])

    def try_take(self, handle: str, session: str = "s1", timeout_s: float = 0, key: str = "", **fields: Any) -> Reply:
        """Wait over HTTP, whatever the answer."""
        body = {"handle": handle, "timeout_s": timeout_s, **fields}
        return self.api.post(self.at("await"), body, handle=handle, session=session, key=key)

    def take(self, handle: str, session: str = "s1", timeout_s: float = 0, **fields: Any) -> Document | None:
        """The next delivery of a queue, by an HTTP call of a session; None when there is none.

        Several gateways hear that an answer was received a moment after it was. Only a client that confirms knows when
        its next call, through another one, acknowledges it (docs/explanation/reliability.md); so here it confirms.
        """
        is_sure = bool(SPLIT) and "confirm" not in fields
        if is_sure:
            fields["confirm"] = True
        reply = self.try_take(handle, session, timeout_s, **fields)
        if reply.status == 204:
            return None
        turn: Document = reply.ok(200).json
        if is_sure:
            received = {"handle": handle, "ack": turn["ack"], "outcome": "received"}
            received |= {name: fields[name] for name in ("seat",) if name in fields}
            self.api.post(self.at("ack"), received, handle=handle, session=session).ok(204)
        return turn

    def watch(self, handle: str = "") -> Background:
        """A `room watch` that is under way: somebody has posted until it showed that."""
        watching = self.machine.start("room", "watch", self.name, handle=handle)
        numbers = itertools.count()
        until(lambda: self.post(f"are you there? {next(numbers)}") and watching.out, "it watches")
        return watching

    def wait(self, handle: str, *args: str, session: str = "", env: dict[str, str] | None = None) -> Background:
        """A `mycelium await` in the background, once the hub sees it waiting."""
        words = ["await", "--room", self.name, *args]
        waiting = self.machine.start(*words, handle=handle, session=session, env=env)
        self.until_waiting(handle, waiting)
        return waiting

    def until_waiting(self, handle: str, process: Background | None = None) -> None:
        """Until a wait of that member is open on the hub."""

        def look() -> bool:
            if process is not None and not process.alive:
                raise AssertionError(f"the wait ended: {process.ended()}")
            return all(self._is_waiting(handle))

        until(look, f"@{handle} waits")

    def until_idle(self, handle: str) -> None:
        """Until no wait of that member is open on the hub."""
        until(lambda: not any(self._is_waiting(handle)), f"@{handle} waits no more")

    def _is_waiting(self, handle: str) -> Iterator[bool]:
        """What replicas say, asked so often that each has most likely answered: one hears of a wait before another."""
        return (bool(self.member(handle)["waiting"]) for _ in range(LOOKS))


def states(message: Document) -> dict[str, str]:
    """What became of each mention of a message."""
    return {mention["handle"]: mention["state"] for mention in message["mentions"]}
