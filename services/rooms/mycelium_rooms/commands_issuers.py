"""Decides of which issuer a handle is: of the one that proved it first, for as long as the hub trusts that one."""

from __future__ import annotations

from mycelium.rooms.v1 import issuers_pb2
from mycelium_kernel import clock, names
from mycelium_kernel.service import Context, Done, Entity, Fact


def prove_handle(
    entity: Entity[issuers_pb2.ProofState], request: issuers_pb2.ProveHandleRequest, context: Context
) -> Fact | Done:
    """Refused for nothing: the gateway is told whose it is, and refuses the token of another."""
    owner = entity.state.issuer if entity.state else ""
    if owner and owner in {request.issuer, *request.trusted}:
        return Done(issuers_pb2.ProveHandleResponse(issuer=owner))
    event = issuers_pb2.HandleProven(
        handle=names.handle(request.handle), issuer=request.issuer, proven_at=clock.to_timestamp(context.now)
    )
    return Fact(event, on=entity)


def answer_prove(event: issuers_pb2.HandleProven, _sequence: int) -> issuers_pb2.ProveHandleResponse:
    return issuers_pb2.ProveHandleResponse(issuer=event.issuer)
