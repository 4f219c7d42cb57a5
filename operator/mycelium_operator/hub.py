"""The hub's rooms as the operator uses them, over the gateway's HTTP API."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import aiohttp
import yarl

from mycelium_operator import names
from mycelium_operator.desired import Found, Json

TIMEOUT = aiohttp.ClientTimeout(total=20)
UNKNOWN = 401
TRY_AGAIN = frozenset({408, 429, 502, 503, 504, 507})


class Away(Exception):
    """The hub can't be reached, or can't answer now. Worth another try."""


class Refused(Exception):
    """The hub refuses, and says why. Worth another try once something has changed."""

    def __init__(self, slug: str, detail: str) -> None:
        super().__init__(detail)
        self.slug = slug


class Hub:
    """The gateway at `url`, asked in the operator's name, with the token in a file where everybody signs in."""

    def __init__(self, session: aiohttp.ClientSession, url: str, token_file: str = "") -> None:
        self._session = session
        self._url = url.rstrip("/")
        self._token_file = token_file

    async def find(self, room: str) -> Found | None:
        """The room of that name or id as the operator sees it; None when it is not there, or is others' alone."""
        try:
            shown = await self._call("GET", "rooms", room)
        except Refused as refused:
            if refused.slug == "room.not_found":
                return None
            raise
        members = {member["handle"]: member async for member in self._members(shown)}
        return Found(shown["id"], shown["title"], shown["private"], members)

    async def _members(self, shown: Json) -> AsyncIterator[Json]:
        for member in shown["members_list"]:
            yield member
        cursor = shown["members_next"]
        while cursor:
            page = await self._call("GET", "rooms", shown["id"], "members", query={"cursor": cursor})
            for member in page["items"]:
                yield member
            cursor = page["next"]

    async def make(self, name: str, *, private: bool, key: str) -> str:
        """Make a room; its id. The same key gets the same room, however often it is asked."""
        made = await self._call("POST", "rooms", body={"name": name, "private": private}, key=key)
        return str(made["id"])

    async def change(self, room: str, settings: Json) -> None:
        """Set a room's title or privacy."""
        await self._call("PATCH", "rooms", room, body=settings)

    async def delete(self, room: str) -> None:
        """Delete a room and all that is in it, if it is there."""
        try:
            await self._call("DELETE", "rooms", room)
        except Refused as refused:
            if refused.slug != "room.not_found":
                raise

    async def add(self, room: str, member: Json) -> None:
        """Add a member, or change the one that is there."""
        await self._call("POST", "rooms", room, "members", body=member)

    async def add_engine(self, room: str, engine: Json) -> None:
        """Add an engine."""
        await self._call("POST", "rooms", room, "engines", body=engine)

    async def remove(self, room: str, handle: str) -> None:
        """Remove a member or an engine, if it is there."""
        try:
            await self._call("DELETE", "rooms", room, "members", handle)
        except Refused as refused:
            if refused.slug != "member.not_found":
                raise

    async def _call(
        self, method: str, *parts: str, body: Json | None = None, key: str = "", query: dict[str, str] | None = None
    ) -> Any:
        url = f"{self._url}/api/{'/'.join(quote(part, safe='') for part in parts)}"
        headers = {"Mycelium-Handle": names.HANDLE, **({"Idempotency-Key": key} if key else {}), **self._signed_in()}
        try:
            async with self._session.request(
                method, yarl.URL(url, encoded=True), json=body, headers=headers, params=query, timeout=TIMEOUT
            ) as answer:
                said = await answer.json(content_type=None) if answer.status != 204 else None
                if answer.ok:
                    return said
                detail = str((said or {}).get("detail") or f"{method} {url}: {answer.status}")
                if answer.status == UNKNOWN:
                    raise Away(f"the gateway does not know the operator ({detail}): both read one secret, restart both")
                if answer.status in TRY_AGAIN or answer.status >= 500:
                    raise Away(detail)
                raise Refused(str((said or {}).get("slug", answer.status)), detail)
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            raise Away(f"{self._url} can't be reached: {error or type(error).__name__}") from error

    def _signed_in(self) -> dict[str, str]:
        """Read for each call: the kubelet writes a new token where the secret has one."""
        if not self._token_file:
            return {}
        try:
            token = Path(self._token_file).read_text(encoding="ascii").strip()
        except (OSError, ValueError) as error:
            raise Away(f"the operator's token can't be read: {error}") from error
        return {"Authorization": f"Bearer {token}"}
