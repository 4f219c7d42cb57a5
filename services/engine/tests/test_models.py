"""The one door to models: both protocols, every way to fail, and no key in any word of it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from decimal import Decimal

import pytest
from genai_prices import Usage

from e2e.model import KEY, Model
from mycelium_engine import models, prices
from mycelium_engine.models import ModelFailure
from mycelium_engine.settings import ModelSettings

pytestmark = pytest.mark.timeout(180)  # the library takes seconds to load


def asked(model: Model, name: str = "openai/scripted", timeout_s: float = 30.0) -> ModelSettings:
    return ModelSettings(name, model.url, KEY, timeout_s, 64)


async def failure(settings: ModelSettings) -> ModelFailure:
    with pytest.raises(ModelFailure) as raised:
        await models.ask(settings, "Be brief.", "hello")
    return raised.value


@pytest.mark.parametrize(
    ("name", "path", "limit"),
    [
        ("openai/gpt-4.1", "/v1/chat/completions", "max_completion_tokens"),
        ("openrouter/anthropic/claude-sonnet-4-6", "/v1/chat/completions", "max_tokens"),
        ("ollama/llama3.3", "/v1/chat/completions", "max_tokens"),
        ("elsewhere/some-model", "/v1/chat/completions", "max_tokens"),
        ("anthropic/claude-sonnet-4-6", "/v1/messages", "max_tokens"),
    ],
)
async def test_each_provider_is_asked_in_its_protocol(model: Model, name: str, path: str, limit: str) -> None:
    """The model's name is what stands behind the provider's; what it may write is bounded; it is asked once."""
    said = await models.ask(asked(model, name), "Be brief.", "hello")
    assert said.text == "Hello from the script."

    (question,) = model.asked
    assert question.path == path
    assert question.body["model"] == name.partition("/")[2]
    assert question.body[limit] == 64
    assert "Be brief." in question.text
    assert "hello" in question.text


@pytest.mark.parametrize("name", ["openai/scripted", "anthropic/scripted"])
@pytest.mark.parametrize(
    ("fault", "slug"),
    [
        ("auth", "model.auth"),
        ("unknown", "model.unknown"),
        ("refused", "model.refused"),
        ("limited", "model.rate_limited"),
        ("failed", "model.failed"),
        ("empty", "model.empty"),
        ("garbled", "model.unreadable"),
    ],
)
async def test_each_failure_has_a_word_of_its_own(model: Model, name: str, fault: str, slug: str) -> None:
    """Asked once, told once; the key is in no text of it, although the provider quotes it."""
    model.fault = fault

    said = await failure(asked(model, name))

    assert said.slug == slug
    assert KEY not in f"{said.detail} {said.next} {said!r} {said.__cause__!r}"
    assert len(model.asked) == 1


async def test_a_model_that_says_nothing_is_a_time_out(model: Model) -> None:
    """However long the connection stays open."""
    await asyncio.to_thread(models._load, "openai")
    model.fault = "silent"

    said = await failure(asked(model, timeout_s=0.3))

    assert said.slug == "model.timeout"
    assert "0.3 s" in said.detail


async def test_nobody_at_the_address_is_told_with_the_address() -> None:
    """A refused connection is no time-out and no answer."""
    said = await failure(ModelSettings("ollama/llama3", "http://127.0.0.1:9", "", 30.0, 64))

    assert said.slug == "model.unreachable"
    assert "http://127.0.0.1:9" in said.detail


@pytest.mark.parametrize("address", ["http://user:{}@127.0.0.1:9/v1?k={}#{}", "htp://user:{}@h", "http://user:{}@[h"])
async def test_what_signs_in_at_the_address_is_told_to_nobody(address: str) -> None:
    """Everybody in the room reads what is told."""
    said = await failure(ModelSettings("ollama/llama3", address.replace("{}", "pass-word"), "", 30.0, 64))

    assert "//…@" in said.detail
    assert "pass-word" not in f"{said.detail} {said.next} {said!r} {said.__cause__!r}"


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        (ModelSettings(), "no model is set"),
        (ModelSettings("llama3"), "not provider/model"),
        (ModelSettings("openai/gpt-4.1"), "needs a key"),
        (ModelSettings("elsewhere/some-model"), "has no address"),
        (ModelSettings("ollama/llama3", "localhost:11434"), "no http address"),
        (ModelSettings("ollama/llama3", "http://["), "no http address"),
        (ModelSettings("ollama/llama3", "http://h:70000"), "no http address"),
        (ModelSettings("openai/gpt-4.1", "", "sk-é"), "no request can carry"),
        (ModelSettings("openai/gpt-4.1", "", "one\nother"), "no request can carry"),
    ],
)
async def test_what_can_not_be_asked_says_what_to_set(settings: ModelSettings, word: str) -> None:
    """Nothing is sent; the next command stands beside it."""
    said = await failure(settings)

    assert said.slug == "model.not_configured"
    assert word in said.detail
    assert said.next.startswith("mycelium config set llm.")


@pytest.mark.parametrize(
    ("settings", "sets"),
    [
        (ModelSettings(), "llm.model=provider/model"),
        (ModelSettings(model="openai/scripted"), "llm.existingSecret=NAME"),
        (ModelSettings(model="mine/scripted"), "llm.baseUrl=http://..."),
    ],
)
async def test_on_a_cluster_the_next_command_is_helms(settings: ModelSettings, sets: str) -> None:
    """With the release and namespace that the chart says; what `mycelium config` sets is not read on a cluster."""
    said = await failure(replace(settings, helm="helm upgrade hub charts/mycelium --namespace team --reuse-values"))

    assert said.next == f"helm upgrade hub charts/mycelium --namespace team --reuse-values --set {sets}"


@pytest.mark.parametrize("name", ["openai/scripted", "anthropic/scripted"])
async def test_what_a_question_took_is_told_as_the_provider_tells_it(model: Model, name: str) -> None:
    """Its tokens with their price, where one is set; when it tells none they are not known, and not nought."""
    plain = asked(model, name)
    dear = replace(plain, usd_per_million_input_tokens=Decimal("0.15"), usd_per_million_output_tokens=Decimal(2))
    model.usage = (1000, 7)
    said = await models.ask(plain, "Be brief.", "hello")
    priced = await models.ask(dear, "Be brief.", "hello")
    model.usage = None
    untold = await models.ask(plain, "Be brief.", "hello")

    assert said.took == models.Took("reported", 1000, 7, None)
    assert priced.took.pico_usd == 1000 * 150_000 + 7 * 2_000_000
    assert untold.took == models.Took("unreported")


@pytest.mark.parametrize(
    ("fault", "outcome"),
    [("auth", "nothing"), ("limited", "nothing"), ("failed", "lost"), ("garbled", "lost"), ("empty", "reported")],
)
async def test_what_a_failure_took_is_nothing_or_not_known(model: Model, fault: str, outcome: str) -> None:
    """A provider that refuses takes nothing; of one that broke off nobody knows."""
    model.fault = fault

    assert (await failure(asked(model))).took.outcome == outcome


@pytest.mark.parametrize(
    ("name", "pico"),
    [
        ("openai/gpt-4.1", 10 * 2_000_000 + 8_000_000),
        ("openai/scripted", None),
        ("anthropic/gpt-4.1", None),
        ("elsewhere/gpt-4.1", None),
        ("litellm/openai/gpt-4.1", None),
        ("our-openai/gpt-4.1", None),
    ],
)
def test_a_list_price_is_that_of_the_provider_and_model_that_are_named(name: str, pico: int | None) -> None:
    """From the library's own list, with no network; a model that it does not name has none."""
    settings = ModelSettings(name)

    assert prices.cost(settings, Usage(input_tokens=10, output_tokens=1)) == pico
    assert prices.are_known(settings) == (pico is not None)
    one = ModelSettings(name, usd_per_million_input_tokens=Decimal(1))
    assert not prices.are_known(one), "with one of two prices set nothing is known"


def test_settings_do_not_show_the_key() -> None:
    """A log line that holds them holds no secret."""
    assert KEY not in repr(ModelSettings("openai/x", "", KEY))
