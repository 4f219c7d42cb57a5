"""A service of a few lines on the protos of rooms: users as entities, posts as free facts."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

from google.protobuf.message import Message

from mycelium.rooms.v1 import events_pb2, service_pb2, views_pb2
from mycelium_kernel import events, headers, subjects
from mycelium_kernel.bus import Bus, Reply
from mycelium_kernel.clock import system_clock, to_timestamp
from mycelium_kernel.errors import Refusal
from mycelium_kernel.run import Runtime
from mycelium_kernel.service import (
    Actor,
    Command,
    Context,
    Entity,
    Evolution,
    Fact,
    Projection,
    Query,
    Service,
    Stored,
)
from mycelium_kernel.tables import Tables

ROOM = "00000000-0000-7000-8000-000000000001"
ACTOR = Actor("tester", "s1")
Start = Callable[..., contextlib.AbstractAsyncContextManager[Runtime]]
UserEntity = Entity[events_pb2.UserState]


def user_subject(handle: str) -> str:
    return subjects.fact("rooms", subjects.HUB, "user", handle)


def load_user(tables: Tables, request: service_pb2.SaveUserRequest, _context: Context) -> UserEntity:
    return tables.entity(user_subject(request.handle), events_pb2.UserState)


def save_user(entity: UserEntity, request: service_pb2.SaveUserRequest, context: Context) -> Fact:
    if request.create_only and entity.state:
        raise Refusal("handle.taken", f"@{request.handle} is {entity.state.user.name}", holder=entity.state.user.name)
    event = events_pb2.UserSaved(handle=request.handle, name=request.name, updated_at=to_timestamp(context.now))
    return Fact(event, on=entity)


def answer_user(event: events_pb2.UserSaved, _sequence: int) -> service_pb2.SaveUserResponse:
    return service_pb2.SaveUserResponse(user=views_pb2.User(handle=event.handle, name=event.name))


def evolve_user(_state: events_pb2.UserState | None, event: events_pb2.UserSaved) -> events_pb2.UserState:
    return events_pb2.UserState(user=views_pb2.User(handle=event.handle, name=event.name))


def post(_loaded: None, request: service_pb2.PostMessageRequest, context: Context) -> Fact:
    if request.content == "bug":
        raise ZeroDivisionError
    event = events_pb2.MessagePosted(room_id=ROOM, message_id=context.new_id(), content=request.content)
    return Fact(event, subject=subjects.posts(ROOM))


def answer_post(event: events_pb2.MessagePosted, sequence: int) -> service_pb2.PostMessageResponse:
    message = views_pb2.Message(id=event.message_id, sequence=sequence, content=event.content)
    return service_pb2.PostMessageResponse(message=message)


def project_user(tables: Tables, event: events_pb2.UserSaved, _stored: Stored) -> None:
    tables.execute("INSERT OR REPLACE INTO user VALUES (?, ?)", event.handle, event.name)


def project_post(tables: Tables, event: events_pb2.MessagePosted, stored: Stored) -> None:
    tables.execute("INSERT INTO post VALUES (?, ?, ?)", stored.sequence, event.room_id, event.content)


def list_users(tables: Tables, _request: Any, _context: Context) -> service_pb2.ListUsersResponse:
    rows = tables.all("SELECT handle, name FROM user ORDER BY handle")
    return service_pb2.ListUsersResponse(users=[views_pb2.User(handle=handle, name=name) for handle, name in rows])


PROJECTION = Projection(
    schemas=(Path(__file__).with_name("toy.sql"),),
    version=1,
    filters=(subjects.of_service("rooms"),),
    apply={events_pb2.UserSaved: project_user, events_pb2.MessagePosted: project_post},
    entities={events_pb2.UserSaved: (Evolution(events_pb2.UserState, evolve_user),)},
    room_tables=("post",),
    erased={events_pb2.RoomDeleted: lambda event: event.room_id},
)


def service(**changes: Any) -> Service:
    parts: dict[str, Any] = {
        "name": "rooms",
        "version": "0.1.0",
        "projection": PROJECTION,
        "commands": (
            Command(service_pb2.SaveUserRequest, load_user, save_user, answer_user),
            Command(service_pb2.PostMessageRequest, lambda *_: None, post, answer_post),
        ),
        "queries": (Query(service_pb2.ListUsersRequest, list_users),),
    }
    return Service(**{**parts, **changes})


BOUND_S = 60.0


async def until(condition: Callable[[], Any]) -> None:
    """Return when `condition` holds; a test fails that waits longer than ten seconds."""
    async with asyncio.timeout(BOUND_S):
        while not condition():  # noqa: ASYNC110 - of another process, or of many parts
            await asyncio.sleep(0.01)


async def store(runtime: Runtime, subject: str, event: Message, expect: int | None = None, **extra: str) -> int:
    """Append a fact past every command."""
    stored = {headers.TYPE: events.type_name(event), **{f"Myc-{name.title()}": text for name, text in extra.items()}}
    deadline = system_clock() + timedelta(seconds=BOUND_S)
    appended = await runtime.log.append(subject, event.SerializeToString(), stored, expect=expect, deadline=deadline)
    return appended.sequence


async def save(bus: Bus, handle: str, name: str = "x", **options: Any) -> Reply[service_pb2.SaveUserResponse]:
    request = service_pb2.SaveUserRequest(handle=handle, name=name, create_only=options.pop("create_only", False))
    return await bus.ask(request, service_pb2.SaveUserResponse, actor=ACTOR, **options)


async def say(bus: Bus, content: str, **options: Any) -> Reply[service_pb2.PostMessageResponse]:
    request = service_pb2.PostMessageRequest(content=content)
    return await bus.ask(request, service_pb2.PostMessageResponse, actor=ACTOR, **options)


async def names_of(bus: Bus, **options: Any) -> list[str]:
    listed = await bus.ask(service_pb2.ListUsersRequest(), service_pb2.ListUsersResponse, actor=ACTOR, **options)
    return [user.handle for user in listed.message.users]


async def ignore_timer(_runtime: Runtime, _room: str, _data: bytes) -> None:
    """A due timer that nothing follows from."""
