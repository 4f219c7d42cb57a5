"""Workers of hello on a real Temporal server, with activities that a test scripts."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from temporalio import activity
from temporalio.client import Client, WorkflowHandle

from mycelium_engine.calls import Answer, Beginning, Call, Ending, Reply
from mycelium_engine.hello.workflow import TYPE, workflow_id
from mycelium_engine.kinds import workflows
from mycelium_engine.queues import ENGINE, MODELS
from mycelium_kernel import tasks, temporal

CALL = Call("01900000-0000-7000-8000-000000000001", "01900000-0000-7000-8000-000000000002", "greeter")


@dataclass
class Script:
    """What the activities do, and what they were given."""

    answer: Answer = field(default_factory=lambda: Answer(text="Hello."))
    broken: bool = False
    asked: list[Call] = field(default_factory=list)
    posted: list[Reply] = field(default_factory=list)
    begun: list[Beginning] = field(default_factory=list)
    ended: list[Ending] = field(default_factory=list)
    is_there: bool = True  # somebody to answer

    @activity.defn(name="call_model")
    async def call_model(self, call: Call) -> Answer:
        self.asked.append(call)
        if self.broken:
            raise RuntimeError("a bug, which quotes violet-hippopotamus")
        return self.answer

    @activity.defn(name="post_reply")
    async def post_reply(self, reply: Reply) -> Answer:
        self.posted.append(reply)
        return Answer(slug=reply.answer.slug) if self.is_there else Answer(gone=True)

    @activity.defn(name="record_start")
    async def record_start(self, beginning: Beginning) -> bool:
        self.begun.append(beginning)
        return True

    @activity.defn(name="record_end")
    async def record_end(self, ending: Ending) -> None:
        self.ended.append(ending)


@contextlib.asynccontextmanager
async def working(client: Client, script: Script) -> AsyncIterator[None]:
    """Workers of both queues, for the time of the block."""
    workers = [
        temporal.worker(client, ENGINE, workflows(), [script.post_reply, script.record_start, script.record_end], 4),
        temporal.worker(client, MODELS, [], [script.call_model], 4),
    ]
    running = asyncio.create_task(temporal.run_workers(workers))
    try:
        yield
    finally:
        await tasks.end([running], again_s=10)


async def start(client: Client, call: Call = CALL, identifier: str = "") -> WorkflowHandle[object, str]:
    """A run, as the service starts one."""
    handle: WorkflowHandle[object, str] = await client.start_workflow(
        TYPE, call, id=identifier or workflow_id(call), task_queue=ENGINE, result_type=str
    )
    return handle
