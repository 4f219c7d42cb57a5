"""Time and ids as values that are passed in, so that tests own both. The runner makes the real ones."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import uuid_utils
from google.protobuf.timestamp_pb2 import Timestamp

Clock = Callable[[], datetime]
NewId = Callable[[], str]
LATEST_MS = 253_402_300_799_000  # the end of the year 9999, in milliseconds since 1970


def system_clock() -> datetime:
    """Now, in UTC, cut to milliseconds: what is shown is what is stored."""
    now = datetime.now(UTC)
    return now.replace(microsecond=now.microsecond // 1000 * 1000)


def new_id() -> str:
    """A UUIDv7 (RFC 9562), which sorts by the time it was made."""
    return str(uuid_utils.uuid7())


def to_timestamp(moment: datetime) -> Timestamp:
    """The protobuf form of a moment in UTC."""
    timestamp = Timestamp()
    timestamp.FromDatetime(moment)
    return timestamp


def not_before(earlier: Timestamp, moment: datetime) -> Timestamp:
    """The protobuf form of a moment, or `earlier` where that is later: two machines' clocks differ, an order can't."""
    return earlier if to_millis(earlier) > to_millis(to_timestamp(moment)) else to_timestamp(moment)


def from_timestamp(timestamp: Timestamp) -> datetime:
    """The moment, in UTC, of a protobuf timestamp."""
    return timestamp.ToDatetime(tzinfo=UTC)


def to_millis(timestamp: Timestamp) -> int:
    """Milliseconds since 1970, the form in which tables hold time."""
    return timestamp.seconds * 1000 + timestamp.nanos // 1_000_000


def millis(moment: datetime) -> int:
    """Milliseconds since 1970 of a moment in UTC."""
    return to_millis(to_timestamp(moment))


def from_millis(count: int) -> Timestamp:
    """The protobuf timestamp of milliseconds since 1970."""
    return Timestamp(seconds=count // 1000, nanos=count % 1000 * 1_000_000)


def rfc3339(count: int) -> str:
    """Milliseconds since 1970 as users see a moment: RFC 3339 in UTC with milliseconds."""
    moment = datetime.fromtimestamp(count / 1000, UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{count % 1000:03d}Z"
