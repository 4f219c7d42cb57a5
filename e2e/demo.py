"""`make demo`: three agents and a person talk in a room whose hub is killed in the middle and comes back.

Everything is said through the `mycelium` command, by processes that know nothing of each other. What it prints is the
same every time, and `test_demo.py` holds it to `demo.txt`: `python -m e2e.demo > e2e/demo.txt` writes that anew.
"""

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from e2e.demo_agents.loop import GOODBYE
from e2e.harness import Hub, Machine, free_port
from e2e.processes import Background
from e2e.waiting import until

Document = dict[str, Any]

ROOM = "passkeys"
HERE = Path(__file__).parent
PLANNER = {
    "What is still open?": "One question. @sec where does the key live, keychain or WebCrypto?",
    "your turn": "Decided, then. @docs please write it up: keys live in the keychain.",
}
DOCS = {"please write it up": 'Written: docs/passkeys.md, "Where the key lives". Ready for a look, @avery.'}
WAITS_S = 30.0


class Demo:
    """The hub, the person at it, and the agents, which have nothing but their environment."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.hub = Hub(folder / "hub", free_port())
        self.avery = self.hub.machine
        self.elsewhere = Machine(folder / "nothing-here")
        self.watching: Background | None = None
        self.shown = 0

    def close(self) -> None:
        """End everything."""
        self.elsewhere.close()
        self.hub.close()

    # What is printed.

    def say(self, *lines: str) -> None:
        """Tell the audience."""
        print("\n".join(lines), flush=True)

    def chapter(self, title: str) -> None:
        """A headline."""
        self.say("", title, "─" * len(title))

    def type(self, *words: str) -> str:
        """Let Avery type a command, and show it with its answer."""
        answer = self.avery.run(*words).ok().out.rstrip()
        shown = " ".join(word if word.isidentifier() or word.startswith("--") else f'"{word}"' for word in words)
        self.say(f"$ mycelium {shown}", *(f"  {line}" for line in answer.splitlines()))
        return answer

    # What happens.

    def start(self) -> None:
        """The hub, the room, and who is in it."""
        self.hub.start()
        self.say("$ mycelium up", "  The hub answers.")
        self.type("iam", "avery", "--name", "Avery Quinn")
        self.type("room", "create", ROOM)
        self.type("room", "use", ROOM)
        for handle, does in (
            ("planner", "keeps the plan"),
            ("sec", "knows the security rules"),
            ("docs", "writes it down"),
        ):
            self.type("agent", "create", handle, "--description", does)
        self.watch()
        self.start_loop("planner", PLANNER)
        self.start_exec("sec")
        self.say(
            "",
            "@planner runs:  a script around `mycelium await` and `mycelium respond`",
            "@sec runs:      mycelium await --loop --exec turn.sh",
            "@docs           has not been started",
        )

    def watch(self) -> None:
        """Avery's other terminal; returns once it shows something, so that it shows everything from here on."""
        self.watching = self.avery.start("room", "watch", ROOM, "--json")
        tries = iter(range(1000))

        def sees() -> bool:
            self.avery.run("agent", "create", "planner", "--notes", f"try {next(tries)}").ok()
            return bool(self.watching and self.watching.out)

        until(sees, "the watcher is connected", WAITS_S)

    def environment(self, handle: str) -> dict[str, str]:
        """All that an agent has."""
        self.elsewhere.url = self.hub.url
        known = self.elsewhere.environment(handle, room=ROOM, env={"DIARY": str(self.diary(handle))})
        return known | {"PYTHONPATH": str(HERE.parent)}

    def diary(self, handle: str) -> Path:
        """Where an agent notes what it was given."""
        return self.folder / f"{handle}.jsonl"

    def start_loop(self, handle: str, answers: dict[str, str]) -> None:
        """An agent that runs its own loop."""
        words = [word for pair in answers.items() for word in pair]
        program = [sys.executable, "-m", "e2e.demo_agents.loop", str(self.diary(handle)), *words]
        self.elsewhere.start_program([*program], self.environment(handle))
        self.until_waiting(handle)

    def start_exec(self, handle: str) -> None:
        """An agent that `await --loop --exec` runs."""
        turn = str(HERE / "demo_agents" / "turn.sh")
        program: list[str | Path] = ["mycelium", "await", "--loop", "--exec", turn]
        self.elsewhere.start_program(program, self.environment(handle))
        self.until_waiting(handle)

    def until_waiting(self, *handles: str) -> None:
        """Until these agents wait for a message."""

        def wait() -> bool:
            members = self.avery.run("room", "show", ROOM, "--json").json["members_list"]
            return {row["handle"] for row in members if row["waiting"]} >= set(handles)

        until(wait, f"{handles} wait", WAITS_S)

    def events(self) -> list[Document]:
        """What Avery's watcher has shown: every event of the room."""
        assert self.watching is not None
        return [json.loads(line) for line in list(self.watching.out) if line.endswith("\n")]

    def seen(self) -> list[Document]:
        """The messages that Avery's watcher has shown."""
        return [event["data"] for event in self.events() if event["event"] == "message"]

    def listen(self, sender: str) -> None:
        """Show what comes, until somebody has spoken."""
        until(lambda: len(self.seen()) > self.shown, f"@{sender} speaks", WAITS_S)
        message = self.seen()[self.shown]
        assert message["sender_handle"] == sender, message
        self.shown += 1
        self.say("", f"{self.shown}  {who(message)}", f"   {message['content']}")

    def speak(self, text: str) -> None:
        """Avery posts; the answer says what became of each mention."""
        sent = self.avery.run("room", "send", text, "--json").json
        self.listen("avery")
        self.say(f"   → {outcome(sent)}")

    def outcome_of(self, number: int) -> str:
        """What the sender of a message was told."""
        return outcome(self.seen()[number - 1])


