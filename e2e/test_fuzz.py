"""What nobody would send, to every operation of the hub's document: no fault of the hub, no answer that isn't in it.

`schemathesis` makes the requests, always the same ones: half of them fit the document, half don't.
"""

import contextlib
import json
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from requests.structures import CaseInsensitiveDict
from schemathesis import Case, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.failures import Failure, FailureGroup
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from e2e.guarding import guarded
from e2e.harness import Hub
from e2e.oidc_server import OidcServer
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
ABSENT = {"budget", "coordinate"}
NAMING = ("Mycelium-Handle", "Idempotency-Key", "Mycelium-Session")
SHOWN = 20
AnyCase = Case[Any]


@schemathesis.serializer("application/gzip", "application/x-ndjson")
def _bundle(_context: object, value: object) -> bytes:
    """The body of an import, as it is."""
    return value if isinstance(value, bytes) else json.dumps(value).encode()


class Caller(NamedTuple):
    """Somebody who sends: under which name, and by what."""

    handle: str
    headers: dict[str, str]


class Fuzzed:
    """A hub with a room in which there is one of everything, and the callers that send what was made up."""

    def __init__(self, hub: Hub, callers: list[Caller]) -> None:
        self.hub = hub
        self.callers = callers
        self.owner = Api(hub.url)
        self.owner.signed_in = callers[0].headers
        self.real = self._made()
        self.schema = schemathesis.openapi.from_dict(self.owner.get("/openapi.json").ok(200).json)
        self.line = requests.Session()
        self.answers: defaultdict[str, list[int]] = defaultdict(list)
        self.faults: list[str] = []
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
        self.callers.append(by_token(JOINED, token))

    def everything(self, count: int) -> None:
        """That many requests to every operation, each as the next of the callers."""
        for result in self.schema.get_all_operations():
            assert isinstance(result, Ok), result
            operation = result.ok()
            if operation.path.endswith("/stream"):
                continue
            example = body_of(operation)
            slow = ABSENT & set(operation.path.split("/"))  # a part that is not there is waited for
            for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
                self._one(operation, mode, example, 1 if slow else count // 2)
        assert not self.faults, f"{len(self.faults)} faults\n\n" + "\n\n".join(self.faults[:SHOWN])
        assert not self.hub.errors()

    def reached(self) -> set[str]:
        """The operations that did for somebody what they are for."""
        return {operation for operation, statuses in self.answers.items() if min(statuses) < 300}

    def _one(self, operation: Any, mode: GenerationMode, example: object, count: int) -> None:
        @settings(
            max_examples=count,
            derandomize=True,
            database=None,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy(generation_mode=mode))
        def sending(case: AnyCase) -> None:
            self._send(case, example)

        with contextlib.suppress(Unsatisfiable):  # what takes nothing can be given nothing wrong
            sending()

    def _send(self, case: AnyCase, example: object) -> None:
        self.sent += 1
        caller = self.callers[self.sent % len(self.callers)]
        self._temper(case, caller, example)
        asked = case.as_transport_kwargs(base_url=self.hub.url)
        headers = CaseInsensitiveDict(asked["headers"])
        headers.pop("Authorization", None)
        headers.update(caller.headers)
        asked["headers"] = headers
        reply = self.line.request(**asked, timeout=30, allow_redirects=False)
        self.answers[f"{case.method} {case.path}"].append(reply.status_code)
        if reply.status_code == 401 and caller.headers:
            self.faults.append(f"{case.method} {case.path}: @{caller.handle} has a token\n{reply.text[:500]}")
        checks = CHECKS
        if reply.status_code == 503 and ABSENT & set(case.path.split("/")):
            checks = CHECKS[1:]
        try:
            case.validate_response(reply, checks=checks)
        except (Failure, FailureGroup) as failure:
            found = failure.exceptions if isinstance(failure, FailureGroup) else [failure]
            said = "; ".join(" ".join(str(one).split())[:400] for one in found)
            shown = case.as_curl_command()[:1500]
            self.faults.append(f"{case.method} {case.path}: {said}\n{shown}\n{reply.text[:500]}")

    def _temper(self, case: AnyCase, caller: Caller, example: object) -> None:
        """Mostly right, and wrong in one place, so that it comes further than the first look at it."""
        if case.path_parameters:
            for name, value in self.real.items():
                ends = case.method == "DELETE" and case.path.endswith(f"{{{name}}}")
                if name in case.path_parameters and self.sent % 5 and not ends:
                    case.path_parameters[name] = value
        for header in NAMING if self.sent % 7 else ():
            case.headers.pop(header, None)
        if case.query and self.sent % 2:
            odd = sorted(case.query)[self.sent % len(case.query)]
            case.query = {odd: case.query[odd]}
        if not isinstance(case.body, dict):
            return
        if isinstance(example, dict) and self.sent % 4:
            names = sorted(case.body)
            odd = names[self.sent // 4 % len(names)] if names and self.sent % 2 else ""
            own = {name: caller.handle if value == "avery" else value for name, value in example.items()}
            case.body = {**own, **({odd: case.body[odd]} if odd else {})}
        if "timeout_s" in case.body or case.path.endswith("/await"):
            case.body["timeout_s"] = 0 if self.sent % 4 else -1  # nobody waits for a mention


def body_of(operation: Any) -> object:
    """What the document shows as the body of an operation."""
    found: list[object] = []
    for strategy in operation.get_strategies_from_examples():

        @settings(max_examples=1, derandomize=True, database=None, phases=[Phase.generate])
        @given(case=strategy)
        def look(case: AnyCase) -> None:
            found.append(case.body)

        look()
    return found[0] if found else None


def by_token(handle: str, token: str) -> Caller:
    """A caller that signs in."""
    return Caller(handle, {"Authorization": f"Bearer {token}"})


def by_name(handle: str) -> Caller:
    """A caller that says who it is."""
    return Caller(handle, {"Mycelium-Handle": handle})


NOBODY = Caller("", {})


@pytest.fixture
def signed_in(idp: OidcServer, tmp_path: Path) -> Iterator[Fuzzed]:
    """Sign-in on: a person, an agent, an agent that joined, nobody."""
    hub = Hub(tmp_path / "guarded", env=guarded(idp)).start()
    try:
        user = by_token(USER, idp.user_token(USER, mycelium_role="user"))
        agent = by_token(AGENT, idp.agent_token(AGENT, mycelium_role="agent"))
        made = Fuzzed(hub, [user, agent, user, NOBODY])
        made.join()
        yield made
    finally:
        hub.close()


@pytest.fixture
def unguarded(tmp_path: Path) -> Iterator[Fuzzed]:
    """Sign-in off: callers who say who they are, and one who doesn't."""
    hub = Hub(tmp_path / "open").start()
    try:
        yield Fuzzed(hub, [by_name(USER), by_name(AGENT), NOBODY])
    finally:
        hub.close()


@requirement("http:fuzzed")
@pytest.mark.timeout(240)
def test_whatever_is_sent_is_answered_by_the_document(signed_in: Fuzzed) -> None:
    """With sign-in on. Most operations come as far as to do what they are for."""
    signed_in.everything(8)
    assert len(signed_in.reached()) > 33


@requirement("http:fuzzed")
@pytest.mark.timeout(240)
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
