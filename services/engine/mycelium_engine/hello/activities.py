"""What hello does outside its workflow: read the message and ask the model; post the reply."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from temporalio import activity

from mycelium.rooms.v1 import service_pb2
from mycelium_engine import models
from mycelium_engine.calls import Answer, Call, Reply, post_key
from mycelium_engine.hello import prompts
from mycelium_engine.settings import ModelSettings
from mycelium_kernel.bus import Bus
from mycelium_kernel.errors import Refusal
from mycelium_kernel.service import Actor

LOGGER = logging.getLogger(__name__)
HEARTBEAT_S = 2.0
KIND = "hello"
GONE = frozenset({"room.not_found", "message.not_found"})


class HelloActivities:
    """The activities of HelloRun, with what they need."""

    def __init__(self, bus: Bus, model: ModelSettings) -> None:
        self._bus = bus
        self._model = model

    @activity.defn(name="call_model")
    async def call_model(self, call: Call) -> Answer:
        """The model's answer to the message as it stands now, or what went wrong. Raises `Unavailable`."""
        async with _heartbeat():
            try:
                message = await self._read(call)
            except Refusal as refusal:
                return _refused(refusal)
            told = prompts.instructions(call.handle, self._model.model)
            try:
                return Answer(text=await models.ask(self._model, told, message))
            except models.ModelFailure as failure:
                LOGGER.warning("the model gave no answer: %s", failure.slug)
                return Answer(slug=failure.slug, detail=failure.detail, next=failure.next)

    async def _read(self, call: Call) -> str:
        request = service_pb2.GetMessageRequest(room=call.room_id, message=call.message_id)
        reply = await self._bus.ask(request, service_pb2.GetMessageResponse, actor=_actor(call))
        return reply.message.message.content

    @activity.defn(name="post_reply")
    async def post_reply(self, reply: Reply) -> None:
        """Post it once, however often this is tried. Raises `Unavailable`."""
        async with _heartbeat():
            try:
                await self._post(reply, reply.answer, post_key(reply.run))
            except Refusal as refusal:
                if not refusal.slug.startswith("content."):
                    LOGGER.info("a reply is not posted: %s", refusal.slug)
                    return
                said = Answer(slug="model.unfit", detail=f"the model's answer can't be posted: {refusal.detail}")
                await self._post(reply, said, post_key(f"{reply.run}:unfit"))

    async def _post(self, reply: Reply, answer: Answer, key: str) -> None:
        call = reply.call
        shown = service_pb2.GetMessageRequest(room=call.room_id, message=call.message_id)
        asked = (await self._bus.ask(shown, service_pb2.GetMessageResponse, actor=_actor(call))).message.message
        request = service_pb2.PostMessageRequest(
            room=call.room_id,
            content=answer.text or in_words(answer),
            thread=asked.thread,
            reply_to=call.message_id,
            metadata_json=json.dumps({"engine": {"kind": KIND, **({"error": answer.slug} if answer.slug else {})}}),
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
