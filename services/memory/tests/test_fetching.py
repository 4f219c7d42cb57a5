"""Fetching the documented model, from a server that stands in for where it is published."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from mycelium_kernel import testing
from mycelium_memory import models
from mycelium_memory.fetching import fetch

REVISION = "0" * 40
FILES = {
    "model_optimized.onnx": b"weights" * 40_000,
    **dict.fromkeys(("config.json", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"), b"{}"),
}


class Outside(ThreadingHTTPServer):
    """Publishes the files; `cut` times it ends in the middle of the weights, `damaged` they are others."""

    daemon_threads = True
    cut = 0
    damaged = False
    asked = 0


class Answers(BaseHTTPRequestHandler):
    """As the hub of models answers, as far as its client asks."""

    server: Outside
    protocol_version = "HTTP/1.1"

    def do_HEAD(self) -> None:
        self._answer(is_head=True)

    def do_GET(self) -> None:
        self._answer(is_head=False)

    def log_message(self, *_said: object) -> None:
        """Nothing."""

    def _answer(self, *, is_head: bool) -> None:
        self.server.asked += 1
        if self.path.startswith("/api/"):
            siblings = [{"rfilename": name, "size": len(data)} for name, data in FILES.items()]
            tree = [{"type": "file", "path": name, "size": len(data), "oid": "0"} for name, data in FILES.items()]
            listed = {"id": "Qdrant/bge-small-en-v1.5-onnx-Q", "sha": REVISION, "siblings": siblings}
            self._send(json.dumps(tree if "/tree/" in self.path else listed).encode(), "0", is_head=is_head)
            return
        name = self.path.rpartition("/")[2]
        if name not in FILES:
            self.send_error(404)
            return
        self._send(FILES[name], hashlib.sha256(FILES[name]).hexdigest(), is_head=is_head)

    def _send(self, data: bytes, digest: str, *, is_head: bool) -> None:
        begin = int(self.headers.get("Range", "bytes=0-")[6:].split("-")[0])
        self.send_response(206 if begin else 200)
        self.send_header("Content-Length", str(len(data) - begin))
        self.send_header("ETag", f'"{digest}"')
        self.send_header("X-Repo-Commit", REVISION)
        self.end_headers()
        if is_head:
            return
        if self.server.cut and len(data) > 1_000:
            self.server.cut -= 1
            self.wfile.write(data[begin : begin + (len(data) - begin) // 2])
            self.close_connection = True
            return
        self.wfile.write(data[begin:] if not self.server.damaged else data[begin:].replace(b"w", b"W"))


@pytest.fixture
def outside(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Outside]:
    """The server, which the client is told is the place."""
    server = Outside(("127.0.0.1", 0), Answers)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))
    for name in ("HF_HUB_OFFLINE", "http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def chosen(folder: Path) -> str:
    return models.choose("auto", folder, {"HF_HOME": str(folder / "none")}).name


async def test_the_files_are_fetched_and_the_model_is_in_force(outside: Outside, tmp_path: Path) -> None:
    """Also over a line that is cut once."""
    outside.cut = 1
    assert await fetch(tmp_path / "models") == ""
    assert outside.cut == 0
    assert chosen(tmp_path / "models") == models.BGE


async def test_a_file_that_was_damaged_on_its_way_is_not_taken(outside: Outside, tmp_path: Path) -> None:
    """It is told, and the next time it is fetched again."""
    outside.damaged = True
    assert (await fetch(tmp_path / "models")).endswith("it was damaged on its way")
    assert chosen(tmp_path / "models") == models.MINILM
    outside.damaged = False
    assert await fetch(tmp_path / "models") == ""
    assert chosen(tmp_path / "models") == models.BGE


async def test_a_line_that_is_always_cut_ends_in_time_with_the_model_that_is_here(
    outside: Outside, tmp_path: Path
) -> None:
    """Nothing half is taken for the model."""
    outside.cut = 1_000_000
    assert "could not be fetched" in await fetch(tmp_path / "models", within_s=5.0)
    assert chosen(tmp_path / "models") == models.MINILM


async def test_a_disk_without_room_is_told(outside: Outside, tmp_path: Path) -> None:
    """Nothing is asked of anybody, and the model that comes with the program goes on."""
    try:
        with testing.small_disk(tmp_path / "disk", 24) as folder:
            assert (await fetch(folder / "models")).endswith(" MB left, 150 are needed")
            assert not outside.asked
            assert chosen(folder / "models") == models.MINILM
    except PermissionError as error:
        pytest.skip(f"no small disk can be mounted ({error}); try as root, or under `unshare -Urm`")
