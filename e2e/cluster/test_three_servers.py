"""A hub on three NATS servers, one of which is killed."""

import pytest

from e2e.cluster.kube import Release
from e2e.requirements import requirement

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]

# Run in a pod of rooms: how many servers keep the log, and how many of them are up to date.
LOG = """
import asyncio, nats, os

async def main():
    client = await nats.connect(
        os.environ["MYCELIUM_NATS_SERVERS"].split(","), user="rooms", password=os.environ["MYCELIUM_NATS_PASSWORD"],
        inbox_prefix=b"_INBOX_rooms")
    info = await client.jetstream().stream_info("FACTS")
    print(info.config.num_replicas, 1 + sum(peer.current for peer in info.cluster.replicas))
    await client.close()

asyncio.run(main())
"""


@requirement("cluster:three-servers")
def test_a_hub_on_three_servers_goes_on_when_one_is_killed(three: Release) -> None:
    """Every fact is kept three times; the killed server comes back on its volume and catches up."""
    three.helm("test", three.name, "--timeout=3m")
    assert three.python("rooms", LOG).split() == ["3", "3"]
    three.namespace.delete("pod", "mycelium-nats-1", now=True)
    three.helm("test", three.name, "--timeout=3m")
    three.settle("nats")
    three.helm("test", three.name, "--timeout=3m")
