"""Writes what of the chart is made from the code: the NATS server's settings and what each of its users may do.

`python charts/generate.py` writes `mycelium/files/nats.json`; with `--check` it changes nothing and fails when the file
is behind. The chart adds only what differs from one machine: names, addresses, passwords, the size of the volume.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

from mycelium_hub import nats_config
from mycelium_hub.home import Home
from mycelium_hub.services import PARTS

FILE = Path(__file__).parent / "mycelium/files/nats.json"
# A server of one machine has a folder and a port of its own; a pod has a volume and an address.
OF_A_MACHINE = ("server_name", "listen", "log_file", "logfile_size_limit", "logfile_max_num", "logtime_utc")
OF_ITS_DISK = ("store_dir", "max_file_store")


def nats() -> dict[str, Any]:
    """The settings of one server as the hub writes them, and each user's permissions by account and name."""
    with tempfile.TemporaryDirectory() as folder:
        place = nats_config.Place(1, 4222)
        users = [part.user for part in PARTS]
        config = json.loads(nats_config.render(Home(Path(folder)), place, users, defaultdict(str)))
    accounts = config.pop("accounts")
    for name in OF_A_MACHINE:
        del config[name]
    for name in OF_ITS_DISK:
        del config["jetstream"][name]
    return {
        "server": config,
        "accounts": {
            name: {
                **{key: value for key, value in account.items() if key != "users"},
                "users": {user["user"]: user["permissions"] for user in account["users"]},
            }
            for name, account in accounts.items()
        },
    }


def main() -> int:
    """Write, or check; the exit status."""
    text = json.dumps(nats(), indent=2) + "\n"
    if "--check" not in sys.argv[1:]:
        FILE.write_text(text, encoding="utf-8")
        return 0
    if FILE.exists() and FILE.read_text(encoding="utf-8") == text:
        return 0
    print(f"{FILE.name} is behind the code: python charts/generate.py", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
