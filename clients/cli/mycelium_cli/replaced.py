"""Commands and settings of SLIM, which this hub does without, and what stands in their place.

Its rooms travel over NATS, which starts with the hub and has its own credentials: nobody connects to it. Who types one
of these is told so, and what to type instead.
"""

from urllib.parse import urlsplit

from mycelium_cli.errors import Failure, usage

_PORT = 8000
_BUS = "rooms here travel over NATS, which starts with the hub and which nobody else connects to"


def command(words: list[str]) -> Failure | None:
    """The answer to a command of SLIM; `None` for any other."""
    first = words[0]
    if first == "connect":
        return usage("connect would save a SLIM node's address, and there is none: " + _SPOKES, _reach(words[1:]))
    if first == "hub":
        said = " ".join(word for word in words[:2] if not word.startswith("-"))
        return usage(f'"mycelium {said}" would run a SLIM node, and there is none: {_BUS}', "mycelium up")
    if first == "slim":
        hint = "mycelium room send" if words[1:2] == ["send"] else "mycelium room --help"
        return usage(f"there is no SLIM to talk to: {_BUS}", hint)
    if first == "install":
        return usage("there is no stack to install: the hub comes with this program", "mycelium up")
    return None


_SPOKES = "other machines use the hub's HTTP address, and nothing else"


def _reach(words: list[str]) -> str:
    """The command that a spoke needs, with the host that was typed."""
    typed = next((word for word in words if not word.startswith("-")), "")
    try:
        place = urlsplit(typed if "://" in typed else f"http://{typed}")
        host = place.hostname or ""
    except ValueError:
        host = ""
    host = f"[{host}]" if ":" in host else host
    plain = host.isascii() and host.isprintable() and " " not in host
    return f"mycelium init --api-url http://{host if host and plain else '<host>'}:{_PORT}"


_SETTINGS = {
    "master_secret": ("NATS gets its credentials when the hub first starts", "mycelium config set auth.enabled true"),
    "identity": ("who calls is proven by sign-in", "mycelium config set auth.enabled true"),
    "node_endpoint": (_SPOKES, "mycelium config set server.api_url http://<host>:8000"),
}


def setting(key: str) -> Failure | None:
    """The answer to a setting of SLIM; `None` for any other."""
    table, _, name = key.partition(".")
    if table != "slim":
        return None
    instead, hint = _SETTINGS.get(name, (_BUS, "mycelium config show"))
    return usage(f"{key} is a setting of SLIM, which this hub does without: {instead}", hint, "setting.replaced")
