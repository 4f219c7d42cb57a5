"""What can go wrong, as one line and an exit status. Every module raises `Failure`; only `main` prints it."""

from typing import Any

OK = 0
REFUSED = 1
USAGE = 2
NOT_FOUND = 3
FORBIDDEN = 4
UNREACHABLE = 5
NOTHING_CAME = 6
INTERNAL = 70
INTERRUPTED = 130
BROKEN_PIPE = 141
TERMINATED = 143

# The one table of exit statuses: `mycelium --help` prints it and the docs are made from it.
EXIT_STATUSES = {
    OK: "done",
    REFUSED: "refused, by the hub or by you",
    USAGE: "wrong usage or value",
    NOT_FOUND: "not found",
    FORBIDDEN: "not allowed",
    UNREACHABLE: "hub can't be reached, or can't do it now",
    NOTHING_CAME: "await: nothing came in time",
    INTERNAL: "a bug, here or in the hub",
    INTERRUPTED: "Ctrl-C",
}

# The slugs of failures that are no answer of the hub; theirs stand in the reference of errors.
_OWN_SLUGS = {
    REFUSED: "cli.refused",
    USAGE: "cli.usage",
    NOT_FOUND: "cli.not_found",
    FORBIDDEN: "cli.forbidden",
    UNREACHABLE: "cli.hub_unreachable",
    INTERNAL: "cli.internal",
}

_BY_HTTP_STATUS = {
    400: USAGE,
    401: FORBIDDEN,
    403: FORBIDDEN,
    404: NOT_FOUND,
    422: USAGE,
    502: UNREACHABLE,
    503: UNREACHABLE,
    504: UNREACHABLE,
    507: UNREACHABLE,
}


def exit_of_http(status: int) -> int:
    """The exit status for an HTTP status; a 5xx without a row of its own is a bug, the rest a refusal."""
    if status in _BY_HTTP_STATUS:
        return _BY_HTTP_STATUS[status]
    return INTERNAL if status >= 500 else REFUSED


class Failure(Exception):
    """A command that can't go on: the cause, what to type next, and the exit status."""

    def __init__(
        self,
        cause: str,
        *,
        exit_status: int = REFUSED,
        hint: str = "",
        slug: str = "",
        problem: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(cause)
        self.cause = cause
        self.exit_status = exit_status
        self.hint = hint
        self.problem = problem or {}
        self.slug = str(self.problem.get("slug") or slug or _OWN_SLUGS.get(exit_status, "cli.refused"))
        # Whether the hub has the request, for all that is known; then the same under the same key may be answered.
        self.arrived = bool(self.problem)

    @property
    def http_status(self) -> int:
        """The status of the hub's problem document; 0 when the failure is not one."""
        status = self.problem.get("status", 0)
        return status if isinstance(status, int) else 0

    def line(self) -> str:
        """The one line that a person reads."""
        cause = self.cause.rstrip()
        if not self.hint:
            return f"error: {cause}"
        stop = "" if cause.endswith((".", "?", "!")) else "."
        return f"error: {cause}{stop} Next: {self.hint}"

    def document(self) -> dict[str, Any]:
        """The same for a program that asked for `--json`: the hub's problem document and the exit status."""
        own = {"slug": self.slug, "error": self.cause, "next": self.hint or None, "exit": self.exit_status}
        return {**self.problem, **own}


def usage(cause: str, hint: str = "", slug: str = "") -> Failure:
    """A failure of what was typed, found before any request."""
    return Failure(cause, exit_status=USAGE, hint=hint, slug=slug)


def unnumbered(failure: Failure) -> Failure:
    """The same without the hub's status in its line: where it was not the asker who is unknown, it says nothing."""
    failure.cause = failure.cause.removeprefix(f"{failure.http_status} ")
    return failure


def nearest(word: str, known: list[str]) -> str:
    """The known word that `word` was probably meant to be, or an empty text rather than something far off."""
    bare = word.lstrip("-").lower()
    plain = {item: item.lstrip("-").lower() for item in known}
    # A first letter is seldom wrong: between equals, the word that shares it was meant.
    ranked = sorted(known, key=lambda item: (slips(bare, plain[item]), plain[item][:1] != bare[:1]))
    if ranked and slips(bare, plain[ranked[0]]) <= max(1, (len(bare) + 1) // 3):
        return ranked[0]
    return next((item for item in known if len(bare) > 1 and plain[item].startswith(bare)), "")


def slips(typed: str, meant: str) -> int:
    """How many slips of the finger apart two words are: a letter wrong, missing, too many, or two swapped."""
    before: list[int] = []
    row = list(range(len(meant) + 1))
    for i, letter in enumerate(typed, 1):
        row, last = [i], row
        for j, other in enumerate(meant, 1):
            cost = min(row[j - 1] + 1, last[j] + 1, last[j - 1] + (letter != other))
            if i > 1 and j > 1 and letter == meant[j - 2] and typed[i - 2] == other:
                cost = min(cost, before[j - 2] + 1)
            row.append(cost)
        before = last
    return row[-1]
