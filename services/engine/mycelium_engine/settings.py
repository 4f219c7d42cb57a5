"""The engine service's settings: where Temporal is, and the model. Only `service.py` and `__main__` read them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path

from mycelium_engine.calls import PICO, Limits
from mycelium_kernel.settings import BadSetting, Setting, Value

# fmt: off
MODEL_SETTINGS = (
    Setting(
        "llm.model", "str", "",
        "The model that engines think with, as provider/model; empty: engines say that none is set.",
        unit="provider/model", aliases=("LLM_MODEL",),
    ),
    Setting(
        "llm.base_url", "str", "",
        "Where the model is asked, for a provider that has no address of its own, such as Ollama or a gateway.",
        unit="url", aliases=("LLM_BASE_URL",),
    ),
    Setting("llm.timeout_s", "int", 60, "How long a model may take to answer.", unit="seconds", least=1, most=600),
    Setting("llm.max_tokens", "int", 1024, "How long one answer of a model may be.", unit="tokens", least=1),
    Setting(
        "llm.max_turns_per_room", "int", 0,
        "How often engines may ask the model in each room; 0: no limit. A room's own limit replaces it.",
        unit="turns a room", least=0, most=10**12,
    ),
    Setting(
        "llm.max_tokens_per_room", "int", 0,
        "How many tokens engines may use in each room, read and written; 0: no limit.", unit="tokens a room", least=0,
        most=10**15,
    ),
    Setting(
        "llm.max_usd_per_room", "float", 0.0,
        "How much money engines may spend on the model in each room; 0: no limit.", unit="US dollars a room", least=0,
        most=10**6,
    ),
    Setting(
        "llm.usd_per_million_input_tokens", "str", "",
        "What a million tokens cost that the model reads, 0 for a model of your own; empty: its list price, if known.",
        unit="US dollars",
    ),
    Setting(
        "llm.usd_per_million_output_tokens", "str", "",
        "What a million tokens cost that the model writes; set both or none.", unit="US dollars",
    ),
)
SERVICE_SETTINGS = (
    Setting(
        "temporal.address", "str", "127.0.0.1:7233", "Where Temporal is.", unit="host:port", scope="service"
    ),
    Setting("temporal.namespace", "str", "mycelium", "The namespace of the hub's workflows.", scope="service"),
    Setting(
        "temporal.key_file", "str", "",
        "The file of 32 random bytes that every payload in Temporal is sealed with; all replicas have the same.",
        unit="file", scope="service",
    ),
    Setting(
        "llm.helm", "str", "",
        "The helm command that changes these settings on a cluster, for answers of engines; empty: `mycelium config`.",
        unit="command", scope="service",
    ),
    Setting(
        "llm.api_key_file", "str", "", "The file that holds the key of the model's provider; empty: there is none.",
        unit="file", scope="service",
    ),
)
# fmt: on
NONE = "none"  # how a setting is said to be empty where an empty variable counts as none at all
LARGEST = {"turns": 10**12, "tokens": 10**15, "usd": 10**6}  # what a limit may be
PRICES = ("llm.usd_per_million_input_tokens", "llm.usd_per_million_output_tokens")
AMOUNT = re.compile(r"[0-9]{1,6}(\.[0-9]{1,6})?")


@dataclass(frozen=True)
class ModelSettings:
    """The model, where it is, how it is asked. The key is never shown, also not by `repr`."""

    model: str = ""
    base_url: str = ""
    api_key: str = field(default="", repr=False)
    timeout_s: float = 60.0
    max_tokens: int = 1024
    usd_per_million_input_tokens: Decimal | None = None
    usd_per_million_output_tokens: Decimal | None = None
    limits: Limits = field(default_factory=Limits)
    helm: str = ""


@dataclass(frozen=True)
class EngineSettings:
    """What the service is started with."""

    address: str
    namespace: str
    key_file: str
    model: ModelSettings = field(default_factory=ModelSettings)


def model_settings(values: Mapping[str, Value], api_key: str) -> ModelSettings:
    """The model that the settings name, and what it may cost. Raises `BadSetting` for `misfits`."""
    for key, allowed in misfits(values):
        raise BadSetting(f"{key} is {values[key]!r}: use {allowed}")
    return ModelSettings(
        model=_said(values["llm.model"]),
        base_url=_said(values["llm.base_url"]).rstrip("/"),
        api_key=api_key,
        timeout_s=int(values["llm.timeout_s"]),
        max_tokens=int(values["llm.max_tokens"]),
        usd_per_million_input_tokens=_price(values, PRICES[0]),
        usd_per_million_output_tokens=_price(values, PRICES[1]),
        limits=_limits(values),
        helm=str(values.get("llm.helm", "")),
    )


def misfits(values: Mapping[str, Value]) -> Iterator[tuple[str, str]]:
    """What of these values can't be: by key, and what may be."""
    for name, most in LARGEST.items():
        key = f"llm.max_{name}_per_room"
        if not 0 <= float(values[key]) <= most:
            yield key, f"a number up to {most}, or 0 for no limit"
    for key in PRICES:
        text = _said(values[key])
        if text and not AMOUNT.fullmatch(text):
            yield key, "an amount of US dollars, such as 0.15"


def spending_settings(model: ModelSettings) -> dict[str, str]:
    """The values, by key, of which `model_settings` makes what a room may cost: for a process that is started."""
    limits = model.limits
    told = {"turns": limits.turns, "tokens": limits.tokens, "usd": Decimal(limits.pico_usd) / PICO}
    prices = (model.usd_per_million_input_tokens, model.usd_per_million_output_tokens)
    return {
        f"llm.max_{name}_per_room": f"{value:f}" if name == "usd" else str(value) for name, value in told.items()
    } | {key: NONE if price is None else f"{price:f}" for key, price in zip(PRICES, prices, strict=True)}


def _limits(values: Mapping[str, Value]) -> Limits:
    turns, tokens, usd = (values[f"llm.max_{name}_per_room"] for name in LARGEST)
    return Limits(int(turns), int(tokens), math.ceil(Decimal(str(usd)) * PICO))


def _price(values: Mapping[str, Value], key: str) -> Decimal | None:
    text = _said(values[key])
    return Decimal(text) if text else None


def _said(value: Value) -> str:
    text = str(value).strip()
    return "" if text == NONE else text


def read_key(path: str) -> str:
    """The key in that file; empty when there is none."""
    try:
        return Path(path).read_text(encoding="utf-8").strip() if path else ""
    except FileNotFoundError:
        return ""
