"""Writes what of the docs is made from the code: `docs/reference/*.md` and the CLI's `settings.json`.

`python docs/generate.py` writes (`make docs`); with `--check` it changes nothing and fails when something is behind.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click

import mycelium_gateway.reference
import mycelium_hub.settings
from mycelium_cli import main as cli
from mycelium_cli.sign_in import agents
from mycelium_gateway.access import MEANING, Access
from mycelium_kernel.settings import Setting

ROOT = Path(__file__).parent.parent
CONTRACT = ROOT / "contracts/openapi.json"
SETTINGS_JSON = ROOT / "clients/cli/mycelium_cli/settings.json"
BOUNDS = ("least", "most", "choices")
Json = dict[str, Any]
ENVIRONMENT_ALONE = (
    ("MYCELIUM_HOME", "The folder of this machine's settings, tokens and hub."),
    ("MYCELIUM_SESSION", "Which session a command belongs to, where the guess of `whoami --sources` is wrong."),
    ("MYCELIUM_TOKEN_FILE", "The file of the sign-ins of `login`, in place of `token.json` in the home."),
    (agents.TOKEN, "A token that is sent as it is, before any other, and never renewed."),
    (agents.CLIENT_ID, "The client of the agent that acts, in place of `agent credential set`."),
    (agents.CLIENT_SECRET, "The secret of that client."),
)
MADE = "<!-- Made by `make docs` from the code; changes here are lost. -->\n\n"


def settings_rows() -> list[dict[str, object]]:
    """The CLI's own settings as they stand in its file, and the hub's from their list."""
    own = [row for row in json.loads(SETTINGS_JSON.read_text(encoding="utf-8")) if row["scope"] == "cli"]
    return own + [_row(setting) for setting in mycelium_hub.settings.SETTINGS]


def _row(setting: Setting) -> dict[str, object]:
    return {
        "key": setting.key,
        "env": [*setting.aliases, *(name for name in setting.environment if name not in setting.aliases)],
        "default": setting.default,
        "unit": setting.unit,
        "why": setting.why,
        "scope": setting.scope,
        **{name: getattr(setting, name) for name in BOUNDS if getattr(setting, name) not in (None, ())},
    }


def settings_json() -> str:
    """The CLI's file: one setting a line."""
    return "[\n" + ",\n".join(f"  {json.dumps(row, ensure_ascii=False)}" for row in settings_rows()) + "\n]\n"


