"""The table of contents of the engine service: it holds no tables.

Mentions start runs, one worker keeps them going, another looks after those that Temporal ended; what a room may spend
stands in the log.
"""

from __future__ import annotations

from mycelium_engine import budget
from mycelium_engine.mentions import Mentions
from mycelium_engine.reactions import eraser
from mycelium_engine.runs import Runs
from mycelium_engine.settings import EngineSettings
from mycelium_engine.strays import Strays
from mycelium_kernel.service import Service

NAME = "engine"
VERSION = "0.1.0"


def service(settings: EngineSettings) -> Service:
    """The service as the kernel runs it. It is ready without Temporal and without a model."""
    runs = Runs(settings)
    workers = (runs.work, Mentions(runs).work_on_mentions, Strays(runs).watch)
    return Service(
        name=NAME,
        version=VERSION,
        direct=budget.answers(settings.model.limits),
        reactions=(eraser(runs),),
        workers=workers,
    )
