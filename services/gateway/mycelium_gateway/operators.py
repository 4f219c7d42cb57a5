"""Who runs the hub: by the setting `auth.operators`, as the operator of a cluster, or as somebody on its own machine.

Routes and `actor.py` ask here. What an operator may do is held by the services and by the route of bundles.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mycelium_gateway import peers
from mycelium_gateway.operator_token import OPERATOR
from mycelium_gateway.peers import TrustedProxies

if TYPE_CHECKING:
    from starlette.types import Scope

    from mycelium_gateway.identity import Identity
    from mycelium_gateway.settings import GatewaySettings


def may_change_records(identity: Identity | None, settings: GatewaySettings) -> bool:
    """Whether who signed in changes records that are not theirs, of members and people."""
    return identity is OPERATOR or _is_named(identity, settings)


def may_bring_rooms(scope: Scope, identity: Identity | None, settings: GatewaySettings) -> bool:
    """Whether the caller may say what others have said: who is named, or the hub's machine where it needs no token.

    A cluster's operator is none of them: it makes rooms, and speaks for nobody.
    """
    if _is_named(identity, settings):
        return True
    is_open = settings.auth.localhost_bypass or not settings.auth.enabled
    return is_open and peers.is_local(scope, TrustedProxies(settings.trusted_proxies))


def _is_named(identity: Identity | None, settings: GatewaySettings) -> bool:
    """Never by a token of the hub's own, which is good for an agent in one room."""
    return identity is not None and not identity.room_id and identity.handle in settings.auth.operators
