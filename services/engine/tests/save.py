"""Saves histories of the present workflows for `test_histories`: `python -m services.engine.tests.save`."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path

from temporalio.testing import WorkflowEnvironment

from mycelium_engine.calls import Answer, Call
from mycelium_kernel import temporal
from services.engine.tests.conftest import KEY, NAMESPACE
from services.engine.tests.running import CALL, Script, start, working

FOLDER = Path(__file__).parent / "histories"
SCRIPTS = {  # those without `told` are of runs that left no facts, and stay as they are
    "hello-told-ok": Script(),
    "hello-told-model-failed": Script(Answer(slug="model.auth", detail="the provider refuses the key")),
    "hello-told-gave-up": Script(broken=True),
    "hello-told-gone": Script(Answer(gone=True)),
}


async def main() -> None:
    """One history of each script."""
    FOLDER.mkdir(exist_ok=True)
    program = str(Path(sys.executable).parent / "temporal")
    async with await WorkflowEnvironment.start_local(
        dev_server_existing_path=program, ip="127.0.0.1", namespace=NAMESPACE
    ) as environment:
        address = environment.client.service_client.config.target_host
        with tempfile.NamedTemporaryFile() as key:
            key.write(KEY)
            key.flush()
            client = await temporal.connect(temporal.TemporalSettings(address, NAMESPACE, key.name))
        for name, script in SCRIPTS.items():
            async with working(client, script):
                handle = await start(client, Call(CALL.room_id, CALL.message_id, name))
                await handle.result()
            history = await environment.client.get_workflow_handle(handle.id).fetch_history()
            (FOLDER / f"{name}.json").write_text(f"{handle.id}\n{history.to_json()}\n", encoding="utf-8")


if __name__ == "__main__":
    asyncio.run(main())
