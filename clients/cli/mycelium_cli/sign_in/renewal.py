"""The signed-in person's token as requests carry it: renewed before its time is over, by one process for all.

`context.token` asks here before each request.
"""

from mycelium_cli.config import Value
from mycelium_cli.sign_in import token_file


def token(url: str, refused: str | None = None) -> Value | None:
    """The token for a hub, or nothing when nobody is signed in there; `refused`: the hub would not have that one."""
    person = token_file.find(url)
    if person is None or not person.access_token or person.access_token == refused:
        return None
    return Value(person.access_token, token_file.path())
