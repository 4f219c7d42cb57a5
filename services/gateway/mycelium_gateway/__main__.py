"""`python -m mycelium_gateway`: the gateway as a process of its own."""

import socket
from collections.abc import Mapping

from mycelium_gateway import operator_token
from mycelium_gateway.auth_settings import AUTH_SETTINGS, auth_settings
from mycelium_gateway.service import NAME, service
from mycelium_gateway.settings import GatewaySettings
from mycelium_gateway.web_settings import WEB_SETTINGS, web_settings
from mycelium_kernel import program
from mycelium_kernel.service import Service
from mycelium_kernel.settings import Setting, Value

SETTINGS = (
    Setting(
        "gateway.host", "str", "127.0.0.1", "The address on which it answers.", unit="address", scope="service"
    ),
    Setting("gateway.port", "int", 8000, "The port on which it answers.", unit="port", scope="service"),
    Setting(
        "gateway.listener", "int", -1,
        "The number of an open file that is the listening socket, shared by gateways of one machine; -1 opens one.",
        unit="file", scope="service",
    ),
    Setting(
        "gateway.allowed_hosts", "str", "",
        "Names, beside its own address, under which it may be called, parted by commas; *.example.com is one.",
        unit="names", scope="service",
    ),
    Setting(
        "gateway.services", "str", "rooms=1",
        "The services that /health asks, and how many replicas of each have to answer.",
        unit="name=count", scope="service",
    ),
    Setting(
        "gateway.late", "str", "", "Those of them that begin after the hub answers; they may be silent at first.",
        unit="names", scope="service",
    ),
    operator_token.SETTING,
    *AUTH_SETTINGS,
    *WEB_SETTINGS,
)  # fmt: skip


def build(values: Mapping[str, Value]) -> Service:
    """The service, on a socket of its own or on one that it was handed."""
    number = int(values["gateway.listener"])
    counts = (entry.partition("=") for entry in str(values["gateway.services"]).replace(",", " ").split())
    return service(
        GatewaySettings(
            host=str(values["gateway.host"]),
            port=int(values["gateway.port"]),
            listener=socket.socket(fileno=number) if number >= 0 else None,
            allowed_hosts=tuple(str(values["gateway.allowed_hosts"]).replace(",", " ").split()),
            services={name: int(count or 1) for name, _, count in counts},
            auth=auth_settings(values),
            operator_digest=operator_token.read(str(values[operator_token.SETTING.key])),
            web=web_settings(values),
            trusted_proxies=str(values["runtime.trusted_proxies"]),
            late=frozenset(str(values["gateway.late"]).replace(",", " ").split()),
        )
    )


if __name__ == "__main__":
    program.run(NAME, build, SETTINGS)