def settings_page() -> str:
    """Every setting with its key, environment, default and reason."""
    lines = [
        "# Settings\n\n" + MADE + "A flag wins over the environment, which wins over `config.toml` in `MYCELIUM_HOME`"
        " (default `~/.mycelium`; `MYCELIUM_DATA_DIR` is another name for it). `mycelium config show` tells the value"
        " and source of each; `mycelium config set KEY VALUE` writes the file.\n",
        "| key | environment | default | may be | unit | why | read by |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in settings_rows():
        names = row["env"]
        assert isinstance(names, list)
        environment = ", ".join(f"`{name}`" for name in names)
        default = f"`{row['default']}`" if row["default"] != "" else ""
        reader = "every command" if row["scope"] == "cli" else "the hub"
        cells = [f"`{row['key']}`", environment, default, _bounds(row), row["unit"], row["why"], reader]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    rows = (f"| `{name}` | {why} |" for name, why in ENVIRONMENT_ALONE)
    lines += ["\n## In the environment alone\n", "| variable | what it is for |", "|---|---|", *rows]
    return "\n".join(lines) + "\n"


def _bounds(row: dict[str, object]) -> str:
    """What a setting may be, as `config set` holds it to."""
    choices, least, most = (row.get(name) for name in ("choices", "least", "most"))
    if isinstance(choices, list | tuple):
        return ", ".join(f"`{choice}`" if choice else "empty" for choice in choices)
    if isinstance(row["default"], bool):
        return "`true`, `false`"
    if least is None and most is None:
        return "0 to 65535" if row["unit"] == "port" else ""
    return f"{least} or more" if most is None else f"at most {most}" if least is None else f"{least} to {most}"


def commands_page() -> str:
    """The help of every command, as it is printed."""
    parts = ["# Commands\n\n" + MADE + "Every command takes `--json`, `--verbose` and `--help`.\n"]
    root = cli.root()
    for path, command in _walk(root, ["mycelium"]):
        context = click.Context(command, info_name=" ".join(path), terminal_width=100, max_content_width=100)
        parts.append(f"## {' '.join(path)}\n\n```text\n{command.get_help(context)}\n```\n")
    return "\n".join(parts)


def _walk(command: click.Command, path: list[str]) -> list[tuple[list[str], click.Command]]:
    found = [(path, command)]
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            if child is not None:
                found += _walk(child, [*path, name])
    return found


def errors_page() -> str:
    """Every slug, its status, and what to do."""
    return (
        "# Errors\n\n" + MADE + "An error is a problem document (RFC 9457, `application/problem+json`) with `slug`,"
        " which is stable, `detail`, and where it helps `next`: a command that gets you further.\n\n"
        + mycelium_gateway.reference.table()
    )


def http_page() -> str:
    """Every operation: what it does, what it takes, what it answers."""
    document: Json = json.loads(CONTRACT.read_text(encoding="utf-8"))
    shown = "A running hub shows this document at `/docs`, and as OpenAPI at `/openapi.json`.\n"
    parts = [f"# HTTP\n\n{MADE}{document['info']['description']}\n{shown}"]
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            parts.append(_operation(document, f"{method.upper()} {path}", operation))
    return "\n".join(parts)


def _operation(document: Json, title: str, operation: Json) -> str:
    said = f"{operation['summary']}. {operation.get('description', '')}".strip()
    lines = [f"## {title}\n", said + "\n", MEANING[Access(operation["x-access"])] + "\n"]
    parameters = [_resolved(document, parameter) for parameter in operation.get("parameters", [])]
    rows = [_taken(f"{one['in']} `{one['name']}`", one.get("schema", {}), one) for one in parameters]
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
    if body:
        schema = _resolved(document, body)
        for name, field in schema.get("properties", {}).items():
            rows.append(_taken(f"body `{name}`", field, {"required": name in schema.get("required", [])} | field))
    if rows:
        lines += ["| takes | kind | |", "|---|---|---|", *rows, ""]
    answers = [
        f"- {status}: {_resolved(document, one)['description']}" for status, one in operation["responses"].items()
    ]
    return "\n".join([*lines, *answers, ""])


def _resolved(document: Json, node: Json) -> Json:
    if "$ref" not in node:
        return node
    found: Any = document
    for part in node["$ref"].removeprefix("#/").split("/"):
        found = found[part]
    resolved: Json = found
    return resolved


def _taken(name: str, schema: Json, said: Json) -> str:
    kinds = [one.get("type", "") for one in schema.get("anyOf", [schema])]
    kind = " or ".join(kind for kind in kinds if kind and kind != "null") or "object"
    text = str(said.get("description", "")).replace("\n", " ").replace("|", "\\|")
    return f"| {name} | {kind}{', required' if said.get('required') else ''} | {text} |"


PAGES = {
    SETTINGS_JSON: settings_json,
    ROOT / "docs/reference/settings.md": settings_page,
    ROOT / "docs/reference/commands.md": commands_page,
    ROOT / "docs/reference/errors.md": errors_page,
    ROOT / "docs/reference/http.md": http_page,
}


def main(*, check: bool) -> int:
    """Write every page, or with `check` say which are behind. Returns the exit status."""
    behind = [path for path, make in PAGES.items() if not path.exists() or path.read_text(encoding="utf-8") != make()]
    for path in behind:
        if check:
            print(f"behind the code: {path.relative_to(ROOT)}", file=sys.stderr)
        else:
            path.write_text(PAGES[path](), encoding="utf-8")
            print(f"wrote {path.relative_to(ROOT)}")
    return 1 if check and behind else 0


if __name__ == "__main__":
    sys.exit(main(check="--check" in sys.argv[1:]))
