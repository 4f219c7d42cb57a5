"""The hub's settings: where it answers, whether others may reach it, how much it writes down."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mycelium_board.settings import BOARD_SETTINGS
from mycelium_engine.settings import MODEL_SETTINGS, ModelSettings, misfits, model_settings, read_key
from mycelium_gateway.auth_settings import AUTH_SETTINGS, auth_settings
from mycelium_gateway.issuers import AuthSettings
from mycelium_gateway.web_settings import WEB_SETTINGS, WebSettings, web_settings
from mycelium_hub.errors import Refused
from mycelium_kernel import settings as kernel_settings
from mycelium_kernel.settings import Setting, Sourced, Value
from mycelium_memory.settings import SEARCH_SETTINGS

LEVELS = ("debug", "info", "warning", "error")
LAST_PORT = 65535
MOST_REPLICAS = 16
SETTINGS = (
    Setting(
        "runtime.backend_port",
        "int",
        8000,
        "The port on which the hub answers; 0 takes any free one.",
        unit="port",
        least=0,
        most=LAST_PORT,
        aliases=("MYCELIUM_BACKEND_PORT",),
    ),
    Setting(
        "runtime.bind_addr",
        "str",
        "127.0.0.1",
        "The address on which the hub answers. Others than this machine reach it only when it is not a loopback one.",
        unit="address",
        aliases=("MYCELIUM_BIND_ADDR",),
        fault=kernel_settings.host_fault,
    ),
    Setting(
        "runtime.allowed_hosts",
        "str",
        "",
        "Names, beside its own address, under which the hub may be called, parted by commas; *.example.com is one.",
        unit="names",
    ),
    Setting(
        "runtime.split",
        "bool",
        False,
        "Run every service as a process of its own, as a cluster does, instead of all in one.",
        unit="yes or no",
    ),
    Setting(
        "runtime.replicas",
        "int",
        1,
        "How many processes of each service share the work; more than one needs runtime.split.",
        unit="processes",
        least=1,
        most=MOST_REPLICAS,
    ),
    Setting(
        "runtime.nats_servers",
        "int",
        1,
        "How many NATS servers keep each fact, 1 or 3. A home stays with the number that it began with.",
        unit="servers",
        choices=(1, 3),
    ),
    Setting(
        "runtime.engines",
        "bool",
        True,
        "Run engines, and the Temporal server that they stand on: about 260 MB of memory.",
        unit="yes or no",
    ),
    *AUTH_SETTINGS,
    *WEB_SETTINGS,
    *SEARCH_SETTINGS,
    *BOARD_SETTINGS,
    *MODEL_SETTINGS,
    Setting(
        "llm.api_key",
        "str",
        "",
        "The key of the model's provider; kept in a file of its own, shown by its last four characters.",
        unit="secret",
        aliases=("LLM_API_KEY",),
        secret=True,
    ),
    Setting(
        "auth.insecure",
        "bool",
        False,
        "Answer on an address that other machines reach although nobody has to sign in.",
        unit="yes or no",
    ),
    Setting(
        "log.level",
        "str",
        "info",
        "The least severe records that are written: debug, info, warning or error.",
        unit="level",
        choices=LEVELS,
    ),
    Setting(
        "telemetry.traces_endpoint",
        "str",
        "",
        "Where spans are sent, as the full OTLP/HTTP address of a collector; empty records none.",
        unit="url",
    ),
)
SECRETS = tuple(setting for setting in SETTINGS if setting.secret)
OF_CLIENTS = (
    "server",
    "rooms",
    "identity",
    "login",
    "agent_auth",
)  # sections of config.toml that commands read; `mycelium doctor` knows them
SHOWN_FROM = 8  # a shorter secret would be half told by its end
FLAGS = {  # by key, the flag of `mycelium up` that sets it
    "runtime.backend_port": "--port",
    "runtime.split": "--split",
    "runtime.replicas": "--replicas",
    "runtime.nats_servers": "--nats-servers",
}


@dataclass(frozen=True)
class HubSettings:
    """The settings with their values; `found` tells by key where each came from, with the secrets masked."""

    port: int
    host: str
    allowed_hosts: tuple[str, ...]
    insecure: bool
    log_level: str
    traces_endpoint: str
    split: bool = False
    replicas: int = 1
    nats_servers: int = 1
    engines: bool = True
    auth: AuthSettings = field(default_factory=AuthSettings)
    web: WebSettings = field(default_factory=WebSettings)
    trusted_proxies: str = ""
    model: ModelSettings = field(default_factory=ModelSettings)
    found: Mapping[str, Sourced] = field(default_factory=dict, compare=False, repr=False)
    secrets: Mapping[str, Sourced] = field(default_factory=dict, compare=False, repr=False)


def load(folder: Path, environ: Mapping[str, str], flags: Mapping[str, Value] | None = None) -> HubSettings:
    """The settings of one home; a flag wins over them. Refuses a value that can't be, naming where it stands.

    `flags` holds, by key, what the command line says.
    """
    try:
        found = kernel_settings.load(SETTINGS, folder, environ)
    except kernel_settings.BadSetting as error:
        raise Refused(str(error)) from None
    secrets = _secrets(found, folder)
    return of(found | {flag: Sourced(value, FLAGS[flag]) for flag, value in (flags or {}).items()}, secrets)


def of(found: Mapping[str, Sourced], secrets: Mapping[str, Sourced]) -> HubSettings:
    """The settings that these values make, with the secrets, by their keys. Refuses values that don't go together."""
    for _key_of, trouble in troubles(found):
        raise Refused(trouble)
    values = {name: sourced.value for name, sourced in {**found, **secrets}.items()}
    return HubSettings(
        port=int(found["runtime.backend_port"].value),
        host=str(found["runtime.bind_addr"].value),
        allowed_hosts=tuple(str(found["runtime.allowed_hosts"].value).replace(",", " ").split()),
        insecure=bool(found["auth.insecure"].value),
        log_level=str(found["log.level"].value),
        traces_endpoint=str(found["telemetry.traces_endpoint"].value),
        split=bool(found["runtime.split"].value),
        replicas=int(found["runtime.replicas"].value),
        nats_servers=int(found["runtime.nats_servers"].value),
        engines=bool(found["runtime.engines"].value),
        auth=auth_settings(values),
        web=web_settings(values),
        trusted_proxies=str(values["runtime.trusted_proxies"]),
        model=model_settings(values, str(values["llm.api_key"])),
        found={**found, **hidden(secrets)},
        secrets=dict(secrets),
    )


