"""HelloRun: one message, one call of the model, one post."""

from __future__ import annotations

from datetime import timedelta

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError, ApplicationError

with workflow.unsafe.imports_passed_through():
    from mycelium_engine import recording
    from mycelium_engine.calls import Answer, Call, Reply
    from mycelium_engine.queues import MODELS

TYPE = "HelloRun"
KIND = "hello"
MODEL_TRIES = 5  # of an activity whose process died, not of a model that failed: that is an answer
MODEL_S, HEARTBEAT_S = 660, 10
POST_S = 30
AGAIN = RetryPolicy(initial_interval=timedelta(milliseconds=250), maximum_interval=timedelta(seconds=15))
FOREIGN = "run.foreign"


def workflow_id(call: Call) -> str:
    """One run for one engine and one message, whoever starts it and however often."""
    return f"{TYPE}:{call.room_id}:{call.message_id}:{call.handle}"


@workflow.defn(name=TYPE)
class HelloRun:
    """Asks the model once and posts what came of it, an answer or an error, once."""

    @workflow.run
    async def run(self, call: Call) -> str:
        """The slug of what went wrong; `ok` when nothing did."""
        run = workflow_id(call)
        if workflow.info().workflow_id != run:
            raise ApplicationError("its id is not that of its call: refused", type=FOREIGN, non_retryable=True)
        is_told = await recording.started(call, KIND, run)
        answer = await self._ask(call)
        posted = answer if answer.gone else await self._post(Reply(call, answer, run))
        if is_told:
            await recording.ended(call, run, posted)
        return answer.slug or "ok"

    async def _post(self, reply: Reply) -> Answer:
        """What was posted, without its text."""
        posted: Answer = await workflow.execute_activity(
            "post_reply",
            reply,
            result_type=Answer,
            start_to_close_timeout=timedelta(seconds=POST_S),
            heartbeat_timeout=timedelta(seconds=HEARTBEAT_S),
            retry_policy=AGAIN,
        )
        return posted

    async def _ask(self, call: Call) -> Answer:
        try:
            answer: Answer = await workflow.execute_activity(
                "call_model",
                call,
                result_type=Answer,
                task_queue=MODELS,
                start_to_close_timeout=timedelta(seconds=MODEL_S),
                heartbeat_timeout=timedelta(seconds=HEARTBEAT_S),
                retry_policy=RetryPolicy(
                    initial_interval=AGAIN.initial_interval,
                    maximum_interval=AGAIN.maximum_interval,
                    maximum_attempts=MODEL_TRIES,
                ),
            )
        except ActivityError:
            detail = f"the hub could not ask the model, {MODEL_TRIES} times"
            answer = Answer(slug="engine.failed", detail=detail, next="mycelium logs engine")
        return answer
