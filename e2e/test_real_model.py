"""Hello through a model that nobody scripted. `make test-model` fetches it (130 MB) and runs this."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.engines import answers, engine_room, hub_with_engines
from e2e.harness import Machine
from e2e.requirements import requirement
from e2e.waiting import until

PYTHON = Path(__file__).parent.parent / ".venv-model/bin/python"
PROGRAM = Path(__file__).parent / "real_model.py"
ANSWER_S = 240.0  # a few tokens a second on a busy machine

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not PYTHON.exists(), reason="no model is installed: make test-model"),
]


@pytest.fixture
def address() -> Iterator[str]:
    """Where the model answers."""
    command = [PYTHON, PROGRAM]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as server:
        assert server.stdout is not None
        yield server.stdout.readline().strip()
        server.terminate()


@requirement("models:real")
def test_hello_answers_by_a_real_model(address: str, tmp_path: Path) -> None:
    """Its answer is weak, but it is an answer: a text, and no error."""
    env = {
        "MYCELIUM_RUNTIME_ENGINES": "true",
        "LLM_MODEL": "local/smollm2-135m",
        "LLM_BASE_URL": address,
        "MYCELIUM_LLM_MAX_TOKENS": "40",
        "MYCELIUM_LLM_TIMEOUT_S": str(int(ANSWER_S)),
    }
    with hub_with_engines(tmp_path / "home", env) as hub:
        room = engine_room(hub, Machine(tmp_path / "client", hub.url))
        message = room.post("@greeter say hello")
        (reply,) = until(lambda: answers(room, message), "the model answers", ANSWER_S)
        assert reply["metadata"] == {"engine": {"kind": "hello"}}, reply["content"]
        assert reply["content"].strip()
