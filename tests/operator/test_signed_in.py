"""The operator where everybody signs in: a token that it and the gateway alone read, and a handle of its own."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import aiohttp
import pytest

from e2e import oidc_server
from mycelium_gateway import operator_token
from mycelium_kernel import run, testing
from mycelium_kernel.settings import BadSetting
from mycelium_operator import hub as operator_hub
from mycelium_operator import names
from mycelium_rooms.service import service as rooms_service
from services.gateway.tests import signed
from services.gateway.tests.conftest import opened
from services.gateway.tests.door import Door


class Secret:
    """The secret as a pod has it, in a file."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "token"
        self.file = str(self._path)
        self.token = secrets.token_urlsafe(48)
        self.become(self.token)

    def become(self, token: str) -> None:
        """Hold that, and a line break at its end; empty: be gone."""
        self._path.write_text(token + "\n") if token else self._path.unlink()


@pytest.fixture
def secret(tmp_path: Path) -> Secret:
    """One that nobody could guess."""
    return Secret(tmp_path)


@pytest.fixture
async def door(tmp_path: Path, secret: Secret) -> AsyncIterator[Door]:
    """A gateway that asks everybody for a token and knows the operator's, with the rooms service behind it."""
    async with testing.nats_server(tmp_path / "nats") as nats:
        rooms = await run.start(rooms_service(), nats.settings("rooms"), tmp_path / "tables")
        with oidc_server.started(tmp_path) as idp:
            settings = replace(signed.settings(idp), operator_digest=operator_token.read(secret.file))
            async with opened(nats, settings) as found:
                await _is_the_operators_alone(found, idp)
                yield found
        await rooms.stop()


async def _is_the_operators_alone(door: Door, idp: oidc_server.OidcServer) -> None:
    """An issuer that gives somebody the operator's name gives them nothing, nor one that looks like it."""
    for handle in (names.HANDLE, "0perator"):
        refused = await door.http.get("/api/whoami", headers=signed.bearer(idp.agent_token(handle)))
        assert (refused.status_code, refused.json()["slug"]) == (401, "token.refused")


async def test_the_operator_makes_rooms_with_its_token(door: Door, secret: Secret) -> None:
    """As itself, whatever else needs a token: with a wrong one or none it waits for the right one."""
    url = f"http://127.0.0.1:{door.port}"
    async with aiohttp.ClientSession() as session:
        operator = operator_hub.Hub(session, url, secret.file)
        made = await operator.make("night", private=True, key="uid-night.")
        await operator.add(made, {"handle": "scout", "kind": "agent"})
        found = await operator.find("night")
        assert found is not None
        assert (found.id, set(found.members)) == (made, {"scout"})
        headers = signed.bearer(secret.token)
        who = (await door.http.get("/api/whoami", headers=headers)).json()
        assert (who["handle"], who["proven"], who["role"], who["issuer"]) == ("operator", True, "agent", "hub")
        with pytest.raises(operator_hub.Away, match="does not know the operator"):
            await operator_hub.Hub(session, url).find("night")
        secret.become(secrets.token_urlsafe(48))
        with pytest.raises(operator_hub.Away, match="does not know the operator"):
            await operator.find("night")
        secret.become(secret.token)  # as the kubelet writes it, without a new operator
        await operator.delete(made)
        assert await operator.find("night") is None
        secret.become("")
        with pytest.raises(operator_hub.Away, match="can't be read"):
            await operator.find("night")


async def test_the_operator_changes_a_member_that_has_an_owner(door: Door, secret: Secret) -> None:
    """So a Room object that says whose an agent is becomes ready, and stays so when it is changed."""
    async with aiohttp.ClientSession() as session:
        operator = operator_hub.Hub(session, f"http://127.0.0.1:{door.port}", secret.file)
        made = await operator.make("owned", private=True, key="uid-owned.")
        member = {"handle": "worker-1", "kind": "agent", "owner": "avery"}
        await operator.add(made, member)
        for change in ({"description": "of the night"}, {"owner": "kim"}, {"owner": "avery"}):
            await operator.add(made, {**member, **change})
        found = await operator.find("owned")
        assert found is not None
        assert found.members["worker-1"]["owner"] == "avery"
        refused = await door.http.post(
            "/api/rooms/import?name=copy", content=b"{}", headers=signed.bearer(secret.token)
        )
        assert (refused.status_code, refused.json()["slug"]) == (403, "auth.refused")
        await operator.remove(made, "worker-1")
        await operator.delete(made)


@pytest.mark.parametrize("text", ["", "x" * 42, "x" * 201, "x" * 42 + "é", f"{'x' * 30} {'y' * 30}", "myc_" + "x" * 43])
def test_a_token_that_could_be_guessed_or_not_be_sent_is_refused(tmp_path: Path, text: str) -> None:
    """The gateway does not start with it, and does not repeat it."""
    file = tmp_path / "token"
    file.write_text(text)
    with pytest.raises(BadSetting, match=r"gateway\.operator_token_file") as refused:
        operator_token.read(str(file))
    assert len(text) < 2 or text not in str(refused.value)
    with pytest.raises(BadSetting, match="can't be read"):
        operator_token.read(str(tmp_path / "nowhere"))


def test_without_a_file_nobody_is_the_operator() -> None:
    """Not even with an empty token."""
    assert operator_token.read("") == ""
    assert operator_token.identity_of("", "") is None
