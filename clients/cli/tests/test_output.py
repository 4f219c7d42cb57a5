"""What reaches the terminal: other people's texts can't command it, and everything lines up."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime

import pytest

from mycelium_cli.output import PLAIN, Paint, age, as_json, clean, clean_line, fields, short, table, wants_colour


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b]0;title\x07", "\\x1b]0;title\\x07"),
        ("\x1b[2Jgone", "\\x1b[2Jgone"),
        ("a\rb", "a\\x0db"),
        ("a\r\nb", "a\nb"),
        ("\x9b31m", "\\x9b31m"),
        ("abc\u202etxt.exe", "abc\\u202etxt.exe"),
        ("tab\tand\nline stay", "tab\tand\nline stay"),
        ("Grüße 👩‍💻 日本", "Grüße 👩‍💻 日本"),
        ("\x7f\x00", "\\x7f\\x00"),
        ("de\u200bmo \u2060\u00ad\u034f\u3164", "de\\u200bmo \\u2060\\u00ad\\u034f\\u3164"),
        ("a\U000e0041\U000e007f", "a\\U000e0041\\U000e007f"),
        ("\u200cdemo\u200d", "\\u200cdemo\\u200d"),
        ("a \u200d\u200c b", "a \\u200d\\u200c b"),
        (
            "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645 \u0d28\u0d4d\u200d.",
            "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645 \u0d28\u0d4d\u200d.",
        ),
        ("\u2764\ufe0f\u200d\U0001f525", "\u2764\ufe0f\u200d\U0001f525"),
    ],
)
def test_control_characters_are_shown_not_obeyed(text: str, shown: str) -> None:
    """Escape sequences, returns over the line, reordered text."""
    assert clean(text) == shown


def test_a_name_stays_on_its_line() -> None:
    """Or it could forge the line below."""
    assert clean_line("Avery\nroot\t(@root)") == "Avery root (@root)"


def test_json_carries_the_text_unchanged_but_no_raw_control_character() -> None:
    """Whoever parses it has the text; whoever prints it is safe."""
    text = "\x1b[2J \x9b31m \u202e \u200b\U000e0041 Grüße 👩‍💻"
    printed = as_json({"content": text})
    assert json.loads(printed)["content"] == text
    assert not set(printed) & {"\x1b", "\x9b", "\u202e", "\u200b", "\U000e0041"}
    assert "Grüße" in printed


def test_a_table_is_as_wide_as_its_longest_cell() -> None:
    """Wide characters count two, combining ones none."""
    rows = [["日本", "x"], ["e\u0301t\u00e9", "y"], ["plain", "z\nz"]]
    assert table(["NAME", "V"], rows, PLAIN) == ["NAME   V", "日本   x", "e\u0301t\u00e9    y", "plain  z z"]


def test_one_long_cell_moves_no_other_line_of_a_terminal() -> None:
    """Nothing is cut, and a pipe has its columns lined up as ever."""
    rows = [["x" * 100, "long"], ["ci", "short"]]
    narrow = Paint(on=False, columns=60)
    assert table(["NAME", "V"], rows, narrow) == [f"{'NAME':20}  V", f"{'x' * 100}  long", f"{'ci':20}  short"]
    assert table(["NAME", "V"], rows, Paint(on=False, columns=200)) == table(["NAME", "V"], rows, PLAIN)


def test_empty_fields_are_left_out() -> None:
    """And the rest lines up."""
    assert fields([("owner", "@avery"), ("team", ""), ("cwd", "/src")], PLAIN) == ["owner  @avery", "cwd    /src"]


@pytest.mark.parametrize(
    ("seconds", "said"), [(-5, "0s ago"), (59, "59s ago"), (60, "1m ago"), (7300, "2h ago"), (200_000, "2d ago")]
)
def test_ages_use_the_largest_unit_that_fits(seconds: int, said: str) -> None:
    """A clock that is behind says 0."""
    then = datetime(2026, 9, 3, 16, 40, tzinfo=UTC)
    assert age("2026-09-03T16:40:00.000Z", then.timestamp() + seconds) == said


def test_a_time_that_can_not_be_read_is_shown_as_it_is() -> None:
    """Nothing is guessed."""
    assert age("soon", 0.0) == "soon"


def test_the_short_id_is_the_last_eight_digits() -> None:
    """As printed, and as accepted."""
    assert short("01990000-0000-7000-8000-00001a2b3c4d") == "1a2b3c4d"


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_colours_are_for_terminals_that_want_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """NO_COLOR and a dumb terminal switch them off, a pipe never has them."""
    monkeypatch.setenv("TERM", "xterm")
    assert wants_colour(_Terminal())
    assert not wants_colour(io.StringIO())
    monkeypatch.setenv("NO_COLOR", "1")
    assert not wants_colour(_Terminal())
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("TERM", "dumb")
    assert not wants_colour(_Terminal())
    assert Paint(on=True).bold("x") == "\x1b[1mx\x1b[0m"
    assert PLAIN.bold("x") == "x"
