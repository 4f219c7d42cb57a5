"""The signed-in person's token as requests carry it: renewed before its time is over, by one process for all.

`context.token` asks here before each request. A refresh token is often good once, so whoever sends it holds the
lock, and is not interrupted until the new one is written.
"""

import atexit
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from mycelium_cli.config import Value
from mycelium_cli.put_off import stops_put_off
from mycelium_cli.sign_in import token_file
from mycelium_cli.sign_in.token_file import Person
from mycelium_cli.warnings_once import warn

_LONGEST_MARGIN_S = 60.0
_AGAIN_AFTER_S = 10.0  # after an issuer that did not answer; the others that wait do not all try it
_LOCK_WITHIN_S = 30.0
_LOOK_S = 0.02
_RENEW_S = 8.0

_in_process = threading.Lock()


def token(url: str, refused: str | None = None) -> Value | None:
    """The token for a hub, or nothing when nobody is signed in there; `refused`: the hub would not have that one."""
    person = token_file.find(url)
    if person is None:
        return None
    if person.ended:
        warn(_over(person))
        return None
    if not is_good(person, refused, time.time()):
        person = _renewed(url, refused)
    return Value(person.access_token, token_file.path()) if person else None


def is_good(person: Person, refused: str | None, now_s: float) -> bool:
    """Whether a token can be sent: there, not refused, and with some time left for its way."""
    margin_s = min(_LONGEST_MARGIN_S, person.lifetime_s / 4)
    in_time = not person.expires_at or now_s < person.expires_at - margin_s
    return bool(person.access_token) and person.access_token != refused and in_time


def _renewed(url: str, refused: str | None) -> Person | None:
    with locked() as held:
        person = token_file.find(url)
        now_s = time.time()
        if person is None or person.ended or is_good(person, refused, now_s):
            return None if person is None or person.ended else person
        left = person if person.access_token != refused and now_s < person.expires_at else None
        if not person.refresh_token:
            if left is None and refused is None:
                warn(_over(person))
            return left
        if not held:
            if left is None:
                warn(f"the sign-in can't be renewed, since {token_file.path()} can't be written")
            return left
        if now_s < person.failed_at + _AGAIN_AFTER_S:
            if left is None:
                again = f"it is asked again in {_AGAIN_AFTER_S:.0f} s"
                warn(f"the sign-in is not renewed: {person.issuer} did not answer just now; {again}")
            return left
        with uninterrupted():
            return _ask(url, person) or left


def _ask(url: str, person: Person) -> Person | None:
    """Renew at the issuer, and write what it gave before anything else."""
    from mycelium_cli import config
    from mycelium_cli.errors import Failure
    from mycelium_cli.sign_in import asking, granted
    from mycelium_cli.sign_in.asking import Program, Silent

    secret = str(config.effective("login.client_secret").value)
    form = {"grant_type": "refresh_token", "refresh_token": person.refresh_token}
    try:
        said = asking.post(person.token_endpoint, form, Program(person.client_id, secret, person.by_basic), _RENEW_S)
    except Silent as failure:
        warn(f"the sign-in was not renewed: {failure.cause}")
        return _kept(url, person._replace(failed_at=time.time()), None)
    try:
        if said.status == 200:
            new = granted.renewed(person, said.document, time.time())
            return _kept(url, new, new)
        why = said.error
    except Failure as failure:
        why = failure.cause
    ended = person._replace(access_token="", refresh_token="", expires_at=0.0, ended=why)
    warn(_over(ended))
    _kept(url, ended, None)
    return None


def _kept(url: str, row: Person, answer: Person | None) -> Person | None:
    from mycelium_cli.errors import Failure

    try:
        token_file.keep(url, row)
    except Failure as failure:  # a full disk: this command still has what it got
        warn(f"{failure.cause}: the next command can't renew the sign-in. Next: mycelium login")
    return answer


def _over(person: Person) -> str:
    why = f" ({person.ended})" if person.ended else ""
    return f"your sign-in at {person.issuer} has ended{why}, so no token is sent. Next: mycelium login"


@contextmanager
def locked() -> Iterator[bool]:
    """One process at a time; not held where no lock can be had, as in a home that can't be written."""
    with _in_process:
        lock = _lock()
        try:
            yield lock is not None
        finally:
            if lock is not None:
                os.close(lock)


def _lock() -> int | None:
    import fcntl

    place = f"{os.path.realpath(token_file.path())}.lock"
    with suppress(OSError):
        os.makedirs(os.path.dirname(place), mode=0o700, exist_ok=True)
        lock = os.open(place, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        end_s = time.monotonic() + _LOCK_WITHIN_S
        while time.monotonic() < end_s:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                time.sleep(_LOOK_S)
            except OSError:
                break
            else:
                return lock
        os.close(lock)
    return None


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Put off Ctrl-C and its like until a refresh token is written: the old one is of no use any more."""
    if threading.current_thread() is not threading.main_thread():
        atexit.register(_in_process.acquire, timeout=_RENEW_S)  # the main thread may want to end meanwhile
        yield
        return
    came: list[int] = []
    with stops_put_off(came, came.append):
        yield
