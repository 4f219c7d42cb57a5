"""The charts as Helm renders them, by Helm's own engine from its wheel: no helm command and no cluster are needed."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parent.parent
CHART, CRDS = ROOT / "charts/mycelium", ROOT / "charts/mycelium-crds"
Json = dict[str, Any]

ISSUER = "https://id.example.com/realms/team"
_INSIDE = {"issuer": "https://agents.example.com", "jwks_url": "http://dex.auth:5556/keys", "role": "agent"}
SIGN_IN: Json = {"enabled": True, "audience": "mycelium", "issuers": [{"issuer": ISSUER, "role": "user"}, _INSIDE]}
WEB: Json = {**SIGN_IN, "web": {"issuer": ISSUER}}


def engine() -> Any:
    """Helm's engine; a machine for which there is no wheel skips, and says that nothing was rendered."""
    return pytest.importorskip(
        "helm_python", reason="NOTHING OF THE CHARTS WAS RENDERED: helm-python-sdk has no wheel for this machine"
    )


def rendered(values: Mapping[str, Any] | None = None, chart: Path = CHART) -> list[Json]:
    """Every object of the chart with these values over its own, NOTES left out; without sign-in unless they say it."""
    return [json.loads(text) for text in _rendered(json.dumps(_said(values)), chart)]


def _said(values: Mapping[str, Any] | None) -> Json:
    return {"auth": {"insecure": True}, **(values or {})}


@functools.cache
def _rendered(values: str, chart: Path) -> tuple[str, ...]:
    return tuple(json.dumps(one) for one in _objects(json.loads(values), chart))


def _objects(values: Json, chart: Path) -> Iterator[Json]:
    with engine().Chart.load(str(chart)) as loaded:
        files: dict[str, str] = loaded.render(values, name="mycelium", namespace="hub")
    for name, text in files.items():
        if not name.endswith("NOTES.txt"):
            yield from (one for one in yaml.safe_load_all(text) if one)


def notes(values: Mapping[str, Any] | None = None) -> str:
    """What `helm install` says at its end."""
    with engine().Chart.load(str(CHART)) as loaded:
        files: dict[str, str] = loaded.render(_said(values), name="mycelium", namespace="hub")
    return next(text for name, text in files.items() if name.endswith("NOTES.txt"))


def only(kind: str, name: str, objects: list[Json]) -> Json:
    """The one object of that kind and name."""
    (found,) = (one for one in objects if one["kind"] == kind and one["metadata"]["name"] == f"mycelium-{name}")
    return found


def pods(objects: list[Json]) -> Iterator[tuple[str, Json]]:
    """Every pod that would run: its part's name and its spec with labels."""
    for one in objects:
        pod = one if one["kind"] == "Pod" else one["spec"].get("template") if "spec" in one else None
        if pod and "containers" in pod.get("spec", {}):
            yield pod["metadata"]["labels"]["app.kubernetes.io/component"], pod


def values() -> Json:
    """The chart's own values."""
    loaded: Json = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    return loaded


def environment(workload: Json) -> dict[str, str]:
    """What a workload's container has in its environment, secrets left empty."""
    (container,) = workload["spec"]["template"]["spec"]["containers"]
    return {one["name"]: one.get("value", "") for one in container["env"]}
