"""The one door to models: asks for one reply, and says in a closed set of words why there is none.

The library is loaded with the first question; it takes seconds. No text that leaves here holds the key.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from mycelium_engine import advice, prices
from mycelium_engine.calls import Outcome
from mycelium_engine.settings import ModelSettings
from mycelium_kernel.settings import is_web_address

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic
    from openai import AsyncOpenAI
    from pydantic_ai.messages import ModelResponse
    from pydantic_ai.models import Model

MODEL, KEY, URL = "llm.model", "llm.api_key", "llm.base_url"
CHECK = "mycelium doctor"
NEEDS_KEY = {"anthropic", "openai", "openrouter"}
ADDRESSES = {"openrouter": "https://openrouter.ai/api/v1", "ollama": "http://localhost:11434/v1"}
NO_KEY = "none"  # what a client must send to a server that wants no key
SAID_CHARACTERS = 300
TOKENS_MOST = 10**9  # of one question; whoever tells more does not count
LOST = {"model.timeout", "model.failed", "model.unreadable"}  # a provider may have answered, and taken money for it
SIGN_IN = re.compile(r"//[^/]*@")  # of an address: user and password
SECRET = re.compile(r"\b(?:sk|key|Bearer)[-_ ][A-Za-z0-9_*.-]{6,}", re.IGNORECASE)


@dataclass(frozen=True)
class Took:
    """What one question took, as the provider told it; `pico_usd` None: the price is not known."""

    outcome: Outcome
    input_tokens: int = 0
    output_tokens: int = 0
    pico_usd: int | None = None


@dataclass(frozen=True)
class Said:
    """A model's reply, and what it took."""

    text: str
    took: Took


class ModelFailure(Exception):
    """The model gave no answer: `slug` says why for programs, `detail` for people, `next` what to type."""

    def __init__(self, slug: str, detail: str, next: str = CHECK, took: Took | None = None) -> None:
        super().__init__(f"{slug}: {detail}")
        self.slug = slug
        self.detail = detail
        self.next = next
        self.took = took or Took("lost" if slug in LOST else "nothing")


async def ask(settings: ModelSettings, instructions: str, message: str) -> Said:
    """The model's reply. Raises `ModelFailure`. Asked once: who is told that it failed decides what follows."""
    provider, name = check(settings)
    await asyncio.to_thread(_load, provider)
    try:
        async with asyncio.timeout(settings.timeout_s):
            answer = await _request(settings, provider, name, instructions, message)
    except Exception as error:
        raise _failure(settings, error) from None  # the cause may quote what was sent, headers too
    text = "".join(part.content for part in answer.parts if part.part_kind == "text").strip()
    took = _took(settings, answer)
    if not text:
        raise ModelFailure("model.empty", f"{settings.model} gave an empty answer", took=took)
    return Said(text, took)


def _took(settings: ModelSettings, answer: ModelResponse) -> Took:
    """What the provider says that it took. The library makes noughts of what is not said, and no question is empty."""
    usage = answer.usage
    if not (0 < usage.input_tokens <= TOKENS_MOST and 0 < usage.output_tokens <= TOKENS_MOST):
        return Took("unreported")
    return Took("reported", usage.input_tokens, usage.output_tokens, prices.cost(settings, usage))


async def warm(settings: ModelSettings) -> None:
    """Load what the first question needs, so that it is not the one that waits for it."""
    with contextlib.suppress(ModelFailure):
        await asyncio.to_thread(_load, check(settings)[0])


def check(settings: ModelSettings) -> tuple[str, str]:
    """Provider and model of a setting that can be asked. Raises `ModelFailure`."""
    if not settings.model:
        raise ModelFailure("model.not_configured", "no model is set", advice.to_set(settings, MODEL))
    provider, slash, name = settings.model.partition("/")
    if not (provider and slash and name):
        raise ModelFailure(
            "model.not_configured",
            f"llm.model is {settings.model!r}, not provider/model",
            advice.to_set(settings, MODEL),
        )
    if provider in NEEDS_KEY and not settings.api_key and not settings.base_url:
        raise ModelFailure(
            "model.not_configured", f"{provider} needs a key, and none is set", advice.to_set(settings, KEY)
        )
    if provider not in NEEDS_KEY and provider not in ADDRESSES and not settings.base_url:
        raise ModelFailure(
            "model.not_configured", f"{provider} has no address here, and none is set", advice.to_set(settings, URL)
        )
    if settings.base_url and not is_web_address(settings.base_url):
        told = f"llm.base_url is {_shown(settings.base_url)!r}, no http address"
        raise ModelFailure("model.not_configured", told, advice.to_set(settings, URL))
    if not (settings.api_key.isascii() and settings.api_key.isprintable()):
        told = "the key holds a character that no request can carry"
        raise ModelFailure("model.not_configured", told, advice.to_set(settings, KEY))
    return provider, name


