"""The gateway's settings, frozen. Only `service.py` reads them; everything else is given values."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from dataclasses import dataclass, field

from mycelium_gateway.issuers import AuthSettings
from mycelium_gateway.web_settings import WebSettings


@dataclass(frozen=True)
class GatewaySettings:
    """Where the hub answers, and to whom.

    `listener` is an already bound socket, for a runner that must know the port before it starts; otherwise `host` and
    `port` are bound (port 0: any free one).
    """

    host: str = "127.0.0.1"
    port: int = 8000
    listener: socket.socket | None = None
    # Names under which the hub may be called beside loopback and `host`; `*.example.com` means every name below it.
    allowed_hosts: tuple[str, ...] = ()
    # Whether callers must sign in, and whose tokens are believed.
    auth: AuthSettings = field(default_factory=AuthSettings)
    # How people sign in to the web app by their browsers.
    web: WebSettings = field(default_factory=WebSettings)
    # The digest of the token by which a cluster's operator is known; empty: there is none.
    operator_digest: str = field(default="", repr=False)
    # Proxies whose word about the scheme is believed, as in the setting; empty: those of this machine.
    trusted_proxies: str = ""
    # Services that /health asks, and how many replicas of each have to answer.
    services: Mapping[str, int] = field(default_factory=lambda: {"rooms": 1})
    # Those of them that begin after the hub answers, and the seconds in which their silence is no fault yet.
    late: frozenset[str] = frozenset()
    late_s: float = 60.0
    # Seconds between the comments that keep a silent stream open through proxies.
    stream_ping_s: float = 15.0
    # Bytes that may wait for one slow reader before its stream is closed; it resumes by its last id.
    stream_buffer_bytes: int = 4 * 1024 * 1024
    # Bytes of the newest facts that are kept in memory for watchers who were cut off; what is older they get from disk.
    stream_recent_bytes: int = 16 * 1024 * 1024
    # Bytes that a bundle of a whole room may have, unpacked.
    bundle_bytes: int = 1024 * 1024 * 1024
    # Requests that are worked on at once, in all and for one caller; more are told to come back.
    requests_at_once: int = 512
    requests_of_one: int = 256
    # Streams, waits and bundles that are open at once, in all and for one caller.
    lasting_at_once: int = 4_000
    lasting_of_one: int = 1_000
    # Seconds in which a connection must have sent the whole head of a request, and may send nothing of its body.
    head_s: float = 30.0
    body_s: float = 60.0
    # Seconds that requests under way get to end when the hub stops. Waits and streams end at once.
    stop_s: float = 3.0
