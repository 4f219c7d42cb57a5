"""A task's claim as callers see it: what may be asked of it, and which answers each state allows.

Time is part of it: a claim ends by itself. Whoever decided a call looked at the clock between its begin and its end.
"""

from typing import NamedTuple

from e2e.linear import Call

UNKNOWN = -1  # the token of a claim that nobody was told of yet


class State(NamedTuple):
    """Who holds it, under which token, until when: between two moments, which are one once an answer said it."""

    holder: str = ""
    token: int = 0
    ends: tuple[int, int] = (0, 0)
    ttl_s: int = 0
    newest: int = 0  # the greatest token that was ever told
    closed: bool = False

    def free(self) -> "State":
        """Nobody holds it any more."""
        return State(newest=self.newest, closed=self.closed)


class Answer(NamedTuple):
    """`claim` with its holder, token (0: not shown) and end, `done` with who held it, `held`, `lost`, `none`, `closed`.

    `row` is what a look shows, of a claim that stands.
    """

    said: str
    holder: str = ""
    token: int = 0
    ends: int = 0


class Asked(NamedTuple):
    """A `claim`, `renew`, `release`, `block`, `resolve`, `expire` or `look`, by whom, and the answer; None: unknown."""

    what: str
    by: str
    answer: Answer | None = None
    since: int = 0  # milliseconds of the clock, at its begin and at its end
    until: int = 0
    to: str = ""
    token: int = 0
    ttl_s: int = 1800
    force: bool = False


def step(state: State, asked: Asked) -> State | None:
    """The claim after a call, or None when the answer can't be given where it is so."""
    for held in _helds(state, asked):
        after = STEPS[asked.what](state, held, asked)
        if after is not None:
            return after
    return None


def _helds(state: State, asked: Asked) -> list[State | None]:
    """The claim that stood at the call's moment, or None when none did; both, where nobody can say.

    Of a call that was not answered only what it changed matters: a claim is given first where none stands.
    """
    if not state.holder:
        return [None]
    stood, ended = asked.since < state.ends[1], asked.until >= state.ends[0]
    helds = ([state] if stood else []) + ([None] if ended else [])
    return helds if asked.answer else helds[::-1]


def _claim(state: State, held: State | None, asked: Asked) -> State | None:
    answer, holder = asked.answer, asked.to or asked.by
    if state.closed:
        return state if answer in {None, Answer("closed")} else None
    if held and held.holder == holder:
        return held if answer is None else _told(held, asked, answer)
    if held and held.holder != asked.by and not asked.force:
        return held if answer is None else _named(held, answer, "held")
    return _begun(State(holder, UNKNOWN, _from_now(asked, asked.ttl_s), asked.ttl_s, state.newest), asked)


def _from_now(asked: Asked, ttl_s: int) -> tuple[int, int]:
    return asked.since + ttl_s * 1000, asked.until + ttl_s * 1000


def _begun(after: State, asked: Asked) -> State | None:
    return after if asked.answer is None else _told(after, asked, asked.answer)


def _told(held: State, asked: Asked, answer: Answer) -> State | None:
    """The claim, when the answer is of it: its token to its holder alone."""
    if answer.said != "claim" or answer.holder != held.holder or not held.ends[0] <= answer.ends <= held.ends[1]:
        return None
    known = held._replace(ends=(answer.ends, answer.ends))
    if held.holder != asked.by:
        return known if not answer.token else None
    if held.token != UNKNOWN:
        return known if answer.token == held.token else None
    return known._replace(token=answer.token, newest=answer.token) if answer.token > held.newest else None


def _named(held: State, answer: Answer, said: str) -> State | None:
    """The claim, when a refusal names its holder and its end."""
    fits = (answer.said, answer.holder) == (said, held.holder) and held.ends[0] <= answer.ends <= held.ends[1]
    return held._replace(ends=(answer.ends, answer.ends)) if fits else None


def _refused(state: State, held: State | None, asked: Asked) -> tuple[bool, State | None]:
    """Whether the proof is refused, and then the state after it; without a token, the asker has to be the holder."""
    if asked.token and (held is None or held.token != asked.token):
        return True, state if asked.answer in {None, Answer("lost", held.holder if held else "")} else None
    if asked.what in {"renew", "release"} and held and not asked.token and held.holder != asked.by:
        return True, state if asked.answer is None else _named(held, asked.answer, "held")
    if asked.what in {"renew", "release"} and held is None:
        return True, state if asked.answer in {None, Answer("none")} else None
    return False, None


def _renew(state: State, held: State | None, asked: Asked) -> State | None:
    is_refused, after = _refused(state, held, asked)
    if is_refused or held is None:
        return after
    ttl_s = asked.ttl_s or held.ttl_s
    renewed = held._replace(ends=_from_now(asked, ttl_s), ttl_s=ttl_s)
    return _begun(renewed, asked._replace(by=held.holder))  # who shows a token has it


def _release(state: State, held: State | None, asked: Asked) -> State | None:
    is_refused, after = _refused(state, held, asked)
    return after if is_refused else _ended(state.free(), "", asked)


def _block(state: State, held: State | None, asked: Asked) -> State | None:
    """It waits; a claim stands, unless its time was over."""
    is_refused, after = _refused(state, held, asked)
    if is_refused:
        return after
    if state.closed:
        return state if asked.answer in {None, Answer("closed")} else None
    return _ended(held or state.free(), state.holder, asked, is_sure=held is not None)


def _resolve(state: State, held: State | None, asked: Asked) -> State | None:
    """Whoever resolves it is told whose claim that ended, even if nobody has said yet that its time was over."""
    is_refused, after = _refused(state, held, asked)
    if is_refused:
        return after
    if state.closed:
        return state if asked.answer in {None, Answer("closed")} else None
    return _ended(state.free()._replace(closed=True), state.holder, asked, is_sure=held is not None)


def _ended(after: State, holder: str, asked: Asked, *, is_sure: bool = True) -> State | None:
    """`after`, when the answer says who held it; of a claim whose time was over it may say nobody."""
    allowed = {None, Answer("done", holder)} | (set() if is_sure else {Answer("done")})
    return after if asked.answer in allowed else None


def _expire(state: State, held: State | None, asked: Asked) -> State | None:
    """Said by the board itself, of one claim, when its time is over."""
    if held or not state.holder or state.token != asked.token:
        return state if asked.answer in {None, Answer("none")} else None
    return state.free() if asked.answer in {None, Answer("done", state.holder)} else None


def _look(state: State, held: State | None, asked: Asked) -> State | None:
    if held and asked.answer:
        return _named(held, asked.answer, "row")
    return state if asked.answer in {None, Answer("row")} else None


STEPS = {
    "claim": _claim,
    "renew": _renew,
    "release": _release,
    "block": _block,
    "resolve": _resolve,
    "expire": _expire,
    "look": _look,
}
History = list[Call[Asked]]
