"""Looks at the hub from outside: whether it answers, how it is, whether its clock and version agree with ours."""

import json
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

from mycelium_cli import __version__, config, context
from mycelium_cli.api import Hub, api_path
from mycelium_cli.context import Here
from mycelium_cli.doctor import sign_in
from mycelium_cli.doctor.files import hub_runs
from mycelium_cli.doctor.finding import COMMANDS, FIXED, NOTE, OK, WRONG, Finding
from mycelium_cli.errors import NOT_FOUND, Failure
from mycelium_cli.problems import Answer
from mycelium_cli.wording import Document

_SKEW_S = 30.0
_DOCTOR_WITHIN_S = 60.0


def check(here: Here, *, own: bool) -> Iterator[Finding]:
    """Everything that the hub tells whoever asks."""
    found = context.hub_url()
    hub = here.hub()
    try:
        answer = hub.read("/health")
    except Failure as failure:
        own_hint = "mycelium up" if own else f"curl {found.value}/health, then mycelium config set server.api_url <url>"
        yield Finding("hub", WRONG, failure.cause, own_hint)
        if own:
            yield from _port()
            yield from sign_in.check_settings()
        return
    health: Document = answer.data
    yield Finding("hub", OK, f"{found.value} answers (address from {found.source})")
    yield from parts(health)
    yield from _versions(health)
    yield from sign_in.check(health, own=own)
    yield from _clock(answer)
    if own:
        yield from drift(str(found.value))
    yield from _place(hub)


def parts(health: Document) -> Iterator[Finding]:
    """Each service, NATS, and what the hub warns of."""
    services = {"nats": _nats(health.get("nats") or {}), **(health.get("services") or {})}
    for name, state in services.items():
        word, detail = str(state.get("status", "unknown")), str(state.get("detail") or "")
        seen = f"{word}{': ' + detail if detail and word != 'ok' else ''}"
        hint = "" if word == "ok" else f"mycelium logs {name} --tail 50"
        verdict = {"ok": OK, "starting": NOTE}.get(word, WRONG)  # the hub says `starting` for a bounded time only
        yield Finding(name, verdict, seen + (f", {detail}" if word == "ok" and detail else ""), hint)
    told = (*(f"{name} is " for name in services), sign_in.WARNING)
    for warning in health.get("warnings") or []:
        if not str(warning).startswith(told):
            yield Finding("hub", NOTE, str(warning))


def _nats(nats: Document) -> dict[str, str]:
    if not nats.get("connected"):
        return {"status": "down", "detail": "the gateway has no connection to it"}
    return {"status": "ok", "detail": f"version {nats.get('version') or 'unknown'}"}


def _versions(health: Document) -> Iterator[Finding]:
    theirs = str(health.get("version") or "unknown")
    if theirs == __version__:
        yield Finding("version", OK, f"{__version__}, here and there")
    else:
        seen = f"this command is {__version__}, the hub {theirs}"
        yield Finding("version", NOTE, seen, "bring the older of the two up to date")


def _clock(answer: Answer) -> Iterator[Finding]:
    """The hub's clock against ours, as far as whole seconds tell."""
    try:
        theirs_s = parsedate_to_datetime(answer.headers["date"]).timestamp()
    except (KeyError, ValueError):
        return
    skew_s = time.time() - theirs_s - 0.5
    if abs(skew_s) < _SKEW_S:
        yield Finding("clock", OK, "the hub's clock agrees with this machine's")
    else:
        seen = f"this machine's clock is {abs(skew_s):.0f} s {'ahead of' if skew_s > 0 else 'behind'} the hub's"
        yield Finding("clock", WRONG, seen, "timedatectl set-ntp true, on the machine that is wrong")


