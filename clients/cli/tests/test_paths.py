"""Paths from stdin, as git and people write them."""

import pytest

from mycelium_cli.board import paths


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"", []),
        (b"a\nb/c d\n", ["a", "b/c d"]),
        (b"a\r\nb", ["a", "b"]),
        (b"\n\na\n\n", ["a"]),
        (b"a\0b\nc\0", ["a", "b\nc"]),
        (b"a\0", ["a"]),
        (rb'"caf\303\251 \"x\"\ta\\b.md"' + b"\n", ['café "x"\ta\\b.md']),
        (b'"\n', ['"']),
        (b'"a\0', ['"a']),
        (b"\xff.md\0", ["\N{REPLACEMENT CHARACTER}.md"]),
    ],
)
def test_paths_are_read_as_git_writes_them(data: bytes, told: list[str]) -> None:
    """Lines, quoted where git quotes; or with NUL between, as they are."""
    assert paths.read(data) == told


def test_paths_are_sent_in_parts() -> None:
    """As many as a request takes, by number and by length."""
    many = [str(number) for number in range(2_500)]
    assert [len(part) for part in paths.parts(many)] == [1_000, 1_000, 500]
    assert [len(part) for part in paths.parts(["x" * 40_000] * 5)] == [2, 2, 1]
    assert list(paths.parts([])) == []


def test_a_name_that_is_no_text_can_be_checked() -> None:
    """What the command line has of bytes that are no UTF-8."""
    assert paths.readable(b"\xff.md".decode("utf-8", "surrogateescape")) == "\N{REPLACEMENT CHARACTER}.md"
