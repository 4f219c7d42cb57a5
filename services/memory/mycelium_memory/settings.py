"""The memory service's settings: by which model it searches, and where the vectors are.

Only `service.py`, `__main__` and the hub read them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mycelium_kernel.settings import Setting, Value

MOST_THREADS = 64
# fmt: off
SEARCH_SETTINGS = (
    Setting(
        "memory.embedding_model", "str", "auto",
        "The model that memory is searched by: bge, minilm, or auto, which takes bge where its files are.",
        unit="model", choices=("auto", "bge", "minilm"),
    ),
    Setting(
        "memory.embedding_download", "bool", False,
        "Fetch the files of bge once, when they are not here and the model above would take them.", unit="yes or no",
    ),
    Setting(
        "memory.embedding_threads", "int", 2, "How many threads the model computes with.",
        unit="threads", least=1, most=MOST_THREADS,
    ),
    Setting(
        "memory.vectors_url", "str", "",
        "The Qdrant server that keeps the vectors; empty keeps them in the hub's home.", unit="url",
    ),
)
SERVICE_SETTINGS = (
    Setting(
        "memory.tree", "str", "",
        "Where each room has a folder with its documents as files; empty keeps none. Of several replicas with one disk"
        " one keeps them.",
        unit="folder", scope="service",
    ),
    Setting("memory.vectors_key", "str", "", "The key of the Qdrant server.", scope="service", secret=True),
    Setting(
        "memory.vectors_name", "str", "mycelium", "What the hub's collections on the Qdrant server begin with.",
        scope="service",
    ),
    Setting(
        "memory.index_folder", "str", "",
        "Where the owner of the index keeps models and vectors; empty: another replica is the owner.",
        unit="folder", scope="service",
    ),
    Setting(
        "memory.index_host", "str", "",
        "What the name of the owner's machine ends with, such as -0; empty: every machine that has the folder.",
        scope="service",
    ),
)
# fmt: on


@dataclass(frozen=True)
class IndexSettings:
    """What the owner of the index goes by: the folder for models and vectors, the model, the server of vectors."""

    folder: Path
    model: str = "auto"
    is_fetched: bool = False  # the better model, when it is not here
    threads: int = 2
    url: str = ""
    key: str = ""
    name: str = "mycelium"


def index_settings(values: Mapping[str, Value], folder: Path) -> IndexSettings:
    """The settings by key, as they were read; what is not there is as by default."""
    known = {setting.key: setting.default for setting in (*SEARCH_SETTINGS, *SERVICE_SETTINGS)} | dict(values)
    return IndexSettings(
        folder=folder,
        model=str(known["memory.embedding_model"]),
        is_fetched=bool(known["memory.embedding_download"]),
        threads=int(known["memory.embedding_threads"]),
        url=str(known["memory.vectors_url"]),
        key=str(known["memory.vectors_key"]),
        name=str(known["memory.vectors_name"]),
    )
