"""The engine service's settings: where Temporal is, and the model. Only `service.py` and `__main__` read them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mycelium_kernel.settings import Setting, Value

MODEL_SETTINGS = (
    Setting(
        "llm.model",
        "str",
        "",
        "The model that engines think with, as provider/model; empty: engines say that none is set.",
        unit="provider/model",
        aliases=("LLM_MODEL",),
    ),
    Setting(
        "llm.base_url",
        "str",
        "",
        "Where the model is asked, for a provider that has no address of its own, such as Ollama or a gateway.",
        unit="url",
        aliases=("LLM_BASE_URL",),
    ),
    Setting("llm.timeout_s", "int", 60, "How long a model may take to answer.", unit="seconds"),
    Setting("llm.max_tokens", "int", 1024, "How long one answer of a model may be.", unit="tokens"),
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
        "llm.api_key_file", "str", "", "The file that holds the key of the model's provider; empty: there is none.",
        unit="file", scope="service",
    ),
)  # fmt: skip
NONE = "none"  # how a setting is said to be empty where an empty variable counts as none at all
FEWEST_S, MOST_S = 1, 600


@dataclass(frozen=True)
class ModelSettings:
    """The model, where it is, how it is asked. The key is never shown, also not by `repr`."""

    model: str = ""
    base_url: str = ""
    api_key: str = field(default="", repr=False)
    timeout_s: float = 60.0
    max_tokens: int = 1024


@dataclass(frozen=True)
class EngineSettings:
    """What the service is started with."""

    address: str
    namespace: str
    key_file: str
    model: ModelSettings = field(default_factory=ModelSettings)


def model_settings(values: Mapping[str, Value], api_key: str) -> ModelSettings:
    """The model that the settings name."""
    return ModelSettings(
        model=_said(values["llm.model"]),
        base_url=_said(values["llm.base_url"]).rstrip("/"),
        api_key=api_key,
        timeout_s=min(max(int(values["llm.timeout_s"]), FEWEST_S), MOST_S),
        max_tokens=max(int(values["llm.max_tokens"]), 1),
    )


def _said(value: Value) -> str:
    text = str(value).strip()
    return "" if text == NONE else text


def read_key(path: str) -> str:
    """The key in that file; empty when there is none."""
    try:
        return Path(path).read_text(encoding="utf-8").strip() if path else ""
    except FileNotFoundError:
        return ""
