"""What models cost: the hub's own settings, else the list prices that come with the library of models.

Nothing is fetched: the list is as old as the library (`genai_prices`), and only a model that it names under its
provider has a price. A price that is not known is None, never a guess.
"""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Decimal
from typing import TYPE_CHECKING

from mycelium_engine.calls import PICO
from mycelium_engine.settings import ModelSettings

if TYPE_CHECKING:
    from genai_prices import Usage
    from pydantic_ai.usage import RequestUsage

MILLION = 1_000_000


def are_known(settings: ModelSettings) -> bool:
    """Whether the price of the model's tokens is known. Loads the list: seconds when the library is not there yet."""
    from genai_prices import Usage

    return cost(settings, Usage(input_tokens=1, output_tokens=1)) is not None


def cost(settings: ModelSettings, usage: Usage | RequestUsage) -> int | None:
    """The price of what a question took, in millionths of a millionth of a dollar; None when it is not known."""
    prices = (settings.usd_per_million_input_tokens, settings.usd_per_million_output_tokens)
    if any(price is not None for price in prices):
        return _own(prices, usage)
    from genai_prices import calc_price

    provider, _, name = settings.model.partition("/")
    try:
        found = calc_price(usage, name, provider_id=provider)
    except (LookupError, ValueError):
        return None
    if found.provider.id != provider:  # one with a like name, which may ask another price
        return None
    return _pico(found.total_price)


def _own(prices: tuple[Decimal | None, Decimal | None], usage: Usage | RequestUsage) -> int | None:
    """With one of the two unset, nothing is known."""
    read, written = prices
    if read is None or written is None:
        return None
    price = (read * int(usage.input_tokens or 0) + written * int(usage.output_tokens or 0)) / MILLION
    return _pico(price)


def _pico(price: Decimal) -> int:
    return int((price * PICO).to_integral_value(ROUND_HALF_EVEN))
