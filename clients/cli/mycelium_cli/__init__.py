"""The `mycelium` command: parses, makes one HTTP request, prints. It imports nothing of the hub."""

__version__ = "0.1.0"
