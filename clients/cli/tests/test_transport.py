"""The line to the hub: what is repeated, under which key, and what is said when it can't be."""

from __future__ import annotations

import json
import socket
from itertools import islice

import pytest

from clients.cli.tests.conftest import Run
from clients.cli.tests.scripted import CUT, MESSAGE, ScriptedHub, answer, stream
from mycelium_cli.api import Caller, Hub, target
from mycelium_cli.stream import Event, follow, parse


def hub_at(url: str, waits: list[float]) -> Hub:
    """A hub whose pauses are noted, not waited."""
    return Hub(url, Caller("avery", "s1", ""), pause=waits.append)


def test_a_write_that_was_cut_goes_out_again_under_the_same_key(scripted: ScriptedHub, run: Run) -> None:
    """The hub does it once, whichever of the two arrived."""
    scripted.play(CUT, CUT, answer(201, MESSAGE))
    ran = run("room", "send", "hello")
    assert (ran.status, ran.out) == (0, "sent 1a2b3c4d\n")
    assert len(scripted.received) == 3
    assert len(set(scripted.keys())) == 1
    assert len({request.body for request in scripted.received}) == 1


def test_every_command_has_a_key_of_its_own(scripted: ScriptedHub, run: Run) -> None:
    """Two equal posts are two posts."""
    scripted.play(answer(201, MESSAGE), answer(201, MESSAGE))
    run("room", "send", "hello")
    run("room", "send", "hello")
    assert len(set(scripted.keys())) == 2


def test_a_half_answer_counts_as_cut(scripted: ScriptedHub, run: Run) -> None:
    """The length says that more was to come."""
    scripted.play(answer(201, MESSAGE)[:-20], answer(201, MESSAGE))
    assert run("room", "send", "hello").out == "sent 1a2b3c4d\n"


@pytest.mark.parametrize(
    "body", [{"items": [5]}, {"items": 5}, {"items": [], "next": 5}, b"[" * 200_000, b'{"a":' * 50_000, [5], 5]
)
def test_json_that_no_hub_says_is_one_line(scripted: ScriptedHub, run: Run, body: object) -> None:
    """Another program has that port."""
    scripted.play(answer(200, body))
    ran = run("room", "ls")
    assert (ran.status, ran.out, ran.err.count("\n")) == (5, "", 1)
    assert f"200 OK from {scripted.url}, which does not answer as a Mycelium hub" in ran.err


@pytest.mark.parametrize("slug", [["x"], {"x": 1}, 5])
def test_a_problem_that_no_hub_has_is_one_line(scripted: ScriptedHub, run: Run, slug: object) -> None:
    """Whatever stands where the slug should."""
    scripted.play(answer(404, {"slug": slug, "detail": "no"}))
    assert run("room", "ls") == (3, "", "error: no. Next: mycelium status, which tells the hub's version\n")


@pytest.mark.parametrize("cursors", [["a", "b", "a"], ["a", "b", "c", "d"]])
def test_a_list_without_an_end_is_not_followed_for_ever(
    scripted: ScriptedHub, run: Run, monkeypatch: pytest.MonkeyPatch, cursors: list[str]
) -> None:
    """A cursor that comes again, and ever new ones."""
    monkeypatch.setattr("mycelium_cli.api._MOST_PAGES", 3)
    scripted.play(*(answer(200, {"items": [], "next": cursor}) for cursor in cursors))
    said = f"error: the list at {scripted.url}/api/rooms has no end. Next: mycelium status\n"
    assert run("room", "ls") == (5, "", said)
    assert len(scripted.received) == 3