def troubles(found: Mapping[str, Sourced]) -> Iterator[tuple[str, str]]:
    """What of these values a hub can't be started with: by key, and why."""
    replicas, source = found["runtime.replicas"].value, found["runtime.replicas"].source
    if int(replicas) > 1 and not found["runtime.split"].value:
        needs = "which needs runtime.split: mycelium up --split"
        yield "runtime.replicas", f"runtime.replicas is {replicas} in {source}, {needs}"
    for key, allowed in misfits({name: sourced.value for name, sourced in found.items()}):
        yield key, f"{key} is {found[key].value!r} in {found[key].source}: use {allowed}"


def masked(secret: str) -> str:
    """A secret by its last four characters, which is all of it that is ever shown."""
    return f"…{secret[-4:]}" if len(secret) > SHOWN_FROM else "…" if secret else ""


def hidden(secrets: Mapping[str, Sourced]) -> dict[str, Sourced]:
    """The same, as they may be shown."""
    return {key: Sourced(masked(str(sourced.value)), sourced.source) for key, sourced in secrets.items()}


def secret_file(setting: Setting) -> str:
    """The file of a secret in the home's folder of them; `mycelium config set` writes it."""
    return setting.key.replace(".", "_")


def _secrets(found: Mapping[str, Sourced], folder: Path) -> dict[str, Sourced]:
    """Each secret: from the environment, else its own file, else `config.toml`, where it should not be."""
    return {setting.key: secret(setting, found[setting.key], folder) for setting in SECRETS}


def secret(setting: Setting, found: Sourced, folder: Path) -> Sourced:
    """One of them. Refuses what can't be."""
    name = secret_file(setting)
    kept = "" if found.source in setting.environment else read_key(str(folder / "secrets" / name))
    if kept and (wrong := setting.fault(kept) if setting.fault else ""):
        raise Refused(f"{setting.key} in secrets/{name}: {wrong}")
    return Sourced(kept, f"secrets/{name}") if kept else found


def written(folder: Path) -> tuple[dict[str, Sourced], dict[str, Sourced]]:
    """What the files of one home say, and its secrets, whatever the environment says; defaults where they don't.

    Refuses a file or a value that can't be read.
    """
    try:
        found = kernel_settings.load(SETTINGS, folder, {})
    except kernel_settings.BadSetting as error:
        raise Refused(str(error)) from None
    return found, _secrets(found, folder)
