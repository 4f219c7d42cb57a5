"""`python -m bench [ROW …]`: measures the named rows, or all, and prints their tables."""

from __future__ import annotations

import sys

import uvloop

from bench.harness import run, table
from bench.rows import ROWS


async def main(names: list[str]) -> None:
    """Measure and print. Raises `KeyError` for a row that there is none of."""
    for name in names or list(ROWS):
        make, rounds, per_round = ROWS[name]
        async with make() as made:
            for row in made if isinstance(made, list) else [made]:
                await run(row, rounds, per_round)
                print(table(row), flush=True)


if __name__ == "__main__":
    uvloop.run(main(sys.argv[1:]))
