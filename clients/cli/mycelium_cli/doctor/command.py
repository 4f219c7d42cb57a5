"""`doctor`: looks at everything that can be wrong on this machine and with the hub, a line for each."""

import subprocess
from collections.abc import Callable, Iterator
from itertools import chain

import click

from mycelium_cli import context
from mycelium_cli.command import command
from mycelium_cli.context import Here
from mycelium_cli.doctor import files, outside, settings
from mycelium_cli.doctor.finding import COMMANDS, FIXED, NOTE, OK, WRONG, Finding, counted
from mycelium_cli.errors import REFUSED, Failure
from mycelium_cli.output import Paint, clean_line
from mycelium_cli.problems import is_local
from mycelium_cli.wording import Document

# Parts that mycelium-hub doctor looks at, too, and better.
_ALSO_INSIDE = {"config", "files", "disk", "hub file", "port", "drift", "clock", "nats"}


@command(
    "doctor",
    example="mycelium doctor\nmycelium doctor --fix\nmycelium doctor --deep\nmycelium doctor --mode spoke --json",
)
@click.option("--fix", is_flag=True, help="Mend what can be mended without asking.")
@click.option("--deep", is_flag=True, help="Also read every byte that the hub of this machine keeps, and compare.")
@click.option(
    "--mode",
    type=click.Choice(["auto", "hub", "spoke"]),
    default="auto",
    show_default=True,
    help="hub: it runs here. spoke: it is elsewhere. auto: told by the hub's address.",
)
def doctor(here: Here, *, fix: bool, deep: bool, mode: str) -> None:
    """Find what is wrong, and say what to do.

    Settings, files and disk here; the hub, its parts, clock, version and sign-in there. Exit status 1:
    something is wrong. --deep finds a single flipped bit in the log or in a table, and with --fix puts it right.
    """
    exposed = files.exposed()
    own, why = _mode(mode)
    looked = chain(_looked([lambda: files.check_exposed(exposed)]), _all(here, own=own, fix=fix, deep=deep))
    findings = [finding.mended() if fix else finding for finding in looked]
    answer = {
        "mode": "hub" if own else "spoke",
        "why": why,
        "ok": not counted(findings, WRONG),
        "items": [finding.document() for finding in findings],
        "next": None,
    }
    here.out.answer(answer, draw_findings)
    if not answer["ok"]:
        raise click.exceptions.Exit(REFUSED)


def _mode(mode: str) -> tuple[bool, str]:
    """Whether the hub is this machine's, and how that is known."""
    if mode != "auto":
        return mode == "hub", "--mode"
    try:
        found = context.hub_url()
    except Failure:
        return True, "the hub's address can't be read"
    own = is_local(str(found.value))
    return own, f"{found.value} is {'this' if own else 'another'} machine"


def _all(here: Here, *, own: bool, fix: bool, deep: bool) -> Iterator[Finding]:
    """Every finding once: what the hub's own program tells is not told again."""
    inside = list(_looked([lambda: _inside(fix=fix, deep=deep)])) if own else []
    yield from inside
    told = {finding.part for finding in inside}
    looks = [settings.check, files.check_files]
    if own:
        looks += [files.check_disk, files.check_hub_file]
    looks.append(lambda: outside.check(here, own=own))
    yield from (finding for finding in _looked(looks) if not _told(finding, told))


def _told(finding: Finding, told: set[str]) -> bool:
    """Whether the hub's own program has told it: all of its home, but not what commands are set to."""
    if finding.part not in told & _ALSO_INSIDE:
        return False
    return finding.of != COMMANDS or finding.state == OK


def _looked(looks: list[Callable[[], Iterator[Finding]]]) -> Iterator[Finding]:
    """Looks in the order in which one thing explains the next. One that fails hides no other."""
    for look in looks:
        try:
            yield from look()
        except Failure as failure:
            yield Finding("doctor", WRONG, failure.cause, failure.hint)
        except OSError as error:
            yield Finding("doctor", WRONG, f"{error.filename or ''}: {error.strerror}".strip(": "))
        except subprocess.TimeoutExpired:
            yield Finding("doctor", WRONG, "mycelium-hub doctor does not end", "mycelium logs hub --tail 50")


def _inside(*, fix: bool, deep: bool) -> Iterator[Finding]:
    from mycelium_cli.machine.hub import program

    try:
        found = program()
    except Failure:
        return  # a client alone: the hub of this machine runs otherwise
    yield from outside.check_inside(found, fix=fix, deep=deep)


def draw_findings(answer: Document, paint: Paint) -> Iterator[str]:
    """What was seen, a line each, with the next command below what needs one; then the sum."""
    yield paint.dim(f"looking as a {answer['mode']} ({clean_line(answer['why'])})")
    words = {OK: paint.good(OK), NOTE: paint.warn(NOTE), WRONG: paint.bad(WRONG), FIXED: paint.good(FIXED)}
    width = max(len(row["part"]) for row in answer["items"])
    for row in answer["items"]:
        pad = " " * (5 - len(row["state"]))
        yield f"{words[row['state']]}{pad}  {clean_line(row['part']).ljust(width)}  {clean_line(row['seen'])}"
        if row["next"] and row["state"] != OK:
            yield f"{' ' * (7 + width)}  → {clean_line(row['next'])}"
    wrong = sum(1 for row in answer["items"] if row["state"] == WRONG)
    fixable = sum(1 for row in answer["items"] if row["fixable"])
    if not wrong:
        yield "nothing is wrong"
    elif fixable:
        deep = " --deep" if any(row["fixable"] and "--deep" in (row["next"] or "") for row in answer["items"]) else ""
        yield f"{wrong} wrong; mycelium doctor{deep} --fix mends {fixable}"
    else:
        yield f"{wrong} wrong"