def _shown(address: str) -> str:
    """An address for everybody in the room: who signs in there, and what else the hub sends along, is nobody's."""
    return SIGN_IN.sub("//…@", address.partition("#")[0].partition("?")[0])


def _load(provider: str) -> None:
    importlib.import_module("pydantic_ai.direct")
    importlib.import_module(f"pydantic_ai.models.{'anthropic' if provider == 'anthropic' else 'openai'}")


async def _request(settings: ModelSettings, provider: str, name: str, instructions: str, message: str) -> ModelResponse:
    from pydantic_ai.direct import model_request
    from pydantic_ai.messages import ModelRequest, SystemPromptPart, UserPromptPart

    client, model = _anthropic(settings, name) if provider == "anthropic" else _openai(settings, provider, name)
    async with client:
        return await model_request(
            model,
            [ModelRequest(parts=[SystemPromptPart(instructions), UserPromptPart(message)])],
            model_settings={"max_tokens": settings.max_tokens, "timeout": settings.timeout_s},
        )


def _anthropic(settings: ModelSettings, name: str) -> tuple[AsyncAnthropic, Model]:
    from anthropic import AsyncAnthropic
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    client = AsyncAnthropic(
        api_key=settings.api_key or NO_KEY, base_url=settings.base_url or "https://api.anthropic.com", max_retries=0
    )
    return client, AnthropicModel(name, provider=AnthropicProvider(anthropic_client=client))


def _openai(settings: ModelSettings, provider: str, name: str) -> tuple[AsyncOpenAI, Model]:
    from openai import AsyncOpenAI
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.profiles.openai import OpenAIModelProfile
    from pydantic_ai.providers.openai import OpenAIProvider

    address = settings.base_url or ADDRESSES.get(provider, "https://api.openai.com/v1")
    if urlsplit(address).path in {"", "/"}:
        address = f"{address.rstrip('/')}/v1"
    client = AsyncOpenAI(api_key=settings.api_key or NO_KEY, base_url=address, max_retries=0)
    # Only OpenAI itself takes the newer name of the limit; who does not know it would answer without end.
    profile = OpenAIModelProfile(openai_chat_supports_max_completion_tokens=provider == "openai")
    return client, OpenAIChatModel(name, provider=OpenAIProvider(openai_client=client), profile=profile)


def _failure(settings: ModelSettings, error: Exception) -> ModelFailure:
    """What an error of the library, or below it, means."""
    from pydantic_ai import exceptions

    model, said = settings.model, _said(settings, error)
    kinds = [type(one) for one in _causes(error)]
    status = getattr(error, "status_code", None)
    if isinstance(error, TimeoutError | exceptions.ModelTimeoutError) or any("Timeout" in k.__name__ for k in kinds):
        return ModelFailure("model.timeout", f"{model} did not answer within {settings.timeout_s:g} s")
    if isinstance(error, exceptions.ModelAuthenticationError) or status in {401, 403}:
        return ModelFailure(
            "model.auth", f"the provider of {model} refuses the key{said}", advice.to_set(settings, KEY)
        )
    if isinstance(error, exceptions.ModelNotFoundError) or status == 404:
        return ModelFailure(
            "model.unknown", f"the provider does not know {model}{said}", advice.to_set(settings, MODEL)
        )
    if isinstance(error, exceptions.ModelRateLimitError | exceptions.ModelQuotaExceededError) or status == 429:
        return ModelFailure("model.rate_limited", f"the provider of {model} takes no more for now{said}")
    if status is not None and status >= 500:
        return ModelFailure("model.failed", f"the provider of {model} failed with status {status}{said}")
    if status is not None and status >= 400:
        return ModelFailure("model.refused", f"the provider of {model} refuses the request, status {status}{said}")
    if isinstance(error, exceptions.ModelConnectionError) or any("Connection" in k.__name__ for k in kinds):
        where = _shown(settings.base_url) or "its provider"
        return ModelFailure("model.unreachable", f"{model} can't be reached at {where}", advice.to_set(settings, URL))
    return ModelFailure("model.unreadable", f"what {model} answered can't be read ({type(error).__name__})")


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    for _step in range(10):
        if error is None:
            return
        yield error
        error = error.__cause__ or error.__context__


def _said(settings: ModelSettings, error: Exception) -> str:
    """What the provider said of it, short and without the key; providers like to quote it."""
    body = getattr(error, "body", None)
    inner = body.get("error", body) if isinstance(body, dict) else None
    text = inner.get("message") if isinstance(inner, dict) else None
    if not isinstance(text, str) or not text.strip():
        return ""
    plain = " ".join(text.split())
    if settings.api_key:
        plain = plain.replace(settings.api_key, "…")
    plain = SECRET.sub("…", plain).replace("`", "'").replace("@", "@\u200b").rstrip(".")
    return f": {plain[:SAID_CHARACTERS]}"
