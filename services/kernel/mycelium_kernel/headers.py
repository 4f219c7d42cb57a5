"""Names of the headers on the bus and in the log, and the rule for what stands in them."""

from __future__ import annotations

import re

from mycelium_kernel.errors import Refusal

KEY = "Myc-Key"
BODY = "Myc-Body"
ACTOR = "Myc-Actor"
SESSION = "Myc-Session"
PROVEN = "Myc-Proven"
OPERATOR = "Myc-Operator"
DEADLINE = "Myc-Deadline"
BUDGET = "Myc-Budget"
TYPE = "Myc-Type"
SEQUENCE = "Myc-Sequence"
ERROR = "Nats-Service-Error"
ERROR_CODE = "Nats-Service-Error-Code"
TRACE = "traceparent"
MESSAGE_ID = "Nats-Msg-Id"
EXPECTED = "Nats-Expected-Last-Subject-Sequence"
BATCH_ID = "Nats-Batch-Id"
BATCH_SEQUENCE = "Nats-Batch-Sequence"
BATCH_COMMIT = "Nats-Batch-Commit"

_SAFE = re.compile(r"[!-~](?:[ -~]{0,254}[!-~])?")


def check(**values: str) -> None:
    """Refuse a value that a header would change or that could end it: only visible ASCII and inner spaces pass."""
    for name, value in values.items():
        if value and not _SAFE.fullmatch(value):
            raise Refusal(
                "request.invalid", f"the {name} {value[:40]!r} may hold at most 256 ASCII characters, no control"
            )