def who(message: Document) -> str:
    """A sender as the product shows one."""
    name, handle = message["sender_name"], message["sender_handle"]
    return f"{name} (@{handle})" if name else f"@{handle}"


def outcome(message: Document) -> str:
    """What became of each mention."""
    return ", ".join(f"@{mention['handle']} {mention['state']}" for mention in message["mentions"])


def play(demo: Demo) -> None:
    """The story."""
    demo.chapter("A hub, a room, a person and three agents")
    demo.start()

    demo.chapter("They talk")
    demo.speak("@planner passkey login ships on Friday. What is still open?")
    demo.listen("planner")
    demo.listen("sec")
    demo.listen("planner")
    demo.say(f"   → {demo.outcome_of(4)}: it is not running, so its queue on the hub has it")

    demo.chapter("The hub is killed (kill -9) and started again")
    demo.hub.kill()
    gone = demo.avery.run("room", "messages")
    assert gone.status == 5, gone
    demo.say("$ mycelium room messages", "  error: Failed to connect to the Mycelium API")
    demo.hub.start()
    demo.say("$ mycelium up", "  The hub answers. Agents and watcher come back to it by themselves.")
    demo.until_waiting("planner", "sec")
    demo.speak("@sec the hub was killed and is back. Are you still with us?")
    demo.listen("sec")

    demo.chapter("@docs is started, and finds what was said to it before the kill")
    demo.start_loop("docs", DOCS)
    demo.listen("docs")
    demo.until_waiting("planner", "sec", "docs")
    demo.speak(f"Thank you, @planner @sec @docs, {GOODBYE}.")
    until(lambda: all(len(given(demo, handle)) == count for handle, count in GIVEN.items()), "all have it", WAITS_S)


GIVEN = {"planner": 3, "sec": 3, "docs": 2}
MEANS = {"planner": "await", "sec": "await --exec", "docs": "await"}


def given(demo: Demo, handle: str) -> list[Document]:
    """What an agent wrote into its diary."""
    diary = demo.diary(handle)
    text = diary.read_text(encoding="utf-8") if diary.exists() else ""
    return [json.loads(line) for line in text.splitlines()]


def compare(demo: Demo) -> None:
    """The room as each of them saw it, and as it stands in the log."""
    page = demo.avery.run("room", "messages", ROOM, "--json").json
    history: list[Document] = page["items"][::-1]
    number = {message["id"]: place for place, message in enumerate(history, 1)}

    demo.chapter("The room as each of them saw it (numbers as above)")
    live = [number[message["id"]] for message in demo.seen()]
    demo.say(f"{'Avery, watching live':<27}{listed(live)}")
    assert live == list(range(1, len(history) + 1)), "the watcher missed something, or saw it twice"
    for handle, means in MEANS.items():
        turns = [described(turn, number) for turn in given(demo, handle)]
        demo.say(f"{f'@{handle}, by {means}':<27}{' · '.join(turns)}")
    own = [demo.avery.run("await", "--timeout", "5", "--json", session="avery").json for _ in range(2)]
    demo.say(f"{'Avery, by await':<27}{' · '.join(described(turn, number) for turn in own)}")

    demo.chapter("The room as it stands in the log (mycelium room messages)")
    for message in history:
        demo.say(f"{number[message['id']]}  {who(message):<21} {message['content']}")
        answered = message["reply_to"]
        demo.say(f"{'':<24} ↳ answers {number[answered]}") if answered else None
    posts = {message["id"]: message["content"] for message in demo.seen()}
    assert posts == {message["id"]: message["content"] for message in history}
    demo.say("", f"{len(history)} messages, one order, nothing lost, nothing twice.")


def described(turn: Document, number: dict[str, int]) -> str:
    """A message that somebody was given, and what came with it."""
    before = [number[message["id"]] for message in turn["earlier"]]
    again = " again" if turn["redelivered"] else ""
    return f"{number[turn['message']['id']]}{again}" + (f" (and {listed(before)} before it)" if before else "")


def listed(numbers: list[int]) -> str:
    """Numbers in a row."""
    return " ".join(str(number) for number in numbers)


def main() -> None:
    """Play it in a folder that goes away."""
    with tempfile.TemporaryDirectory(prefix="mycelium-demo-") as folder:
        demo = Demo(Path(os.path.realpath(folder)))
        try:
            demo.say("Mycelium: agents and people in one room, through the `mycelium` command and nothing else.")
            play(demo)
            compare(demo)
        finally:
            demo.close()


if __name__ == "__main__":
    main()
