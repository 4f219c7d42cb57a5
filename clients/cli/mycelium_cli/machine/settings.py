"""`config get|set|unset|show|path`: the settings of this machine. `applying` makes a running hub take them."""

from collections.abc import Iterator
from contextlib import suppress

import click

from mycelium_cli import completing, config, config_writing, context, secret, setting_rules, setting_values
from mycelium_cli.command import Entry, Group, command
from mycelium_cli.config import Value
from mycelium_cli.context import Here
from mycelium_cli.errors import Failure, usage
from mycelium_cli.output import Paint, clean_line, table
from mycelium_cli.setting_values import Scalar, Setting
from mycelium_cli.wording import Document

group = Group(
    "config",
    "Settings of this machine, in config.toml.",
    {
        "get": Entry("machine.settings:get", "Print one setting's value."),
        "set": Entry("machine.settings:put", "Write one setting."),
        "unset": Entry("machine.settings:unset", "Take one setting out of config.toml."),
        "show": Entry("machine.settings:show", "Every setting, its value and where it came from."),
        "apply": Entry("machine.applying:apply", "Make the running hub take its settings."),
        "path": Entry("machine.settings:path", "Where config.toml is."),
    },
    example="mycelium config set server.api_url http://192.168.1.20:8000\nmycelium config show",
)


RESTART = "the hub reads it when it starts; one that runs takes it with: mycelium config apply"


def current(setting: Setting) -> Value:
    """The value in force; the hub's address also comes from a hub that runs here."""
    return context.hub_url() if setting.key == "server.api_url" else config.effective(setting.key)


@command("get", example="mycelium config get server.api_url")
@click.argument("key", shell_complete=completing.settings)
def get(here: Here, key: str) -> None:
    """Print one setting's value."""
    setting = setting_values.find(key)
    value = current(setting)
    document = {"key": key, "value": _for_json(setting, value), "source": value.source}
    here.out.answer(document, lambda _data, _paint: [clean_line(setting_values.shown(setting, value.value))])


@command(
    "set",
    example="mycelium config set runtime.backend_port 8001\nmycelium config set llm.api_key  # asks, shows nothing",
)
@click.argument("key", shell_complete=completing.settings)
@click.argument("value", required=False)
def put(here: Here, key: str, value: str | None) -> None:
    """Write one setting.

    It is checked first. A variable in the environment still wins over it. Without a value, a secret is
    asked for unseen, or read from a pipe; it is kept in a file of its own.
    """
    setting = setting_values.find(key)
    if setting.secret:
        value = secret.checked(key, secret.asked(key) if value is None else value.strip())
    if value is None:
        raise usage(f"{key} needs a value", f"mycelium config set {key} <value>")
    place = secret.path(key) if setting.secret else config.path()
    typed = _typed(setting, value.strip() if setting.unit == "url" else value)
    config_writing.write(key, typed)
    stored = Value(typed, place)
    document = {"key": key, "value": _for_json(setting, stored), "source": place}
    here.out.answer(document, lambda _data, _paint: [f"{key} = {clean_line(setting_values.shown(setting, typed))}"])
    winner = current(setting)
    if winner.source != place and typed != "":
        here.out.note(f"warning: {winner.source} is set in this shell, and wins over it")
        return
    missing = _missing(key)
    if missing:
        here.out.note(f"warning: {missing}")
    elif setting.scope == "hub":
        here.out.note(RESTART)


def _typed(setting: Setting, text: str) -> Scalar:
    """A value as its setting wants it, or a refusal that ends in how to set one."""
    try:
        return setting_values.parse(setting, text)
    except Failure as failure:
        meant = "|".join(map(str, setting.choices)) or "value"
        failure.hint = failure.hint or f"mycelium config set {setting.key} <{meant}>"
        raise


def _missing(key: str) -> str:
    """What has to be set too before a hub starts with this; empty for nothing, or where another setting is wrong."""
    with suppress(Failure):
        if key in {"runtime.split", "runtime.replicas"}:
            return _missing_split()
        if key in {"runtime.bind_addr", "auth.enabled", "auth.insecure"}:
            return _missing_sign_in()
    return ""


def _missing_split() -> str:
    replicas = config.effective("runtime.replicas").value
    if replicas == 1 or config.effective("runtime.split").value:
        return ""
    why = f"runtime.replicas is {replicas}, and no hub starts so while runtime.split is false"
    return f"{why}. Next: mycelium config set runtime.split true"


def _missing_sign_in() -> str:
    host = str(config.effective("runtime.bind_addr").value)
    allowed = any(config.effective(f"auth.{name}").value for name in ("enabled", "insecure"))
    if allowed or setting_rules.is_loopback(host):
        return ""
    why = f"runtime.bind_addr is {host}, which other machines reach, and no hub starts so while nobody has to sign in"
    return f"{why}. Next: mycelium config set auth.enabled true (or auth.insecure true)"


@command("unset", example="mycelium config unset server.api_url")
@click.argument("key", shell_complete=completing.settings)
def unset(here: Here, key: str) -> None:
    """Take one setting out of config.toml.

    It then has its default, unless the environment says it.
    """
    setting = setting_values.find(key)
    if config.from_file(key) is not None:
        config_writing.write(key, None)
    value = current(setting)
    document = {"key": key, "value": _for_json(setting, value), "source": value.source}
    words = f"{key} = {clean_line(setting_values.shown(setting, value.value)) or '-'} ({clean_line(value.source)})"
    here.out.answer(document, lambda _data, _paint: [words])
    if setting.scope == "hub":
        here.out.note(RESTART)


@command("show", example="mycelium config show --json")
def show(here: Here) -> None:
    """Every setting, its value and where it came from."""
    rows = [(setting, _readable(setting)) for setting in setting_values.known().values()]
    document = {
        "items": [
            {"key": setting.key, "value": _for_json(setting, value), "source": value.source, "why": setting.why}
            for setting, value in rows
        ],
        "next": None,
    }
    here.out.answer(document, lambda _data, paint: draw_settings(rows, paint))


def _readable(setting: Setting) -> Value:
    """A value for the list: one that is wrong is shown with its reason, and hides no other."""
    try:
        return current(setting)
    except Failure as failure:
        return Value("?", failure.cause)


def draw_settings(rows: list[tuple[Setting, Value]], paint: Paint) -> Iterator[str]:
    """Settings as a table."""
    cells = [[setting.key, setting_values.shown(setting, value.value) or "-", value.source] for setting, value in rows]
    yield from table(["SETTING", "VALUE", "FROM"], cells, paint)


def _for_json(setting: Setting, value: Value) -> object:
    return setting_values.shown(setting, value.value) if setting.secret else value.value


@command("path", example="mycelium config path")
def path(here: Here) -> None:
    """Where config.toml is."""
    here.out.answer({"path": config.path()}, draw_path)


def draw_path(answer: Document, _paint: Paint) -> list[str]:
    """The path alone, for `$(…)`."""
    return [str(answer["path"])]
