"""What a Room asks for and what is left to do: no cluster, no hub."""

from __future__ import annotations

from typing import Any

import pytest

from mycelium_operator import desired, names
from mycelium_operator.desired import Found, Known, Outcome, Steps

AGENT = {"handle": "scout", "kind": "agent", "owner": "avery"}


def room(status: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    metadata = {"name": "plans", "namespace": "ns", "uid": "u-1", "generation": 3}
    return {"metadata": metadata, "spec": spec, "status": status or {}}


def found(**members: dict[str, Any]) -> Found:
    return Found("r-1", "", private=False, members=members)


def test_a_room_is_named_as_its_object_unless_it_says_otherwise() -> None:
    """Names with spaces and accents can't be names of objects."""
    assert desired.wanted(room()).name == "plans"
    assert desired.wanted(room(name="Équipe de nuit")).name == "Équipe de nuit"


def test_a_room_goes_with_its_object_unless_it_is_to_be_kept() -> None:
    """The policy is Delete unless it says Retain."""
    assert desired.wanted(room()).goes
    assert not desired.wanted(room(deletionPolicy="Retain")).goes


def test_nothing_is_left_to_do_when_the_room_is_as_wanted() -> None:
    """Level-based: the same state gives the same steps, and a state that is reached gives none."""
    want = desired.wanted(room(title="", members=[AGENT]))
    assert desired.steps(want, found(scout={**AGENT, "team": "", "unread": 3}), Known()) == Steps()


def test_what_the_object_does_not_name_stays_as_it_is() -> None:
    """A room that was there keeps its title and privacy when the object says nothing of them."""
    there = Found("r-1", "Old title", private=True, members={})
    assert desired.steps(desired.wanted(room()), there, Known()) == Steps()


def test_settings_that_differ_are_set() -> None:
    """Only those."""
    want = desired.wanted(room(title="New", private=False))
    assert desired.steps(want, found(), Known()).settings == {"title": "New"}


def test_who_is_missing_is_added_and_who_is_not_wanted_any_more_is_removed() -> None:
    """Members that joined by themselves stay."""
    want = desired.wanted(room(members=[AGENT], engines=[{"handle": "greeter", "kind": "hello"}]))
    know = Known(members=("left", "gone"), engines=("old",))
    steps = desired.steps(want, found(left={}, old={}, guest={}), know)
    assert steps.members == (AGENT,)
    assert steps.engines == ({"handle": "greeter", "kind": "hello"},)
    assert steps.leaving == ("left", "old")


def test_a_member_whose_record_differs_is_set_again() -> None:
    """Only the fields that the object names count."""
    want = desired.wanted(room(members=[AGENT]))
    assert desired.steps(want, found(scout={**AGENT, "owner": "kim"}), Known()).members == (AGENT,)


def test_an_engine_whose_handle_is_an_agent_s_is_asked_for_all_the_same() -> None:
    """The hub refuses that, and the condition says so."""
    greeter = {"handle": "greeter", "kind": "hello"}
    want = desired.wanted(room(engines=[greeter]))
    assert desired.steps(want, found(greeter={"kind": "agent"}), Known()).engines == (greeter,)
    assert desired.steps(want, found(greeter={"kind": "engine"}), Known()).engines == ()


def test_the_status_tells_which_generation_it_is_of() -> None:
    """In the status and in its condition."""
    said = desired.status(room(), Known(made="r-1", members=("scout",)), Outcome(True, "AsWanted", "yes"), "T1")
    assert said == {
        "made": "r-1",
        "room": "plans",
        "members": ["scout"],
        "engines": [],
        "observedGeneration": 3,
        "conditions": [
            {
                "type": "Ready",
                "status": "True",
                "reason": "AsWanted",
                "message": "yes",
                "lastTransitionTime": "T1",
                "observedGeneration": 3,
            }
        ],
    }


@pytest.mark.parametrize(("ready", "since"), [(True, "T1"), (False, "T2")])
def test_the_time_of_a_condition_is_that_of_its_verdict(ready: bool, since: str) -> None:
    """Another reason for the same verdict does not move it."""
    first = desired.status(room(), Known(), Outcome(True, "AsWanted", ""), "T1")
    again = desired.status(room(first), Known(), Outcome(ready, "Adopted", ""), "T2")
    assert again["conditions"][0]["lastTransitionTime"] == since


def test_what_is_known_is_written_down_without_touching_the_verdict() -> None:
    """Half-way, nobody has judged yet."""
    first = desired.status(room(), Known(), Outcome(True, "AsWanted", ""), "T1")
    half = desired.noted(room(first), Known(made="r-2"))
    assert half["conditions"] == first["conditions"]
    assert desired.known(room(half)) == Known(made="r-2")


def test_a_second_try_makes_the_room_under_the_same_key_and_a_second_room_under_another() -> None:
    """So that a retry finds its room, and a room that somebody deleted is made anew."""
    assert desired.key(room(), Known()) == desired.key(room(title="other"), Known())
    assert desired.key(room(), Known()) != desired.key(room(), Known(made="r-1"))


def test_an_object_is_held_by_the_operator_s_own_finalizer_only() -> None:
    """Others' finalizers are theirs."""
    body = room()
    body["metadata"]["finalizers"] = ["example.com/other"]
    assert not desired.is_held(body)
    body["metadata"]["finalizers"].append(names.FINALIZER)
    assert desired.is_held(body)
