"""What `helm test` runs: through the gateway's Service, one member of a new room posts and the other receives it."""

import json
import os
import sys
import time
import urllib.error
import urllib.request
import uuid
from typing import Any

URL = os.environ["MYCELIUM_API_URL"]


def call(method: str, path: str, body: object = None, handle: str = "helm-test") -> Any:
    """Ask the hub; anything but success ends the test."""
    data = None if body is None else json.dumps(body).encode()
    headers = {"Content-Type": "application/json", "Mycelium-Handle": handle}
    request = urllib.request.Request(f"{URL}{path}", data, headers, method=method)  # noqa: S310 - http
    with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310
        return json.loads(answer.read() or "null")


def first_answer() -> Any:
    """The policy that lets this pod out may be known a moment after the pod begins."""
    for left in range(60, 0, -1):
        try:
            return call("GET", "/health")
        except OSError as error:
            if left == 1 or isinstance(error, urllib.error.HTTPError):
                raise
            time.sleep(1)
    return None


health = first_answer()
print("health:", json.dumps(health, indent=1))
room = f"helm-test-{uuid.uuid4().hex[:8]}"
call("POST", "/api/rooms", {"name": room})
try:
    for handle in ("sender", "receiver"):
        call("POST", f"/api/rooms/{room}/members", {"handle": handle, "kind": "agent"})
    posted = call("POST", f"/api/rooms/{room}/messages", {"content": "@receiver do you hear me?"}, "sender")
    heard = call("POST", f"/api/rooms/{room}/await", {"timeout_s": 20}, "receiver")["message"]
    assert heard["id"] == posted["id"], (posted, heard)
    call("POST", f"/api/rooms/{room}/respond", {"content": "loud and clear"}, "receiver")
    texts = [message["content"] for message in call("GET", f"/api/rooms/{room}/messages?limit=10")["items"]]
    print("posted and received:", texts)
finally:
    call("DELETE", f"/api/rooms/{room}")
if health["status"] != "ok":
    sys.exit(f"the hub is {health['status']}: {health['warnings']}")
