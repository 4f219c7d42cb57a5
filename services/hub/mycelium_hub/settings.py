"""The hub's settings: where it answers, whether others may reach it, how much it writes down."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mycelium_hub.errors import Refused
from mycelium_kernel import settings as kernel_settings
from mycelium_kernel.settings import Setting, Sourced

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
OF_CLIENTS = ("server", "rooms", "identity")  # sections of config.toml that commands read; `mycelium doctor` knows them
LEVELS = ("debug", "info", "warning", "error")
LAST_PORT = 65535


@dataclass(frozen=True)
class HubSettings:
    """The settings with their values; `found` tells by key where each came from."""

    port: int
    host: str
    allowed_hosts: tuple[str, ...]
    insecure: bool
    log_level: str
    traces_endpoint: str
    found: Mapping[str, Sourced] = field(default_factory=dict, compare=False, repr=False)


def load(folder: Path, environ: Mapping[str, str], port: int | None = None) -> HubSettings:
    """The settings of one home; `port` is a flag and wins. Refuses a value that can't be, naming where it stands."""
    try:
        found = kernel_settings.load(SETTINGS, folder, environ)
    except kernel_settings.BadSetting as error:
        raise Refused(str(error)) from None
    level = str(found["log.level"].value).lower()
    if level not in LEVELS:
        raise Refused(f"log.level is {level!r} in {found['log.level'].source}: use one of {', '.join(LEVELS)}")
    if port is not None:
        found["runtime.backend_port"] = Sourced(port, "--port")
    wanted = int(found["runtime.backend_port"].value)
    if not 0 <= wanted <= LAST_PORT:
        source = found["runtime.backend_port"].source
        raise Refused(f"the port is {wanted} in {source}: use 1 to {LAST_PORT}, or 0 for any free one")
    return HubSettings(
        port=wanted,
        host=str(found["runtime.bind_addr"].value),
        allowed_hosts=tuple(str(found["runtime.allowed_hosts"].value).replace(",", " ").split()),
        insecure=bool(found["auth.insecure"].value),
        log_level=level,
        traces_endpoint=str(found["telemetry.traces_endpoint"].value),
        found=found,
    )


def written(folder: Path) -> dict[str, Sourced]:
    """What stands in the file of one home, whatever the environment says; the default where nothing does."""
    try:
        return kernel_settings.load(SETTINGS, folder, {})
    except kernel_settings.BadSetting:
        return {}
