"""Which model is in force: never a silent guess, the choice is named with its reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from mycelium_memory import models


def test_what_comes_with_the_program_is_taken_where_the_other_is_not_and_says_why(tmp_path: Path) -> None:
    model = models.choose("auto", tmp_path, {"HF_HOME": str(tmp_path / "none")})
    assert model.name == "sentence-transformers/all-MiniLM-L6-v2"
    assert "BAAI/bge-small-en-v1.5 are not here" in model.why


@pytest.mark.parametrize(
    "place",
    ["bge-small-en-v1.5", "models--Qdrant--bge-small-en-v1.5-onnx-Q/snapshots/abc"],
)
def test_the_documented_model_is_taken_where_its_files_are(tmp_path: Path, place: str) -> None:
    files(tmp_path / "models" / place, "weights")
    assert models.choose("auto", tmp_path / "models", {}).name == "BAAI/bge-small-en-v1.5"


def test_a_cache_of_others_is_looked_at_too(tmp_path: Path) -> None:
    files(tmp_path / "cache" / "models--Qdrant--bge-small-en-v1.5-onnx-Q" / "snapshots" / "abc", "weights")
    environment = {"FASTEMBED_CACHE_PATH": str(tmp_path / "cache")}
    assert models.choose("bge", tmp_path / "models", environment).folder.name == "abc"


def test_a_model_that_is_named_and_not_here_is_refused_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(models.NoModel, match=r"put model_optimized\.onnx"):
        models.choose("BAAI/bge-small-en-v1.5", tmp_path, {"HF_HOME": str(tmp_path)})
    with pytest.raises(models.NoModel, match="use auto"):
        models.choose("ada-002", tmp_path, {})


def test_the_stamp_is_that_of_the_weights_and_of_nothing_else(tmp_path: Path) -> None:
    stamps = []
    for place, weights in (("a", "one"), ("b", "one"), ("c", "two")):
        files(tmp_path / place / "bge-small-en-v1.5", weights)
        stamps.append(models.choose("bge", tmp_path / place, {}).stamp)
    assert stamps[0] == stamps[1] != stamps[2]
    assert stamps[0].startswith("bge-small-en-v1.5-384-")


def files(folder: Path, weights: str) -> None:
    folder.mkdir(parents=True)
    for name in ("model_optimized.onnx", "tokenizer.json", "tokenizer_config.json"):
        (folder / name).write_text(weights)