def drift(url: str) -> Iterator[Finding]:
    """What is set against where the hub of this home really is."""
    try:
        with open(os.path.join(config.home(), "run", "hub.json"), encoding="utf-8") as file:
            told = str(json.load(file)["url"])
    except (OSError, ValueError, KeyError, TypeError):
        return
    if not hub_runs():
        return
    if urlsplit(told).port != urlsplit(url).port:
        seen = f"Runtime config drift: commands ask {url}, but the hub of {config.home()} is at {told}"
        yield Finding("drift", WRONG, seen, f"mycelium config set server.api_url {told}", of=COMMANDS)
    port = config.effective("runtime.backend_port")
    if port.source != "default" and port.value not in {0, urlsplit(told).port}:
        seen = f"Runtime config drift: {port.source} says port {port.value}, but the hub answers at {told}"
        from_file = port.source == config.path()
        yield Finding("drift", NOTE, seen, "mycelium config apply" if from_file else "mycelium down && mycelium up")


def _port() -> Iterator[Finding]:
    """Who has the hub's port, when the hub doesn't answer there."""
    port = int(config.effective("runtime.backend_port").value)
    if port == 0 or hub_runs():
        return
    with socket.socket() as asking:
        asking.settimeout(1.0)
        taken = asking.connect_ex(("127.0.0.1", port)) == 0
    if taken:
        hint = f"lsof -i :{port}, or mycelium config set runtime.backend_port {port + 1}"
        yield Finding("port", WRONG, f"port {port} is in use by another program: address already in use", hint)
    else:
        yield Finding("port", OK, f"port {port} is free")


def _place(hub: Hub) -> Iterator[Finding]:
    """Whether the handle and the room that commands act with are there."""
    who, room = context.handle(None), context.room(None)
    if who is None:
        yield Finding("identity", NOTE, "nobody said who you are", "mycelium iam <handle>")
    else:
        try:
            known = hub.get(api_path("whoami")).get("registered")
        except Failure as failure:
            yield Finding("identity", WRONG, failure.cause, failure.hint)
        else:
            seen = f"@{who.value} (from {who.source})" + ("" if known else ", which is no registered agent or user")
            yield Finding("identity", OK if known else NOTE, seen, "" if known else f"mycelium iam {who.value}")
    if room is None:
        yield Finding("room", NOTE, "No active room set.", "mycelium room use <name>")
        return
    try:
        hub.get(api_path("rooms", str(room.value)))
    except Failure as failure:
        wrong = failure.exit_status == NOT_FOUND
        yield Finding(
            "room", WRONG, f"{failure.cause} (from {room.source})", "mycelium room ls" if wrong else failure.hint
        )
    else:
        yield Finding("room", OK, f"{room.value} (from {room.source})")


def check_inside(program: str, *, fix: bool = False, deep: bool = False) -> Iterator[Finding]:
    """What the hub's own program finds, and mends: its settings, files, port, NATS, the log, the tables."""
    words = [program, "doctor", "--json", *(["--fix"] if fix else []), *(["--deep"] if deep else [])]
    within_s = None if deep else _DOCTOR_WITHIN_S  # it takes as long as there is to read
    ran = subprocess.run(words, capture_output=True, text=True, check=False, timeout=within_s)
    try:
        rows = json.loads(ran.stdout)["items"]
    except (ValueError, KeyError, TypeError):
        return  # a hub of another version, which has no doctor
    for row in rows:
        yield inside(row, fix=fix)


def inside(row: dict[str, Any], *, fix: bool = False) -> Finding:
    """A row of the hub's own doctor. What it finds of its process is the hub file here, where "hub" is its answer."""
    part, state = str(row.get("part", "hub")), str(row.get("state", NOTE))
    return Finding(
        "hub file" if part == "hub" else part,
        state if state in {OK, NOTE, WRONG, FIXED} else NOTE,
        str(row.get("seen", "")),
        str(row.get("next") or "").replace("mycelium-hub doctor", "mycelium doctor"),
        _mended_inside if row.get("fixable") and not fix else None,
    )


def _mended_inside() -> None:
    """With `--fix` the hub's own program has mended it before its row came here."""
