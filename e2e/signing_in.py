"""A person at a machine who signs in: a browser that tells where it was sent, and a terminal that one reads along."""

import contextlib
import json
import os
import pty
import re
import select
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import httpx2

from e2e.harness import MYCELIUM, Machine
from e2e.oidc_server import OidcServer
from e2e.processes import Background, Result
from e2e.waiting import until

CODE = re.compile(r"enter the code ([A-Z]{4}-[A-Z]{4})")


class Browser:
    """What `BROWSER` names: a program that writes down the address, and goes on as a browser does."""

    def __init__(self, folder: Path) -> None:
        self.cookies = httpx2.Cookies()
        self.place = folder / "opened"
        self.program = folder / "browser"
        self.program.write_text(
            f'#!/bin/sh\nprintf %s "$1" > "{self.place}.new"\nmv "{self.place}.new" "{self.place}"\n'
        )
        self.program.chmod(0o755)

    @property
    def environment(self) -> dict[str, str]:
        """A machine on which it is found."""
        self.place.unlink(missing_ok=True)
        return {"BROWSER": str(self.program)}

    def opened(self) -> str:
        """The address that it was given."""
        return until(lambda: self.place.read_text() if self.place.exists() else None, "a browser is opened")

    def sign_in(self, idp: OidcServer, user: str) -> httpx2.Response:
        """Sign in there, and bring the answer back: the page that is shown then. The issuer knows the browser again."""
        return httpx2.get(idp.sign_in(self.opened(), user, self.cookies), timeout=60)


def by_browser(machine: Machine, browser: Browser, idp: OidcServer, user: str, *words: str, **env: str) -> Result:
    """`mycelium login` with a browser, to its end."""
    login = machine.start("login", *words, env=browser.environment | env)
    assert browser.sign_in(idp, user).status_code == 200
    return login.ended()


def code_of(login: Background) -> str:
    """The code that a `login --device` shows."""

    def look() -> str | None:
        found = CODE.search("".join(login.err))
        return found[1] if found else None

    return until(look, "a code is shown")


def by_code(machine: Machine, idp: OidcServer, user: str, *words: str, **env: str) -> Result:
    """`mycelium login --device`, to its end."""
    login = machine.start("login", "--device", *words, env=env)
    idp.enter_code(code_of(login), user)
    return login.ended()


class Terminal:
    """`mycelium` at a terminal of its own: what it shows is read, Ctrl-C is typed."""

    def __init__(self, machine: Machine, *words: str, env: dict[str, str] | None = None) -> None:
        self.shown = ""
        self._ours, theirs = pty.openpty()
        environment = machine.environment(env={"TERM": "xterm", **(env or {})})
        self._process = subprocess.Popen(
            [MYCELIUM, *words], env=environment, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
            preexec_fn=_take_terminal,  # noqa: PLW1509 - no thread of this process holds a lock that it takes
        )  # fmt: skip
        os.close(theirs)

    def until(self, pattern: str, within_s: float = 60.0) -> str:
        """Read until it shows this; answers the first group."""
        end_s = time.monotonic() + within_s
        while not (found := re.search(pattern, self.shown)):
            assert time.monotonic() < end_s, f"never shown: {pattern}\n{self.shown}"
            assert self._read(0.5) or self._process.poll() is None, f"ended without {pattern}\n{self.shown}"
        return found[1] if found.groups() else found[0]

    def _read(self, within_s: float) -> bool:
        ready, _, _ = select.select([self._ours], [], [], within_s)
        if not ready:
            return False
        try:
            more = os.read(self._ours, 65536)
        except OSError:  # the other end is closed
            return False
        self.shown += more.decode("utf-8", "replace").replace("\r\n", "\n")
        return bool(more)

    def resize(self, columns: int, lines: int) -> None:
        """Make its window so large; the program is told."""
        import fcntl
        import struct
        import termios

        fcntl.ioctl(self._ours, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def type(self, text: str) -> None:
        """Type this; what Ctrl-C sends is 03."""
        os.write(self._ours, text.encode())

    def ended(self, within_s: float = 60.0) -> int:
        """Its exit status, with all that it has shown by then."""
        status = self._process.wait(within_s)
        while self._read(0.0):
            pass
        return status

    def close(self) -> None:
        """End it, if it still runs."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait(10)
        with contextlib.suppress(OSError):
            os.close(self._ours)


def _take_terminal() -> None:
    """Make the terminal the session's own, so that Ctrl-C reaches it."""
    import fcntl
    import termios

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def kept(machine: Machine) -> dict[str, Any]:
    """The sign-ins of a machine, by hub."""
    place = machine.home / "token.json"
    rows: dict[str, Any] = json.loads(place.read_text())["hubs"] if place.exists() else {}
    return rows
