"""The charts, rendered: lint, schemas, security, arrows, and that they and the code name the same things."""

from __future__ import annotations

import functools
import importlib
import json
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml

from mycelium_hub import nats_config
from mycelium_hub.services import PARTS
from mycelium_kernel import program
from mycelium_operator import settings as operator_settings
from tests.rendering import CHART, CRDS, ROOT, SIGN_IN, WEB, Json, engine, environment, only, pods, rendered, values

VERSIONS = ("1.30", "1.35")  # the oldest that the chart allows, and the one that it is tried on
EXTERNAL = {
    "nats": {"enabled": False, "existing": {"servers": ["nats://nats.elsewhere:4222"], "secret": "nats-users"}},
    "temporal": {"enabled": False, "existing": {"address": "temporal.elsewhere:7233", "key": "temporal-key"}},
}
VARIANTS: dict[str, Json] = {
    "as it is": {},
    "three NATS servers": {"nats": {"replicas": 3}},
    "others' NATS and Temporal": EXTERNAL,
    "a model": {"llm": {"model": "anthropic/claude", "existingSecret": "model"}},
    "no policies": {"network": {"policies": False}},
    "one of each": {"services": {part.name: {"replicas": 1} for part in PARTS}},
    "sign-in": {"auth": SIGN_IN},
    "sign-in to the web app": {"auth": WEB},
    "pulled": {"image": {"registry": "example.com/x", "tag": "1", "pullSecrets": ["pull"]}},
}
OWN_IMAGES = {part.name for part in PARTS} | {"operator"}
IMAGES = OWN_IMAGES | {"nats", "temporal"}


@pytest.mark.parametrize("chart", [CHART, CRDS], ids=lambda chart: str(chart.name))
def test_helm_finds_nothing_wrong(chart: Any) -> None:
    """`helm lint`; that an icon is recommended is all that it may say."""
    found = engine().lint(str(chart))
    assert found["errors"] == []
    assert [message["error"] for message in found["messages"]] == ["icon is recommended"]


