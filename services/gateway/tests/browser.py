"""A person's browser as the web app's tests drive it: it keeps cookies, and follows the issuer's pages."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass, field

import httpx2

from e2e import oidc_server
from mycelium_gateway.web_settings import WebSettings
from services.gateway.tests.door import Door

SECRET = "only-for-tests-0123456789abcdef-0123456789"
NAME = re.compile(r"([^=;]+)=([^;]*)((?:; [^;]+)*)")


def web(idp: oidc_server.OidcServer, **changes: str) -> WebSettings:
    """Sign-in at that issuer by a browser."""
    values = {"issuer": idp.issuer, "audience": oidc_server.AUDIENCE, "session_secret": SECRET}
    return WebSettings(**{**values, **changes})


@dataclass
class Browser:
    """The cookies of one person at one hub, and at the issuer."""

    door: Door
    idp: oidc_server.OidcServer
    headers: dict[str, str] = field(default_factory=dict)
    cookies: dict[str, str] = field(default_factory=dict)
    attributes: dict[str, str] = field(default_factory=dict)
    issuers: httpx2.Cookies = field(default_factory=httpx2.Cookies)

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.door.port}"

    async def ask(self, method: str, path: str, **also: str) -> httpx2.Response:
        """A request with the cookies that are kept; its answer's are kept from then on. `also` are more headers."""
        sent = {name.replace("_", "-"): value for name, value in also.items()} | self.headers
        if self.cookies:
            sent["Cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        answer = await self.door.http.request(method, path, headers=sent)
        self.keep(answer)
        return answer

    def keep(self, answer: httpx2.Response) -> None:
        """Take over what an answer says about cookies."""
        for line in answer.headers.get_list("set-cookie"):
            found = NAME.fullmatch(line)
            assert found, line
            name, value, self.attributes[name] = found.groups()
            if "; Max-Age=0;" in line:
                self.cookies.pop(name, None)
            else:
                self.cookies[name] = value

    async def begin(self, following: str = "/") -> str:
        """Go to the issuer; answers its address."""
        answer = await self.ask("GET", f"/api/auth/login?next={following}")
        assert answer.status_code == 303, answer.text
        return str(answer.headers["location"])

    async def back(self, there: str, user: str) -> str:
        """Sign in at the issuer; answers the path at the hub that it sends back to."""
        return path_of(await asyncio.to_thread(self.idp.sign_in, there, user, self.issuers))

    async def sign_in(self, user: str, following: str = "/") -> httpx2.Response:
        """All of it."""
        return await self.ask("GET", await self.back(await self.begin(following), user))


def path_of(url: str) -> str:
    """An address without its host."""
    return "/" + url.split("/", 3)[3]
