"""An issuer in the cluster: the certified OIDC server of `e2e/oidc` as a pod, and a hub that believes its tokens."""

import contextlib
import json
import secrets
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import httpx2

from e2e.cluster.door import door
from e2e.cluster.kube import Namespace, Release
from e2e.harness import Machine, free_port
from e2e.web import Api

AUDIENCE = "mycelium"
NAME, PORT = "oidc", 8080
LABELS = {"app": NAME}
INSIDE = f"http://{NAME}:{PORT}"


class Issuer:
    """One that tests reach under the address by which its tokens name it, and pods under its Service's name."""

    def __init__(self, tag: str, *agents: str) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.secrets = {agent: secrets.token_urlsafe(24) for agent in agents}
        self._image = f"localhost/mycelium-oidc:{tag}"

    @property
    def values(self) -> dict[str, object]:
        """The chart's values for a hub where everybody signs in there: agents by their secrets, people in the app."""
        return {
            "auth.insecure": False,
            "auth.enabled": True,
            "auth.audience": AUDIENCE,
            "auth.issuers": [{"issuer": self.url, "jwks_url": f"{INSIDE}/jwks", "role": "agent"}],
            "auth.web": {"issuer": self.url, "internalIssuer": INSIDE},
            "network.issuers.to": [{"podSelector": {"matchLabels": LABELS}}],
        }

    @contextlib.contextmanager
    def running(self, namespace: Namespace, folder: Path) -> Iterator[None]:
        """It, for the time of the block."""
        namespace.apply(self._pod())
        ports = [{"port": PORT, "targetPort": PORT}]
        spec = {"selector": LABELS, "ports": ports}
        namespace.apply({"apiVersion": "v1", "kind": "Service", "metadata": {"name": NAME}, "spec": spec})
        namespace.kubectl("wait", "--for=condition=Ready", f"pod/{NAME}", "--timeout=120s")
        service = namespace.find("service", NAME)
        assert service is not None
        with door(f"{service['spec']['clusterIP']}:{PORT}", folder, self.port):
            yield

    def token(self, agent: str) -> str:
        """An agent's token, as it gets it by its secret."""
        form = {"grant_type": "client_credentials", "audience": AUDIENCE}
        answer = httpx2.post(f"{self.url}/token", data=form, auth=(agent, quote(self.secrets[agent], safe="")))
        assert answer.status_code == 200, answer.text
        return str(answer.json()["access_token"])

    def _pod(self) -> dict[str, object]:
        agents = {name: [secret, "client_secret_basic"] for name, secret in self.secrets.items()}
        settings = {
            "alg": "RS256", "audience": AUDIENCE, "lifetime_s": 3600, "device_s": 600, "interval_s": 1,
            "realm": "cluster", "host": "0.0.0.0", "port": PORT, "issuer": self.url, "agents": agents,
        }  # fmt: skip
        container = {
            "name": NAME,
            "image": self._image,
            "imagePullPolicy": "Never",
            "args": [json.dumps(settings)],
            "stdin": True,  # it ends with its input
            "readinessProbe": {"httpGet": {"path": "/jwks", "port": PORT}, "periodSeconds": 1},
            "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        }
        own = {"runAsNonRoot": True, "runAsUser": 10001, "seccompProfile": {"type": "RuntimeDefault"}}
        spec = {"containers": [container], "securityContext": own, "automountServiceAccountToken": False}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": NAME, "labels": LABELS}, "spec": spec}


class Guarded:
    """A hub where everybody signs in, as tests use it."""

    def __init__(self, release: Release, url: str, issuer: Issuer, folder: Path) -> None:
        self.release = release
        self.url = url
        self.issuer = issuer
        self._folder = folder

    @property
    def api(self) -> Api:
        """The hub, without a token."""
        return Api(self.url)

    @contextlib.contextmanager
    def machine(self, agent: str) -> Iterator[Machine]:
        """A computer that has this agent's credential and nothing else."""
        own = self._folder / agent
        own.mkdir(exist_ok=True)
        found = Machine(own / "home", self.url)
        try:
            for key, value in {"issuer": self.issuer.url, "audience": AUDIENCE}.items():
                found.run("config", "set", f"agent_auth.{key}", value).ok()
            secret = self.issuer.secrets[agent].encode()
            found.run("agent", "credential", "set", agent, "--secret-stdin", stdin=secret).ok()
            yield found
        finally:
            found.close()
