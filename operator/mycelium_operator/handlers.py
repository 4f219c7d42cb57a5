"""What the operator listens to: decorators and one call each."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

import aiohttp
import kopf

from mycelium_operator import names
from mycelium_operator.apply import Operator
from mycelium_operator.desired import Json, is_held
from mycelium_operator.hub import Away

LOGGER = logging.getLogger(__name__)
AWAY_S = 5.0
CONFLICT_S = 0.5
Login = Callable[..., kopf.ConnectionInfo | None]
Kind = (names.GROUP, names.VERSION, names.ROOMS)


def registry(operator: Operator, login: Login, resync_s: float) -> kopf.OperatorRegistry:
    """The handlers of one operator, which signs in by `login`.

    Every `resync_s` each room is looked at, whether its object changed or not.
    """
    found = kopf.OperatorRegistry()
    rooms: dict[str, Json] = {}  # by uid: which there are, as last seen
    background: set[asyncio.Task[None]] = set()

    kopf.on.login(registry=found, id="login")(login)

    @kopf.on.startup(registry=found, id="settings")
    async def configure(settings: kopf.OperatorSettings, **_: Any) -> None:
        settings.persistence.finalizer = names.FINALIZER
        settings.persistence.progress_storage = kopf.AnnotationsProgressStorage(prefix=names.GROUP)
        settings.persistence.diffbase_storage = kopf.AnnotationsDiffBaseStorage(prefix=names.GROUP)
        settings.posting.enabled = False  # its events tell of handlers; ours tell of rooms
        settings.scanning.disabled = True  # the kinds are known, and cluster-wide rights are not needed
        background.add(asyncio.create_task(_look_again(operator, rooms, resync_s), name="resync"))

    @kopf.on.cleanup(registry=found, id="resync")
    async def end(**_: Any) -> None:
        for task in background:
            task.cancel()
        await asyncio.gather(*background, return_exceptions=True)

    @kopf.on.event(*Kind, registry=found, id="seen")
    async def seen(type: str | None, body: kopf.Body, **_: Any) -> None:
        uid = body["metadata"]["uid"]
        if type == "DELETED":
            rooms.pop(uid, None)
        else:
            rooms[uid] = _plain(body)

    @kopf.on.resume(*Kind, registry=found, id="room")
    @kopf.on.create(*Kind, registry=found, id="room")
    @kopf.on.update(*Kind, registry=found, id="room", field="spec")
    async def make_so(body: kopf.Body, **_: Any) -> None:
        async with _again():
            await operator.make_so(_plain(body))

    @kopf.on.delete(*Kind, registry=found, id="room", when=lambda body, **_: is_held(body))
    async def unmake(body: kopf.Body, **_: Any) -> None:
        async with _again():
            await operator.unmake(_plain(body))

    return found


@contextlib.asynccontextmanager
async def _again() -> AsyncIterator[None]:
    """What passes is tried again soon; anything else in kopf's own time."""
    try:
        yield
    except Away as away:
        raise kopf.TemporaryError(str(away), delay=AWAY_S) from away
    except aiohttp.ClientResponseError as error:
        if error.status != 409:
            raise
        raise kopf.TemporaryError("the object has changed meanwhile", delay=CONFLICT_S) from error


async def _look_again(operator: Operator, rooms: Mapping[str, Json], every_s: float) -> None:
    """What was changed in the hub behind an object's back is changed again."""
    while True:
        await asyncio.sleep(every_s)
        for body in list(rooms.values()):
            try:
                await operator.make_so(body)
            except Exception as error:
                LOGGER.warning("%s: %s", body["metadata"]["name"], error or type(error).__name__)


def _plain(body: Mapping[str, Any]) -> Json:
    return {key: dict(value) if isinstance(value, Mapping) else value for key, value in body.items()}
