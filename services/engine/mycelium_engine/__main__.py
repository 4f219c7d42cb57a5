"""`python -m mycelium_engine`: the engine service as a process of its own."""

from collections.abc import Mapping

from mycelium_engine.service import NAME, service
from mycelium_engine.settings import (
    MODEL_SETTINGS,
    SERVICE_SETTINGS,
    EngineSettings,
    model_settings,
    read_key,
)
from mycelium_kernel import program
from mycelium_kernel.service import Service
from mycelium_kernel.settings import Value


def build(values: Mapping[str, Value]) -> Service:
    """The service, with its model."""
    return service(
        EngineSettings(
            address=str(values["temporal.address"]),
            namespace=str(values["temporal.namespace"]),
            key_file=str(values["temporal.key_file"]),
            model=model_settings(values, read_key(str(values["llm.api_key_file"]))),
        )
    )


if __name__ == "__main__":
    program.run(NAME, build, (*MODEL_SETTINGS, *SERVICE_SETTINGS))
