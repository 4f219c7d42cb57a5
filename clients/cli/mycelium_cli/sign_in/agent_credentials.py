"""The credentials of this machine's agents, in one file for this user alone; `agent credential` writes it."""

import json
import os
from collections.abc import Callable
from typing import NamedTuple

from mycelium_cli import config, config_writing
from mycelium_cli.errors import Failure, usage
from mycelium_cli.sign_in import private_file


class Credential(NamedTuple):
    """What an agent signs in with. Without an issuer of its own it is `agent_auth.issuer`."""

    client_id: str
    client_secret: str
    issuer: str = ""


def path() -> str:
    """The file of all of them."""
    return os.path.join(config.home(), "agent-credentials.json")


def read() -> dict[str, Credential]:
    """Every agent's credential by its handle. A file that can't be read is told, not taken for none."""
    try:
        rows = json.loads(private_file.read(path()))["agents"]
        return {str(handle): _credential(row) for handle, row in rows.items()}
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        if not os.access(config.home(), os.X_OK):  # a home of somebody else: there is nothing of ours
            return {}
        raise usage(f"cannot read {path()}: {error.strerror}", f"mend {path()}") from None
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        hint = f"rm {path()}, then mycelium agent credential set <handle>"
        raise usage(f"{path()} is not one that this program wrote", hint) from None


def _credential(row: dict[str, str]) -> Credential:
    credential = Credential(**row)
    if not all(isinstance(part, str) for part in credential):
        raise TypeError
    return credential


def change(changed: Callable[[dict[str, Credential]], None]) -> None:
    """Read, change and write them: whole or not at all, one writer at a time."""
    try:
        with config_writing.locked_home():
            agents = read()
            changed(agents)
            rows = {handle: credential._asdict() for handle, credential in sorted(agents.items())}
            config_writing.replace(path(), json.dumps({"agents": rows}, indent=2) + "\n")
    except OSError as error:
        raise Failure(f"cannot write {path()}: {error.strerror}", hint="set MYCELIUM_HOME") from None
