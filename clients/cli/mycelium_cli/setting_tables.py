"""A setting that is a list of tables, `auth.issuers`: JSON on the command line, `[[...]]` in `config.toml`."""

import json
from typing import Any

from mycelium_cli.errors import nearest, usage

UNIT = "tables"
FIELDS = ("issuer", "jwks_url", "audience", "role", "handle_claim", "role_claim", "names_of")
ROLES = ("user", "agent")
MOST = 50
LONGEST = 500


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


def hint(key: str) -> str:
    """How such a list is set."""
    return f"mycelium config set {key} JSON, or write [[{key}]] tables into the file of `config path`"


def _no_tables(key: str) -> Exception:
    cause = f'{key} is a list of tables, as JSON: \'[{{"issuer": "https://sso.example.com", "role": "user"}}]\''
    return usage(cause, hint(key))


def fault_of(text: str) -> str:
    """What is wrong within the tables, to be read after the setting's name; empty for nothing."""
    tables = json.loads(text) if text else []
    if len(tables) > MOST:
        return f"holds {len(tables)} issuers, and at most {MOST} are trusted"
    seen: set[str] = set()
    for number, table in enumerate(tables, start=1):
        wrong = _fault_of_one(table)
        if not wrong and table["issuer"] in seen:
            wrong = f"{table['issuer']} is there twice"
        if wrong:
            return f"holds what can't be, issuer {number}: {wrong}"
        seen.add(table["issuer"])
    own = {table["issuer"] for table in tables if not table.get("names_of")}
    for number, table in enumerate(tables, start=1):
        if table.get("names_of", "") not in {"", *own}:
            wrong = f"names_of is {table['names_of']!r}, which is the issuer of no table without names_of"
            return f"holds what can't be, issuer {number}: {wrong}"
    return ""


def _fault_of_one(table: dict[str, str]) -> str:
    from mycelium_cli.setting_rules import is_web_address

    for name, value in table.items():
        if name not in FIELDS:
            meant = nearest(name, list(FIELDS))
            return f"{name} is no field; " + (f"did you mean {meant}?" if meant else f"there are {', '.join(FIELDS)}")
        if len(value) > LONGEST or value != value.strip() or not value.isprintable():
            return f"{name} is no text of at most {LONGEST} letters without blanks around it"
    issuer, keys, role = (table.get(name, "") for name in ("issuer", "jwks_url", "role"))
    if not issuer:
        return "issuer is missing, the `iss` of its tokens"
    if keys and not is_web_address(keys):
        return f'jwks_url is "{keys}", which is no http:// or https:// address'
    if not keys and not is_web_address(issuer):
        return f'issuer is "{issuer}", no http:// or https:// address: say by jwks_url where its keys are'
    if role and role not in ROLES:
        return f'role is "{role}", and is {" or ".join(ROLES)}'
    return ""


def written(tables: list[Any]) -> str:
    """What a file's tables are on the screen and in comparisons; what is no value of JSON, such as a date, is null."""
    return json.dumps(tables, ensure_ascii=False, sort_keys=True, default=lambda _: None) if tables else ""


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
