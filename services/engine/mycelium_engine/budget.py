"""What the engine service answers about budgets. Whether the caller may see the room, the gateway has asked rooms."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mycelium.engine.v1 import service_pb2
from mycelium_engine import spending
from mycelium_engine.calls import PICO, Limits
from mycelium_engine.ledger import Ledger
from mycelium_engine.settings import LARGEST
from mycelium_engine.spending import State
from mycelium_kernel.errors import Refusal
from mycelium_kernel.service import Context, Direct

if TYPE_CHECKING:
    from mycelium_kernel.run import Runtime


def answers(hub: Limits) -> tuple[Direct, ...]:
    """The requests that are answered, for a hub with these limits."""

    async def get(
        runtime: Runtime, request: service_pb2.GetBudgetRequest, _context: Context
    ) -> tuple[service_pb2.GetBudgetResponse, int]:
        saved = await Ledger(runtime, hub).read(request.room_id)
        return service_pb2.GetBudgetResponse(budget=spending.view(saved.state, hub)), 0

    async def change(
        runtime: Runtime, request: service_pb2.ChangeBudgetRequest, context: Context
    ) -> tuple[service_pb2.ChangeBudgetResponse, int]:
        _check(request)
        scope = f"{context.actor.handle}\n{context.key}"

        def decide(state: State | None) -> State | None:
            return spending.change(state, request, scope, context.now)

        saved = await Ledger(runtime, hub).change(request.room_id, context.actor.handle, decide)
        return service_pb2.ChangeBudgetResponse(budget=spending.view(saved.state, hub)), saved.sequence

    return (Direct(service_pb2.GetBudgetRequest, get), Direct(service_pb2.ChangeBudgetRequest, change))


def _check(request: service_pb2.ChangeBudgetRequest) -> None:
    given = (("turns", request.turns, 1), ("tokens", request.tokens, 1), ("usd", request.pico_usd, PICO))
    for name, limit, scale in given:
        if limit.most > LARGEST[name] * scale:
            raise Refusal("request.invalid", f"{name} is more than a limit can be")
