"""A setting that is a list of tables, such as `auth.issuers`: JSON on the command line, `[[...]]` in `config.toml`.

What each table may hold the hub knows; `mycelium config apply` says which of them it would not take.
"""

import json
from typing import Any

from mycelium_cli.errors import usage

UNIT = "tables"


def parse(key: str, text: str) -> str:
    """The list in one form, as JSON; empty for none. Refuses what is no list of tables of texts."""
    if not text.strip():
        return ""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        raise _no_tables(key) from None
    tables = found if isinstance(found, list) else None
    if tables is None or not all(isinstance(table, dict) and table for table in tables):
        raise _no_tables(key)
    if not all(isinstance(value, str) for table in tables for value in table.values()):
        raise _no_tables(key)
    return written(tables)


def _no_tables(key: str) -> Exception:
    cause = f'{key} is a list of tables, as JSON: \'[{{"issuer": "https://sso.example.com", "role": "user"}}]\''
    return usage(cause, f"mycelium config set {key} JSON, or write [[{key}]] tables into the file of `config path`")


def written(tables: list[Any]) -> str:
    """What a file's tables are on the screen and in comparisons; a date of TOML is a text there."""
    return json.dumps(tables, ensure_ascii=False, sort_keys=True, default=str) if tables else ""


def to_toml(text: str) -> Any:
    """The tables as they are written into a file."""
    import tomlkit

    tables = tomlkit.aot()
    for found in json.loads(text):
        table = tomlkit.table()
        for name, value in found.items():
            table[name] = value
        tables.append(table)
    return tables