def test_an_answer_that_drips_is_cut_off(scripted: ScriptedHub, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A byte now and then is no answer, in the head nor in the body."""
    monkeypatch.setattr("mycelium_cli.api._WHOLE_WITHIN_S", -29.5)
    monkeypatch.setattr("mycelium_cli.api.RETRY_BUDGET_S", 0.0)
    scripted.hold()
    scripted.play(b"HTTP/1.1 200 OK\r\n\r\n{")
    ran = run("room", "ls")
    assert ran.status == 5
    assert "the line was cut: the answer had no end within 0 s" in ran.err


def test_a_line_that_stays_cut_is_told_honestly(
    scripted: ScriptedHub, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody knows whether it was done; the key makes the repeat safe."""
    monkeypatch.setattr("mycelium_cli.api.RETRY_BUDGET_S", 0.0)
    scripted.play(CUT)
    ran = run("room", "send", "hello")
    key = scripted.keys()[0]
    assert ran.status == 5
    assert ran.err.startswith(
        f"error: Failed to connect to the Mycelium API at {scripted.url}: can't reach the hub (the line was cut"
    )
    assert f"it may or may not have been done. Next: the same command with --key {key}" in ran.err
    scripted.play(answer(201, MESSAGE))
    run("room", "send", "hello", "--key", key)
    assert scripted.keys() == [key, key]


def test_no_hub_at_all_is_told_at_once(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing left this machine, so there is nothing to be unsure of."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    monkeypatch.setenv("MYCELIUM_API_URL", f"http://127.0.0.1:{port}")
    ran = run("room", "ls")
    cause = (
        f"Failed to connect to the Mycelium API at http://127.0.0.1:{port}: can't reach the hub (connection refused)"
    )
    assert ran == (5, "", f"error: {cause}. Next: mycelium up (or set MYCELIUM_API_URL)\n")


def test_patience_is_had_when_the_hub_asks_for_it(scripted: ScriptedHub) -> None:
    """503 with Retry-After: that long, then the same under the same key."""
    problem = {"slug": "unavailable", "status": 503, "detail": "starting"}
    scripted.play(answer(503, problem, "Retry-After: 2"), answer(201, MESSAGE))
    waits: list[float] = []
    assert hub_at(scripted.url, waits).post("/api/rooms/demo/messages", {"content": "x"})["seq"] == 7
    assert waits == [2.0]
    assert len(set(scripted.keys())) == 1


def test_patience_has_an_end(scripted: ScriptedHub, run: Run) -> None:
    """A hub that wants more time than a command has."""
    scripted.play(answer(503, {"slug": "unavailable", "detail": "rooms does not answer"}, "Retry-After: 60"))
    ran = run("room", "ls")
    assert ran.status == 5
    assert ran.err == "error: rooms does not answer. Next: the same again in 60 s\n"


@pytest.mark.parametrize(
    ("garbage", "said"),
    [
        (
            answer(200, b"<html>Sign in</html>", kind="text/html"),
            "200 OK from {url}, which does not answer as a Mycelium hub",
        ),
        (answer(502, b"Bad Gateway", kind="text/plain"), "502 Bad Gateway from {url}"),
        (answer(404, b"\x1b[2J", kind="text/plain"), "404 Not Found from {url}"),
        (answer(200, [1, 2]), "which does not answer as a Mycelium hub"),
        (answer(200, {"hello": 1}), 'the answer of the hub has no "items"'),
        (answer(307, b"", "Location: https://hub.example.com/api/rooms"), "has moved to https://hub.example.com"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "Failed to connect to the Mycelium API at {url}"),
    ],
)
def test_something_that_is_no_hub_is_told_in_one_line(
    garbage: bytes, said: str, scripted: ScriptedHub, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A proxy, a login page, another program on the port."""
    monkeypatch.setattr("mycelium_cli.api.RETRY_BUDGET_S", 0.0)
    scripted.play(garbage)
    ran = run("room", "ls")
    assert ran.status == 5
    assert ran.out == ""
    assert said.format(url=scripted.url) in ran.err
    assert ran.err.count("\n") == 1
    assert "\x1b" not in ran.err


def test_a_refusal_is_not_repeated(scripted: ScriptedHub, run: Run) -> None:
    """The hub has decided."""
    scripted.play(
        answer(404, {"slug": "room.not_found", "detail": "Room not found: demo", "next": "mycelium room create demo"})
    )
    assert run("room", "send", "x").status == 3
    assert len(scripted.received) == 1


def test_a_request_says_who_calls_in_which_session_and_trace(
    scripted: ScriptedHub, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The headers of the contract; a trace that was begun outside goes on."""
    monkeypatch.setenv("MYCELIUM_SESSION", "s1")
    monkeypatch.setenv("TRACEPARENT", f"00-{'a' * 32}-{'b' * 16}-01")
    scripted.play(answer(201, MESSAGE))
    run("room", "send", "--room", "CE-Area Team ü", "--thread", "1a2b3c4d", "@sec hi")
    request = scripted.received[0]
    assert request.line == "POST /api/rooms/CE-Area%20Team%20%C3%BC/messages HTTP/1.1"
    assert request.headers["mycelium-handle"] == "avery"
    assert request.headers["mycelium-session"] == "s1"
    assert request.headers["traceparent"].startswith(f"00-{'a' * 32}-")
    assert "authorization" not in request.headers
    assert request.document() == {"content": "@sec hi", "message_type": "message", "thread": "1a2b3c4d"}


def test_a_proxy_is_used_for_a_hub_elsewhere_and_never_for_this_machine(
    scripted: ScriptedHub, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The environments of cloud agents reach the world through one."""
    monkeypatch.setenv("HTTP_PROXY", scripted.url.replace("//", "//me:secret@"))
    monkeypatch.setenv("MYCELIUM_API_URL", "http://hub.example.com:8000")
    scripted.play(answer(200, {"items": [], "next": None}))
    assert run("room", "ls").status == 0
    assert scripted.received[0].line == "GET http://hub.example.com:8000/api/rooms HTTP/1.1"
    assert scripted.received[0].headers["proxy-authorization"] == "Basic bWU6c2VjcmV0"
    monkeypatch.setenv("MYCELIUM_API_URL", scripted.url)
    scripted.play(answer(200, {"items": [], "next": None}))
    run("room", "ls")
    assert scripted.received[1].line == "GET /api/rooms HTTP/1.1"


def test_a_list_is_read_page_after_page(scripted: ScriptedHub) -> None:
    """Until there is no next cursor."""
    scripted.play(
        answer(200, {"items": [{"name": "a"}], "next": "c 2"}), answer(200, {"items": [{"name": "b"}], "next": None})
    )
    assert hub_at(scripted.url, []).items("/api/rooms", {"limit": 1}) == [{"name": "a"}, {"name": "b"}]
    assert [request.line.split()[1] for request in scripted.received] == [
        "/api/rooms?limit=1",
        "/api/rooms?limit=1&cursor=c%202",
    ]


def test_queries_leave_out_what_is_not_set() -> None:
    """And repeat what is there several times."""
    query = {"limit": 0, "before": None, "since": "", "room": ["a", "b c"]}
    assert target("/api/x", query) == "/api/x?limit=0&room=a&room=b%20c"


def test_events_are_parsed_by_the_rules_of_the_standard() -> None:
    """Comments, several data lines, an id alone, an unknown field."""
    text = b": connected\n\nid: e-1\n\nid: e-2\nevent: message\ndata: {\ndata: }\nretry: 5\n\n"
    text += b"data:x\r\n\r\nevent: lost\n\n"
    assert list(parse(text.splitlines(keepends=True))) == [
        Event("", "", "e-1"),
        Event("message", "{\n}", "e-2"),
        Event("message", "x", ""),
    ]


def test_a_stream_goes_on_where_it_was_cut(scripted: ScriptedHub) -> None:
    """Last-Event-ID is the last one seen; a hub that is away is waited for."""
    scripted.play(
        stream(": connected\n\nid: e-5\nevent: message\ndata: 1\n\n"),
        CUT,
        answer(503, {"slug": "unavailable", "detail": "starting"}),
        stream("id: e-6\nevent: message\ndata: 2\n\nid: e-7\nevent: mess"),
        stream("id: e-7\nevent: message\ndata: 3\n\n"),
    )
    said: list[str] = []
    waits: list[float] = []
    events = follow(
        hub_at(scripted.url, []), "/api/rooms/demo/stream", {}, on_lost=said.append,
        on_open=lambda again: said.append("back" if again else "open"), pause=waits.append,
    )  # fmt: skip
    assert [event.document() for event in islice(events, 3)] == [1, 2, 3]
    assert [request.headers.get("last-event-id") for request in scripted.received] == [None, "e-5", "e-5", "e-5", "e-6"]
    assert said == ["open", *["the line to the hub was cut", "back"] * 2]
    assert len(waits) == 4


def test_a_stream_finds_a_hub_that_comes_back_elsewhere(scripted: ScriptedHub) -> None:
    """It goes on there where it was cut here."""
    with ScriptedHub() as moved:
        scripted.play(stream("id: e-5\nevent: message\ndata: 1\n\n"))
        moved.play(stream("id: e-6\nevent: message\ndata: 2\n\n"))
        hub = Hub(scripted.url, Caller("avery", "s1", ""), locate=lambda: moved.url)
        events = follow(
            hub, "/x", {}, on_lost=lambda _: None, on_open=lambda _: None, pause=lambda _: None
        )  # fmt: skip
        assert [event.document() for event in islice(events, 2)] == [1, 2]
        assert moved.received[0].headers["last-event-id"] == "e-5"


def test_a_stream_that_is_refused_ends(scripted: ScriptedHub, run: Run) -> None:
    """A room that isn't there, at first or later."""
    scripted.play(answer(404, {"slug": "room.not_found", "detail": "Room not found: demo"}))
    assert run("room", "watch").status == 3
    scripted.play(stream('event: message\ndata: {"x": 1}\n\n'), answer(403, {"slug": "auth.refused", "detail": "no"}))
    ran = run("room", "watch", "--json")
    assert ran.status == 4
    assert json.loads(ran.out) == {"event": "message", "id": None, "data": {"x": 1}}
