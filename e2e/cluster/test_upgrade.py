"""Upgrades and restarts while the hub is in use."""

import asyncio
from dataclasses import dataclass

import pytest

from e2e.cluster.kube import Release
from e2e.faults import count
from e2e.faults.load import Load, Plan
from e2e.faults.record import Record
from e2e.requirements import requirement
from e2e.room import Room

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]


@dataclass(frozen=True)
class Named(Plan):
    """A load whose agents no other has: keys are an agent's own, whatever the room."""

    word: str = "agent"

    @property
    def agent_names(self) -> list[str]:
        """Who is mentioned."""
        return [f"{self.word}{number}" for number in range(self.agents)]


async def under_load(room: Room, url: str, seed: int, *works: tuple[str, ...], release: Release) -> Record:
    """Use the room while each of these commands of kubectl or helm runs to its end; then all is counted."""
    record = Record(seed)
    plan = Named(posters=3, agents=2, pairs=0, rivals=0, readers=1, pause_s=0.2, word=f"load{seed}-")
    room.join(*plan.agent_names)
    load = Load(room, url, record, plan)
    load.start()
    try:
        await load.posts(20)
        for program, *arguments in works:
            record.note(" ".join((program, *arguments)))
            do = release.helm if program == "helm" else release.namespace.kubectl
            await asyncio.to_thread(do, *arguments)
            await load.posts(20)
        await load.end()
    finally:
        await load.stop()
    count.everything(room, record)
    return record


@requirement("cluster:upgrade")
async def test_a_rolling_update_under_load_fails_no_acknowledged_post(release: Release, room: Room, url: str) -> None:
    """Every pod of every service is replaced; no post is lost or stored twice, each mention arrives."""
    before = {part: set(release.pods(part)) for part in ("gateway", "engine", "operator")}
    rolling = ("helm", "upgrade", release.name, "charts/mycelium", "--reuse-values", "--set=log.level=warning",
               "--wait", "--timeout=8m")  # fmt: skip
    await under_load(room, url, 1, rolling, release=release)
    for part, pods in before.items():
        assert not pods & set(release.pods(part)), f"{part} was not replaced"


@requirement("cluster:log-restarts")
async def test_a_restart_of_the_log_under_load_fails_no_acknowledged_post(
    release: Release, room: Room, url: str
) -> None:
    """The one NATS server goes and comes back on its volume; posts wait for it."""
    restart = ("kubectl", "rollout", "restart", release.workload("nats"))
    wait = ("kubectl", "rollout", "status", release.workload("nats"), "--timeout=200s")
    await under_load(room, url, 2, restart, wait, release=release)


@requirement("cluster:secrets")
def test_what_was_made_at_the_first_install_is_kept_by_an_upgrade(release: Release) -> None:
    """Passwords and the key of payloads."""
    secrets = ("mycelium-nats", "mycelium-temporal")
    before = [(release.namespace.find("secret", name) or {})["data"] for name in secrets]
    release.install(allowedHosts=["hub.example.com"])
    assert [(release.namespace.find("secret", name) or {})["data"] for name in secrets] == before
    assert all(value for data in before for value in data.values())
