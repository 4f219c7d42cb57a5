"""Calls of the hub over HTTP, for its tests."""

from __future__ import annotations

import http.client
import json
from contextlib import closing
from typing import Any
from urllib.parse import urlsplit

OK = 200
CREATED = 201
LOST = (OSError, http.client.HTTPException)  # what a call ends with when the hub goes away


def call(url: str, method: str, path: str, body: dict[str, Any] | None = None) -> tuple[int, Any]:
    """Status and body of one call, as the handle `tester`."""
    status, _, said = ask(url, method, path, body)
    return status, said


def ask(
    url: str, method: str, path: str, body: dict[str, Any] | None = None
) -> tuple[int, http.client.HTTPMessage, Any]:
    """The same with the headers."""
    place = urlsplit(url)
    with closing(http.client.HTTPConnection(place.hostname or "", place.port, timeout=20)) as connection:
        headers = {"Content-Type": "application/json", "Mycelium-Handle": "tester"}
        connection.request(method, path, json.dumps(body) if body is not None else None, headers)
        answer = connection.getresponse()
        data = answer.read()
        said = json.loads(data) if data.startswith((b"{", b"[")) else data.decode()
        return answer.status, answer.headers, said


def post(url: str, text: str) -> dict[str, Any]:
    """A message in the room `demo`, which has to be taken."""
    status, message = call(url, "POST", "/api/rooms/demo/messages", {"content": text, "sender_handle": "tester"})
    assert status == CREATED, message
    assert isinstance(message, dict)
    return message


def texts(url: str) -> list[str]:
    """Every message of the room `demo`, newest first, which the hub has to give."""
    found = texts_or_none(url)
    assert found is not None, "the hub gives no history"
    return found


def texts_or_none(url: str) -> list[str] | None:
    """The same; None from a hub that is not (or not yet again) ready, at whichever page: for whoever waits for it."""
    found: list[str] = []
    cursor = ""
    while True:
        status, page = call(url, "GET", f"/api/rooms/demo/messages?limit=500{cursor}")
        if status != OK:
            return None
        found += [item["content"] for item in page["items"] if item["message_type"] == "message"]
        if page["next"] is None:
            return found
        cursor = f"&before={page['next']}"
