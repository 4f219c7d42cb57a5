"""The few things that the operator itself writes to the API server: a status, a finalizer, an event."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp

from mycelium_operator import names
from mycelium_operator.desired import Json, is_held

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
APPLY, MERGE = "application/apply-patch+yaml", "application/merge-patch+json"  # JSON is YAML


@dataclass(frozen=True)
class Access:
    """Where the API server is. The token is read for each call: the kubelet writes a new one now and then."""

    server: str
    token: Path = ACCOUNT / "token"


class Cluster:
    """The API server, through a session that trusts it."""

    def __init__(self, session: aiohttp.ClientSession, access: Access) -> None:
        self._session = session
        self._access = access

    async def knows_rooms(self) -> bool:
        """Whether the cluster has the kind at all."""
        try:
            found = await self._call("GET", f"/apis/{names.API_VERSION}")
        except aiohttp.ClientResponseError as error:
            if error.status == 404:
                return False
            raise
        return any(one["name"] == names.ROOMS for one in found["resources"])

    async def read(self, body: Mapping[str, Any]) -> Json | None:
        """The Room as it is now; None when it has gone."""
        try:
            found: Json = await self._call("GET", _path(body))
        except aiohttp.ClientResponseError as error:
            if error.status == 404:
                return None
            raise
        return found if found["metadata"]["uid"] == body["metadata"]["uid"] else None

    async def apply_status(self, body: Mapping[str, Any], status: Json) -> None:
        """Make an object's status exactly this."""
        applied = {
            "apiVersion": names.API_VERSION,
            "kind": names.ROOM,
            "metadata": {"name": body["metadata"]["name"], "namespace": body["metadata"]["namespace"]},
            "status": status,
        }
        query = {"fieldManager": names.MANAGER, "force": "true"}
        await self._call("PATCH", f"{_path(body)}/status", applied, APPLY, query)

    async def hold(self, body: Mapping[str, Any], *, held: bool) -> None:
        """Make an object wait for the operator before it goes, or no longer. Fails when it was changed meanwhile."""
        if held == is_held(body):
            return
        others = [one for one in body["metadata"].get("finalizers") or () if one != names.FINALIZER]
        metadata = {
            "resourceVersion": body["metadata"]["resourceVersion"],
            "finalizers": [*others, names.FINALIZER] if held else others,
        }
        await self._call("PATCH", _path(body), {"metadata": metadata}, MERGE)

    async def tell(self, body: Mapping[str, Any], *, warning: bool, reason: str, message: str, now: str) -> None:
        """Post an event that `kubectl describe` shows."""
        metadata = body["metadata"]
        seed = f"{metadata['uid']} {reason} {message} {now}"
        event = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {
                "name": f"{metadata['name'][:200]}.{hashlib.sha256(seed.encode()).hexdigest()[:16]}",
                "namespace": metadata["namespace"],
            },
            "involvedObject": {
                "apiVersion": names.API_VERSION,
                "kind": names.ROOM,
                "name": metadata["name"],
                "namespace": metadata["namespace"],
                "uid": metadata["uid"],
                "resourceVersion": metadata.get("resourceVersion", ""),
            },
            "type": "Warning" if warning else "Normal",
            "reason": reason,
            "message": message[:1000],
            "source": {"component": names.MANAGER},
            "reportingComponent": names.MANAGER,
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        }
        await self._call("POST", f"/api/v1/namespaces/{metadata['namespace']}/events", event)

    async def _call(
        self, method: str, path: str, body: Json | None = None, kind: str = "application/json",
        query: dict[str, str] | None = None,
    ) -> Any:  # fmt: skip
        headers = {"Content-Type": kind, "Accept": "application/json"}
        if self._access.token.exists():
            headers["Authorization"] = f"Bearer {self._access.token.read_text().strip()}"
        data = None if body is None else json.dumps(body)
        url = f"{self._access.server}{path}"
        async with self._session.request(method, url, data=data, headers=headers, params=query) as answer:
            if not answer.ok:
                text = (await answer.text())[:500]
                raise aiohttp.ClientResponseError(answer.request_info, (), status=answer.status, message=text)
            return await answer.json(content_type=None)


def _path(body: Mapping[str, Any]) -> str:
    metadata = body["metadata"]
    return f"/apis/{names.API_VERSION}/namespaces/{metadata['namespace']}/{names.ROOMS}/{metadata['name']}"
