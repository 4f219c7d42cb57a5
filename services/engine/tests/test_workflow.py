"""HelloRun on a real Temporal server: what it does, what it refuses, what the server gets to read."""

from __future__ import annotations

import pytest
from temporalio.client import Client, WorkflowFailureError
from temporalio.exceptions import ApplicationError, WorkflowAlreadyStartedError

from mycelium_engine.calls import Answer, Beginning, Call, Ending
from mycelium_engine.hello.workflow import FOREIGN, TYPE, workflow_id
from mycelium_engine.queues import ENGINE
from services.engine.tests.running import CALL, Script, start, working

pytestmark = pytest.mark.timeout(180)


async def refused(handle: object) -> str:
    """The type of the error by which a run failed."""
    with pytest.raises(WorkflowFailureError) as raised:
        await handle.result()  # type: ignore[attr-defined]
    cause = raised.value.cause
    assert isinstance(cause, ApplicationError)
    return cause.type or ""


async def test_a_run_asks_once_and_posts_once_and_has_one_id(client: Client) -> None:
    """A second start of the same call finds the first."""
    script = Script()
    async with working(client, script):
        handle = await start(client)
        with pytest.raises(WorkflowAlreadyStartedError):
            await start(client)
        assert await handle.result() == "ok"

    assert handle.id == f"HelloRun:{CALL.room_id}:{CALL.message_id}:greeter"
    assert script.asked == [CALL]
    assert [(reply.call, reply.answer.text, reply.run) for reply in script.posted] == [(CALL, "Hello.", handle.id)]


async def test_a_failure_of_the_model_is_posted_and_one_nobody_is_left_for_is_not(client: Client) -> None:
    """An error is an answer too; a deleted room gets none."""
    script = Script(Answer(slug="model.auth", detail="the provider refuses the key"))
    async with working(client, script):
        assert await (await start(client)).result() == "model.auth"
        script.answer = Answer(gone=True)
        other = Call(CALL.room_id, CALL.message_id, "other")
        assert await (await start(client, other)).result() == "ok"

    assert [reply.answer.slug for reply in script.posted] == ["model.auth"]


@pytest.mark.parametrize(
    ("script", "outcome", "reason"),
    [
        (Script(), "done", ""),
        (Script(Answer(slug="model.auth")), "failed", "model.auth"),
        (Script(Answer(slug="model.over_budget")), "capped", "model.over_budget"),
        (Script(Answer(gone=True)), "stopped", ""),
        (Script(is_there=False), "stopped", ""),
    ],
    ids=["done", "failed", "capped", "message gone", "engine gone"],
)
async def test_a_run_tells_that_it_begins_and_how_it_ended(
    client: Client, script: Script, outcome: str, reason: str
) -> None:
    """Once each, by what was posted in the end."""
    async with working(client, script):
        handle = await start(client)
        await handle.result()

    assert script.begun == [Beginning(CALL, "hello", handle.id)]
    assert script.ended == [Ending(CALL, handle.id, outcome, reason)]  # type: ignore[arg-type]


async def test_a_bug_in_asking_is_posted_after_a_few_tries(client: Client) -> None:
    """Not asked for ever: each try may cost money."""
    script = Script(broken=True)
    async with working(client, script):
        assert await (await start(client)).result() == "engine.failed"

    assert len(script.asked) == 5
    assert [reply.answer.next for reply in script.posted] == ["mycelium logs engine"]


async def test_a_run_that_somebody_else_started_is_refused(client: Client, server: Client) -> None:
    """Whoever has no key of the hub starts nothing, also not with what was copied from another run."""
    script = Script()
    async with working(client, script):
        plain = await server.start_workflow(TYPE, CALL, id=workflow_id(CALL), task_queue=ENGINE)
        assert await refused(client.get_workflow_handle(plain.id)) == "payload.foreign"

        true = await start(client, Call(CALL.room_id, CALL.message_id, "other"))
        await true.result()
        history = await server.get_workflow_handle(true.id).fetch_history()
        sealed = history.events[0].workflow_execution_started_event_attributes.input.payloads[0]
        copied = await server.start_workflow(TYPE, sealed, id=f"{TYPE}:copied", task_queue=ENGINE)
        assert await refused(client.get_workflow_handle(copied.id)) == "payload.foreign"

        named = await start(client, CALL, f"{TYPE}:by-another-name")
        assert await refused(named) == FOREIGN

    assert [call.handle for call in script.asked] == ["other"]


async def test_the_server_reads_nothing_of_what_is_said(client: Client, server: Client) -> None:
    """Input, results, and the texts of errors are sealed; only ids and names of steps are not."""
    script = Script(Answer(text="the secret is violet-hippopotamus"))
    async with working(client, script):
        told = await start(client)
        await told.result()
        script.broken = True
        failed = await start(client, Call(CALL.room_id, CALL.message_id, "other"))
        await failed.result()

    for handle in (told, failed):
        history = (await server.get_workflow_handle(handle.id).fetch_history()).to_json()
        assert "violet-hippopotamus" not in history
        assert '"greeter"' not in history
        assert "binary/sealed" not in history  # base64, as all metadata
        assert "YmluYXJ5L3NlYWxlZA==" in history
