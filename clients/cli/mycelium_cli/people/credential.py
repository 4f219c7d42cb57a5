"""`agent credential set|show|ls|rm`: what the agents of this machine sign in with. A secret goes in, never out."""

import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import click

from mycelium_cli import config, setting_values
from mycelium_cli.command import Entry, Group, command
from mycelium_cli.context import Here
from mycelium_cli.errors import NOT_FOUND, Failure, usage
from mycelium_cli.handles import handle_of
from mycelium_cli.output import Paint, clean_line, fields, table
from mycelium_cli.problems import is_local
from mycelium_cli.sign_in import agent_credentials, agent_tokens, agents
from mycelium_cli.sign_in.agent_credentials import Credential
from mycelium_cli.wording import Document

group = Group(
    "credential",
    "What the agents of this machine sign in with.",
    {
        "set": Entry("people.credential:set_secret", "Give an agent the secret of its client."),
        "show": Entry("people.credential:show", "Show what an agent signs in as; never its secret."),
        "ls": Entry("people.credential:ls", "List the agents of this machine that can sign in."),
        "rm": Entry("people.credential:remove", "Take an agent's credential off this machine."),
    },
    example="mycelium agent credential set release-agent --secret-stdin < secret.txt\nmycelium agent credential ls",
)

_LONGEST = 10_000


@command(
    "set", example="mycelium agent credential set release-agent\nmycelium agent credential set sec --client-id ci-sec"
)
@click.option("--secret-stdin", is_flag=True, help="Read the secret from stdin instead of asking for it.")
@click.option("--client-id", metavar="ID", help="The client's id at its issuer; default: the handle.")
@click.option("--issuer", metavar="URL", help="The issuer of this agent alone; default: agent_auth.issuer.")
@click.argument("handle")
@click.argument("typed", nargs=-1, metavar="")
def set_secret(
    here: Here, *, secret_stdin: bool, client_id: str | None, issuer: str | None, handle: str, typed: tuple[str, ...]
) -> None:
    """Give an agent the secret of its client.

    From then on commands that act as this agent send its token, also from a shell where a person is signed in. The
    secret is typed unseen, or comes from stdin; on a command line others could read it. It is kept in a file that
    only you can read.
    """
    who = handle_of(handle)
    if typed:  # click would repeat it
        cause = "a secret does not go on the command line, where others can read it: take another one"
        raise usage(cause, f"mycelium agent credential set {who}")
    own = setting_values.checked_url(issuer, "--issuer") if issuer else ""
    chosen = _plain(client_id, "--client-id") if client_id else who
    credential = Credential(chosen, _asked(who, from_stdin=secret_stdin), own)
    agent_credentials.change(lambda known: known.update({who: credential}))
    agent_tokens.forget(who)
    here.out.answer(_told(who), lambda data, _: [f"@{who} signs in as {clean_line(data['client_id'])}"])
    _warn(here, own or str(config.effective("agent_auth.issuer").value))


def _plain(text: str, source: str) -> str:
    if not text.strip() or not text.isascii() or not text.isprintable():
        raise usage(f"{source} is a word of printable ASCII")
    return text.strip()


def _asked(who: str, *, from_stdin: bool) -> str:
    if sys.stdin.isatty():
        from getpass import getpass

        return agents.checked_secret(getpass(f"secret of @{who}: ").strip())
    if not from_stdin:
        raise usage("there is no terminal to type the secret at", "the same with --secret-stdin < secret.txt")
    return agents.checked_secret(sys.stdin.read(_LONGEST).strip("\r\n"))


def _warn(here: Here, issuer: str) -> None:
    if not issuer:
        here.out.note("warning: no issuer is set, so no token is sent: mycelium config set agent_auth.issuer <url>")
    elif issuer.startswith("http:") and not is_local(issuer):
        here.out.note(f"warning: {issuer} is plain HTTP: whoever is on the way there can read the secret")


@command("show", example="mycelium agent credential show release-agent")
@click.argument("handle")
def show(here: Here, *, handle: str) -> None:
    """Show what an agent signs in as; never its secret."""
    who = handle_of(handle)
    if agents.credential_of(who) is None:
        raise _unknown(who)
    here.out.answer(_told(who), draw_credential)


def _unknown(who: str) -> Failure:
    hint = f"mycelium agent credential set {who}"
    return Failure(f"@{who} has no credential on this machine", exit_status=NOT_FOUND, hint=hint)


def _told(who: str) -> dict[str, Any]:
    """What may be said of an agent's credential."""
    found = agents.credential_of(who)
    assert found is not None
    credential, source = found
    issuer, scopes, audience = agents.asked_for(credential)
    kept = agent_tokens.read(who, [issuer, credential.client_id, scopes, audience])
    good = kept.is_good(time.time())
    return {
        "handle": who,
        "client_id": credential.client_id,
        "issuer": issuer,
        "audience": audience,
        "scopes": scopes,
        "from": source,
        "token_cached": good,
        "token_until": datetime.fromtimestamp(int(kept.expires_at), UTC).isoformat() if good else None,
        "trusted_by": list(kept.hubs),
        "last_failure": kept.why or None,
    }


def draw_credential(told: Document, paint: Paint) -> Iterator[str]:
    """An agent's credential without its secret."""
    yield paint.bold(f"@{told['handle']}")
    known = [
        ("client id", clean_line(told["client_id"])),
        ("issuer", clean_line(told["issuer"]) or "none: mycelium config set agent_auth.issuer <url>"),
        ("audience", clean_line(told["audience"])),
        ("scopes", clean_line(told["scopes"])),
        ("secret", f"in {told['from']}"),
        ("token", _token(told)),
        ("sent to", ", ".join(map(clean_line, told["trusted_by"]))),
        ("last failure", clean_line(told["last_failure"] or "")),
    ]
    yield from fields(known, paint)


def _token(told: Document) -> str:
    return f"until {told['token_until']}" if told["token_cached"] else "asked for with the next command"


@command("ls", example="mycelium agent credential ls --json")
def ls(here: Here) -> None:
    """List the agents of this machine that can sign in."""
    rows = [_told(who) for who in sorted({*agent_credentials.read(), agents.own_handle()} - {""})]
    here.out.answer({"items": rows, "next": None}, draw_credentials)


def draw_credentials(answer: Document, paint: Paint) -> list[str]:
    """Agents' credentials as a table."""
    if not answer["items"]:
        return ["no agent has a credential here: mycelium agent credential set <handle>"]
    rows = [
        [f"@{row['handle']}", row["client_id"], row["issuer"] or "none set", _token(row)] for row in answer["items"]
    ]
    return table(["AGENT", "CLIENT ID", "ISSUER", "TOKEN"], rows, paint)


@command("rm", example="mycelium agent credential rm release-agent")
@click.argument("handle")
def remove(here: Here, *, handle: str) -> None:
    """Take an agent's credential off this machine.

    What else has it can still sign in: to cut the agent off, revoke its client at the issuer.
    """
    who = handle_of(handle)
    if who not in agent_credentials.read():
        raise _unknown(who)

    def taken_out(known: dict[str, Credential]) -> None:
        with suppress(KeyError):
            del known[who]

    agent_credentials.change(taken_out)
    agent_tokens.forget(who)
    here.out.answer({"removed": who}, lambda *_: [f"removed the credential of @{who}"])
    here.out.note("to cut the agent off everywhere, revoke its client at the issuer")
