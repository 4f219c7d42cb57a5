"""`python -m mycelium_hub`, the form in which the hub starts itself, so that its command line names its home."""

from mycelium_hub.main import run

run()
