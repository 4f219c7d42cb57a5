"""What `whoami` and `iam` say of a sign-in."""

import hashlib

from mycelium_cli.config import Value
from mycelium_cli.output import clean_line
from mycelium_cli.sign_in import token_file
from mycelium_cli.sign_in.token_file import Person
from mycelium_cli.wording import Document

_MINUTE, _HOUR, _DAY = 60, 3600, 86400


def person(hub: str) -> Person | None:
    """Who is signed in at a hub, and known by a handle."""
    found = token_file.find(hub)
    return found if found and found.access_token and found.handle else None


def told(hub: str, credential: Value) -> Document | None:
    """The sign-in that requests are made with; nothing while another credential goes before it."""
    found = token_file.find(hub)
    if found is None or credential.source != token_file.path():
        return None
    return Document(handle=found.handle, issuer=found.issuer, expires_at=found.expires_at or None)


def seat(handle: str, session: str) -> str:
    """The handle with a mark of this session, by which two of one person's are told apart."""
    return f"{clean_line(handle)}#{hashlib.sha256(session.encode()).hexdigest()[:4]}"


def line(signed_in: Document, acting: str, now_s: float) -> str:
    """Who vouches for it, and how long the token lasts; a renewed one lasts longer."""
    who = clean_line(signed_in["handle"])
    as_whom = f" as @{who}" if who and who != acting else ""
    return f"signed in{as_whom} ({clean_line(signed_in['issuer'])}{_left(signed_in['expires_at'], now_s)})"


def _left(expires_at: float | None, now_s: float) -> str:
    if expires_at is None:
        return ""
    seconds = max(0, int(expires_at - now_s))
    if seconds < 2 * _MINUTE:
        return f", expires in {seconds} s"
    if seconds < 2 * _HOUR:
        return f", expires in {seconds // _MINUTE} min"
    return f", expires in {seconds // _HOUR} h" if seconds < 2 * _DAY else f", expires in {seconds // _DAY} days"


def mismatch(signed_in_as: str, who: str) -> str:
    """What `iam` says to somebody who is signed in as somebody else."""
    named = clean_line(signed_in_as)
    return (
        f"warning: you are signed in as @{named}, and so is what you write: as @{who} it is refused."
        f" Next: mycelium logout, or mycelium iam {named}"
    )


def outdone(folder: str, joined_as: str, who: str) -> str:
    """What `iam` says in a folder that has joined as another member."""
    return (
        f"warning: {folder} goes first here: commands in its folder act as @{clean_line(joined_as)}, not as @{who}."
        " Next: mycelium leave, or another folder"
    )
