"""The next command when a setting of the model has to change: on one machine `mycelium config`, on a cluster helm."""

from __future__ import annotations

from mycelium_engine.settings import ModelSettings

APPLY = "mycelium config apply"
HELM = {  # by setting: what helm sets
    "llm.model": "llm.model=provider/model",
    "llm.base_url": "llm.baseUrl=http://...",
    "llm.api_key": "llm.existingSecret=NAME",
    "llm.usd_per_million_input_tokens": "llm.usdPerMillionInputTokens=N",
    "llm.usd_per_million_output_tokens": "llm.usdPerMillionOutputTokens=N",
}
EXAMPLES = {"llm.model": " provider/model", "llm.base_url": " http://...", "llm.api_key": ""}  # a key is asked for


def to_set(settings: ModelSettings, *keys: str) -> str:
    """What whoever runs the hub types to change these settings."""
    if settings.helm:
        return f"{settings.helm} " + " ".join(f"--set {HELM[key]}" for key in keys)
    return " && ".join([f"mycelium config set {key}{EXAMPLES.get(key, ' N')}" for key in keys] + [APPLY])


def to_set_prices(settings: ModelSettings) -> str:
    """The same for what the model's tokens cost."""
    return to_set(settings, "llm.usd_per_million_input_tokens", "llm.usd_per_million_output_tokens")
