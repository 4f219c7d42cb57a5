"""`config apply`: the hub of this machine takes its settings as they are now; its own program does it."""

import json
import subprocess
from collections.abc import Iterator
from typing import Any

import click

from mycelium_cli import config, context, setting_values
from mycelium_cli.command import command
from mycelium_cli.context import Here
from mycelium_cli.doctor import settings
from mycelium_cli.doctor.files import hub_runs
from mycelium_cli.doctor.finding import COMMANDS, WRONG
from mycelium_cli.errors import REFUSED, UNREACHABLE, USAGE, Failure
from mycelium_cli.machine import hub
from mycelium_cli.output import Paint, clean_line
from mycelium_cli.problems import is_local
from mycelium_cli.wording import Document

Row = dict[str, Any]


@command("apply", example="mycelium config set log.level debug\nmycelium config apply")
@click.option("--restart", is_flag=True, help="Start the hub again even when nothing differs.")
def apply(here: Here, *, restart: bool) -> None:
    """Make the running hub take its settings.

    The whole file is checked first: what is wrong in it is named, and nothing is touched. Where the hub
    runs with something else, it starts again in place, at its address, and rooms answer when this returns.
    """
    program = _program()
    own = _own_faults(everything=program is None)
    alone: Row = {"outcome": "not running", "wrong": []}
    told = _asked(program, check=bool(own), restart=restart) if program else alone
    if own or told["wrong"]:
        raise _wrong(here, [*own, *told["wrong"]])
    if told["outcome"] == "not running":
        told |= _elsewhere(here, restart=restart)
    if program is None and told["outcome"] == "not running":
        hub.program()  # says why
    if told["outcome"] in {"refused", "lost"}:
        status = REFUSED if told["outcome"] == "refused" else UNREACHABLE
        raise Failure(told["reason"], exit_status=status, hint=told["next"] or "mend that, then mycelium config apply")
    here.out.answer({name: value for name, value in told.items() if name not in {"wrong", "reason"}}, draw_applied)


def _program() -> str | None:
    try:
        return hub.program()
    except Failure:
        return None


def _own_faults(*, everything: bool) -> list[Row]:
    """What is wrong with what commands read; what the hub reads its own program tells, where there is one."""
    found = [finding for finding in settings.check() if finding.state == WRONG]
    return [{"seen": one.seen, "next": one.next} for one in found if everything or one.of == COMMANDS]


def _asked(program: str, *, check: bool, restart: bool) -> Row:
    words = [program, "apply", "--home", config.home()]
    words += ["--check"] if check else []
    words += ["--restart"] if restart else []
    ran = subprocess.run(words, capture_output=True, text=True, check=False)
    try:
        told: Row = json.loads(ran.stdout)
        said = {name: told[name] for name in ("outcome", "home", "url", "wrong", "changed", "overruled", "next")}
    except (ValueError, KeyError, TypeError):
        words_of_it = (ran.stderr.strip().splitlines() or ["it is of another version"])[-1].removeprefix("error: ")
        raise Failure(f"{program} can't do it: {words_of_it}", hint="mycelium down && mycelium up") from None
    return told | said


def _wrong(here: Here, rows: list[Row]) -> Failure:
    """Each on a line of its own, then the sum; for programs all in one document."""
    if not here.json:
        for row in rows:
            here.out.note(Failure(row["seen"], hint=row["next"]).line())
    count = "1 setting is" if len(rows) == 1 else f"{len(rows)} settings are"
    cause = f"{count} wrong in {config.path()}; nothing was touched"
    return Failure(cause, exit_status=USAGE, problem={"items": rows}, hint="mend that, then mycelium config apply")


def _elsewhere(here: Here, *, restart: bool) -> Row:
    """A hub that is not of this home can't be told from here. There is no need while the file has nothing for it."""
    if hub_runs():
        return {}
    url = str(context.hub_url().value)
    if not is_local(url):
        cause = f"the hub at {url} is on another machine, and takes its settings there"
        failure = Failure(cause, hint="ask its operator to run mycelium config apply on it")
    elif here.hub().answers():
        cause = f"the hub at {url} is not the one of {config.home()}: a container's, a cluster's, or another user's"
        failure = Failure(cause, hint="change its settings where it was started (on a cluster: helm upgrade)")
    else:
        return {}
    if restart or _has_something_for_a_hub():
        raise failure
    return {"outcome": "elsewhere", "home": config.home(), "url": url, "changed": [], "overruled": [], "next": None}


def _has_something_for_a_hub() -> bool:
    known = setting_values.known()
    return any(known[key].scope == "hub" for key in settings.flat(config.read_file()) if key in known)


def draw_applied(told: Document, _paint: Paint) -> Iterator[str]:
    """What differed, a line each; then what became of it."""
    for row in told.get("changed") or []:
        yield clean_line(f"{row['key']}: {_shown(row['running'])} → {_shown(row['written'])} ({row['written_source']})")
    for row in told.get("overruled") or []:
        stays = f"{row['key']} stays {_shown(row['running'])}: {row['source']} wins over {_shown(row['written'])}"
        yield clean_line(f"{stays} in {row['written_source']}")
    where = clean_line(told.get("url") or "")
    yield {
        "not running": f"no hub runs on {clean_line(told['home'])}; mycelium up will use these settings",
        "same": f"the hub at {where} runs with these settings; nothing was touched",
        "elsewhere": f"nothing to hand on: commands read their settings themselves, and the hub is at {where}",
        "applied": f"the hub was started again and answers at {where}",
    }.get(str(told["outcome"]), clean_line(told["outcome"]))


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "-" if value == "" else str(value)
