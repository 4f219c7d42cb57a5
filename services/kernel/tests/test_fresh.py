"""Which first decisions wait for fresh tables."""

from __future__ import annotations

from mycelium.rooms.v1 import events_pb2, service_pb2
from mycelium_kernel.bus import Bus
from mycelium_kernel.service import Command, Context, Done, Entity
from services.kernel.tests import toy
from services.kernel.tests.toy import Start


def look(entity: Entity[events_pb2.UserState], _request: object, _context: Context) -> Done:
    return Done(service_pb2.SaveUserResponse(user=entity.state.user if entity.state else None))


def test_a_command_is_fresh_always_never_or_for_some_requests() -> None:
    """A command with several uses pays only where it may answer "nothing there"."""
    request = service_pb2.SaveUserRequest(handle="a", create_only=True)
    for fresh, expected in ((True, True), (False, False), (lambda asked: asked.create_only, True)):
        command = Command(service_pb2.SaveUserRequest, toy.load_user, look, toy.answer_user, fresh=fresh)
        assert command.is_fresh(request) is expected


async def test_a_request_that_its_command_calls_fresh_sees_what_was_stored_before(start: Start, bus: Bus) -> None:
    """As one of a command that is always fresh does."""

    def by_handle(request: service_pb2.SaveUserRequest) -> bool:
        return request.handle == "a"

    command = Command(service_pb2.SaveUserRequest, toy.load_user, look, toy.answer_user, fresh=by_handle)
    async with start(toy.service(commands=(command,))) as runtime:
        for number in range(20):
            event = events_pb2.UserSaved(handle="a", name=str(number))
            await toy.store(runtime, toy.user_subject("a"), event, expect=number)
            reply = await toy.save(bus, "a")
            assert reply.message.user.name == str(number)
