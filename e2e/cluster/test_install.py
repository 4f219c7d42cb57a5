"""An empty namespace, one command, and a hub that agents use through its Service."""

import pytest

from e2e.cluster.kube import Release
from e2e.harness import Machine
from e2e.requirements import requirement
from e2e.web import Api

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]

# Run in a pod of rooms: what its user may not do is refused by the server.
TRESPASS = """
import asyncio, nats, os

async def main():
    refused = asyncio.Event()

    async def failed(error):
        if "permissions violation" in str(error).lower():
            refused.set()

    client = await nats.connect(
        os.environ["MYCELIUM_NATS_SERVERS"].split(","), user="rooms", password=os.environ["MYCELIUM_NATS_PASSWORD"],
        inbox_prefix=b"_INBOX_rooms", error_cb=failed)
    await client.publish("{subject}", b"")
    await client.flush()
    try:
        await asyncio.wait_for(refused.wait(), 3)
        print("refused")
    except TimeoutError:
        print("taken")
    await client.close()

asyncio.run(main())
"""
REACH = """
import socket
try:
    socket.create_connection(("{host}", {port}), 3).close()
    print("reached")
except OSError as error:
    print("refused", error)
"""


@requirement("cluster:install")
def test_one_command_gives_a_hub_whose_own_test_posts_and_receives(release: Release) -> None:
    """Under the restricted pod security; `helm test` goes through the Service."""
    for part in ("gateway", "rooms", "memory", "board", "engine"):
        assert len(release.pods(part)) == 2
    release.helm("test", release.name, "--timeout=3m")


@requirement("cluster:insecure")
def test_that_nobody_signs_in_is_said_wherever_one_looks(release: Release, api: Api) -> None:
    """The notes of the release, and /health for as long as it runs."""
    assert "auth.insecure is true" in release.notes
    health = api.get("/health").ok(200).json
    assert health["status"] == "ok", health
    assert any("auth.insecure" in warning for warning in health["warnings"])
    assert set(health["services"]) == {"rooms", "memory", "board", "engine"}


@requirement("cluster:converse")
def test_two_agents_converse_through_the_service(machine: Machine) -> None:
    """One asks and waits, the other is woken and answers; whichever replicas they reach."""
    machine.run("room", "create", "plans", handle="avery").ok()
    for handle in ("asker", "answerer"):
        machine.run("agent", "create", handle, "--room", "plans", handle="avery").ok()
    waiting = machine.start("await", handle="answerer", room="plans")
    machine.run("room", "send", "--room", "plans", "@answerer is the cluster up?", handle="asker").ok()
    assert "is the cluster up?" in waiting.ended().ok().out
    machine.run("respond", "@asker it is", handle="answerer", room="plans").ok()
    heard = machine.run("await", handle="asker", room="plans").ok()
    assert "it is" in heard.out


@pytest.mark.parametrize(
    ("subject", "said"),
    [("evt.gateway.x.y.z", "refused"), ("svc.rooms.get_room.gateway", "refused"), ("svc.gateway.x.rooms", "taken")],
)
@requirement("cluster:own-subjects")
def test_a_service_s_user_may_use_its_own_subjects_only(release: Release, subject: str, said: str) -> None:
    """Facts of another service, and requests in another's name, are refused by the server."""
    assert release.python("rooms", TRESPASS.format(subject=subject)).strip() == said


@pytest.mark.parametrize(
    ("part", "host", "port", "said"),
    [
        ("rooms", "mycelium-nats", 4222, "reached"),
        ("operator", "mycelium-nats", 4222, "refused"),
        ("operator", "mycelium-gateway", 8000, "reached"),
        ("operator", "mycelium-rooms", 9100, "refused"),
        ("rooms", "mycelium-temporal", 7233, "refused"),
        ("engine", "mycelium-temporal", 7233, "reached"),
        ("gateway", "kubernetes.default", 443, "refused"),
    ],
)
@requirement("cluster:network")
def test_pods_reach_what_the_design_lets_them_reach(
    release: Release, part: str, host: str, port: int, said: str
) -> None:
    """Everything else is refused."""
    assert release.python(part, REACH.format(host=host, port=port)).split()[0] == said
