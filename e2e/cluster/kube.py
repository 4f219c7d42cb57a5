"""kubectl, helm and the cluster's own program, as somebody at a keyboard uses them."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from e2e.room import Document

ROOT = Path(__file__).parent.parent.parent
CHARTS = ROOT / "charts"
BOUND_S = 300
CLUSTER = os.environ.get("CLUSTER", "cluster")


def run(*command: str, stdin: str = "", within_s: float = BOUND_S) -> str:
    """What a program printed; fails with all that it said."""
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=within_s, check=False)
    assert done.returncode == 0, f"{' '.join(command)}: exit {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


class Namespace:
    """One namespace of the cluster."""

    def __init__(self, name: str) -> None:
        self.name = name

    def kubectl(self, *arguments: str, stdin: str = "") -> str:
        """Run kubectl there."""
        return run("kubectl", "--namespace", self.name, *arguments, stdin=stdin)

    def apply(self, document: Document) -> None:
        """Apply one object."""
        self.kubectl("apply", "--filename", "-", stdin=json.dumps(document))

    def all(self, kinds: str, selector: str = "") -> list[Document]:
        """Objects of these kinds."""
        chosen = ("--selector", selector) if selector else ()
        found: list[Document] = json.loads(self.kubectl("get", kinds, "--output", "json", *chosen))["items"]
        return found

    def find(self, kind: str, name: str) -> Document | None:
        """One object; None when it is not there."""
        text = self.kubectl("get", kind, name, "--ignore-not-found", "--output", "json")
        return json.loads(text) if text else None

    def delete(self, kind: str, *names: str, now: bool = False) -> None:
        """Delete objects; `now` kills a pod, and waits for nothing."""
        quickly = ("--grace-period=0", "--force") if now else ()
        self.kubectl("delete", kind, *names, "--wait=false", *quickly)

    def everything(self) -> list[str]:
        """The name of every object, of whatever kind; events tell of the past, and leases are nobody's."""
        kinds = run("kubectl", "api-resources", "--namespaced", "--verbs=list", "--output=name").split()
        wanted = ",".join(kind for kind in kinds if not kind.startswith(("events", "leases")))
        return self.kubectl("get", wanted, "--output=name", "--ignore-not-found").split()


class Release:
    """One installation of the chart."""

    name = "mycelium"

    def __init__(self, namespace: Namespace) -> None:
        self.namespace = namespace
        self.values: dict[str, Any] = {}
        self.notes = ""

    def install(self, **values: Any) -> None:
        """Install, or upgrade with values over those before; returns once all is ready."""
        self.values |= values
        told = [f"--set-json={key}={json.dumps(value)}" for key, value in self.values.items()]
        self.notes = self.helm(
            "upgrade", "--install", self.name, str(CHARTS / "mycelium"), "--wait", "--timeout=8m", *told
        )

    def helm(self, *arguments: str) -> str:
        """Run helm there."""
        return run("helm", "--namespace", self.namespace.name, *arguments, within_s=600)

    def workload(self, part: str) -> str:
        """A part's workload, as kubectl names it."""
        kind = "statefulset" if part in {"rooms", "nats", "temporal"} else "deployment"
        return f"{kind}/{self.name}-{part}"

    def pods(self, part: str) -> list[str]:
        """The names of a part's pods."""
        found = self.namespace.all("pods", f"app.kubernetes.io/component={part}")
        return [pod["metadata"]["name"] for pod in found if not pod["metadata"].get("deletionTimestamp")]

    def scale(self, part: str, count: int) -> None:
        """Run so many pods of a part; returns once they run."""
        self.namespace.kubectl("scale", self.workload(part), f"--replicas={count}")
        self.settle(part)
        if count == 0:
            self.namespace.kubectl(
                "wait", "--for=delete", "pod", f"--selector=app.kubernetes.io/component={part}", "--timeout=120s"
            )

    def settle(self, part: str) -> None:
        """Return once a part's pods are those that are wanted, and ready."""
        self.namespace.kubectl("rollout", "status", self.workload(part), "--timeout=300s")

    def python(self, part: str, program: str) -> str:
        """Run a program in a part's pod."""
        return self.namespace.kubectl("exec", self.pods(part)[0], "--", "python", "-c", program)

    def address(self) -> str:
        """Where the gateway's Service is, inside."""
        service = self.namespace.find("service", f"{self.name}-gateway")
        assert service is not None
        return f"{service['spec']['clusterIP']}:{service['spec']['ports'][0]['port']}"
