"""Promises and tests say the same: read from the sources, so that it holds whatever is selected to run."""

import ast
from collections import Counter, defaultdict
from pathlib import Path

from e2e.requirements import LISTED, REQUIREMENTS, ROWS

HERE = Path(__file__).parent


def _tests() -> dict[str, list[str]]:
    """Every test of this folder with the ids that it cites; this module's own are about the list itself."""
    found: dict[str, list[str]] = {}
    for file in sorted(HERE.rglob("test_*.py")):
        if file == Path(__file__):
            continue
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
                found[f"{file.relative_to(HERE)}::{node.name}"] = _cited(node)
    return found


def _cited(test: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    ids: list[str] = []
    for decorator in test.decorator_list:
        if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "requirement":
            ids += [str(ast.literal_eval(argument)) for argument in decorator.args]
    return ids


def test_every_promise_has_a_test_or_says_why_not() -> None:
    """A promise without a proof is a hope."""
    proofs: defaultdict[str, list[str]] = defaultdict(list)
    for test, ids in _tests().items():
        for one in ids:
            proofs[one].append(test)
    missing = [row.id for row in REQUIREMENTS.values() if not row.deferred and not proofs[row.id]]
    assert not missing, f"no test cites {missing}"
    stale = [row.id for row in REQUIREMENTS.values() if row.deferred and proofs[row.id]]
    assert not stale, f"deferred, but tested: {stale}"


def test_every_test_cites_a_promise() -> None:
    """A test that proves nothing anybody was promised is noise."""
    assert [test for test, ids in _tests().items() if not ids] == []
    assert {one for ids in _tests().values() for one in ids} <= set(REQUIREMENTS)


def test_every_built_row_has_promises() -> None:
    """The rows of the feature list and the promises name each other."""
    assert {row.row for row in REQUIREMENTS.values()} == set(ROWS)
    proven = {row.row for row in REQUIREMENTS.values() if not row.deferred}
    assert proven == set(ROWS), "a row of deferrals only is not built"


def test_every_promise_is_listed_once() -> None:
    """An id names one promise, for ever."""
    assert [one for one, count in Counter(row.id for row in LISTED).items() if count > 1] == []
