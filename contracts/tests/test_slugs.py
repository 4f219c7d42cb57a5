"""Every reason that some service gives is in the gateway's one table, which gives it a status."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from mycelium_gateway.slugs import SLUGS

ROOT = Path(__file__).parents[2]


def given() -> Iterator[tuple[str, str]]:
    """Where, and which slug: the first argument of `Refusal(...)`, and the `slug` of every kind of error."""
    for path in sorted(ROOT.glob("services/*/mycelium_*/**/*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            where = f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 0)}"
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Refusal":
                if isinstance(node.args[0], ast.Constant):
                    yield where, str(node.args[0].value)
            elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and _names(node) == ["slug"]:
                yield where, str(node.value.value)


def _names(node: ast.Assign) -> list[str]:
    return [target.id for target in node.targets if isinstance(target, ast.Name)]


def test_every_slug_that_is_given_is_listed() -> None:
    """An unlisted one would reach its caller as a fault."""
    found = list(given())

    assert len(found) > 20
    assert [f"{where}: {slug}" for where, slug in found if slug not in SLUGS] == []
