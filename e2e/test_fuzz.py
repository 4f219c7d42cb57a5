"""What nobody would send, to every operation of the hub's document: no fault of the hub, no answer that isn't in it.

`schemathesis` makes the requests, always the same ones: half of them fit the document, half don't.
"""

import contextlib
import json
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import Case, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.failures import Failure, FailureGroup
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from e2e.harness import Hub
from e2e.oidc_server import AUDIENCE, OidcServer
from e2e.requirements import requirement
from e2e.web import Api, path

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
USER, AGENT, JOINED = "fuzzing-user", "fuzzing-agent", "fuzzing-joined"
# Parts of a hub that these hubs run without: it says 503, and what to do.
ABSENT = {"engines", "budget", "coordinate"}
SHOWN = 20


@schemathesis.serializer("application/gzip", "application/x-ndjson")
def _bundle(_context: object, value: object) -> bytes:
    """The body of an import, as it is."""
    return value if isinstance(value, bytes) else json.dumps(value).encode()


class Fuzzed:
    """A hub with a room in which there is one of everything, and the callers that send what was made up."""

    def __init__(self, hub: Hub, callers: list[dict[str, str]]) -> None:
        self.hub = hub
        self.callers = callers
        self.owner = Api(hub.url)
        self.owner.signed_in = callers[0]
        self.real = self._made()
        document = self.owner.get("/openapi.json").ok(200).json
        self.schema = schemathesis.openapi.from_dict(document)
        self.line = requests.Session()
        self.faults: list[str] = []
        self.answers: defaultdict[str, list[int]] = defaultdict(list)
        self.sent = 0

    def _made(self) -> dict[str, str]:
        owner, room = self.owner, "fuzzing"
        owner.post(path("rooms"), {"name": room}).ok(201)
        for handle in (AGENT, JOINED):
            owner.post(path("rooms", room, "members"), {"handle": handle, "kind": "agent", "owner": USER}).ok(201)
        said = owner.post(path("rooms", room, "messages"), {"content": f"@{AGENT} hello"}).ok(201).json
        task = owner.post(path("rooms", room, "tasks"), {"title": "a task"}).ok(201).json
        owner.put(path("rooms", room, "memory", "notes/one"), {"value": "text"}).ok(201)
        return {"room": room, "handle": AGENT, "message": said["id"], "task": task["key"], "key": "notes/one"}

    def join(self) -> None:
        """One more caller: an agent by the token that a join code got it."""
        room = path("rooms", self.real["room"], "join-codes")
        code = self.owner.post(room, {"handle": JOINED}).ok(201).json["code"]
        token = self.owner.post(path("join"), {"code": code}).ok(200).json["token"]
        self.callers.append({"Authorization": f"Bearer {token}"})

    def everything(self, count: int) -> None:
        """That many requests to every operation, each as the next of the callers."""
        for result in self.schema.get_all_operations():
            operation = result.ok()
            if not operation.path.endswith("/stream"):
                for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
                    self._one(operation, mode, count // 2)
        assert not self.faults, f"{len(self.faults)} faults\n\n" + "\n\n".join(self.faults[:SHOWN])
        assert not self.hub.errors()

    def _one(self, operation: Any, mode: GenerationMode, count: int) -> None:
        @settings(
            max_examples=count,
            derandomize=True,
            database=None,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy(generation_mode=mode))
        def sending(case: Case) -> None:
            self._send(case)

        with contextlib.suppress(Unsatisfiable):  # what takes nothing can be given nothing wrong
            sending()

    def _send(self, case: Case) -> None:
        self.sent += 1
        self._fill(case)
        caller = self.callers[self.sent % len(self.callers)]
        reply = case.call(base_url=self.hub.url, headers=caller, session=self.line, timeout=30, allow_redirects=False)
        self.answers[f"{case.method} {case.path}"].append(reply.status_code)
        checks = CHECKS
        if reply.status_code == 503 and ABSENT & set(case.path.split("/")):
            checks = CHECKS[1:]
        try:
            case.validate_response(reply, checks=checks)
        except (Failure, FailureGroup) as failure:
            found = failure.exceptions if isinstance(failure, FailureGroup) else [failure]
            said = "; ".join(" ".join(str(one).split())[:400] for one in found)
            asked = case.as_curl_command()[:1500]
            self.faults.append(f"{case.method} {case.path}: {said}\n{asked}\n{reply.text[:500]}")

    def _fill(self, case: Case) -> None:
        """What is there, for most of the parts of the address; and nobody waits for a mention."""
        if case.path_parameters:
            for name, value in self.real.items():
                if name in case.path_parameters and self.sent % 5 and not self._is_end(case, name):
                    case.path_parameters[name] = value
        if isinstance(case.body, dict) and isinstance(case.body.get("timeout_s"), int | float):
            case.body["timeout_s"] = min(case.body["timeout_s"], 0)

    def _is_end(self, case: Case, name: str) -> bool:
        return case.method == "DELETE" and case.path.endswith(f"{{{name}}}")


def guarded(idp: OidcServer) -> dict[str, str]:
    """Settings of a hub where every caller needs a token."""
    return {
        "MYCELIUM_AUTH_ENABLED": "true",
        "MYCELIUM_AUTH_AUDIENCE": AUDIENCE,
        "MYCELIUM_AUTH_ISSUERS": json.dumps([{"issuer": idp.issuer}]),
        "MYCELIUM_AUTH_LOCALHOST_BYPASS": "false",
    }


def bearer(token: str) -> dict[str, str]:
    """A caller by a token."""
    return {"Authorization": f"Bearer {token}"}


@pytest.fixture
def signed_in(idp: OidcServer, tmp_path: Path) -> Iterator[Fuzzed]:
    """Sign-in on: a person, an agent, an agent that joined, nobody."""
    hub = Hub(tmp_path / "guarded", env=guarded(idp)).start()
    try:
        user = idp.user_token(USER, mycelium_role="user")
        agent = idp.agent_token(AGENT, mycelium_role="agent")
        made = Fuzzed(hub, [bearer(user), bearer(agent), {}])
        made.join()
        yield made
    finally:
        hub.close()


@pytest.fixture
def unguarded(tmp_path: Path) -> Iterator[Fuzzed]:
    """Sign-in off: callers who say who they are, and one who doesn't."""
    hub = Hub(tmp_path / "open").start()
    try:
        yield Fuzzed(hub, [{"Mycelium-Handle": USER}, {"Mycelium-Handle": AGENT}, {}])
    finally:
        hub.close()


@requirement("http:fuzzed")
@pytest.mark.timeout(120)
def test_whatever_is_sent_is_answered_by_the_document(signed_in: Fuzzed) -> None:
    """With sign-in on."""
    signed_in.everything(8)


@requirement("http:fuzzed")
@pytest.mark.timeout(120)
def test_whatever_is_sent_without_sign_in_is_answered_by_the_document(unguarded: Fuzzed) -> None:
    """With sign-in off."""
    unguarded.everything(4)


@requirement("http:fuzzed")
@pytest.mark.long
@pytest.mark.timeout(3600)
def test_whatever_is_sent_at_length_is_answered_by_the_document(signed_in: Fuzzed, unguarded: Fuzzed) -> None:
    """The same, a hundred times as much."""
    signed_in.everything(400)
    unguarded.everything(400)
