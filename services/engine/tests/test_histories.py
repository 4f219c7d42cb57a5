"""Saved histories are replayed: a changed workflow must still take up the runs that an older one began.

After a change that is meant, add a history of the new shape: `python -m services.engine.tests.save`.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from temporalio.client import WorkflowHistory
from temporalio.worker import Replayer

from mycelium_engine.kinds import workflows
from mycelium_kernel import temporal
from services.engine.tests.conftest import KEY, NAMESPACE

SAVED = sorted((Path(__file__).parent / "histories").glob("*.json"))


@pytest.mark.parametrize("path", SAVED, ids=lambda path: path.stem)
async def test_a_saved_history_is_taken_up(path: Path) -> None:
    """Every decision of the past is made again, in the same order."""
    identifier, _, text = path.read_text(encoding="utf-8").partition("\n")  # noqa: ASYNC240 - a small file
    replayer = Replayer(
        workflows=workflows(),
        namespace=NAMESPACE,
        data_converter=temporal.converter(KEY),
        workflow_runner=temporal.sandbox(),
    )

    await replayer.replay_workflow(WorkflowHistory.from_json(identifier, text))


def test_there_are_histories() -> None:
    """One that went well, one whose model failed, one that failed for good; of before runs left facts, and since."""
    kinds = {"ok", "model-failed", "gave-up"}
    assert {path.stem for path in SAVED} >= {f"hello-{kind}" for kind in kinds} | {
        f"hello-told-{kind}" for kind in kinds
    }
