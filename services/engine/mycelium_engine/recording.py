"""How a workflow has told that its run begins, and how it ended: the same of every kind of engine.

Both are local activities: they cost Temporal nothing but a mark in the history. `records.py` does them.
"""

from __future__ import annotations

from datetime import timedelta

from temporalio import workflow
from temporalio.common import RetryPolicy

from mycelium_engine.calls import Answer, Beginning, Call, Ended, Ending

PATCH = "run-facts"  # runs that began before it are told nothing of
RECORD_S = 15
AGAIN = RetryPolicy(initial_interval=timedelta(milliseconds=250), maximum_interval=timedelta(seconds=15))
CAPS = frozenset({"model.over_budget", "model.unmetered", "model.price_unknown"})  # what a room's budget refuses by


async def started(call: Call, kind: str, run: str) -> bool:
    """Tell that a run begins; whether its end is to be told, too."""
    if not workflow.patched(PATCH):
        return False
    recorded: bool = await workflow.execute_local_activity(
        "record_start",
        Beginning(call, kind, run),
        result_type=bool,
        start_to_close_timeout=timedelta(seconds=RECORD_S),
        retry_policy=AGAIN,
    )
    return recorded


async def ended(call: Call, run: str, posted: Answer) -> None:
    """Tell how it ended: by what was posted, or that there was nobody left to post to."""
    await workflow.execute_local_activity(
        "record_end",
        Ending(call, run, outcome(posted), posted.slug),
        start_to_close_timeout=timedelta(seconds=RECORD_S),
        retry_policy=AGAIN,
    )


def outcome(posted: Answer) -> Ended:
    """How a run ended that came to this."""
    if posted.gone:
        return "stopped"
    if posted.slug in CAPS:
        return "capped"
    return "failed" if posted.slug else "done"
