"""The browser flow: a person signs in in the browser, which brings the answer to a port of this machine.

PKCE (S256) binds the code to this process, `state` the answer to this request, `nonce` the identity token to both.
Nothing is kept here, so an interrupted sign-in leaves nothing behind.
"""

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from mycelium_cli import config
from mycelium_cli.errors import FORBIDDEN, Failure
from mycelium_cli.output import clean_line
from mycelium_cli.sign_in import asking, granted, identity_token
from mycelium_cli.sign_in.granted import Attempt
from mycelium_cli.sign_in.page import page

WITHIN_S = 300.0
_REQUEST_S = 10.0
_LOOPBACK = "127.0.0.1"
_PATH = "/callback"


class Listener(ThreadingHTTPServer):
    """Waits on this machine for the browser to come back, once."""

    daemon_threads = True

    def __init__(self, port: int, state: str, issuer: str) -> None:
        self.state = state
        self.issuer = issuer  # empty: it does not name itself in its answers
        self.answer: dict[str, str] = {}
        self.answered = threading.Event()
        self.one = threading.Lock()
        super().__init__((_LOOPBACK, port), _Callback)

    @property
    def redirect_uri(self) -> str:
        """Where the browser is sent back to."""
        return f"http://{_LOOPBACK}:{self.server_address[1]}{_PATH}"

    def take(self, query: dict[str, str]) -> tuple[int, str]:
        """Take an answer, if it is the one that is waited for; the status and the words for the browser."""
        from hmac import compare_digest

        if not compare_digest(query.get("state", "").encode(), self.state.encode()):
            return 400, "This is no answer to the sign-in that waits here."
        if self.issuer and query.get("iss") != self.issuer:
            return 400, "This answer comes from another issuer."
        with self.one:
            if self.answered.is_set():
                return 410, "This sign-in has had its answer."
            self.answer = query
            self.answered.set()
        if "code" in query:
            return 200, "Back to the terminal: it says how this ended. You can close this window."
        return 200, "Nobody was signed in. You can close this window."

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that hangs up is no news."""


class _Callback(BaseHTTPRequestHandler):
    """One request of a browser."""

    server: Listener
    timeout = _REQUEST_S

    def do_GET(self) -> None:
        place = urlsplit(self.path)
        if self.headers.get("Host", "") != f"{_LOOPBACK}:{self.server.server_address[1]}":
            self._say(400, "This address is for the sign-in alone.")
        elif place.path != _PATH:
            self._say(404, "There is nothing here.")
        else:
            pairs = parse_qsl(place.query, keep_blank_values=True)
            query = dict(pairs)
            if len(query) == len(pairs):
                self._say(*self.server.take(query))
            else:
                self._say(400, "This answer says things twice.")

    def _say(self, status: int, words: str) -> None:
        body = page(words).encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
        self.send_header("Cache-Control", "no-store")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """The request holds the code: it is written nowhere."""


def is_there(environment: Mapping[str, str], platform: str) -> bool:
    """Whether a browser can be opened where the person sits."""
    if environment.get("BROWSER"):
        return True
    if platform == "darwin":
        return not environment.get("SSH_CONNECTION")
    if not (environment.get("DISPLAY") or environment.get("WAYLAND_DISPLAY")):
        return False
    import webbrowser

    try:
        webbrowser.get()
    except webbrowser.Error:
        return False
    return True


def open_in_browser(url: str) -> subprocess.Popen[bytes]:
    """Open an address, in a process of its own: what the browser says is not this command's output."""
    program = "import sys, webbrowser; sys.exit(not webbrowser.open(sys.argv[1]))"
    nowhere = subprocess.DEVNULL
    return subprocess.Popen(
        [sys.executable, "-c", program, url], stdin=nowhere, stdout=nowhere, stderr=nowhere, start_new_session=True
    )


def sign_in(trying: Attempt, tell: Callable[[str], None], within_s: float = WITHIN_S) -> dict[str, Any]:
    """The tokens of whoever signs in, or why nobody did."""
    from authlib.common.security import generate_token

    state, nonce, verifier = generate_token(32), generate_token(32), generate_token(64)
    at = trying.at
    if not at.authorization_endpoint:
        raise Failure(f"the issuer {at.issuer} has no sign-in by browser", hint="mycelium login --device")
    with _listening(state, at.issuer if at.names_itself else "") as listener:
        serving = threading.Thread(target=listener.serve_forever, args=(0.05,), daemon=True)
        serving.start()
        try:
            answer = _answer(listener, _address(trying, listener.redirect_uri, state, nonce, verifier), tell, within_s)
        finally:
            listener.shutdown()
    form = {
        "grant_type": "authorization_code",
        "code": answer,
        "redirect_uri": listener.redirect_uri,
        "code_verifier": verifier,
        "audience": trying.audience,
    }
    said = asking.post(at.token_endpoint, form, trying.program)
    tokens = granted.tokens_of(said, asking.refusal(said, form))
    identity_token.check(at, trying.program.client_id, tokens, nonce=nonce, wanted=trying.wants_identity)
    return tokens


def _listening(state: str, issuer: str) -> Listener:
    port = int(config.effective("login.redirect_port").value)
    try:
        return Listener(port, state, issuer)
    except OSError as error:
        why = "in use" if port else "not to be had"
        cause = f"port {port} of this machine (login.redirect_port) is {why} ({error.strerror})"
        hint = "mycelium login --device, or mycelium config set login.redirect_port 0 for any free port"
        raise Failure(cause, hint=hint) from None


def _address(trying: Attempt, redirect_uri: str, state: str, nonce: str, verifier: str) -> str:
    from authlib.oauth2.rfc6749.parameters import prepare_grant_uri
    from authlib.oauth2.rfc7636 import create_s256_code_challenge

    return str(
        prepare_grant_uri(
            trying.at.authorization_endpoint,
            trying.program.client_id,
            "code",
            redirect_uri,
            trying.scopes,
            state,
            nonce=nonce,
            code_challenge=create_s256_code_challenge(verifier),
            code_challenge_method="S256",
            audience=trying.audience or None,
        )
    )


def _answer(listener: Listener, url: str, tell: Callable[[str], None], within_s: float) -> str:
    """The code that the browser brings."""
    tell("opening your browser; if nothing opens, open this address in one on this machine:")
    tell(f"  {url}")
    opened = open_in_browser(url)
    watching = threading.Thread(target=_watch, args=(opened, listener, tell), daemon=True)
    watching.start()
    if not listener.answered.wait(within_s):
        minutes = f"{within_s / 60:.0f} minutes"
        raise Failure(f"nobody signed in within {minutes}", hint="mycelium login, or mycelium login --device")
    if "code" in listener.answer:
        return listener.answer["code"]
    why = clean_line(listener.answer.get("error") or "no reason given")[:200]
    told = clean_line(listener.answer.get("error_description") or "")[:200]
    raise Failure(f"not signed in: {why}{f': {told}' if told else ''}", exit_status=FORBIDDEN, hint="mycelium login")


def _watch(opened: subprocess.Popen[bytes], listener: Listener, tell: Callable[[str], None]) -> None:
    """Say so when no browser opened: the person waits for it."""
    if opened.wait() != 0 and not listener.answered.is_set():
        tell("the browser did not open: open the address above, or Ctrl-C and then: mycelium login --device")


def is_here() -> bool:
    """Whether a browser can be opened here."""
    return is_there(os.environ, sys.platform)
