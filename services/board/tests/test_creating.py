"""What filing a task under one key comes to, on a real NATS server, with memory."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mycelium.board.v1 import service_pb2
from mycelium_kernel import testing
from mycelium_kernel.errors import Refusal
from services.board.tests.live import Live, live


async def filed(hub: Live, title: str, key: str, **fields: Any) -> str:
    """Key of the task that is filed so."""
    request = service_pb2.CreateTaskRequest(room="demo", title=title, **fields)
    found: str = (await hub.ask(request, key=key)).row.key
    return found


async def test_a_key_files_one_task(nats_server: testing.NatsServer, tmp_path: Path) -> None:
    """A repeat answers with it, also one whose title another has; anything else under that key is refused."""
    async with live(nats_server, tmp_path) as hub:
        assert await filed(hub, "Ship it", "one") == "work/ship-it"
        assert await filed(hub, "Ship it", "two") == "work/ship-it-2"
        for key, title in (("one", "ship-it"), ("two", "ship-it-2")):
            assert await filed(hub, "Ship it", key) == f"work/{title}"
            for fields in ({"title": "Another"}, {"body": "x"}, {"kind": "concern"}, {"kind": "decision"}):
                with pytest.raises(Refusal) as caught:
                    await filed(hub, **{"title": "Ship it", "key": key} | fields)
                assert caught.value.slug == "key.reused"
        assert list(await hub.rows()) == ["work/ship-it-2", "work/ship-it"]


@pytest.mark.parametrize("title", ["a\0b", "a\x1b[31mb", "a\x7fb"])
async def test_a_title_is_one_line(nats_server: testing.NatsServer, tmp_path: Path, title: str) -> None:
    """As every text that is shown on one: what moves a terminal is no part of it. Line breaks are spaces."""
    async with live(nats_server, tmp_path) as hub:
        with pytest.raises(Refusal, match="control characters") as caught:
            await filed(hub, title, "one")
        assert caught.value.slug == "request.invalid"
        assert await filed(hub, "two\nlines", "two") == "work/two-lines"


async def test_what_comes_first_and_how_urgent_it_is(nats_server: testing.NatsServer, tmp_path: Path) -> None:
    """Those it depends on are named as any task is, each once; what is no task is refused as a parent is."""
    async with live(nats_server, tmp_path) as hub:
        await filed(hub, "Migrate", "one")
        await filed(hub, "Test", "two")
        thread = (await hub.rows())["work/test"].thread
        named = ["migrate", thread[-8:], "WORK/migrate"]
        assert await filed(hub, "Ship it", "three", depends_on=named, priority=" high ") == "work/ship-it"
        row = (await hub.rows())["work/ship-it"]
        assert list(row.waits_for) == ["work/migrate", "work/test"]
        fields = json.loads(row.fields_json)
        assert (fields["depends-on"], fields["priority"]) == (["work/migrate", "work/test"], "high")
        for slug, wrong in (
            ("task.not_found", {"depends_on": ["work/migrate", "work/nope"]}),
            ("request.invalid", {"priority": "a\x1b[31m"}),
            ("content.too_large", {"priority": "x" * 41}),
            ("content.too_large", {"depends_on": ["work/migrate"] * 1_001}),
        ):
            with pytest.raises(Refusal) as caught:
                await filed(hub, "Other", "four", **wrong)
            assert caught.value.slug == slug
