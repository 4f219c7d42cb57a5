"""An agent with a session of its own: wait, think, answer, wait again.

`python -m e2e.demo_agents.loop DIARY [WORDS ANSWER]...` answers a message that holds the words, writes what it was
given into the diary, and goes home when the work is done.
"""

import json
import subprocess
import sys

HUB_AWAY = 5
GOODBYE = "done for today"


def mycelium(*words: str) -> subprocess.CompletedProcess[str]:
    """One command line. Who, where and which hub stand in the environment."""
    return subprocess.run(["mycelium", *words], stdout=subprocess.PIPE, text=True, check=False)


def live(diary: str, answers: dict[str, str]) -> None:
    """The whole life of the agent."""
    while True:
        waited = mycelium("await", "--timeout", "60", "--json")
        if waited.returncode == HUB_AWAY:
            continue
        waited.check_returncode()
        turn = json.loads(waited.stdout)
        with open(diary, "a", encoding="utf-8") as file:
            file.write(f"{json.dumps(turn)}\n")
        said = turn["message"]["content"]
        for words, answer in answers.items():
            if words in said:
                mycelium("respond", answer).check_returncode()
        if GOODBYE in said:
            return


if __name__ == "__main__":
    given = sys.argv[2:]
    live(sys.argv[1], dict(zip(given[::2], given[1::2], strict=True)))