@pytest.mark.parametrize("version", VERSIONS)
def test_every_object_is_one_that_kubernetes_knows(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the schemas of Kubernetes itself: no field misspelt, none left out, in any variant."""
    # Large, and otherwise read for each object.
    read = functools.cache(kubernetes_validate.utils.schema_contents)
    monkeypatch.setattr(kubernetes_validate.utils, "schema_contents", read)
    different = {json.dumps(one) for variant in VARIANTS.values() for one in rendered(variant)}
    for one in different:
        kubernetes_validate.validate(json.loads(one), version, strict=True)


def test_the_kinds_are_ones_that_kubernetes_knows() -> None:
    """The definition of Room, and what it says of its own fields."""
    (room,) = rendered(chart=CRDS)
    kubernetes_validate.validate(room, VERSIONS[-1], strict=True)
    for name, field in room["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"][
        "properties"
    ].items():
        assert field["description"], name


def test_the_services_are_those_of_the_hub() -> None:
    """A new service is a line of the hub and a block of values."""
    assert set(values()["services"]) == OWN_IMAGES


def test_every_setting_is_one_that_its_service_reads() -> None:
    """A key that nobody reads would be a wish."""
    for part in PARTS:
        module = importlib.import_module(f"{part.module}.__main__")
        lists = [value for one in (program, module) for name, value in vars(one).items() if name.endswith("SETTINGS")]
        known = {setting.key for settings in lists for setting in settings}
        service = values()["services"][part.name]
        assert {*service["settings"], *service.get("secrets", ())} <= known, part.name
    for variant, file in (({}, ""), ({"auth": SIGN_IN}, "/secrets/operator/token")):
        said = operator_settings.load(environment(only("Deployment", "operator", rendered(variant))))
        assert (said.gateway, said.token_file) == ("http://mycelium-gateway:8000", file)


def test_every_image_is_built_by_make_and_by_skaffold() -> None:
    """The same list three times."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    (made,) = re.findall(r"^IMAGES := (.+)$", makefile, re.MULTILINE)
    assert set(made.split()) == IMAGES
    skaffold = yaml.safe_load((ROOT / "skaffold.yaml").read_text(encoding="utf-8"))
    artifacts = {one["image"]: one["docker"]["buildArgs"]["SERVICE"] for one in skaffold["build"]["artifacts"]}
    assert artifacts == {f"mycelium-{name}": name for name in IMAGES}
    set_values = skaffold["deploy"]["helm"]["releases"][1]["setValueTemplates"]
    assert set_values == {
        f"services.{name}.image"
        if name in OWN_IMAGES
        else f"{name}.image": f"{{{{.IMAGE_FULLY_QUALIFIED_mycelium_{name}}}}}"
        for name in IMAGES
    }
    used = {container["image"] for _, pod in pods(rendered()) for container in pod["spec"]["containers"]}
    assert used == {f"localhost/mycelium-{name}:0.1.0" for name in IMAGES}


def test_skaffold_s_file_is_one_that_skaffold_takes() -> None:
    """By what its schema says of the fields that are used."""
    schema = json.loads((ROOT / "tests/skaffold.schema.json").read_text(encoding="utf-8"))
    jsonschema.validate(yaml.safe_load((ROOT / "skaffold.yaml").read_text(encoding="utf-8")), schema)


def test_each_nats_user_may_do_what_the_hub_lets_it() -> None:
    """The chart's file is made from the code, and the server's configuration from the file."""
    subprocess.run([sys.executable, ROOT / "charts/generate.py", "--check"], check=True, timeout=50)
    users = {user["user"]: user for user in server()["accounts"]["APP"]["users"]}
    for part in PARTS:
        assert users[part.name]["permissions"] == nats_config.permissions(part.user)
        assert users[part.name]["password"] == f"$PASSWORD_{part.name.upper()}"


def server(replicas: int = 1) -> Json:
    """The NATS server's configuration; variables of the environment as texts."""
    text = only("ConfigMap", "nats", rendered({"nats": {"replicas": replicas}}))["data"]["nats.conf"]
    parsed: Json = json.loads(re.sub(r"(?<=[ \[])(\$[A-Z0-9_]+)(?=[,\n\]])", r'"\1"', text))
    return parsed


def test_the_nats_server_is_set_up_as_on_one_machine() -> None:
    """It syncs before it acknowledges, and cuts off who does not answer."""
    config = server()
    assert config["jetstream"]["sync_interval"] == "always"
    assert config["ping_interval"] == f"{nats_config.PING_S}s"
    assert config["max_payload"] == nats_config.MAX_PAYLOAD
    assert "cluster" not in config


@pytest.mark.parametrize("replicas", [1, 3])
def test_the_nats_server_takes_its_configuration(replicas: int, tmp_path: Path) -> None:
    """Read by the server itself, with the variables as a pod has them."""
    objects = rendered({"nats": {"replicas": replicas}})
    (container,) = only("StatefulSet", "nats", objects)["spec"]["template"]["spec"]["containers"]
    said = {one["name"]: one.get("value", "p123e4") for one in container["env"]}
    said = {name: value.replace("$(PASSWORD_ROUTE)", "p123e4") for name, value in said.items()}
    file = tmp_path / "nats.conf"
    file.write_text(only("ConfigMap", "nats", objects)["data"]["nats.conf"], encoding="utf-8")
    done = subprocess.run(
        [nats_config.binary(), "-t", "-c", file], env=said, capture_output=True, text=True, check=False, timeout=20
    )
    assert done.returncode == 0, done.stderr


def test_three_nats_servers_know_each_other_and_each_fact_is_kept_by_all() -> None:
    """Routes with a password of their own; services are told of every server."""
    assert server(3)["cluster"]["routes"] == ["$ROUTE_0", "$ROUTE_1", "$ROUTE_2"]
    objects = rendered({"nats": {"replicas": 3}})
    assert only("StatefulSet", "nats", objects)["spec"]["replicas"] == 3
    said = environment(only("StatefulSet", "rooms", objects))
    assert said["MYCELIUM_NATS_REPLICAS"] == "3"
    assert said["MYCELIUM_NATS_SERVERS"].count("nats://") == 3


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_pod_is_restricted(variant: str) -> None:
    """Nobody in particular, a root that can't be written, no rights; no token of the cluster but for the operator."""
    for part, pod in pods(rendered(VARIANTS[variant])):
        spec = pod["spec"]
        assert spec["securityContext"]["runAsNonRoot"]
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert spec["automountServiceAccountToken"] == (part == "operator"), part
        assert spec["enableServiceLinks"] is False, "a Service's variables look like our settings"
        for container in spec["containers"] + spec.get("initContainers", []):
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }
            assert container["resources"]["limits"]["memory"], part


