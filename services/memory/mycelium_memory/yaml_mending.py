"""Mends YAML that is not legal but that everyone reads the same, for `yaml_text`: missing quotes, tabs between words.

The library says where its reading ended; only that place is looked at.
"""

from __future__ import annotations

from ruamel.yaml.error import MarkedYAMLError

RESERVED = ("@", "`", "%")  # what no unquoted text may begin with
OTHER_KINDS = frozenset("\"'[{|>&*!#?")  # what begins something else than an unquoted text


def mended(text: str, error: MarkedYAMLError) -> str | None:
    """The text without what made the error, where everyone reads it the same; else None."""
    mark, problem = error.problem_mark, str(error.problem)
    if mark is None:
        return None
    lines = text.split("\n")
    if mark.line >= len(lines):
        return None
    line = lines[mark.line]
    if "\\t" in problem and line[: mark.column].strip():
        better: str | None = line[: mark.column] + " " + line[mark.column + 1 :]
    elif "mapping values are not allowed" in problem or "cannot start any token" in problem:
        better = _quoted(line)
    else:
        better = None
    if better is None:
        return None
    lines[mark.line] = better
    return "\n".join(lines)


def _quoted(line: str) -> str | None:
    """A line `name: words` or `- words` with its words in quotes; None when that is not what is wrong with it."""
    start = len(line) - len(line.lstrip(" "))
    while line.startswith("- ", start):
        start += 2
    name, colon, rest = line[start:].partition(": ")
    if colon and name and name[0] not in OTHER_KINDS and not name.startswith(RESERVED):
        start += len(name) + 2
    else:
        rest = line[start:]
    words, hash_sign, comment = rest.partition(" #")
    words = words.strip()
    wrong = ": " in words or words.endswith(":") or words.startswith(RESERVED)
    if not wrong or words[0] in OTHER_KINDS:
        return None
    quoted = words.replace("'", "''")
    return f"{line[:start]}'{quoted}'" + (f" #{comment}" if hash_sign else "")
