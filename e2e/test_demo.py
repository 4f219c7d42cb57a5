"""The demo's transcript, word for word."""

import subprocess
import sys
from pathlib import Path

from e2e.requirements import requirement

HERE = Path(__file__).parent


@requirement("demo:transcript")
def test_the_demo_tells_the_same_story_every_time() -> None:
    """Three agents and a person through a restart; `demo.txt` is what everyone reads."""
    told = subprocess.run(
        [sys.executable, "-m", "e2e.demo"], cwd=HERE.parent, capture_output=True, text=True, timeout=170, check=False
    )
    assert told.returncode == 0, told.stdout + told.stderr
    assert told.stdout == (HERE / "demo.txt").read_text(encoding="utf-8")
