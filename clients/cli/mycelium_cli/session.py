"""Which session calls: one agent's commands are one, two terminals are two.

Agents start a shell for each command, so the parent process says nothing. The session is the nearest ancestor
that stays: not a shell that only runs a command, unless a person types in it. `context` asks here.
"""

import os
import re
from collections.abc import Callable
from typing import NamedTuple

from mycelium_cli.config import Value

# The session ids that coding agents give the commands they run, most specific first.
AGENT_SESSION_VARIABLES = (
    "CLAUDE_CODE_SESSION_ID",
    "CLAUDE_SESSION_ID",
    "CODEX_SESSION_ID",
    "CODEX_THREAD_ID",
    "CURSOR_SESSION_ID",
    "GEMINI_SESSION_ID",
    "OPENCODE_SESSION_ID",
)
IN_HELP = (
    "What a session was given is acknowledged by its next call; another session gets it again. The session is"
    " MYCELIUM_SESSION, else the agent's own (CLAUDE_CODE_SESSION_ID, CODEX_SESSION_ID, …), else the nearest process"
    " above this one that is no passing shell: an agent, a script's caller, a terminal."
    " mycelium whoami --sources shows which."
)

SHELLS = frozenset({"sh", "bash", "dash", "ash", "zsh", "fish", "ksh", "mksh", "csh", "tcsh", "busybox", "rbash"})
# They run one other program and end with it.
_RUNNERS = frozenset(
    {"env", "timeout", "nohup", "sudo", "doas", "su", "xargs", "time", "nice", "ionice", "stdbuf", "setsid", "setpriv",
     "chroot", "unshare", "script", "uv", "uvx", "pipx", "poetry", "hatch", "pdm", "make", "just", "mise", "npx"}
)  # fmt: skip
# They take in whatever has lost its parent: what they have in common is nothing.
_KEEPERS = frozenset({"systemd", "init", "launchd", "tini", "dumb-init", "docker-init", "catatonit", "runit"})
_OUTSIDE = 0  # the parent of what was started from outside of this container
_FURTHEST = 64
_HEADER_LETTERS = 200


class Process(NamedTuple):
    """What is known of an ancestor; `leads_terminal`: it leads a session that has a controlling terminal."""

    pid: int
    parent: int
    name: str
    start: str
    leads_terminal: bool


Look = Callable[[int], Process | None]


def session() -> Value:
    """The session's id: what it was given stays its own until it says that it is done with it."""
    for name in ("MYCELIUM_SESSION", *AGENT_SESSION_VARIABLES):
        found = os.environ.get(name)
        if found:
            return Value(header_safe(found), name)
    look = _from_proc if os.path.exists("/proc/self/stat") else _from_ps()
    return of_process(caller(os.getpid(), os.getppid(), look))


def of_process(process: Process) -> Value:
    """The session that a process stands for: its number alone comes again, so its start is part of it."""
    source = f"process {process.pid}, {process.name}" if process.pid != _OUTSIDE else "this container"
    return Value(header_safe(f"{os.uname().nodename}-{process.pid}-{process.start}"), source)


def header_safe(text: str) -> str:
    """A text as it can travel in a header."""
    return re.sub(r"[^A-Za-z0-9._:@/+-]", "_", text)[:_HEADER_LETTERS]


def caller(pid: int, parent: int, look: Look) -> Process:
    """The nearest ancestor that stays; below a keeper of orphans the topmost, perhaps this process itself."""
    below = Process(pid, parent, "this command", "0", leads_terminal=False)
    for _ in range(_FURTHEST):
        if below.parent == _OUTSIDE:
            first = look(1)
            return Process(_OUTSIDE, _OUTSIDE, "", first.start if first else "0", leads_terminal=False)
        process = look(below.parent)
        if process is None or process.name in _KEEPERS:
            break
        passing = process.name in SHELLS or process.name in _RUNNERS
        if not passing or (process.name in SHELLS and process.leads_terminal):
            return process
        below = process
    return below if below.pid != pid else (look(pid) or below)


def _from_proc(pid: int) -> Process | None:
    """A process as Linux shows it."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            head, _, rest = file.read().rpartition(")")
        fields = rest.split()
        leads = int(fields[3]) == pid and fields[4] != "0"
        parent, start = int(fields[1]), fields[19]
    except (OSError, ValueError, IndexError):
        return None
    name = _program(pid, head.partition("(")[2])
    return Process(pid, parent, name, start, leads and name in SHELLS and not _runs_a_command(_arguments(pid)))


def _program(pid: int, name: str) -> str:
    """A script goes by its own name, but the program that runs it is a shell."""
    if name in SHELLS or name in _RUNNERS:
        return name
    try:
        program = os.path.basename(os.readlink(f"/proc/{pid}/exe"))
    except OSError:  # somebody else's process
        return name
    return program if program in SHELLS else name


def _arguments(pid: int) -> list[str]:
    try:
        with open(f"/proc/{pid}/cmdline", encoding="utf-8", errors="replace") as file:
            return file.read().split("\0")
    except OSError:
        return []


def _runs_a_command(arguments: list[str]) -> bool:
    """Whether a shell was started with `-c`: agents do that in a new terminal for each command."""
    for word in arguments[1:]:
        if not word.startswith("-"):
            return False
        if not word.startswith("--") and "c" in word:
            return True
    return False


def _from_ps() -> Look:
    """Where there is no `/proc` (macOS): all processes, from one `ps`."""
    import subprocess

    columns = "pid=,ppid=,stat=,tty=,lstart=,args="
    words = ["ps", "-axo", columns]
    plain = {**os.environ, "LC_ALL": "C"}
    listed = subprocess.run(words, capture_output=True, text=True, check=False, errors="replace", env=plain)
    return from_listing(listed.stdout).get


def from_listing(text: str) -> dict[int, Process]:
    """The processes of `ps -axo pid=,ppid=,stat=,tty=,lstart=,args=`."""
    found = {}
    for line in text.splitlines():
        words = line.split(maxsplit=9)  # lstart has five words
        if len(words) < 10:
            continue
        pid, arguments = int(words[0]), words[9].split(" ")
        name = os.path.basename(arguments[0]).removeprefix("-")
        leads = "s" in words[2] and not words[3].startswith("?") and not _runs_a_command(arguments)
        found[pid] = Process(pid, int(words[1]), name, "_".join(words[4:9]), leads)
    return found
