"""What hello does outside its workflow: read the message and ask the model; post the reply."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

from temporalio import activity

from mycelium.rooms.v1 import service_pb2, views_pb2
from mycelium_engine import asking
from mycelium_engine.asking import Account
from mycelium_engine.calls import Answer, Call, Reply, post_key
from mycelium_engine.hello import prompts
from mycelium_engine.hello.workflow import KIND
from mycelium_engine.ledger import Ledger
from mycelium_engine.settings import ModelSettings
from mycelium_kernel.bus import Bus
from mycelium_kernel.errors import Refusal
from mycelium_kernel.service import Actor

LOGGER = logging.getLogger(__name__)
HEARTBEAT_S = 2.0
GONE = frozenset({"room.not_found", "message.not_found"})


class HelloActivities:
    """The activities of HelloRun, with what they need."""

    def __init__(self, bus: Bus, model: ModelSettings, ledger: Ledger) -> None:
        self._bus = bus
        self._model = model
        self._ledger = ledger

    @activity.defn(name="call_model")
    async def call_model(self, call: Call) -> Answer:
        """The model's answer to the message as it stands now, or what went wrong. Raises `Unavailable`."""
        async with _heartbeat():
            if not await self._is_there(call):
                return Answer(gone=True)
            try:
                message = await self._read(call)
            except Refusal as refusal:
                return _refused(refusal)
            told = prompts.instructions(call.handle, self._model.model)
            account = Account(call.room_id, message.room, call.handle)
            step = f"{activity.info().workflow_id}:reply"
            return await asking.ask(self._model, self._ledger, account, step, told, message.content)

    async def _is_there(self, call: Call) -> bool:
        """Whether the engine is one of the room; once it left, its handle may be somebody else's."""
        request = service_pb2.GetMemberRequest(room=call.room_id, handle=call.handle)
        try:
            reply = await self._bus.ask(request, service_pb2.GetMemberResponse, actor=_actor(call))
        except Refusal:
            return False
        return reply.message.member.kind == views_pb2.MEMBER_KIND_ENGINE

    async def _read(self, call: Call) -> views_pb2.Message:
        request = service_pb2.GetMessageRequest(room=call.room_id, message=call.message_id)
        reply = await self._bus.ask(request, service_pb2.GetMessageResponse, actor=_actor(call))
        return reply.message.message

    @activity.defn(name="post_reply")
    async def post_reply(self, reply: Reply) -> Answer:
        """Record what it took and post it, each once, however often this is tried. Raises `Unavailable`.

        What was posted, without its text; or that there is nobody left to answer, or to do it.
        """
        async with _heartbeat():
            if reply.answer.use:
                await self._ledger.record(reply.call.room_id, reply.answer.use, reply.call.handle)
            if not await self._is_there(reply.call):
                LOGGER.info("a reply is not posted: the engine was removed")
                return Answer(gone=True)
            try:
                await self._post(reply, reply.answer, post_key(reply.run))
            except Refusal as refusal:
                if not refusal.slug.startswith("content."):
                    LOGGER.info("a reply is not posted: %s", refusal.slug)
                    return Answer(gone=True)
                detail = f"the model's answer can't be posted: {refusal.detail}"
                said = replace(reply.answer, text="", slug="model.unfit", detail=detail)
                await self._post(reply, said, post_key(f"{reply.run}:unfit"))
                return Answer(slug=said.slug)
            return Answer(slug=reply.answer.slug)

    async def _post(self, reply: Reply, answer: Answer, key: str) -> None:
        call, asked = reply.call, await self._read(reply.call)
        error = {"error": answer.slug} if answer.slug else {}
        request = service_pb2.PostMessageRequest(
            room=call.room_id,
            content=answer.text or in_words(answer),
            thread=asked.thread,
            reply_to=call.message_id,
            metadata_json=json.dumps({"engine": {"kind": KIND, **asking.metadata(answer), **error}}),
            allow_unknown=True,
        )
        await self._bus.ask(request, service_pb2.PostMessageResponse, actor=_actor(call), key=key)


def in_words(answer: Answer) -> str:
    """What went wrong, for the room."""
    said = f"I can't answer: {answer.detail}."
    return f"{said} Next: `{answer.next}`" if answer.next else said


def _refused(refusal: Refusal) -> Answer:
    if refusal.slug in GONE:
        return Answer(gone=True)
    return Answer(slug=refusal.slug, detail=refusal.detail, next=refusal.next)


def _actor(call: Call) -> Actor:
    return Actor(call.handle, "engine")


@asynccontextmanager
async def _heartbeat() -> AsyncIterator[None]:
    """Tell Temporal that the work goes on, so that a dead process is noticed soon."""

    async def beat() -> None:
        while True:
            activity.heartbeat()
            await asyncio.sleep(HEARTBEAT_S)

    beating = asyncio.create_task(beat(), name="heartbeat")
    try:
        yield
    finally:
        beating.cancel()
