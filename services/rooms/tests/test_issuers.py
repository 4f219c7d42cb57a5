"""Of which issuer a handle is, where several are trusted: of the one that proved it first."""

from __future__ import annotations

from mycelium.rooms.v1 import issuers_pb2
from mycelium_kernel.service import Fact
from services.rooms.tests.hub import Hub, rebuilt, rows_of

PEOPLE, AGENTS, NEW = "https://people", "https://agents", "https://new"


def prove(issuer: str, *trusted: str, handle: str = "kim") -> issuers_pb2.ProveHandleRequest:
    return issuers_pb2.ProveHandleRequest(handle=handle, issuer=issuer, trusted=trusted or [PEOPLE, AGENTS])


def test_a_handle_is_of_the_issuer_that_proved_it_first(hub: Hub) -> None:
    """identity: each handle by itself; told again, nothing more is stored."""
    assert hub.ask(prove(PEOPLE)).issuer == PEOPLE
    assert hub.ask(prove(AGENTS, handle="bot")).issuer == AGENTS
    stored = len(hub.facts)
    assert (hub.ask(prove(AGENTS)).issuer, hub.ask(prove(PEOPLE)).issuer) == (PEOPLE, PEOPLE)
    assert len(hub.facts) == stored
    assert rows_of(rebuilt(hub.facts)) == rows_of(hub.tables)


def test_a_handle_of_an_issuer_that_is_trusted_no_more_is_free(hub: Hub) -> None:
    """So people move from one issuer to the next."""
    hub.ask(prove(PEOPLE))
    assert hub.ask(prove(NEW, PEOPLE, NEW)).issuer == PEOPLE
    assert hub.ask(prove(NEW, NEW)).issuer == NEW
    assert hub.ask(prove(PEOPLE, PEOPLE, NEW)).issuer == NEW


def test_of_two_that_prove_it_at_once_one_is_the_first(hub: Hub) -> None:
    """They expect the same fact."""
    one, other = hub.decide(prove(PEOPLE)), hub.decide(prove(AGENTS))
    assert isinstance(one, Fact)
    assert isinstance(other, Fact)
    assert one.entities == other.entities
