"""The operator's settings, from the environment: where the hub is, which namespace, how often to look again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class OperatorSettings:
    """Where the hub is and what the operator looks after."""

    # The gateway's address.
    gateway: str
    # The file with the token by which the gateway knows the operator; empty where nobody has to sign in.
    token_file: str
    # The namespace whose rooms are this hub's.
    namespace: str
    # Seconds between two looks at a room that nobody changed.
    resync_s: float
    # Where it answers probes.
    probe_host: str
    probe_port: int
    log_level: str


def load(environment: Mapping[str, str]) -> OperatorSettings:
    """Read the environment; raises `KeyError` for what has no default."""
    return OperatorSettings(
        gateway=environment["MYCELIUM_OPERATOR_GATEWAY"],
        token_file=environment.get("MYCELIUM_OPERATOR_TOKEN_FILE", ""),
        namespace=environment["MYCELIUM_OPERATOR_NAMESPACE"],
        resync_s=float(environment.get("MYCELIUM_OPERATOR_RESYNC_S", "60")),
        probe_host=environment.get("MYCELIUM_SERVICE_PROBE_HOST", "127.0.0.1"),
        probe_port=int(environment.get("MYCELIUM_SERVICE_PROBE_PORT", "9100")),
        log_level=environment.get("MYCELIUM_LOG_LEVEL", "info"),
    )
