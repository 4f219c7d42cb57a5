"""Failures as lines and exit statuses, and problem documents as failures."""

from __future__ import annotations

import json

import pytest

from clients.cli.tests.conftest import Run
from clients.cli.tests.scripted import ScriptedHub, answer
from mycelium_cli.errors import Failure, exit_of_http, nearest, slips
from mycelium_cli.problems import failure_of_problem, unreached


@pytest.mark.parametrize(
    ("http", "status"),
    [
        (401, 4),
        (403, 4),
        (404, 3),
        (405, 1),
        (409, 1),
        (412, 1),
        (413, 1),
        (422, 2),
        (429, 1),
        (500, 70),
        (503, 5),
        (507, 5),
    ],
)
def test_exit_status_says_the_kind_of_error(http: int, status: int) -> None:
    """The table of the contract."""
    assert exit_of_http(http) == status


@pytest.mark.parametrize("name", ["a/b", "..", "."])
def test_a_room_that_no_address_can_name_is_refused_unasked(scripted: ScriptedHub, run: Run, name: str) -> None:
    """The hub would say that it has no such address."""
    said = (
        f"error: \"{name}\" can't be a room's name: it can't contain slashes or be dots alone. Next: mycelium room ls\n"
    )
    assert run("room", "show", name) == (2, "", said)
    assert scripted.received == []


def test_a_line_has_cause_object_and_next_command() -> None:
    """One line, one sentence each."""
    assert Failure("no room", hint="mycelium room ls").line() == "error: no room. Next: mycelium room ls"
    assert Failure("did you mean x?", hint="y").line() == "error: did you mean x? Next: y"
    assert Failure("no room").line() == "error: no room"


def test_a_problem_document_is_printed_word_for_word() -> None:
    """The reference promises `404 Room not found`, with the number."""
    problem = {
        "status": 404,
        "detail": "Room not found: demo",
        "slug": "room.not_found",
        "next": "mycelium room create demo",
    }
    failure = failure_of_problem(404, problem, {})
    assert failure.line() == "error: 404 Room not found: demo. Next: mycelium room create demo"
    assert failure.exit_status == 3


def test_a_number_that_the_reference_does_not_promise_is_not_shown() -> None:
    """It is for programs, which have it in --json."""
    unregistered = {"slug": "handle.unregistered", "detail": "@ci is not a registered agent or user"}
    assert failure_of_problem(403, unregistered, {}).cause == "403 @ci is not a registered agent or user"
    other = failure_of_problem(409, {"slug": "handle.taken", "detail": "@ci is an agent"}, {})
    assert (other.cause, other.document()["status"]) == ("@ci is an agent", 409)


def test_near_names_are_told_once() -> None:
    """As far as the detail hasn't told them already."""
    problem = {"detail": "nobody is called @enginer", "slug": "mention.unknown", "near": ["engineer"]}
    assert failure_of_problem(422, problem, {}).line() == (
        "error: nobody is called @enginer; did you mean engineer? "
        "Next: mend the handle, or the same with --allow-unknown"
    )
    told = {"detail": "nobody is called @enginer; near: @engineer", "near": ["engineer"], "next": "x"}
    assert failure_of_problem(422, told, {}).cause == "nobody is called @enginer; near: @engineer"


def test_a_problem_can_not_write_to_the_terminal() -> None:
    """A detail quotes what somebody typed."""
    failure = failure_of_problem(404, {"detail": "Room not found: \x1b[2J\nroot@host"}, {})
    assert failure.cause == "Room not found: \\x1b[2J root@host"


def test_an_internal_error_names_its_key() -> None:
    """The hub's log has it under this key."""
    failure = failure_of_problem(500, {"detail": "a bug", "slug": "internal", "key": "k1"}, {})
    assert failure.line() == "error: a bug (key k1). Next: mycelium logs, on the hub's machine; report what it says"
    assert failure.exit_status == 70


def test_rate_limits_tell_when_to_come_again() -> None:
    """Retry-After is a number of seconds."""
    assert failure_of_problem(429, {"detail": "too many"}, {"retry-after": "3"}).hint == "the same again in 3 s"


def test_json_failures_are_documents_on_stderr(run: Run) -> None:
    """A program reads the same error as a document."""
    ran = run("room", "show", "--json")
    assert ran.status == 2
    assert ran.out == ""
    assert json.loads(ran.err)["exit"] == 2
    assert json.loads(ran.err)["error"].startswith("No room context found")


