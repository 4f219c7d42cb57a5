"""The shape of the repository, held by a program: sizes, names, stray subjects, sleeps, leaked addresses.

Sizes have a rule and a limit. The limit fails; the rule is a list at the end of the run, so that a file is split
before it has to be.
"""

from __future__ import annotations

import ast
import functools
import re
import subprocess
import tomllib
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FILE_LINES_RULE = 300
FILE_LINES_LIMIT = 500
FUNCTION_LINES_RULE = 30
FUNCTION_LINES_LIMIT = 70
VAGUE_NAMES = {"utils", "util", "helpers", "helper", "common", "base", "manager", "misc"}
SUBJECT = re.compile(r"^(evt|svc|timer|bell)\.")
SUBJECTS_MODULE = "services/kernel/mycelium_kernel/subjects.py"
# The server's own permissions are written in the same grammar, with wildcards that no service sends or reads.
SUBJECTS_ALSO_IN = {"services/hub/mycelium_hub/nats_config.py"}
MOCK_WORDS = {"mock", "MagicMock", "AsyncMock", "create_autospec"}
MACHINE_TEXT = re.compile(
    r"/root/|/work/(main|shared)|/home/[a-z]+/|/Users/[a-z]+/|https?://[^\s\"'`)>]*(pypi|/simple\b|artifactory|nexus|proxy\.golang)"
    r"|(index|registry)[-_]?url\s*=|files\.pythonhosted\.org",
    re.IGNORECASE,
)
BINARY = {".png", ".jpg", ".ico", ".woff2", ".gif"}


@functools.cache
def tracked() -> tuple[str, ...]:
    """Every file that is, or is about to be, in the repository."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    return tuple(name for name in sorted(set(names)) if (ROOT / name).is_file())


@functools.cache
def text_of(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


@functools.cache
def tree_of(name: str) -> ast.Module:
    return ast.parse(text_of(name), name)


def python_files() -> list[str]:
    return [name for name in tracked() if name.endswith(".py") and not name.endswith("_pb2.py")]


def is_test(name: str) -> bool:
    return "/tests/" in f"/{name}" or name.startswith(("e2e/", "contracts/"))


def functions(name: str) -> Iterator[tuple[ast.FunctionDef | ast.AsyncFunctionDef, int]]:
    for node in ast.walk(tree_of(name)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node, (node.end_lineno or node.lineno) - node.lineno + 1


def report(faults: list[str]) -> None:
    if faults:
        pytest.fail("\n".join(faults), pytrace=False)


def test_no_file_is_longer_than_the_limit() -> None:
    """A file is read on a few screens: 300 lines as a rule, never over 500."""
    lengths = {
        name: text_of(name).count("\n")
        for name in tracked()
        if name.endswith((".py", ".proto", ".sql", ".sh", ".ts", ".tsx")) and "_pb2" not in name
    }
    over_rule = {name: lines for name, lines in lengths.items() if lines > FILE_LINES_RULE and not is_test(name)}
    for name, lines in sorted(over_rule.items()):
        print(f"over the rule of {FILE_LINES_RULE} lines: {name} has {lines}")
    report([f"{name} has {n} lines, at most {FILE_LINES_LIMIT}" for name, n in lengths.items() if n > FILE_LINES_LIMIT])


def test_no_function_is_longer_than_the_limit() -> None:
    """A function is read at one look: 30 lines as a rule, never over 70."""
    faults = []
    for name in python_files():
        for function, lines in functions(name):
            if lines > FUNCTION_LINES_LIMIT:
                faults.append(f"{name}:{function.lineno} {function.name} has {lines} lines, at most 70")
            elif lines > FUNCTION_LINES_RULE and not is_test(name):
                where = f"{name}:{function.lineno} {function.name}"
                print(f"over the rule of {FUNCTION_LINES_RULE} lines: {where} has {lines}")
    report(faults)


def test_subjects_are_built_in_one_place() -> None:
    """A subject written by hand somewhere else is one that nobody finds when the grammar changes."""
    faults = []
    for name in python_files():
        if is_test(name) or name == SUBJECTS_MODULE or name in SUBJECTS_ALSO_IN:
            continue
        for node in ast.walk(tree_of(name)):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and SUBJECT.match(node.value):
                faults.append(f"{name}:{node.lineno} {node.value!r} belongs in {SUBJECTS_MODULE}")
    report(faults)


def test_no_module_has_a_vague_name() -> None:
    """A module's name says what is in it."""
    parts = {(name, part) for name in python_files() for part in Path(name).with_suffix("").parts}
    report([f"{name}: {part!r} says nothing" for name, part in sorted(parts) if part in VAGUE_NAMES])