def test_every_service_is_probed_where_it_tells_the_truth() -> None:
    """Ready once it has caught up, alive while its loop turns."""
    for part, pod in pods(rendered()):
        if part in OWN_IMAGES:
            (container,) = pod["spec"]["containers"]
            assert container["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": "probes"}
            assert container["livenessProbe"]["httpGet"] == {"path": "/healthz", "port": "probes"}
            assert container["startupProbe"], part


def test_services_with_tables_keep_them_on_a_volume_each() -> None:
    """Two of those, and two of the others, from the start."""
    objects = rendered()
    rooms = only("StatefulSet", "rooms", objects)
    assert rooms["spec"]["replicas"] == 2
    (claim,) = rooms["spec"]["volumeClaimTemplates"]
    (mount,) = (
        mount
        for mount in rooms["spec"]["template"]["spec"]["containers"][0]["volumeMounts"]
        if mount["name"] == claim["metadata"]["name"]
    )
    assert environment(rooms)["MYCELIUM_SERVICE_TABLES"] == mount["mountPath"]
    for part in ("gateway", "engine"):
        assert only("Deployment", part, objects)["spec"]["replicas"] == 2


def allowed(objects: list[Json]) -> set[tuple[str, str, int]]:
    """The connections that the policies let through: who may leave, who is let in, by which port."""
    policies = [one["spec"] for one in objects if one["kind"] == "NetworkPolicy"]
    running = {part: pod["metadata"]["labels"] for part, pod in pods(objects)}
    leaving: defaultdict[str, set[tuple[str, int]]] = defaultdict(set)
    entering: defaultdict[str, set[tuple[str, int]]] = defaultdict(set)
    for policy in policies:
        for part in _chosen(policy["podSelector"], running):
            for rule in policy.get("egress") or ():
                for peer in rule.get("to", [{}]):
                    leaving[part] |= {(there, port) for there in _peers(peer, running) for port in _ports(rule)}
            for rule in policy.get("ingress") or ():
                for peer in rule["from"]:
                    entering[part] |= {(there, port) for there in _peers(peer, running) for port in _ports(rule)}
    return {
        (here, there, port)
        for here, ways in leaving.items()
        for there, wanted in ways
        if there in running
        for port in ({port for _, port in entering[there]} if wanted == 0 else {wanted})
        if (here, port) in entering[there]
    }


def _chosen(selector: Json, running: dict[str, Json]) -> list[str]:
    wanted = selector.get("matchLabels", {}).items()
    return [part for part, labels in running.items() if wanted <= labels.items()]


def _peers(peer: Json, running: dict[str, Json]) -> list[str]:
    return _chosen(peer["podSelector"], running) if "podSelector" in peer else []


def _ports(rule: Json) -> list[int]:
    return [port["port"] for port in rule["ports"]] if rule.get("ports") else [0]


