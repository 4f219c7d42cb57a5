"""The README's tour, executed as it is written."""

import re
import subprocess
from pathlib import Path
from typing import NamedTuple

from e2e.harness import Hub
from e2e.requirements import requirement

README = Path(__file__).parent.parent / "README.md"
HEADING = "## A tour in five minutes"
EXPECTED = re.compile(r"# -?> (.*)")
MARK = "-- end of step"


class Step(NamedTuple):
    """Lines that a reader types, and what they then see."""

    lines: list[str]
    expected: list[str]


def steps(text: str) -> list[Step]:
    """The tour's blocks of bash; a comment `# > words` says what the lines before it print."""
    tour = text.split(f"{HEADING}\n", 1)[1].split("\n## ", 1)[0]
    found: list[Step] = []
    for block in re.findall(r"^```bash\n(.*?)^```$", tour, re.MULTILINE | re.DOTALL):
        found.append(Step([], []))
        for line in block.splitlines():
            seen = EXPECTED.fullmatch(line.strip())
            if seen:
                found[-1].expected.append(seen[1])
            else:
                if found[-1].expected:
                    found.append(Step([], []))
                found[-1].lines.append(line)
    return found


@requirement("readme:tour")
def test_the_tour_works_as_it_is_written(own_hub: Hub, tmp_path: Path) -> None:
    """One shell for all of it, on the hub's own machine; every expectation is met by the lines before it."""
    tour = steps(README.read_text(encoding="utf-8"))
    assert sum(len(step.expected) for step in tour) >= 5
    script = "".join("\n".join(step.lines) + f"\necho '{MARK}'\n" for step in tour)
    ran = subprocess.run(
        ["bash", "-eu", "-o", "pipefail", "-c", f"exec 2>&1\n{script}"],
        env=own_hub.machine.environment(),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=170,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    outputs = ran.stdout.split(f"{MARK}\n")
    assert len(outputs) == len(tour) + 1
    for step, output in zip(tour, outputs, strict=False):
        for words in step.expected:
            assert words in output, f"{step.lines} printed:\n{output}"
