"""Whatever is done, by calls, by hand and by restarts: the tree, the tables and the log say the same."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from mycelium_kernel import testing
from mycelium_memory import frontmatter
from services.memory.tests.tree import WITHIN_S, Desk, desk_at

KEYS = st.sampled_from(["a", "b", "notes/a", "notes/b", "notes/deep/c", "work/api"])
TEXTS = st.sampled_from(["", "one", "two", "# Three\n\ntext", "---\nno: fields", "four\n"])


class Together(RuleBasedStateMachine):
    """A room that is written by calls and by hand, one thing at a time; what it should hold is counted here."""

    texts = Bundle("texts")

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.folder = Path(tempfile.mkdtemp(prefix="tree-"))
        self.model: dict[str, str] = {}
        self.down = False
        self.loop.run_until_complete(self._open())

    async def _open(self) -> None:
        self.nats = testing.nats_server(self.folder / "nats")
        self.place = desk_at(await self.nats.__aenter__(), self.folder)
        self.desk: Desk = await self.place.__aenter__()
        await self.desk.room()

    def teardown(self) -> None:
        async def close() -> None:
            await self.place.__aexit__(None, None, None)
            await self.nats.__aexit__(None, None, None)

        self.loop.run_until_complete(close())
        self.loop.close()
        shutil.rmtree(self.folder)

    def do(self, work: Any) -> Any:
        return self.loop.run_until_complete(work)

    def path(self, key: str) -> Path:
        return self.desk.root / "demo" / f"{key}.md"

    def settle(self) -> None:
        """Until what was done by hand has been taken."""

        async def settled() -> None:
            async with asyncio.timeout(WITHIN_S):
                while await self.bodies() != self.model:  # noqa: ASYNC110 - nobody tells
                    await asyncio.sleep(0.02)

        if not self.down:
            self.do(settled())

    async def bodies(self) -> dict[str, str]:
        files = await self.desk.same()
        return {name.removesuffix(".md"): frontmatter.parse(text).body for name, text in files.items()}

    @initialize()
    def begin(self) -> None:
        self.set_by_call("a", "one")

    @rule(key=KEYS, text=TEXTS)
    def set_by_call(self, key: str, text: str) -> None:
        if not self.down:
            self.do(self.desk.set(key, text))
            self.model[key] = text
            self.settle()

    @rule(key=KEYS, owner=st.sampled_from(["kim", "Re: plan: phase 2", "@x"]))
    def patch_by_call(self, key: str, owner: str) -> None:
        """A field alone; the text stays."""
        if not self.down and key in self.model:
            self.do(self.desk.patch(key, owner=owner))
            self.settle()

    @rule(key=KEYS)
    def remove_by_call(self, key: str) -> None:
        if not self.down and key in self.model:
            self.do(self.desk.remove(key))
            del self.model[key]
            self.settle()

    @rule(key=KEYS, text=TEXTS)
    def write_by_hand(self, key: str, text: str) -> None:
        """As an editor does: a text in place of the text, or a new file without fields."""
        path = self.path(key)
        path.parent.mkdir(parents=True, exist_ok=True)
        parsed = frontmatter.parse(path.read_text()) if path.exists() else None
        said = parsed.managed if parsed else {}
        path.write_text(frontmatter.render(said, parsed.fields if parsed else "", text) if said else text)
        self.model[key] = frontmatter.parse(path.read_text()).body
        self.settle()

    @rule(key=KEYS)
    def remove_by_hand(self, key: str) -> None:
        if key in self.model:
            self.path(key).unlink()
            del self.model[key]
            self.settle()

    @rule(key=KEYS, other=KEYS)
    def rename_by_hand(self, key: str, other: str) -> None:
        if key in self.model and key != other:
            self.path(other).parent.mkdir(parents=True, exist_ok=True)
            self.path(key).rename(self.path(other))
            self.model[other] = self.model.pop(key)
            self.settle()

    @rule()
    def stop(self) -> None:
        if not self.down:
            self.do(self.desk.stop())
            self.down = True

    @rule()
    def start(self) -> None:
        if self.down:
            self.do(self.desk.start())
            self.down = False
            self.settle()

    @rule()
    def lose_the_notes(self) -> None:
        """While all is the same; a file that is removed while they are lost would come back."""
        if not self.down:
            self.do(self.desk.stop())
            for path in self.desk.root.glob(".tree.sqlite*"):
                path.unlink()
            self.do(self.desk.start())
            self.settle()

    @rule()
    def lose_the_tables(self) -> None:
        """They are made again from the log, row for row, and the tree notices nothing."""
        if not self.down:
            before = self.do(self.desk.rows())
            self.do(self.desk.stop())
            shutil.rmtree(self.desk.tables)
            self.do(self.desk.start())
            self.settle()
            assert self.do(self.desk.rows()) == before

    @invariant()
    def each_version_is_another(self) -> None:
        """No edit was taken twice: versions that follow each other differ."""
        if self.down:
            return
        for key in self.model:
            made = self.do(self.desk.versions(key))
            numbers = [version.version for version in made]
            assert numbers == list(range(len(made), 0, -1)), key


def test_tree_tables_and_log_say_the_same() -> None:
    """Any sequence of writes, edits, renames, removals and restarts, on a real server."""
    run_state_machine_as_test(
        Together,
        settings=settings(
            max_examples=5,
            stateful_step_count=14,
            deadline=None,
            phases=[Phase.explicit, Phase.generate],
            suppress_health_check=list(HealthCheck),
        ),
    )
