"""The pages of docs/how-to, executed as they are written, each on a hub of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = sorted((ROOT / "docs/how-to").glob("*.md"))
BLOCK = re.compile(r"^```bash\n(.*?)^```$", re.MULTILINE | re.DOTALL)
EXPECTED = re.compile(r"# -?> (.*)")
MARK = "-- end of step"


def steps(text: str) -> list[tuple[list[str], list[str]]]:
    """Lines to type and what they print; a comment `# > words` says what the lines before it print."""
    found: list[tuple[list[str], list[str]]] = []
    for block in BLOCK.findall(text):
        found.append(([], []))
        for line in block.splitlines():
            expected = EXPECTED.fullmatch(line)
            if expected:
                found[-1][1].append(expected[1])
            elif found[-1][1]:
                found.append(([line], []))
            else:
                found[-1][0].append(line)
    return found


@pytest.fixture
def environment(tmp_path: Path, page: Path) -> Iterator[dict[str, str]]:
    """A machine with a hub on a free port, and nothing else."""
    made = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "MYCELIUM_HOME": str(tmp_path / "home"),
        "MYCELIUM_BACKEND_PORT": "0",
        "MYCELIUM_RUNTIME_ENGINES": str("engine create" in page.read_text(encoding="utf-8")).lower(),
        "LANG": "C.UTF-8",
    }
    subprocess.run(["mycelium", "up", "--detach"], env=made, check=True, capture_output=True, timeout=30)
    yield made
    for home in ("home", "restored"):
        ended = ["mycelium-hub", "down", "--home", str(tmp_path / home)]
        subprocess.run(ended, env=made, check=True, capture_output=True, timeout=30)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_works_as_it_is_written(page: Path, environment: dict[str, str], tmp_path: Path) -> None:
    """One shell for all of it; every expectation is met by the lines before it."""
    told = steps(page.read_text(encoding="utf-8"))
    assert any(expected for _, expected in told)
    script = "".join("\n".join(lines) + f"\necho '{MARK}'\n" for lines, _ in told)
    ran = subprocess.run(
        ["bash", "-eu", "-o", "pipefail", "-c", f"exec 2>&1\n{script}"],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    for (lines, expected), output in zip(told, ran.stdout.split(f"{MARK}\n"), strict=False):
        for words in expected:
            assert words in output, f"{lines} printed:\n{output}"


def test_every_test_that_a_page_names_exists() -> None:
    """docs/explanation says what is tested and where: the tests are there under these names."""
    named = {
        (page.name, word)
        for page in (ROOT / "docs").rglob("*.md")
        for word in re.findall(r"`(test_[a-z0-9_]+)`", page.read_text(encoding="utf-8"))
    }
    folders = ("tests", "services", "clients/cli/tests", "contracts", "e2e", "bench")
    files = [path for folder in folders for path in (ROOT / folder).rglob("test_*.py")]
    there = {name for path in files for name in re.findall(r"def (test_\w+)", path.read_text(encoding="utf-8"))}
    there |= {path.stem for path in files}
    assert named
    assert sorted(item for item in named if item[1] not in there) == []
