"""What `helm test` runs: through the gateway's Service, one member of a new room posts and the other receives it.

Where everybody signs in it has no token, and sees that nothing is done for it, whoever it says that it is.
"""

import json
import os
import sys
import time
import urllib.error
import urllib.request
import uuid
from typing import Any

URL = os.environ["MYCELIUM_API_URL"]
SIGN_IN = os.environ["SIGN_IN"] == "true"
UNKNOWN = 401


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


def talk(room: str) -> None:
    """One posts, the other receives and answers."""
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


def be_refused(room: str) -> None:
    """Neither reads nor writes are for who has no token."""
    for method, path, body in (
        ("GET", "/api/rooms", None),
        ("POST", "/api/rooms", {"name": room}),
        ("POST", f"/api/rooms/{room}/messages", {"content": "do you hear me?"}),
    ):
        try:
            call(method, path, body, "operator")
        except urllib.error.HTTPError as error:
            if error.code != UNKNOWN or not error.headers.get("WWW-Authenticate", "").startswith("Bearer"):
                sys.exit(f"{method} {path} without a token: {error.code}, and not 401 with WWW-Authenticate: Bearer")
            print(f"{method} {path} without a token: 401")
        else:
            sys.exit(f"{method} {path} was done without a token")


health = first_answer()
print("health:", json.dumps(health, indent=1))
if health["auth"]["enabled"] != SIGN_IN:
    sys.exit(f"auth.enabled is {SIGN_IN} in the chart, and the hub says {health['auth']['enabled']}")
name = f"helm-test-{uuid.uuid4().hex[:8]}"
be_refused(name) if SIGN_IN else talk(name)
if health["status"] != "ok":
    sys.exit(f"the hub is {health['status']}: {health['warnings']}")