@pytest.mark.parametrize(
    ("words", "slug"),
    [
        (("room", "show"), "cli.no_room"),
        (("await", "--room", "x"), "cli.no_handle"),
        (("iam", "a/b"), "handle.invalid"),
        (("room", "sned"), "cli.usage"),
        (("room", "send", "--typ", "x"), "cli.usage"),
        (("room", "messages", "--limit", "many"), "cli.usage"),
        (("room", "ls"), "cli.hub_unreachable"),
    ],
)
def test_every_failure_has_a_slug_in_json(
    words: tuple[str, ...], slug: str, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also those that the hub never saw: a program looks at it, not at the words."""
    monkeypatch.setenv("MYCELIUM_API_URL", "http://127.0.0.1:9")
    ran = run(*words, "--json")
    assert (json.loads(ran.err)["slug"], ran.out) == (slug, "")


def test_the_hubs_slug_stays_the_hubs(scripted: ScriptedHub, run: Run) -> None:
    """With its number."""
    scripted.play(answer(404, {"slug": "room.not_found", "detail": "Room not found: x", "status": 404}))
    told = json.loads(run("room", "show", "x", "--json").err)
    assert (told["slug"], told["status"], told["exit"]) == ("room.not_found", 404, 3)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("sned", "send"), ("--titel", "--title"), ("SEND", "send"), ("zzz", ""), ("mess", "messages"), ("lx", "ls")],
)
def test_nearest_finds_slips_and_beginnings(typed: str, meant: str) -> None:
    """And says nothing rather than something far off."""
    assert nearest(typed, ["send", "--title", "messages", "ls"]) == meant


@pytest.mark.parametrize(
    ("typed", "meant", "count"),
    [
        ("key", "key", 0),
        ("kye", "key", 1),
        ("kye", "yes", 2),
        ("enginer", "engineer", 1),
        ("", "ab", 2),
        ("abc", "", 3),
        ("sned", "send", 1),
    ],
)
def test_slips_are_counted_as_fingers_make_them(typed: str, meant: str, count: int) -> None:
    """Two swapped letters are one slip."""
    assert slips(typed, meant) == count


def test_no_room_and_no_handle_are_told_with_what_to_type(run: Run) -> None:
    """`No room context found` is interface, word for word."""
    assert run("room", "messages").err == (
        "error: No room context found: No room specified and no active room set. "
        "Next: mycelium room use <name> (or --room, or MYCELIUM_ACTIVE_ROOM)\n"
    )
    assert run("await", "--room", "x").err.startswith("error: No handle found")


@pytest.mark.parametrize(
    ("near", "right", "words"),
    [
        ("MYCELIUM_ROOM", "MYCELIUM_ACTIVE_ROOM", ("room", "messages")),
        ("MYCELIUM_HANDLE", "MYCELIUM_AGENT_HANDLE", ("await", "--room", "x")),
    ],
)
def test_a_variable_with_nearly_the_right_name_is_told(
    near: str, right: str, words: tuple[str, ...], run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The short names are guessed first, and --exec sets them too."""
    monkeypatch.setenv(near, "x")
    assert f"({near} is set, but {right} is the one that counts)" in run(*words).err


@pytest.mark.parametrize(
    "words", [("room", "send", "--handle", "Not A Handle", "x"), ("iam", "a/b"), ("user", "show", "x.")]
)
def test_a_handle_that_can_not_be_one_is_refused_before_any_request(words: tuple[str, ...], run: Run) -> None:
    """Nothing is written or sent for it."""
    ran = run(*words, *(["--room", "r"] if words[0] == "room" else []))
    assert ran.status == 2
    assert "which is no handle" in ran.err


def test_an_address_that_is_no_hubs_says_so(scripted: ScriptedHub, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A path too much, say; nothing was not found, the hub wasn't."""
    monkeypatch.setenv("MYCELIUM_API_URL", f"{scripted.url}/api")
    scripted.play(answer(404, {"slug": "route.not_found", "detail": "there is nothing at /api/api/rooms"}))
    ran = run("room", "ls")
    assert ran.status == 5
    assert ran.err == (
        f"error: {scripted.url}/api is no address of a hub, or of one of another version: "
        "there is nothing at /api/api/rooms. Next: mycelium whoami --sources\n"
    )


@pytest.mark.parametrize(
    ("words", "slug", "detail"),
    [
        (("room", "create", ""), "name.invalid", "a room's name can't be blank"),
        (("room", "send", ""), "content.empty", "the message has no text"),
        (("user", "create", "hub"), "handle.invalid", "@hub is a name of the hub itself; take another handle"),
    ],
)
def test_what_the_hub_finds_wrong_in_what_was_typed_leads_to_the_help(
    scripted: ScriptedHub, words: tuple[str, ...], slug: str, detail: str, run: Run
) -> None:
    """Every refusal of what was typed says what to type next."""
    scripted.play(answer(422, {"slug": slug, "detail": detail, "status": 422}))
    stop = "" if detail.endswith(".") else "."
    assert run(*words) == (2, "", f"error: {detail}{stop} Next: mycelium {words[0]} {words[1]} --help\n")


def test_a_handle_that_is_none_says_what_one_is_and_what_to_type(
    scripted: ScriptedHub, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where it comes from decides what is to be mended."""
    ran = run("room", "send", "hi", "--handle", "b c")
    assert ran.err.startswith('error: --handle is "b c", which is no handle (a to z, ')
    assert ran.err.endswith(". Next: mycelium room send --help\n")
    monkeypatch.setenv("MYCELIUM_AGENT_HANDLE", "b c")
    assert run("room", "send", "hi").err.endswith(". Next: mend MYCELIUM_AGENT_HANDLE\n")
    assert scripted.received == []


def test_an_empty_id_is_refused_before_any_request(scripted: ScriptedHub, run: Run) -> None:
    """Not as an address that is not there."""
    assert run("receipts", "") == (2, "", "error: a name or an id is empty. Next: mycelium receipts --help\n")
    assert scripted.received == []


def test_a_hub_is_started_here_only_when_it_is_meant_to_be_here() -> None:
    """`mycelium up` is no help for a hub elsewhere."""
    assert unreached("http://localhost:8000", "x").hint == "mycelium up (or set MYCELIUM_API_URL)"
    assert unreached("http://hub.example:8000", "x").hint == "mycelium whoami --sources"


@pytest.mark.parametrize("typed", ["abc", "99999"])
def test_a_number_out_of_its_range_is_told_with_the_range(typed: str, run: Run) -> None:
    """Not in click's words."""
    said = f"error: --port is a number from 0 to 65535, not {typed}. Next: mycelium up --help\n"
    assert run("up", "--port", typed) == (2, "", said)


def test_an_option_without_its_value_leads_to_the_help_of_its_command(run: Run) -> None:
    """Not to that of the whole program."""
    said = "error: Option '--exec' requires an argument. Next: mycelium await --help\n"
    assert run("await", "--handle", "sec", "--exec") == (2, "", said)


@pytest.mark.parametrize(
    ("option", "typed", "what"),
    [("--turns", "1.5", "whole number"), ("--tokens", "10k", "whole number"), ("--usd", "much", "number")],
)
def test_a_limit_that_is_none_is_told_what_one_is(
    scripted: ScriptedHub, option: str, typed: str, what: str, run: Run
) -> None:
    """Turns and tokens are whole, money is not."""
    said = f"error: {option} is a {what} above 0, none, or hub, not {typed}. Next: mycelium engine budget --help\n"
    assert run("engine", "budget", option, typed) == (2, "", said)
    assert scripted.received == []


@pytest.mark.parametrize(
    ("key", "why"),
    [("/abs", "a part of it is empty"), ("a//b", "a part of it is empty"), ("../up", "a part of it is dots alone")],
)
def test_a_key_that_no_address_can_hold_is_told_as_a_key(scripted: ScriptedHub, key: str, why: str, run: Run) -> None:
    """Before any request."""
    said = f'error: "{key}" can\'t be a key: {why}. Next: mycelium memory ls\n'
    assert run("memory", "get", key) == (2, "", said)
    assert scripted.received == []


def test_an_adapter_is_written_as_it_is_documented(scripted: ScriptedHub, run: Run) -> None:
    """Both spellings are taken."""
    scripted.play(*[answer(201, {"handle": "sec"})] * 3)
    for typed in ("claude-code", "claude_code", "my-own"):
        run("agent", "create", "sec", "--adapter", typed)
    adapters = [request.document()["adapter"] for request in scripted.received]
    assert adapters == ["claude_code", "claude_code", "my-own"]
