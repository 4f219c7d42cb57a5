"""A certified OIDC server (npm `oidc-provider`, in `e2e/oidc`) on a port of this machine, for the time of a test.

`with started(folder) as idp:` gives an issuer that people, agents and programs sign in at as at any other. It can
change its keys, go away and come back, give answers that a test chose, and says what it was asked for.
"""

from __future__ import annotations

import contextlib
import json
import re
import secrets
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urljoin

import httpx2

from e2e.harness import free_port

FOLDER = Path(__file__).parent / "oidc"
AUDIENCE = "mycelium"
CLI, WEB = "mycelium-cli", "mycelium-web"
FIELD = re.compile(r'<input type="hidden" name="(\w+)" value="([^"]*)"')
FORM = re.compile(r'<form[^>]* action="([^"]+)"')
STEPS = 12


class OidcServer:
    """One issuer. `issuer` is its address, `realm` the start of its keys' names."""

    def __init__(self, folder: Path, realm: str, **settings: Any) -> None:
        if not (FOLDER / "node_modules" / "oidc-provider").is_dir():
            raise RuntimeError(f"no OIDC server in {FOLDER}: run `make setup`, which needs Node and npm")
        self.realm = realm
        self.port = free_port()
        self.issuer = f"http://127.0.0.1:{self.port}"
        self.jwks_url = f"{self.issuer}/jwks"
        self.token_url = f"{self.issuer}/token"
        self._secrets: dict[str, str] = {}
        chosen = {"alg": "RS256", "audience": AUDIENCE, "lifetime_s": 3600, "device_s": 600, "interval_s": 1}
        values = json.dumps({**chosen, **settings, "port": self.port, "realm": realm})
        self._log = (folder / f"oidc-{realm}-{self.port}.log").open("wb")
        command = ["node", "provider.mjs", values]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, cwd=FOLDER, stdin=pipe, stdout=pipe, stderr=self._log)
        self._control = httpx2.Client(base_url=f"http://127.0.0.1:{self._ready()}", timeout=30)

    def _ready(self) -> int:
        assert self._process.stdout
        for line in self._process.stdout:
            if line.startswith(b"ready "):
                return int(line.split()[1])
        raise RuntimeError(f"the OIDC server did not start: see {self._log.name}")

    def close(self) -> None:
        """End it for good."""
        self._control.close()
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(10)
        self._process.stdout.close()
        self._log.close()

    def _steer(self, verb: str, **values: Any) -> Any:
        answer = self._control.post(f"/{verb}", content=json.dumps(values))
        assert answer.status_code == 200, answer.text
        return answer.json().get("value")

    # --- what it does ---------------------------------------------------------------------------------------------

    def stop(self) -> None:
        """Refuse every connection, until `start`; nothing that was granted is forgotten."""
        self._steer("stop")

    def start(self) -> None:
        """Listen again, on the same port."""
        self._steer("start")

    def rotate(self) -> None:
        """Sign with a new key from now on; the old one is gone from what it publishes."""
        self._steer("rotate")

    def tokens_live(self, seconds: int) -> None:
        """How long the access tokens live that are made from now on."""
        self._steer("lifetime", seconds=seconds)

    def answer_instead(
        self,
        path: str,
        status: int,
        body: dict[str, Any] | str,
        times: int = 1,
        headers: dict[str, str] | None = None,
    ) -> None:
        """Give this answer to the next requests for a path (`/token`, `/jwks`, ...), as often as said."""
        self._steer("script", path=path, status=status, body=body, times=times, headers=headers or {})

    @property
    def requests(self) -> dict[str, int]:
        """How often each path was asked for."""
        counts: dict[str, int] = self._steer("counts")
        return counts

    # --- agents and people ----------------------------------------------------------------------------------------

    def add_agent(self, client_id: str, secret: str = "", method: str = "client_secret_basic") -> str:
        """Let this client sign in with its own secret (`client_credentials`); answers the secret."""
        chosen = secret or self._secrets.get(client_id) or secrets.token_urlsafe(24)
        self._secrets[client_id] = chosen
        self._steer("agent", id=client_id, secret=chosen, method=method)
        return chosen

    def remove_agent(self, client_id: str) -> None:
        """Revoke a client: it gets no token any more."""
        self._secrets.pop(client_id, None)
        self._steer("revoke", id=client_id)

    def says_of(self, who: str, **claims: Any) -> None:
        """What the tokens of this person or agent say besides what every token says."""
        self._steer("claims", id=who, also=claims)

    def agent_token(self, client_id: str, audience: str = AUDIENCE, **claims: Any) -> str:
        """An access token as the agent gets it, by client_credentials."""
        secret = self._secrets.get(client_id) or self.add_agent(client_id)
        self.says_of(client_id, **claims)
        form = {"grant_type": "client_credentials", "audience": audience}
        answer = httpx2.post(self.token_url, data=form, auth=(quote(client_id, safe=""), quote(secret, safe="")))
        assert answer.status_code == 200, answer.text
        return str(answer.json()["access_token"])

    def user_token(self, handle: str, audience: str = AUDIENCE, client_id: str = CLI, **claims: Any) -> str:
        """An access token as a person's program gets it, without the person's browser."""
        self.says_of(handle, **claims)
        return str(self._steer("token", id=handle, client=client_id, audience=audience))

    # --- a person's browser ---------------------------------------------------------------------------------------

    def sign_in(self, url: str, user: str, cookies: httpx2.Cookies | None = None) -> str:
        """Open this address as a person does, sign in, agree; answers the address that the person is sent back to.

        `cookies` are those of the person's browser: who signed in once with them is not asked again.
        """
        with httpx2.Client(timeout=30, cookies=cookies) as browser:
            answer = self._walk(browser, browser.get(url), user)
            if cookies is not None:
                cookies.update(browser.cookies)
        place = answer.headers.get("location", "")
        assert place, f"{answer.url}: {answer.status_code} {answer.text[:2000]}"
        return urljoin(str(answer.url), place)

    def enter_code(self, user_code: str, user: str, *, deny: bool = False) -> str:
        """Enter a device's code as a person does in a browser, and agree or deny; answers the last page."""
        with httpx2.Client(timeout=30) as browser:
            page = browser.get(f"{self.issuer}/device")
            fields = dict(FIELD.findall(page.text))
            page = browser.post(f"{self.issuer}/device", data={"xsrf": fields["xsrf"], "user_code": user_code})
            fields = dict(FIELD.findall(page.text))
            assert "user_code" in fields, page.text[:2000]
            choice = {"abort": "yes"} if deny else {"confirm": "yes"}
            sent = {"xsrf": fields["xsrf"], "user_code": user_code, **choice}
            return self._walk(browser, browser.post(f"{self.issuer}/device", data=sent), user).text

    def _walk(self, browser: httpx2.Client, answer: httpx2.Response, user: str) -> httpx2.Response:
        """Follow redirects and send the forms of the server's own pages, until another server or no form is next."""
        for _ in range(STEPS):
            place = urljoin(str(answer.url), answer.headers.get("location", ""))
            if answer.is_redirect and place.startswith(self.issuer):
                answer = browser.get(place)
            elif not answer.is_redirect and (form := FORM.search(answer.text)) and "/interaction/" in form[1]:
                fields = dict(FIELD.findall(answer.text))
                if fields.get("prompt") == "login":
                    fields |= {"login": user, "password": "any"}
                answer = browser.post(urljoin(str(answer.url), form[1]), data=fields)
            else:
                return answer
        raise AssertionError(f"{STEPS} steps and not signed in: {answer.url}")


@contextlib.contextmanager
def started(folder: Path, realm: str = "people", **settings: Any) -> Iterator[OidcServer]:
    """An issuer for the time of the block.

    Settings: `alg` (RS256, PS256, ES256, ES384), `audience`, `lifetime_s` of access tokens, `device_s` of a device's
    code, `interval_s` between a device's looks.
    """
    server = OidcServer(folder, realm, **settings)
    try:
        yield server
    finally:
        server.close()
