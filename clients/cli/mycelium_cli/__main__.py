"""`python -m mycelium_cli`."""

from mycelium_cli.main import run

run()
