"""The service's side of Temporal: connects, runs the workers, starts a run for a call.

Temporal may be away, at start or later: then a start is `Unavailable`, which the log's reader repeats, and everything
else of the hub goes on.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

from mycelium_engine import models
from mycelium_engine.calls import Call
from mycelium_engine.ledger import Ledger
from mycelium_engine.queues import ENGINE, MODELS
from mycelium_engine.settings import EngineSettings
from mycelium_kernel.errors import Unavailable

if TYPE_CHECKING:
    from temporalio.client import Client

    from mycelium_kernel.run import Runtime

LOGGER = logging.getLogger(__name__)
LOOK_S = 0.25  # between the tries to reach Temporal
PATIENCE_S = 30.0  # Temporal may take so long before health says that it is away
AT_ONCE = 20  # activities of one process
START_S = 10.0
TASK = timedelta(seconds=5)  # a process that died with a decision in hand is noticed after this


class Runs:
    """The connection to Temporal of one process."""

    def __init__(self, settings: EngineSettings) -> None:
        self._settings = settings
        self._client: Client | None = None

    async def work(self, runtime: Runtime) -> None:
        """Run workflows and activities until cancelled. A worker of the kernel: started again when it fails."""
        await asyncio.to_thread(importlib.import_module, "mycelium_engine.kinds")
        await asyncio.to_thread(importlib.import_module, "mycelium_kernel.temporal")
        from mycelium_engine.hello.activities import HelloActivities
        from mycelium_engine.kinds import workflows
        from mycelium_engine.records import Records
        from mycelium_kernel import temporal

        client = await self._connect(runtime)
        records = Records(runtime)
        hello = HelloActivities(runtime.bus, self._settings.model, Ledger(runtime, self._settings.model.limits))
        workers = [
            temporal.worker(
                client, ENGINE, workflows(), [hello.post_reply, records.record_start, records.record_end], AT_ONCE
            ),
            temporal.worker(client, MODELS, [], [hello.call_model], AT_ONCE),
        ]
        self._client = client
        runtime.spawn("models", partial(models.warm, self._settings.model))
        LOGGER.info("runs workflows by Temporal at %s", self._settings.address)
        await temporal.run_workers(workers)

    async def _connect(self, runtime: Runtime) -> Client:
        from mycelium_kernel import temporal

        settings = temporal.TemporalSettings(self._settings.address, self._settings.namespace, self._settings.key_file)
        waited = asyncio.get_running_loop().time() + PATIENCE_S
        while True:
            try:
                client = await temporal.connect(settings)
            except RuntimeError as error:
                LOGGER.debug("Temporal does not answer yet: %s", error)
            else:
                runtime.report("temporal", "")
                return client
            if asyncio.get_running_loop().time() > waited:
                runtime.report("temporal", f"no answer at {self._settings.address}")
            await asyncio.sleep(LOOK_S)

    async def erase(self, room_id: str) -> None:
        """Delete every run of a room and its history, ended or not. Raises `Unavailable`."""
        if self._client is None:
            raise Unavailable("Temporal is not reached yet")
        from temporalio.api.common.v1 import WorkflowExecution
        from temporalio.api.workflowservice.v1 import DeleteWorkflowExecutionRequest
        from temporalio.service import RPCError, RPCStatusCode

        from mycelium_engine.kinds import KINDS

        try:
            for kind in KINDS.values():
                async for found in self._client.list_workflows(
                    f'WorkflowId STARTS_WITH "{kind.workflow_type}:{room_id}:"'
                ):
                    execution = WorkflowExecution(workflow_id=found.id, run_id=found.run_id)
                    request = DeleteWorkflowExecutionRequest(
                        namespace=self._settings.namespace, workflow_execution=execution
                    )
                    await self._client.workflow_service.delete_workflow_execution(request)
        except RPCError as error:
            if error.status != RPCStatusCode.NOT_FOUND:  # gone meanwhile
                raise Unavailable(f"Temporal erased nothing: {error.status.name}") from error

    async def find_over(self, kind_name: str, call: Call) -> str:
        """The id of a call's workflow when Temporal does not run it, or not any more; empty while it does.

        Raises `Unavailable`.
        """
        if self._client is None:
            raise Unavailable("Temporal is not reached yet")
        from temporalio.client import WorkflowExecutionStatus
        from temporalio.service import RPCError, RPCStatusCode

        from mycelium_engine.kinds import named

        kind = named(kind_name)
        if kind is None:
            return ""
        workflow_id = kind.workflow_id(call)
        try:
            async with asyncio.timeout(START_S):
                found = await self._client.get_workflow_handle(workflow_id).describe()
        except RPCError as error:
            if error.status == RPCStatusCode.NOT_FOUND:
                return workflow_id
            raise Unavailable(f"Temporal tells of no run: {error.status.name}") from error
        except TimeoutError as error:
            raise Unavailable("Temporal tells of no run: it does not answer") from error
        return "" if found.status == WorkflowExecutionStatus.RUNNING else workflow_id

    async def start(self, kind_number: int, call: Call) -> bool:
        """Start the run of a call, unless it was started before; False for a kind that nobody runs.

        Raises `Unavailable` when Temporal does not take it now.
        """
        if self._client is None:
            raise Unavailable("Temporal is not reached yet")
        from temporalio.common import WorkflowIDReusePolicy
        from temporalio.exceptions import WorkflowAlreadyStartedError
        from temporalio.service import RPCError

        from mycelium_engine.kinds import KINDS

        kind = KINDS.get(kind_number)
        if kind is None:
            return False
        try:
            async with asyncio.timeout(START_S):
                await self._client.start_workflow(
                    kind.workflow_type,
                    call,
                    id=kind.workflow_id(call),
                    task_queue=ENGINE,
                    task_timeout=TASK,
                    id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE_FAILED_ONLY,
                )
        except WorkflowAlreadyStartedError:
            LOGGER.info("a run was started before: %s", call.message_id)
        except (RPCError, TimeoutError) as error:
            raise Unavailable(f"Temporal took no run: {type(error).__name__}") from error
        return True
