"""A seeded bug: a claim is ended at the time that it had before it was renewed."""

from typing import Any

MODULE = "mycelium_board.service"
EXPIRED = 4  # as the protocol numbers moves


def patch(service: Any) -> None:
    """Let the tables keep the first end, and let nobody look at the second."""
    claims, apply = service.commands_claims, service.PROJECTION.apply

    def expire(loaded: Any, request: Any, context: Any) -> Any:
        last = claims.latest(loaded.entity)
        if last is None or last.token != request.token:
            return claims.Done(claims.service_pb2.ExpireClaimResponse())
        return claims.Fact(claims.moved(loaded, EXPIRED, "", context.now), on=loaded.entity)

    claims.expire_claim = expire
    apply.update({event: lambda *_: None for event in apply if event.__name__ == "ClaimRenewed"})
