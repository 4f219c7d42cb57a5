"""Prints the table of slugs as Markdown, for docs/reference: `python -m mycelium_gateway.reference`."""

from __future__ import annotations

import sys

from mycelium_gateway.slugs import SLUGS


def table() -> str:
    """One row a slug, by status."""
    rows = ["| slug | status | what it means | what to do |", "| --- | --- | --- | --- |"]
    for name, slug in sorted(SLUGS.items(), key=lambda item: (item[1].status, item[0])):
        rows.append(f"| `{name}` | {slug.status} | {slug.title} | {slug.remedy} |")
    return "\n".join(rows) + "\n"


if __name__ == "__main__":
    sys.stdout.write(table())
