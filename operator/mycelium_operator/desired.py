"""What a Room asks for, what differs from it in the hub, and what its status says: pure, computed whole every time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from mycelium_operator import names

Json = dict[str, Any]


@dataclass(frozen=True)
class Wanted:
    """A room as its object wants it. Members and engines by handle, each as the hub takes them."""

    name: str
    title: str | None  # None: as it is
    private: bool | None
    members: Mapping[str, Json]
    engines: Mapping[str, Json]
    goes: bool  # whether the room goes when its object goes


@dataclass(frozen=True)
class Found:
    """A room as the hub has it."""

    id: str
    title: str
    private: bool
    members: Mapping[str, Json]


@dataclass(frozen=True)
class Known:
    """What the operator wrote down in the object's status: the room it made, or found there, and whom it added."""

    made: str = ""
    adopted: str = ""
    members: tuple[str, ...] = ()
    engines: tuple[str, ...] = ()


@dataclass(frozen=True)
class Steps:
    """What has to be done to a room that is there."""

    settings: Json = field(default_factory=dict)
    members: tuple[Json, ...] = ()
    engines: tuple[Json, ...] = ()
    leaving: tuple[str, ...] = ()


@dataclass(frozen=True)
class Outcome:
    """How it ended: whether the room is as wanted, the reason in one word, and a sentence."""

    ready: bool
    reason: str
    message: str


def wanted(body: Mapping[str, Any]) -> Wanted:
    """Read an object. The room is named as the object unless `spec.name` says otherwise."""
    spec = body.get("spec") or {}
    return Wanted(
        name=spec.get("name") or body["metadata"]["name"],
        title=spec.get("title"),
        private=spec.get("private"),
        members={member["handle"]: _member(member) for member in spec.get("members") or ()},
        engines={engine["handle"]: dict(engine) for engine in spec.get("engines") or ()},
        goes=spec.get("deletionPolicy", names.DELETE) == names.DELETE,
    )


def _member(written: Mapping[str, Any]) -> Json:
    return {"kind": "agent", **written}


def known(body: Mapping[str, Any]) -> Known:
    """Read what was written down."""
    status = body.get("status") or {}
    return Known(
        made=status.get("made", ""),
        adopted=status.get("adopted", ""),
        members=tuple(status.get("members") or ()),
        engines=tuple(status.get("engines") or ()),
    )


def steps(want: Wanted, found: Found, know: Known) -> Steps:
    """What differs. Members that joined by themselves stay; those that the operator added go when nobody wants them."""
    settings = {
        key: value
        for key, value, there in (("title", want.title, found.title), ("private", want.private, found.private))
        if value is not None and value != there
    }
    both = {**want.members, **want.engines}
    return Steps(
        settings=settings,
        members=tuple(member for handle, member in want.members.items() if _differs(member, found.members.get(handle))),
        engines=tuple(engine for handle, engine in want.engines.items() if not _is_engine(found.members.get(handle))),
        leaving=tuple(
            handle
            for handle in dict.fromkeys((*know.members, *know.engines))
            if handle not in both and handle in found.members
        ),
    )


def _is_engine(there: Json | None) -> bool:
    return there is not None and there.get("kind") == "engine"


def _differs(member: Json, there: Json | None) -> bool:
    return there is None or any(there.get(key) != value for key, value in member.items())


def status(body: Mapping[str, Any], know: Known, outcome: Outcome, now: str) -> Json:
    """The whole status once all has been done, or could not be."""
    return {
        **_known(know),
        "observedGeneration": body["metadata"].get("generation", 0),
        "room": wanted(body).name,
        "conditions": [_condition(body, outcome, now)],
    }


def noted(body: Mapping[str, Any], know: Known) -> Json:
    """The whole status on the way: what is known so far, beside the verdict that stood before."""
    kept = {key: value for key, value in (body.get("status") or {}).items() if key in _LASTING}
    return {**kept, **_known(know)}


_LASTING = ("observedGeneration", "room", "conditions")


def _known(know: Known) -> Json:
    ids = {key: value for key, value in (("made", know.made), ("adopted", know.adopted)) if value}
    return {**ids, "members": list(know.members), "engines": list(know.engines)}


def _condition(body: Mapping[str, Any], outcome: Outcome, now: str) -> Json:
    """Its time changes only with its verdict."""
    verdict = "True" if outcome.ready else "False"
    before = condition(body)
    since = before.get("lastTransitionTime", now) if before.get("status") == verdict else now
    return {
        "type": names.READY,
        "status": verdict,
        "reason": outcome.reason,
        "message": outcome.message,
        "lastTransitionTime": since,
        "observedGeneration": body["metadata"].get("generation", 0),
    }


def condition(body: Mapping[str, Any]) -> Json:
    """The condition that the object has now; empty when it has none."""
    conditions: Iterable[Json] = (body.get("status") or {}).get("conditions") or ()
    return next((one for one in conditions if one.get("type") == names.READY), {})


def is_held(body: Mapping[str, Any]) -> bool:
    """Whether the object waits for the operator before it goes."""
    return names.FINALIZER in (body["metadata"].get("finalizers") or ())


def is_going(body: Mapping[str, Any]) -> bool:
    """Whether somebody has deleted the object."""
    return bool(body["metadata"].get("deletionTimestamp"))


def key(body: Mapping[str, Any], know: Known) -> str:
    """Under which key the room is made, so that a second try makes no second room. Another one once a room was made."""
    return f"{body['metadata']['uid']}.{know.made}"
