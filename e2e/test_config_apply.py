"""`config apply`: a running hub takes its settings, and nobody notices but by what they do."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPException
from pathlib import Path

import pytest

from e2e.engines import answered, engine_room, hub_with_engines
from e2e.harness import Hub, Machine, free_port
from e2e.model import KEY, Model
from e2e.requirements import requirement
from e2e.room import Room
from e2e.waiting import until


class Posting:
    """Somebody who posts one text after the other, each under its key until it is acknowledged."""

    def __init__(self, room: Room) -> None:
        self.acknowledged: list[str] = []
        self.turned_away = 0
        self._room = room
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._post_all, daemon=True)

    def _post_all(self) -> None:
        while not self._ending.is_set():
            text = f"post {len(self.acknowledged)}"
            if self._post(text):
                self.acknowledged.append(text)

    def _post(self, text: str) -> bool:
        try:
            return self._room.try_post(text, key=f"key of {text}").status == 201
        except ConnectionRefusedError:
            self.turned_away += 1
        except (OSError, HTTPException):
            self._ending.wait(0.01)
        return False

    def goes_on(self) -> None:
        """Wait until more is acknowledged."""
        enough = len(self.acknowledged) + 10
        until(lambda: len(self.acknowledged) >= enough, "posts are acknowledged", 30)

    @contextmanager
    def running(self) -> Iterator["Posting"]:
        """Post until the end."""
        self._thread.start()
        try:
            yield self
        finally:
            self._ending.set()
            self._thread.join(30)


@requirement("config:apply", "config:drift")
@pytest.mark.timeout(120)
def test_settings_are_taken_while_somebody_posts(own_hub: Hub, own_room: Room) -> None:
    """Nothing acknowledged is lost or twice, nobody is turned away, the hub is the same one.

    1. a setting is written: `up` and `doctor` say that the hub runs with another
    2. `config apply` says what changes, and rooms answer when it returns; a command that ran meanwhile did its work
    3. the services become processes of their own, and back
    4. nothing differs any more: nothing is touched
    """
    run, pid = own_hub.machine.run, own_hub.pid
    with Posting(own_room).running() as posting:
        posting.goes_on()
        assert run("config", "set", "log.level", "debug").ok().err.endswith("mycelium config apply\n")
        seen = run("up", "--detach").ok().out.splitlines()
        assert seen[1:] == [
            "log.level is 'info' there, and 'debug' in config.toml",
            "Next: mycelium config apply",
        ]
        assert "→ mycelium config apply" in run("doctor", within_s=60).out
        meanwhile = own_room.machine.start("room", "send", "sent meanwhile", handle="avery", room=own_room.name)
        applied = run("config", "apply").ok().out
        assert applied == (
            f"log.level: info → debug (config.toml)\nthe hub was started again and answers at {own_hub.url}\n"
        )
        assert own_room.contents()
        assert meanwhile.ended(30).status == 0
        for change in (("set", "runtime.split", "true"), ("unset", "runtime.split")):
            posting.goes_on()
            run("config", *change).ok()
            run("config", "apply", within_s=60).ok()
        posting.goes_on()
    assert (posting.turned_away, own_hub.alive, own_hub.pid) == (0, True, pid)
    said = [text for text in own_room.contents() if text.startswith("post ")]
    assert said[: len(posting.acknowledged)] == posting.acknowledged
    assert "sent meanwhile" in own_room.contents()
    assert (
        run("config", "apply").ok().out == f"the hub at {own_hub.url} runs with these settings; nothing was touched\n"
    )


@requirement("config:apply:refused")
def test_what_can_not_be_taken_leaves_the_hub_as_it_was(own_hub: Hub, own_room: Room) -> None:
    """A file with mistakes is a usage error, a port that somebody has a refusal; the hub answers as before."""
    run = own_hub.machine.run
    own_room.post("kept")
    file = own_hub.home / "config.toml"
    file.write_text('[runtime]\nbackend_prot = 1\n[log]\nlevel = "loud"\n[server]\napi_url = "hub"\n')
    wrong = run("config", "apply")
    assert (wrong.status, wrong.out, len(wrong.err.splitlines())) == (2, "", 4)
    for words in (
        "did you mean runtime.backend_port?",
        "log.level is 'loud'",
        "server.api_url",
        "3 settings are wrong",
    ):
        assert words in wrong.err
    file.write_text("[runtime]\nbind_addr = '192.0.2.1'\n[auth]\ninsecure = true\n")
    refused = run("config", "apply")
    assert (refused.status, refused.out) == (1, "")
    assert "'192.0.2.1' is no address of this machine; nothing was touched" in refused.err
    assert own_room.contents() == ["kept"]


@requirement("config:apply")
@pytest.mark.timeout(120)
def test_a_hub_in_the_background_moves_to_another_port(tmp_path: Path) -> None:
    """Commands find it there; one that is taken is refused, and it stays."""
    machine = Machine(tmp_path / "home")
    machine.run("config", "set", "runtime.backend_port", str(free_port())).ok()
    old = machine.run("up", "--detach", "--json").json
    try:
        machine.run("room", "create", "demo", handle="avery").ok()
        with socket.create_server(("127.0.0.1", 0)) as taken:
            machine.run("config", "set", "runtime.backend_port", str(taken.getsockname()[1])).ok()
            refused = machine.run("config", "apply")
            assert (refused.status, "is in use" in refused.err) == (1, True)
        port = free_port()
        machine.run("config", "set", "runtime.backend_port", str(port)).ok()
        told = machine.run("config", "apply", "--json").json
        assert (told["outcome"], told["pid"], told["url"]) == ("applied", old["pid"], f"http://127.0.0.1:{port}")
        assert "demo" in machine.run("room", "ls").ok().out
    finally:
        machine.run("down").ok()
    gone = machine.run("config", "apply").ok().out
    assert gone == f"no hub runs on {machine.home}; mycelium up will use these settings\n"


@requirement("config:apply")
@pytest.mark.timeout(240)
def test_engines_take_another_model(tmp_path: Path) -> None:
    """As the answer of an engine without one says to do it, word for word."""
    env = {"MYCELIUM_RUNTIME_ENGINES": "true"}
    with Model() as model, hub_with_engines(tmp_path / "home", env) as hub:
        room = engine_room(hub, Machine(tmp_path / "client", hub.url))
        assert (
            "config set llm.model provider/model && mycelium config apply"
            in answered(room, room.post("@greeter hello?"))["content"]
        )
        for key, value in (("model", "openai/scripted"), ("base_url", model.url)):
            hub.machine.run("config", "set", f"llm.{key}", value).ok()
        hub.machine.run("config", "set", "llm.api_key", stdin=KEY.encode()).ok()
        applied = hub.machine.run("config", "apply", env=env, within_s=60).ok().out
        assert "llm.api_key: - → …WXYZ (secrets/llm_api_key)" in applied
        assert KEY not in applied
        assert answered(room, room.post("@greeter hello"))["content"] == "Hello from the script."