def test_every_module_says_what_it_is_for() -> None:
    """A module begins with a docstring."""
    report([f"{name} has no docstring" for name in python_files() if not ast.get_docstring(tree_of(name))])


def test_no_test_sleeps() -> None:
    """A test waits for an event, with a bound; a sleep is either too short or too long."""
    faults = []
    for name in filter(is_test, python_files()):
        for node in ast.walk(tree_of(name)):
            if isinstance(node, ast.Call) and _called(node).split(".")[-1] == "sleep" and not _polls(node):
                faults.append(f"{name}:{node.lineno} sleeps")
    report(faults)


def _called(node: ast.Call) -> str:
    return ast.unparse(node.func)


def _polls(node: ast.Call) -> bool:
    """A wait for a condition of another process has to look again after a moment: at most 0.05 s is such a moment."""
    first = node.args[0] if node.args else None
    return isinstance(first, ast.Constant) and isinstance(first.value, int | float) and first.value <= 0.05


def test_nothing_of_ours_is_mocked() -> None:
    """What stands in for the outside world is a server on a port; our own code is tested as it is."""
    faults = []
    for name in python_files():
        for node in ast.walk(tree_of(name)):
            if not isinstance(node, ast.Import | ast.ImportFrom):
                continue
            words = {alias.name.split(".")[-1] for alias in node.names}
            if isinstance(node, ast.ImportFrom):
                words.add((node.module or "").split(".")[-1])
            if words & MOCK_WORDS:
                faults.append(f"{name}:{node.lineno} uses mocks")
    report(faults)


def test_no_address_of_a_registry_or_path_of_a_machine_is_kept() -> None:
    """The repository works wherever it is cloned."""
    faults = []
    for name in tracked():
        if name == "tests/test_tidy.py" or Path(name).suffix in BINARY:
            continue
        for number, line in enumerate(text_of(name).splitlines(), 1):
            if MACHINE_TEXT.search(line):
                faults.append(f"{name}:{number} {line.strip()[:100]}")
    report(faults)


def test_the_lock_holds_what_every_part_requires() -> None:
    """`make setup` installs the parts without resolving anything, so the lock has to have it all."""
    locked = set(re.findall(r"^([a-z0-9-]+)==", text_of("requirements.lock"), re.MULTILINE))
    named = re.findall(r"^([a-z0-9.-]+)", text_of("requirements.in"), re.MULTILINE)
    wanted = {name.replace(".", "-") for name in named}
    faults = [f"requirements.in asks for {name}, which is not locked: make lock" for name in sorted(wanted - locked)]
    for part in (name for name in tracked() if name.count("/") and name.endswith("/pyproject.toml")):
        for requirement in tomllib.loads(text_of(part))["project"].get("dependencies", []):
            name = re.split(r"[^A-Za-z0-9.-]", requirement, maxsplit=1)[0].lower().replace(".", "-")
            if name not in wanted and not name.startswith("mycelium-"):
                faults.append(f"{part} requires {name}, which requirements.in does not list")
    report(faults)


def test_who_reads_time_zones_brings_them() -> None:
    """A slim image has none of its own, and a service that needs them would not start in it."""
    faults = []
    for part in (name for name in tracked() if name.startswith("services/") and name.endswith("/pyproject.toml")):
        folder = part.removesuffix("pyproject.toml") + "mycelium_"
        reads = any("import zoneinfo" in text_of(name) or "from zoneinfo" in text_of(name) for name in tracked()
                    if name.startswith(folder) and name.endswith(".py"))  # fmt: skip
        if reads and "tzdata" not in tomllib.loads(text_of(part))["project"]["dependencies"]:
            faults.append(f"{part} does not require tzdata")
    report(faults)


def test_tools_give_a_reason_for_every_rule_they_leave_out() -> None:
    """Each ignored rule of the linter says why, on its line."""
    section = text_of("pyproject.toml").split("ignore = [", 1)[1].split("\n]", 1)[0]
    lines = [line for line in section.splitlines() if line.strip()]
    report([f"no reason given: {line.strip()}" for line in lines if "#" not in line])


@pytest.fixture(autouse=True)
def _no_syntax_warnings() -> Iterator[None]:
    """Files are parsed here only to look at them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        yield
