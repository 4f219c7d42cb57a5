"""The hub's settings: where it answers, whether others may reach it, how much it writes down."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mycelium_engine.settings import MODEL_SETTINGS, ModelSettings, model_settings, read_key
from mycelium_hub.errors import Refused
from mycelium_kernel import settings as kernel_settings
from mycelium_kernel.settings import Setting, Sourced, Value

SETTINGS = (
    Setting(
        "runtime.backend_port",
        "int",
        8000,
        "The port on which the hub answers; 0 takes any free one.",
        unit="port",
        aliases=("MYCELIUM_BACKEND_PORT",),
    ),
    Setting(
        "runtime.bind_addr",
        "str",
        "127.0.0.1",
        "The address on which the hub answers. Others than this machine reach it only when it is not a loopback one.",
        unit="address",
        aliases=("MYCELIUM_BIND_ADDR",),
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
    ),
    Setting(
        "runtime.nats_servers",
        "int",
        1,
        "How many NATS servers keep each fact, 1 or 3. A home stays with the number that it began with.",
        unit="servers",
    ),
    Setting(
        "runtime.engines",
        "bool",
        True,
        "Run engines, and the Temporal server that they stand on: about 260 MB of memory.",
        unit="yes or no",
    ),
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
    ),
    Setting(
        "telemetry.traces_endpoint",
        "str",
        "",
        "Where spans are sent, as the full OTLP/HTTP address of a collector; empty records none.",
        unit="url",
    ),
)
KEY = next(setting for setting in SETTINGS if setting.secret)
KEY_FILE = "llm_api_key"  # in the home's folder of secrets; `mycelium config set` writes it
OF_CLIENTS = ("server", "rooms", "identity")  # sections of config.toml that commands read; `mycelium doctor` knows them
LEVELS = ("debug", "info", "warning", "error")
LAST_PORT = 65535
MOST_REPLICAS = 16
FLAGS = {  # by key, the flag of `mycelium up` that sets it
    "runtime.backend_port": "--port",
    "runtime.split": "--split",
    "runtime.replicas": "--replicas",
    "runtime.nats_servers": "--nats-servers",
}


@dataclass(frozen=True)
class HubSettings:
    """The settings with their values; `found` tells by key where each came from."""

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
    model: ModelSettings = field(default_factory=ModelSettings)
    found: Mapping[str, Sourced] = field(default_factory=dict, compare=False, repr=False)


def load(folder: Path, environ: Mapping[str, str], flags: Mapping[str, Value] | None = None) -> HubSettings:
    """The settings of one home; a flag wins over them. Refuses a value that can't be, naming where it stands.

    `flags` holds, by key, what the command line says.
    """
    try:
        found = kernel_settings.load(SETTINGS, folder, environ)
    except kernel_settings.BadSetting as error:
        raise Refused(str(error)) from None
    key = _key(found.pop(KEY.key), folder)
    found |= {flag: Sourced(value, FLAGS[flag]) for flag, value in (flags or {}).items()}
    level = str(found["log.level"].value).lower()
    if level not in LEVELS:
        raise Refused(f"log.level is {level!r} in {found['log.level'].source}: use one of {', '.join(LEVELS)}")
    _bound(found, "runtime.backend_port", range(LAST_PORT + 1), f"1 to {LAST_PORT}, or 0 for any free one")
    _bound(found, "runtime.replicas", range(1, MOST_REPLICAS + 1), f"1 to {MOST_REPLICAS}")
    _bound(found, "runtime.nats_servers", (1, 3), "1 or 3")
    split, replicas = bool(found["runtime.split"].value), int(found["runtime.replicas"].value)
    if replicas > 1 and not split:
        source = found["runtime.replicas"].source
        raise Refused(f"runtime.replicas is {replicas} in {source}, which needs runtime.split: mycelium up --split")
    return HubSettings(
        port=int(found["runtime.backend_port"].value),
        host=str(found["runtime.bind_addr"].value),
        allowed_hosts=tuple(str(found["runtime.allowed_hosts"].value).replace(",", " ").split()),
        insecure=bool(found["auth.insecure"].value),
        log_level=level,
        traces_endpoint=str(found["telemetry.traces_endpoint"].value),
        split=split,
        replicas=replicas,
        nats_servers=int(found["runtime.nats_servers"].value),
        engines=bool(found["runtime.engines"].value),
        model=model_settings({name: sourced.value for name, sourced in found.items()}, key),
        found=found,
    )


def _key(found: Sourced, folder: Path) -> str:
    """The key of the model: from the environment, else its own file, else `config.toml`, where it should not be."""
    kept = "" if found.source in KEY.environment else read_key(str(folder / "secrets" / KEY_FILE))
    return kept or str(found.value)


def _bound(found: Mapping[str, Sourced], key: str, allowed: Container[int], said: str) -> None:
    wanted = int(found[key].value)
    if wanted not in allowed:
        raise Refused(f"{key} is {wanted} in {found[key].source}: use {said}")


def written(folder: Path) -> dict[str, Sourced]:
    """What stands in the file of one home, whatever the environment says; the default where nothing does."""
    try:
        found = kernel_settings.load(SETTINGS, folder, {})
    except kernel_settings.BadSetting:
        return {}
    return {key: sourced for key, sourced in found.items() if key != KEY.key}
