"""What of the settings a process is started with gives the same budget again."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

import pytest

from mycelium_engine.calls import PICO, Limits
from mycelium_engine.settings import MODEL_SETTINGS, ModelSettings, model_settings, spending_settings
from mycelium_kernel.settings import Value, parse


def values(**given: str) -> Mapping[str, Value]:
    """The settings of a process whose environment says that."""
    return {
        setting.key: parse(setting, given[setting.key], "the environment") if setting.key in given else setting.default
        for setting in MODEL_SETTINGS
    }


@pytest.mark.parametrize(
    "model",
    [
        ModelSettings(),
        ModelSettings(
            usd_per_million_input_tokens=Decimal("0.15"),
            usd_per_million_output_tokens=Decimal(0),
            limits=Limits(60, 10**9, PICO * 5 // 2),
        ),
        ModelSettings(limits=Limits(pico_usd=PICO // 1000)),
    ],
)
def test_a_process_that_is_started_has_the_budget_of_the_hub(model: ModelSettings) -> None:
    """No price is another thing than a price of nought; no part of a dollar is lost."""
    assert model_settings(values(**spending_settings(model)), "") == model