def test_pods_reach_what_the_design_lets_them_reach_and_nothing_else() -> None:
    """Gateway, rooms, memory, board and engine the log; the engine Temporal; the operator and the test the gateway."""
    assert allowed(rendered()) == {
        ("gateway", "nats", 4222),
        ("rooms", "nats", 4222),
        ("memory", "nats", 4222),
        ("board", "nats", 4222),
        ("engine", "nats", 4222),
        ("engine", "temporal", 7233),
        ("operator", "gateway", 8000),
        ("test", "gateway", 8000),
    }
    assert ("nats", "nats", 6222) in allowed(rendered({"nats": {"replicas": 3}}))


def test_whatever_else_a_pod_of_the_release_wants_is_refused() -> None:
    """A policy without a rule selects every pod of it."""
    (default,) = (one for one in rendered() if one["kind"] == "NetworkPolicy" and one["metadata"]["name"] == "mycelium")
    assert set(default["spec"]) == {"podSelector", "policyTypes"}
    assert default["spec"]["policyTypes"] == ["Ingress", "Egress"]
    everyone = {part: pod["metadata"]["labels"] for part, pod in pods(rendered())}
    assert set(_chosen(default["spec"]["podSelector"], everyone)) == set(everyone)


def test_a_nats_and_a_temporal_of_others_are_used_where_they_are_named() -> None:
    """Nothing of the kind is made; the services are told their addresses and read others' secrets."""
    objects = rendered(EXTERNAL)
    assert not [one for one in objects if one["metadata"]["name"] in {"mycelium-nats", "mycelium-temporal"}]
    engine_pod = only("Deployment", "engine", objects)
    assert environment(engine_pod)["MYCELIUM_NATS_SERVERS"] == "nats://nats.elsewhere:4222"
    assert environment(engine_pod)["MYCELIUM_TEMPORAL_ADDRESS"] == "temporal.elsewhere:7233"
    assert "temporal-key" in json.dumps(engine_pod["spec"]["template"]["spec"]["volumes"])
    rules = only("NetworkPolicy", "rooms", objects)["spec"]["egress"]
    assert {"ports": [{"protocol": "TCP", "port": 4222}]} in rules


def test_the_model_s_key_is_read_by_the_engine_alone_and_as_a_file() -> None:
    """It is in nobody's environment."""
    objects = rendered(VARIANTS["a model"])
    readers = {part for part, pod in pods(objects) if '"model"' in json.dumps(pod["spec"].get("volumes"))}
    assert readers == {"engine"}
    assert environment(only("Deployment", "engine", objects))["MYCELIUM_LLM_API_KEY_FILE"] == "/secrets/llm/api-key"


@pytest.mark.parametrize(
    "wrong",
    [
        {"imagee": {}},
        {"nats": {"replicas": 2}},
        {"services": {"rooms": {"replica": 2}}},
        {"services": {"rooms": {"settings": {"ROOMS": "x"}}}},
        {"log": {"level": "loud"}},
        {"auth": {"issuers": [{"isuer": "https://id.example.com"}]}},
        {"auth": {"issuers": ["https://id.example.com"]}},
        {"auth": {"issuers": [{"issuer": "https://id.example.com", "role": "admin"}]}},
        {"auth": {"leewayS": 3600}},
        {"auth": {"trustedProxies": ["proxy.example.com"]}},
    ],
    ids=str,
)
def test_a_value_that_can_not_be_is_refused(wrong: Json) -> None:
    """By values.schema.json, before anything is installed."""
    with engine().Chart.load(str(CHART)) as chart, pytest.raises(Exception, match=r"^mycelium:\n- at "):
        chart.validate_schema(wrong)


def test_every_value_has_a_comment() -> None:
    """On its line, or in the block above `services` for what a service has."""
    text = (CHART / "values.yaml").read_text(encoding="utf-8")
    described = set(re.findall(r"^#   ([a-zA-Z]+) {2,}", text, re.MULTILINE))
    assert {key for service in values()["services"].values() for key in service} <= described
    inside = False
    for line in text.splitlines():
        if re.match(r"[a-z]", line):
            inside = line.startswith("services:")
        elif not inside and re.match(r"  [a-zA-Z]+:", line):
            assert "#" in line, line
